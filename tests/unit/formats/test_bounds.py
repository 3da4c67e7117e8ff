"""Small inputs never become large ones; nothing that Hudi or we write comes near the bounds."""

from __future__ import annotations

import io
import json
import zlib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats import bounds
from hudi_py.formats.avro_columns import decode_columns
from hudi_py.formats.avro_file import MAGIC, _parse_header, decode_record
from hudi_py.formats.avro_registry import schema_files, schema_text
from hudi_py.formats.commit_json import decode_json
from hudi_py.formats.lsm_history import read_history
from hudi_py.formats.properties import parse_properties
from hudi_py.formats.record_schema import parse_record_schema
from support.fixtures import fixture_names, metadata_files


@pytest.mark.parametrize("name", schema_files())
def test_schemas_of_hudi_keep_the_bounds(name):
    """Each one that is shipped."""
    record, _, rest = name.partition(".")
    bounds.check_schema(json.loads(schema_text(record, int(rest[1]) if rest[:1] == "v" else 9)))


@pytest.mark.parametrize("name", fixture_names()[::7])
def test_metadata_of_hudi_has_far_fewer_values_than_is_allowed(name):
    """Repeated until its size is one that is looked at, and passes."""
    for data in metadata_files(name).values():
        if data.startswith(MAGIC):
            body = data[_parse_header(data, name).end :]
            if len(body) > 1000:  # what repeats in large ones is in there
                bounds.check_items(body * (1 + bounds.ITEMS_BYTES_ALWAYS // len(body)))


def record(*kinds: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": f"f{i}", "type": kind} for i, kind in enumerate(kinds)]}


def nested(depth: int) -> Any:
    kind: Any = "int"
    for level in range(depth):
        kind = {"type": "record", "name": f"R{level}", "fields": [{"name": "a", "type": kind}]}
    return kind


HOSTILE_SCHEMAS = {
    "null fields": record("int", *["null"] * 5),
    "null fields of an array's items": record({"type": "array", "items": record("int", *["null"] * 5)}),
    "empty records": record("int", *[{"type": "record", "name": f"E{i}", "fields": []} for i in range(5)]),
    "records inside of each other": nested(8),
    "too many fields": record(*["int"] * (bounds.SCHEMA_FIELDS_MAX + 1)),
    "too deep": record(nested(100)),
    "nothing": record(),
    "itself": record(["null", "R"]),
}


@pytest.mark.parametrize("kind", HOSTILE_SCHEMAS)
def test_schemas_that_make_much_of_little_are_refused(kind):
    """Each byte of data would become many values, or there is no end."""
    with pytest.raises(CorruptMetadata, match="x: the Avro schema does not parse"):
        decode_record(bytes(100), json.dumps(HOSTILE_SCHEMAS[kind]), "x")


@pytest.mark.parametrize("growth", [10, 1000])
def test_inflating_stops_at_the_bound(growth):
    """A bomb is refused without being held; data that shrinks as metadata does comes back whole."""
    plain = (b"a" * growth + b"%d") * 1 if growth == 10 else bytes(50 << 20)
    packed = zlib.compress(plain)
    if growth == 10:
        assert bounds.inflate(packed, zlib.MAX_WBITS) == plain
        with pytest.raises(ValueError, match="cut off"):
            bounds.inflate(packed[:-6], zlib.MAX_WBITS)
    else:
        with pytest.raises(ValueError, match="expand to more than"):
            bounds.inflate(packed, zlib.MAX_WBITS)


def test_payloads_of_tiny_values_are_refused_and_texts_are_not():
    """What a null, a flag and an empty text are made of, against paths."""
    for tiny in (b"\0", b"\2\0", b"\2\2a"):
        with pytest.raises(ValueError, match="not metadata of Hudi"):
            bounds.check_items(tiny * (bounds.ITEMS_BYTES_ALWAYS + 1))
    bounds.check_items(b"\2\xc8\1" + b"p=1/0b2d-0_1-2-3_20260101000000000.parquet" * 50_000)
    bounds.check_items(bytes(bounds.ITEMS_BYTES_ALWAYS))


def test_json_of_brackets_is_refused():
    """An empty list takes three bytes on disk and sixty in memory."""
    for data in (b'{"a":[' + b"[]," * 200_000 + b"[]]}", b'{"a":' + b"[" * 500_000):
        with pytest.raises(CorruptMetadata, match="not metadata of Hudi"):
            decode_json(data, "x")


def test_properties_are_small():
    """Joining the lines of a file of hundreds of megabytes would take minutes."""
    with pytest.raises(CorruptMetadata, match="are too many for properties"):
        parse_properties(b"\\\n" * (1 << 23), "x")


@pytest.mark.parametrize("kind", ["a long value in many rows", "many rows"])
def test_history_is_bounded_by_what_it_stands_for(kind):
    """A dictionary holds a value once, whatever the number of rows; the number of rows is bounded too."""
    rows = 2000 if kind == "a long value in many rows" else (1 << 20) + 1
    value = bytes(200_000) if rows == 2000 else b"x"
    times = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), ["20260101000000000"])
    columns = dict.fromkeys(("instantTime", "completionTime", "action"), times)
    binary = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [value])
    table = pa.table({**columns, "metadata": binary, "plan": binary})
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="gzip", store_schema=False, row_group_size=1 << 22)
    assert stream.tell() < 100_000
    with pytest.raises(CorruptMetadata, match="are too many"):
        read_history(stream.getvalue(), "x", with_contents=True)


def twice_each(count: int) -> dict[str, Any]:
    """A schema of a few hundred bytes in which each type has two columns of the one before."""
    kind: Any = "int"
    for number in range(count):
        second = "int" if number == 0 else f"R{number - 1}"
        fields = [{"name": "a", "type": kind}, {"name": "b", "type": second}]
        kind = {"type": "record", "name": f"R{number}", "fields": fields}
    return {"type": "record", "name": "T", "fields": [{"name": "x", "type": kind}]}


def nested(depth: int, within: Any) -> dict[str, Any]:
    kind: Any = "int"
    for number in range(depth):
        kind = within(number, kind)
    return {"type": "record", "name": "T", "fields": [{"name": "x", "type": kind}]}


def a_list(_: int, kind: Any) -> Any:
    return {"type": "array", "items": kind}


def a_record(number: int, kind: Any) -> Any:
    return {"type": "record", "name": f"R{number}", "fields": [{"name": "a", "type": ["null", kind]}]}


HOSTILE_COLUMNS = {
    "each type uses the one before twice": twice_each(40),
    "as many columns as bytes": {
        "type": "record", "name": "T", "fields": [{"name": f"a{number}", "type": "int"} for number in range(200_000)],
    },
    "deep lists": nested(900, a_list),
    "deep records": nested(200, a_record),
    "deep unions": {
        "type": "record", "name": "T", "fields": [{"name": "x", "type": json.loads("[" * 400 + "]" * 400)}],
    },
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE_COLUMNS)
def test_columns_that_grow_without_end_are_refused_before_they_do(kind):
    """In the schema of a table and in that of a log block: a line about it, not hours or an exhausted stack."""
    text = json.dumps(HOSTILE_COLUMNS[kind])
    with pytest.raises(CorruptMetadata, match="columns"):
        parse_record_schema(text)
    with pytest.raises(CorruptMetadata, match="columns"):
        decode_columns(b"", np.zeros(0, np.int64), np.zeros(0, np.int64), text, "a log file")


@pytest.mark.parametrize("within", [a_list, a_record])
def test_columns_may_be_nested_far_deeper_than_anyone_does(within):
    """Sixty levels are read, so the bound meets nobody's table."""
    schema = nested(60, within)
    assert parse_record_schema(json.dumps(schema)).names == ["x"]


def test_a_column_within_itself_is_refused_by_name():
    """It has no end, in Arrow or in Parquet."""
    inner = {"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}
    text = json.dumps({"type": "record", "name": "T", "fields": [{"name": "x", "type": inner}]})
    with pytest.raises(UnsupportedTable, match="contains itself"):
        parse_record_schema(text)
