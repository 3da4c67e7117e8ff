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
    """The message; the table stays without an instant and without a file of data."""
    given = pa.RecordBatchReader.from_batches(rows[0].schema, rows)
    with pytest.raises(WriteError) as caught:
        hudi_py.write(path, given, operation=operation, settings=SETTINGS | settings)
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
