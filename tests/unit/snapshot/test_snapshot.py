"""Rows without Spark: files of different ages read as one table, and values as text."""

import json
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError, CorruptMetadata, UnsupportedTable
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.record_schema import format_record_schema
from hudi_py.model.files import format_base_file, parse_base_file
from hudi_py.rows.read import chosen_columns, flat_batch, plain_rows, read_batches, row_schema
from hudi_py.storage.memory import MemoryStorage
from support.writes import CHANGES, create_table, open_table, upsert
from support.writes import OLD as OLD_TABLE

OLD = pa.schema([("id", pa.string()), ("n", pa.int32()), ("f", pa.float32())])
NUMBERS = pa.list_(pa.field("element", pa.int32()))
NEW = pa.schema([("id", pa.string()), ("n", pa.int64()), ("f", pa.float64()), ("extra", NUMBERS)])
OLD_ROWS = [{"id": "a", "n": 1, "f": 0.5}]
NEW_ROWS = [{"id": "b", "n": 2**40, "f": 0.25, "extra": [7]}]


@pytest.fixture
def storage():
    return MemoryStorage("/lake/trips")


def put(storage, number, schema, rows):
    """One base file as a commit of that number leaves it."""
    name = format_base_file(f"f{number}-0", "0-0-0", f"2026010100000000{number}")
    full = pa.schema([*(pa.field(each, pa.string()) for each in META_COLUMNS), *schema])
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(rows, schema=full), sink)
    storage.create_new(name, sink.getvalue().to_pybytes())
    return "", parse_base_file(name)


@pytest.fixture
def files(storage):
    """A table that gained a column and two wider types, and one file from before."""
    return [put(storage, 1, OLD, OLD_ROWS), put(storage, 2, NEW, NEW_ROWS)]


def rows_of(storage, files, schema):
    return [row for batch in read_batches(storage, files, schema) for row in plain_rows(batch)]


@pytest.mark.parametrize("text", [format_record_schema(NEW, "trips"), None], ids=["commit", "newest file"])
def test_files_of_every_age_have_the_columns_and_types_of_the_table(storage, files, text):
    """A column that came later is null in older files; whoever writes the batches on needs one schema."""
    schema = chosen_columns(row_schema(storage, lambda: files, text), None)
    assert [{**OLD_ROWS[0], "extra": None}, *NEW_ROWS] == rows_of(storage, files, schema)
    assert {NEW} == {batch.schema for batch in read_batches(storage, files, schema)}
    assert rows_of(storage, files, schema) == rows_of(storage, files[::-1], schema)[::-1]


def test_a_schema_that_cannot_be_written_can_be_read(storage, files):
    """Types that only Hudi writes are read as they are in the files."""
    record = json.loads(format_record_schema(NEW, "trips"))
    record["fields"][0]["type"] = ["null", {"type": "enum", "name": "e", "symbols": ["a", "b"]}]
    assert NEW == row_schema(storage, lambda: files, json.dumps(record))


def test_columns_are_chosen_from_the_table_and_not_from_a_file(storage, files):
    """A column that some files lack may be asked for; one that no file has is refused, with what there is."""
    schema = row_schema(storage, lambda: files, None)
    assert [{"extra": None}, {"extra": [7]}] == rows_of(storage, files, chosen_columns(schema, ["extra"]))
    assert (*META_COLUMNS, "n") == tuple(chosen_columns(schema, ["n"], with_meta=True).names)
    with pytest.raises(ConfigError, match="no column nope; it has id, n, f, extra"):
        chosen_columns(schema, ["nope", "n"])
    with pytest.raises(ConfigError, match="no column is named"):
        chosen_columns(schema, [])


def test_a_table_without_files_has_the_columns_of_its_schema(storage):
    """So that an empty result still says what the rows would look like."""
    assert NEW == row_schema(storage, list, format_record_schema(NEW, "trips"))
    assert not row_schema(storage, list, None).names


@pytest.mark.parametrize("damage", [lambda data: b"x" + data[:3] + b"y" * (len(data) - 1004) + data[-1000:], bytes])
def test_a_damaged_file_is_named(storage, files, damage):
    """Whatever kind of error pyarrow makes of it."""
    path = files[1][1].name
    content = storage.read(path)
    schema = row_schema(storage, lambda: files, None)
    storage.delete(path)
    storage.create_new(path, damage(len(content)) if damage is bytes else damage(content))
    with pytest.raises(CorruptMetadata, match=path):
        rows_of(storage, files, schema)


def test_values_as_text():
    """What JSON cannot hold becomes text; a map is an object, also an empty one."""
    kinds = {
        "map": (pa.map_(pa.string(), pa.list_(pa.date32())), [("k", [date(2024, 2, 29)])], {"k": ["2024-02-29"]}),
        "none": (pa.map_(pa.string(), pa.int32()), [], {}),
        "list": (
            pa.list_(pa.struct([("d", pa.decimal128(5, 2))])),
            [{"d": Decimal("1.5")}, None],
            [{"d": "1.50"}, None],
        ),
        "bytes": (pa.binary(), b"\x00\xff", "AP8="),
        "moment": (pa.timestamp("us", "UTC"), datetime(2024, 1, 1, tzinfo=timezone.utc), "2024-01-01 00:00:00"),
        "nan": (pa.float64(), float("nan"), "nan"),
        "null": (pa.struct([("a", pa.int32())]), None, None),
    }
    schema = pa.schema([(name, kind) for name, (kind, _, _) in kinds.items()])
    batch = pa.RecordBatch.from_pylist([{name: value for name, (_, value, _) in kinds.items()}], schema=schema)
    expected = {name: text for name, (_, _, text) in kinds.items()}
    assert [expected] == plain_rows(batch)
    flat = plain_rows(flat_batch(batch))[0]
    assert {name: json.loads(flat[name]) for name in ("map", "none", "list")} == {
        name: expected[name] for name in ("map", "none", "list")
    }
    assert flat["null"] is None


def test_times_beyond_the_calendar_are_refused_with_the_way_out():
    """Parquet holds years that Python has no value for."""
    batch = pa.RecordBatch.from_arrays([pa.array([2**62]).cast(pa.timestamp("us"))], names=["t"])
    with pytest.raises(UnsupportedTable, match=r"--columns.*\.parquet"):
        plain_rows(batch)


@pytest.mark.parametrize("version", [6, 9])
def test_a_savepointed_first_commit_is_read_as_of_its_time_before_anything_is_archived(version):
    """Its timeline begins behind the savepoint; but no archive has to tell of files of active commits."""
    storage = create_table(version)
    upsert(storage, OLD_TABLE)
    opened = open_table(storage)
    opened.create_savepoint()
    upsert(storage, CHANGES)
    (first, _) = open_table(storage).timeline.completed("commit")
    for time in (first.requested_time, f"{int(first.requested_time) + 1}"):
        rows = open_table(storage).as_of(time).rows().to_arrow().to_pylist()
        assert sorted(rows, key=lambda row: row["id"]) == OLD_TABLE
