"""Rows of all that real Hudi wrote, as PyArrow, DuckDB and polars take them from our streams."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import hudi_py
from hudi_py.rows.read import plain_rows
from support import fixtures


def by_pyarrow(rows):
    return pa.RecordBatchReader.from_stream(rows).read_all()


def by_duckdb(rows):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    return connection.sql("select * from rows").to_arrow_table()


def by_polars(rows):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(rows).to_arrow()


def by_polars_lazily(rows):
    pytest.importorskip("polars")
    return rows.to_polars_lazy().collect().to_arrow()


def by_duckdb_from_a_dataset(rows):
    return by_duckdb(rows.to_dataset())


def by_polars_from_a_dataset(rows):
    polars = pytest.importorskip("polars")
    return polars.scan_pyarrow_dataset(rows.to_dataset()).collect().to_arrow()


READERS = (by_pyarrow, by_duckdb, by_polars, by_polars_lazily, by_duckdb_from_a_dataset, by_polars_from_a_dataset)


def some_filters(whole):
    """Filters with values of the rows, on each column that has values to compare."""
    rng = random.Random(5)
    for name in whole.schema.names:
        values = [value for value in whole.column(name) if value.is_valid]
        field = ds.field(name)
        yield field.is_null() | ~field.is_valid()
        if not values or pa.types.is_nested(values[0].type):
            continue
        value, other = rng.choice(values), rng.choice(values)
        yield from (field == value, field > value, ~(field <= value) | (field == other))


def table_and_answer(name, folder):
    """The table, what real Hudi reads of its latest snapshot, and the meta columns in the hash of that."""
    if name in fixtures.row_fixture_names():
        return fixtures.unpack_rows(name, folder), fixtures.expected_rows(name)["snapshot"], ()
    path, reads = fixtures.unpack_combined(name, folder)
    return path, reads.get("snapshot"), () if name.startswith("virtual") else fixtures.HASHED_META


def rows_that_hudi_reads(name, folder):
    """The rows with meta columns, and what real Hudi answers."""
    path, answer, kept = table_and_answer(name, folder)
    if answer is None or "error" in answer:
        pytest.skip("real Hudi reads no snapshot of it")
    return hudi_py.open_table(path).rows(with_meta=True), answer, kept


TABLES = pytest.mark.parametrize("name", [*fixtures.row_fixture_names(), *fixtures.combined_names()])


@TABLES
def test_other_readers_show_what_hudi_reads(name, tmp_path):
    """All types, merged and widened: nothing is lost on the way through a stream."""
    rows, answer, kept = rows_that_hudi_reads(name, tmp_path)
    for reader in READERS:
        found = [row for batch in reader(rows).to_batches() for row in plain_rows(batch)]
        assert (len(found), fixtures.row_hash(found, kept)) == (answer["rows"], answer["hash"]), reader.__name__


@TABLES
def test_filters_of_a_dataset_choose_among_all_rows(name, tmp_path):
    """Whatever is left out by statistics, indexes and paths: the rows that Arrow chooses among all of the read."""
    rows, _, _ = rows_that_hudi_reads(name, tmp_path)
    whole, dataset = rows.to_arrow(), rows.to_dataset()
    for chosen in some_filters(whole):
        found = dataset.to_table(["_hoodie_record_key"], chosen)
        assert found.equals(ds.dataset(whole).to_table(["_hoodie_record_key"], chosen)), str(chosen)
