"""Rows of all that real Hudi wrote, as PyArrow, DuckDB and polars take them from our streams."""

from __future__ import annotations

import pyarrow as pa
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


def table_and_answer(name, folder):
    """The table, what real Hudi reads of its latest snapshot, and the meta columns in the hash of that."""
    if name in fixtures.row_fixture_names():
        return fixtures.unpack_rows(name, folder), fixtures.expected_rows(name)["snapshot"], ()
    path, reads = fixtures.unpack_combined(name, folder)
    return path, reads.get("snapshot"), () if name.startswith("virtual") else fixtures.HASHED_META


@pytest.mark.parametrize("name", [*fixtures.row_fixture_names(), *fixtures.combined_names()])
def test_other_readers_show_what_hudi_reads(name, tmp_path):
    """All types, merged and widened: nothing is lost on the way through a stream."""
    path, answer, kept = table_and_answer(name, tmp_path)
    if answer is None or "error" in answer:
        pytest.skip("real Hudi reads no snapshot of it")
    rows = hudi_py.open_table(path).rows(with_meta=True)
    for reader in (by_pyarrow, by_duckdb, by_polars, by_polars_lazily):
        found = [row for batch in reader(rows).to_batches() for row in plain_rows(batch)]
        assert (len(found), fixtures.row_hash(found, kept)) == (answer["rows"], answer["hash"]), reader.__name__
