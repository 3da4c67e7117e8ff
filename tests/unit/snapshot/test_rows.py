"""Rows as others' data: what pyarrow, pandas, polars and DuckDB take of them is what iterating gives."""

from __future__ import annotations

import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

import hudi_py
from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.model.files import FileSlice, format_base_file, parse_base_file
from hudi_py.snapshot.rows import Rows
from hudi_py.storage.memory import MemoryStorage

SCHEMA = pa.schema([("id", pa.string()), ("n", pa.int64())])


def slices(files):
    """File slices of base files alone."""
    return [FileSlice(path, base.file_id, base.instant_time, base) for path, base in files]


@pytest.fixture
def storage():
    return MemoryStorage("/lake/trips")


def put(storage, number, rows):
    """One base file as a commit of that number leaves it."""
    name = format_base_file(f"f{number}-0", "0-0-0", f"2026010100000000{number}")
    sink = pa.BufferOutputStream()
    full = pa.schema([*(pa.field(each, pa.string()) for each in META_COLUMNS), *SCHEMA])
    pa.parquet.write_table(pa.Table.from_pylist(rows, schema=full), sink)
    storage.create_new(name, sink.getvalue().to_pybytes())
    return "", parse_base_file(name)


@pytest.fixture(params=[0, 2], ids=["no files", "two files"])
def rows(request, storage):
    files = [put(storage, at, [{"id": f"k{at}", "n": at}, {"id": f"l{at}", "n": None}]) for at in range(request.param)]
    return Rows(storage, slices(files), SCHEMA)


def listed(rows):
    return [row for batch in rows for row in batch.to_pylist()]


def test_arrow_gets_every_row_in_the_schema_of_the_rows(rows):
    """Also when there are no rows: the columns and their types stay."""
    table = rows.to_arrow()
    assert (table.schema, table.to_pylist()) == (rows.schema, listed(rows))


def test_pyarrow_reads_the_stream_as_often_as_it_asks(rows):
    """Each stream begins at the first row."""
    assert pa.schema(rows) == rows.schema
    assert pa.table(rows) == pa.table(rows) == rows.to_arrow()
    assert pa.RecordBatchReader.from_stream(rows).read_all() == rows.to_arrow()


def test_pandas_gets_every_row(rows):
    """By pyarrow's own way to pandas."""
    pytest.importorskip("pandas")
    assert list(rows.to_pandas().columns) == SCHEMA.names
    assert pa.Table.from_pandas(rows.to_pandas(), SCHEMA, preserve_index=False).to_pylist() == listed(rows)


def test_polars_gets_every_row_by_method_and_by_stream(rows):
    """``polars.DataFrame(rows)`` needs no method of ours."""
    polars = pytest.importorskip("polars")
    assert rows.to_polars().rows(named=True) == listed(rows)
    assert polars.DataFrame(rows).equals(rows.to_polars())


def test_duckdb_queries_the_rows_as_they_are(rows):
    """A variable of the name that the query says; more than once."""
    duckdb = pytest.importorskip("duckdb")
    for _ in range(2):
        found = duckdb.sql("select id, n from rows order by id").fetchall()
        assert found == sorted((row["id"], row["n"]) for row in listed(rows))


def test_a_damaged_file_ends_the_stream_with_an_error(storage):
    """Never with the rows before it alone."""
    files = [put(storage, at, [{"id": "a", "n": at}]) for at in range(2)]
    storage.replace(files[1][1].name, b"PAR1")
    rows = Rows(storage, slices(files), SCHEMA)
    with pytest.raises(CorruptMetadata, match="not a readable Parquet file"):
        rows.to_arrow()
    with pytest.raises((pa.ArrowException, OSError, CorruptMetadata), match="not a readable Parquet file"):
        pa.table(rows)


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_a_package_that_is_missing_is_named(rows, package, monkeypatch):
    """With the command that brings it."""
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ConfigError, match=f"pip install {package}"):
        getattr(rows, f"to_{package}")()


@pytest.mark.parametrize("name", ["WriteClient", "read"])
def test_without_spark_its_names_say_what_to_install(name, monkeypatch):
    """Instead of a missing module of somebody else's."""
    for module in [each for each in sys.modules if each.startswith(("pyspark", "py4j", "hudi_py.spark"))]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "pyspark", None)
    for each in (name, "spark"):  # what is imported anew must not stay behind as the package's own
        monkeypatch.delitem(vars(hudi_py), each, raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'hudi_py\[spark\]'"):
        getattr(hudi_py, name)
