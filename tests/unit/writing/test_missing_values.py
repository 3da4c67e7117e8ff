"""Rows without a key or an ordering value are refused with the number of all of them, and nothing is written."""

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import WriteError
from support.writes import SCHEMA

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
}
SPILLED = {"hoodie.memory.merge.max.size": 2000}
GOOD = [{"id": f"k{number}", "region": f"r{number % 3}", "ts": 1} for number in range(50)]


def batches(*bad):
    """Good rows, and each bad one at the end of a batch of its own, in another partition each time."""
    return [
        pa.RecordBatch.from_pylist([*GOOD, {"id": "x", "region": f"r{number % 3}", "ts": 1} | row], SCHEMA)
        for number, row in enumerate(bad)
    ]


def refused(path, rows, operation="upsert", **settings):
    """The message; there is no table, or for rows that are read later one without an instant and a file of data."""
    given = pa.RecordBatchReader.from_batches(rows[0].schema, rows)
    with pytest.raises(WriteError) as caught:
        hudi_py.write(path, given, operation=operation, settings=SETTINGS | settings)
    if path.exists():
        assert SPILLED.items() <= settings.items()
        assert not hudi_py.open_table(path).timeline.instants
    assert not [*path.rglob("*.parquet")]
    return str(caught.value)


@pytest.mark.parametrize("way", [{}, SPILLED, SPILLED | {"hoodie.index.type": "GLOBAL_SIMPLE"}], ids=str)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite"])
def test_all_rows_without_a_key_are_counted(tmp_path, operation, way):
    """Null and empty keys of all partitions, however the rows are written."""
    bad = batches({"id": None}, {"id": ""}, {}, {"id": None}, {"id": ""})
    assert "record key id is null or empty in 4 rows" in refused(tmp_path / "t", bad, operation, **way)


@pytest.mark.parametrize("way", [{}, SPILLED, SPILLED | {"hoodie.index.type": "GLOBAL_SIMPLE"}], ids=str)
def test_all_rows_without_an_ordering_value_are_counted(tmp_path, way):
    """Where one of several rows of a key is chosen; where none is, nulls are kept, as in Apache Hudi."""
    bad = batches({"ts": None}, {}, {"ts": None}, {"ts": None})
    combined = way | {"hoodie.combine.before.insert": True}
    assert "ordering field 'ts' is null in 3 rows" in refused(tmp_path / "t", bad, **way)
    assert "ordering field 'ts' is null in 3 rows" in refused(tmp_path / "t", bad, "insert", **combined)
    given = pa.RecordBatchReader.from_batches(SCHEMA, bad)
    hudi_py.write(tmp_path / "t", given, operation="bulk_insert", settings=SETTINGS | way)
    assert hudi_py.open_table(tmp_path / "t").rows(columns=["ts"]).to_arrow()["ts"].null_count == 3


def test_a_row_that_is_deleted_needs_no_ordering_value(tmp_path):
    """Its key says enough; the others are counted."""
    schema = SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    rows = [("a", None, True), ("b", None, False), ("c", None, None), ("d", 1, False)]
    given = [{"id": key, "region": "eu", "ts": ts, "_hoodie_is_deleted": is_deleted} for key, ts, is_deleted in rows]
    message = refused(tmp_path / "t", [pa.RecordBatch.from_pylist(given, schema)])
    assert "ordering field 'ts' is null in 2 rows" in message


def test_of_several_key_columns_one_value_is_enough(tmp_path):
    """Only rows that have none of them are counted, and all columns are named."""
    bad = batches({"id": None}, {"id": "", "ts": None}, {"id": None, "ts": None})
    both = {"hoodie.datasource.write.recordkey.field": "id,ts", "hoodie.table.ordering.fields": ""}
    assert "record key id, ts is null or empty in 2 rows" in refused(tmp_path / "t", bad, **both)


def places(*, nullable):
    """Columns with one place that may or may not be null, with a row that lacks it and one that does not."""
    number = pa.field("q", pa.int32(), nullable=nullable)
    struct = pa.struct([number, ("n", pa.int32())])
    return {
        "c": (number.with_name("c"), None, 1),
        "c.q": (pa.field("c", struct), {"q": None, "n": 1}, {"q": 1, "n": None}),
        "c.element": (pa.field("c", pa.list_(number.with_name("element"))), [1, None], None),
        "c.value.q": (pa.field("c", pa.map_(pa.string(), struct)), [("k", {"q": None, "n": 1})], [("k", None)]),
    }


@pytest.mark.parametrize("way", [{}, SPILLED, SPILLED | {"hoodie.index.type": "GLOBAL_SIMPLE"}], ids=str)
@pytest.mark.parametrize("operation", ["upsert", "bulk_insert"])
@pytest.mark.parametrize("path", places(nullable=False))
def test_all_nulls_in_required_places_are_counted(tmp_path, path, operation, way):
    """What the schema of the rows, or of the table, requires at any depth."""

    def given(*values, nullable=False):
        rows = [{"id": f"k{number}", "region": "eu", "ts": 1, "c": value} for number, value in enumerate(values)]
        return pa.RecordBatch.from_pylist(rows, SCHEMA.append(places(nullable=nullable)[path][0]))

    _, bad, good = places(nullable=False)[path]
    batches = [given(good, good, bad), given(good), given(bad, good, bad)]
    assert f"column {path!r} is null in 3 places" in refused(tmp_path / "t", batches, operation, **way)
    hudi_py.write(tmp_path / "t", given(good, good), operation=operation, settings=SETTINGS | way)
    with pytest.raises(WriteError, match=f"column '{path}' is null in 1 place"):
        hudi_py.write(tmp_path / "t", given(good, bad, nullable=True), operation=operation, settings=SETTINGS | way)
    shown = hudi_py.open_table(tmp_path / "t").rows(columns=["c"]).to_arrow()["c"].to_pylist()
    assert shown == [good, good]


def test_what_only_the_rows_require(tmp_path):
    """A column that the table lets be null, in rows that say that theirs never is."""
    hudi_py.write(tmp_path / "t", pa.Table.from_pylist(GOOD, SCHEMA), settings=SETTINGS)
    strict = pa.schema([SCHEMA.field(0), SCHEMA.field(1), SCHEMA.field(2).with_nullable(nullable=False)])
    rows = pa.RecordBatch.from_pylist([GOOD[0] | {"ts": None}], strict)
    with pytest.raises(WriteError, match="column 'ts' is null in 1 place"):
        hudi_py.write(tmp_path / "t", rows, operation="bulk_insert", settings=SETTINGS)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_statements_leave_no_row_without_an_ordering_value(tmp_path, kind, version):
    """
    Neither changed nor inserted rows come to lack one, as in an upsert; those that lack one may be changed and mended.

    Where log files are ordered, too, the refusal says that the changed row would not be seen.
    """
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    settings["hoodie.datasource.write.precombine.field"] = settings.pop("hoodie.table.ordering.fields")
    rows = [{"id": "a", "region": "eu", "ts": 1}, {"id": "b", "region": "eu", "ts": None}]
    hudi_py.write(tmp_path / "t", pa.Table.from_pylist(rows, SCHEMA), operation="insert", settings=settings)
    table = hudi_py.open_table(tmp_path / "t", settings=settings)

    def source(key):
        return pa.Table.from_pylist([{"id": key, "region": "eu", "ts": None}], SCHEMA)

    refused_statements = (
        lambda: table.update({"ts": "null"}, where="id is not null"),
        lambda: table.merge(source("a"), on="id").when_matched_update().execute(),
        lambda: table.merge(source("z"), on="id").when_not_matched_insert().execute(),
        lambda: table.merge(source("z"), on="id").when_not_matched_by_source_update({"ts": "null"}).execute(),
    )
    for statement in refused_statements:
        with pytest.raises(WriteError, match=r"ordering field 'ts' is null in 1 row|updated rows would not be seen"):
            statement()
    assert sorted(table.rows().to_arrow().to_pylist(), key=lambda row: row["id"]) == rows
    table.merge(source("b"), on="id").when_matched_update().execute()
    table.update({"ts": "2"}, where="id = 'b'")
    assert sorted(table.rows(columns=["ts"]).to_arrow()["ts"].to_pylist()) == [1, 2]
