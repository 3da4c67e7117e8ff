"""Avro records to Arrow columns: as fastavro reads them, and nothing but errors from bytes that are no records."""

import contextlib
import io
import json
from datetime import datetime, timezone
from decimal import Decimal

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata, UnsupportedTable, WriteError
from hudi_py.formats.avro_columns import decode_columns
from hudi_py.formats.avro_rows import encode_data_block
from hudi_py.formats.log_block import split_data_block
from hudi_py.formats.record_schema import format_record_schema
from support.laws import examples

UTC = timezone.utc
LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
MOMENT = st.datetimes()
TYPES = {
    "string": (pa.string(), TEXT),
    "bytes": (pa.binary(), st.binary(max_size=4)),
    "int": (pa.int32(), INT),
    "long": (pa.int64(), LONG),
    "double": (pa.float64(), st.floats(allow_nan=False)),
    "float": (pa.float32(), st.floats(allow_nan=False, width=32)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "instant": (pa.timestamp("us", "UTC"), MOMENT.map(lambda each: each.replace(tzinfo=UTC))),
    "local": (pa.timestamp("us"), MOMENT),
    "decimal": (
        pa.decimal128(20, 2),
        st.integers(-(10**20) + 1, 10**20 - 1).map(lambda each: Decimal(each).scaleb(-2)),
    ),
}


def leaf(name):
    return st.just(TYPES[name])


def pairs(mapping):
    return list(mapping.items())


def nested(inner):
    def of(kind):
        arrow, values = kind
        optional = st.none() | values
        return st.sampled_from(
            [
                (pa.list_(pa.field("element", arrow)), st.lists(optional, max_size=3)),
                (pa.map_(pa.string(), arrow), st.dictionaries(TEXT, optional, max_size=2).map(pairs)),
                (pa.struct([pa.field("x", arrow), pa.field("y", pa.int64())]),
                 st.fixed_dictionaries({"x": optional, "y": st.none() | LONG})),
            ]
        )  # fmt: skip

    return inner.flatmap(of)


kinds = st.recursive(st.sampled_from(sorted(TYPES)).flatmap(leaf), nested, max_leaves=3)


def joined(bodies):
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes)
    return b"".join(bodies), ends - sizes, ends


def plain(value):
    """As fastavro takes it: pyarrow gives maps as pairs."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: plain(each) for key, each in value}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return value


def encode(schema, rows):
    parsed = fastavro.parse_schema(json.loads(schema))
    bodies = []
    for row in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, row)
        bodies.append(out.getvalue())
    return joined(bodies)


def drawn_rows(data):
    """A schema and a table of up to five rows of it."""
    fields, columns, count = [], {}, data.draw(st.integers(0, 5))
    for number in range(data.draw(st.integers(1, 3))):
        arrow, values = data.draw(kinds)
        optional = data.draw(st.booleans())
        fields.append(pa.field(f"c{number}", arrow, optional))
        drawn = data.draw(st.lists(st.none() | values if optional else values, min_size=count, max_size=count))
        columns[f"c{number}"] = pa.array(drawn, arrow)
    schema = pa.schema(fields)
    return schema, pa.table(columns)


@examples(60)
@given(st.data())
def test_columns_are_what_was_written(data):
    """Every type that a table stores, nulls and nesting included, as PyArrow holds the same values."""
    schema, as_written = drawn_rows(data)
    text = format_record_schema(schema, "t")
    columns = {name: as_written.column(name) for name in as_written.column_names}
    empty_map = {name for name, each in columns.items() if pa.types.is_map(each.type)}
    rows = []
    for row in as_written.to_pylist():
        rows.append({k: ({} if k in empty_map and v == [] else plain(v)) for k, v in row.items()})
    with contextlib.suppress(ValueError):  # an empty map within a list looks like an empty list
        found = decode_columns(*encode(text, rows), text, "x")
        assert found.to_pylist() == as_written.to_pylist()
        assert [field.name for field in found.schema] == [field.name for field in schema]


@examples(60)
@given(st.data())
def test_rows_encoded_for_a_log_block_are_read_as_they_were(data):
    """Of every type that a table stores, from the middle of larger arrays too."""
    schema, table = drawn_rows(data)
    text = format_record_schema(schema, "t")
    rows = table.cast(schema).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], schema=schema)]
    rows = rows[0].slice(data.draw(st.integers(0, rows[0].num_rows)))
    bodies = split_data_block(encode_data_block(rows, text), "x")
    assert decode_columns(*joined(bodies), text, "x").to_pylist() == rows.to_pylist()


def test_numbers_and_texts_are_encoded_as_by_fastavro():
    """Byte for byte, up to the longest numbers; a null where the table has none is refused."""
    schema = pa.schema([pa.field("n", pa.int64(), nullable=False), ("t", pa.string()), ("b", pa.bool_())])
    numbers = [0, -1, 63, 64, -64, -65, 2**63 - 1, -(2**63)]
    rows = [{"n": n, "t": None if n == 63 else "é" * abs(n % 99), "b": n < 0} for n in numbers]
    text = format_record_schema(schema, "t")
    block = encode_data_block(pa.RecordBatch.from_pylist(rows, schema=schema), text)
    assert b"".join(split_data_block(block, "x")) == encode(text, rows)[0]
    with pytest.raises(WriteError, match="'n' has 1 null,"):
        encode_data_block(
            pa.RecordBatch.from_arrays([[None], ["x"], [True]], names=schema.names).cast(
                pa.schema([field.with_nullable(True) for field in schema])
            ),
            text,
        )


SCHEMA = json.dumps({"type": "record", "name": "r", "fields": [
    {"name": "id", "type": "string"}, {"name": "n", "type": ["null", "long"]},
    {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
    {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A", "B"]}},
    {"name": "raw", "type": {"type": "fixed", "name": "f", "size": 2}},
    {"name": "big", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3}},
    {"name": "old", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "none", "type": "null"},
]})  # fmt: skip
ROW = {"id": "a", "n": None, "tags": ["x", None], "kind": "B", "raw": b"\x01\x02", "big": Decimal("-1.250"),
       "old": datetime(2024, 1, 1, tzinfo=UTC), "none": None}  # fmt: skip


def test_types_that_only_other_writers_use_are_read():
    """Enums, fixed bytes, decimals in bytes, milliseconds."""
    found = decode_columns(*encode(SCHEMA, [ROW, {**ROW, "kind": "A", "big": Decimal(0)}]), SCHEMA, "x")
    assert found.to_pylist() == [ROW, {**ROW, "kind": "A", "big": Decimal(0)}]


def test_only_columns_asked_for_are_built():
    """The others are passed over."""
    found = decode_columns(*encode(SCHEMA, [ROW]), SCHEMA, "x", frozenset({"n", "old", "other"}))
    assert found.to_pylist() == [{"n": None, "old": ROW["old"]}]
    assert decode_columns(*encode(SCHEMA, [ROW, ROW]), SCHEMA, "x", frozenset()).num_rows == 2


def test_lists_in_several_blocks_are_whole():
    """Writers may split a list, and say the bytes of a block where its count is negative."""
    text = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "l", "type": {"type": "array", "items": "int"}}]}
    )
    body = b"\x04\x02\x04" + b"\x01\x02\x06" + b"\x00"  # two; minus one in one byte; end
    assert decode_columns(*joined([body]), text, "x").to_pylist() == [{"l": [1, 2, 3]}]


@given(st.integers(0, 40), st.binary(min_size=1, max_size=6))
def test_damaged_bytes_are_an_error_or_rows(at, damage):
    """Whatever stands there: no other exception, and no memory beyond that of the bytes."""
    data, starts, ends = encode(SCHEMA, [ROW, ROW])
    broken = (data[:at] + damage + data[at + len(damage) :])[: len(data)]
    with contextlib.suppress(CorruptMetadata):
        assert decode_columns(broken, starts, ends, SCHEMA, "x").num_rows == 2


@pytest.mark.parametrize(
    "body",
    [
        b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a text of 2**62 bytes
        b"\x01",  # of -1
        b"\x02",  # cut
        b"\xff" * 12,  # a number that does not end
        b"\x02aa",  # a byte left over
    ],
)
def test_lengths_are_held_against_the_record(body):
    """Before anything of that length is read."""
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "s", "type": "string"}]})
    data, starts, ends = joined([body, b"\x02a"])
    with pytest.raises(CorruptMetadata, match="do not decode"):
        decode_columns(data, starts, ends, text, "x")


def test_elements_without_bytes_are_bounded():
    """A list of nulls takes no bytes for its elements, so its count could be anything."""
    text = json.dumps(
        {"type": "record", "name": "r", "fields": [{"name": "l", "type": {"type": "array", "items": "null"}}]}
    )
    with pytest.raises(CorruptMetadata):
        decode_columns(*joined([b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"]), text, "x")


@pytest.mark.parametrize(
    "columns", [[{"name": "u", "type": ["null", "int", "string"]}], [{"name": "u", "type": "marvel"}]]
)
def test_types_that_hudi_does_not_write_are_named(columns):
    """A union of two types has no column type."""
    text = json.dumps({"type": "record", "name": "r", "fields": columns})
    with pytest.raises((UnsupportedTable, CorruptMetadata), match="'u'"):
        decode_columns(b"", np.array([]), np.array([]), text, "x")


@pytest.mark.parametrize("text", ["", "{}", '"int"', '{"type": "record", "name": "r", "fields": [{}]}', "[" * 9000])
def test_a_damaged_schema_is_damage(text):
    """Whatever the header of the block holds."""
    with pytest.raises(CorruptMetadata):
        decode_columns(b"", np.array([]), np.array([]), text, "x")
