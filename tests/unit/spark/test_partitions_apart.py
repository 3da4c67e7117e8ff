"""Values of partition columns that Spark is told beside the files are those of all rows in them."""

from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark", reason="needs Spark")

import hudi_py
from hudi_py.spark import read
from support import fixtures

SESSION = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=64))
"""One with many cores."""


@pytest.mark.parametrize("name", fixtures.row_fixture_names())
def test_all_rows_of_a_partition_show_its_value(name, tmp_path, monkeypatch):
    """Of every table that real Hudi wrote, with log files and without."""
    monkeypatch.setattr(read, "_TASKS_MORE", 1000)
    table = hudi_py.open_table(fixtures.unpack_rows(name, tmp_path))
    for asked in ({}, {"read_optimized": True}):
        found = table.rows(with_meta=True, **asked).in_pieces()
        apart = read._apart(SESSION, found)
        assert sorted(map(id, found.pieces)) == sorted(id(piece) for _, some in apart for piece in some.pieces)
        for values, some in apart:
            rows = [row for piece in some.pieces for batch in some.read(piece) for row in batch.to_pylist()]
            for column, value in values:
                assert all(row[column] == value for row in rows), (column, value)
