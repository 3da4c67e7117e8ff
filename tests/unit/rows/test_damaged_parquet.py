"""Parquet with a damaged footer: an error that names the file wherever it is opened, never one of pyarrow."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import CorruptMetadata, WriteError
from hudi_py.formats.log_block import BlockType, LogBlock
from hudi_py.local.files import parquet_stream, read_files
from hudi_py.model.files import parse_base_file
from hudi_py.rows.log_records import RecordShape, records_of
from hudi_py.rows.lookup import open_base_file
from hudi_py.rows.read import read_batches
from hudi_py.storage.memory import MemoryStorage

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("region", pa.string())])


def damaged(how):
    out = io.BytesIO()
    table = pa.table({"_hoodie_record_key": ["a", "b"], "region": ["eu", "us"]}, schema=SCHEMA)
    pq.write_table(table, out, store_schema=False)
    data = out.getvalue()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    if how == "a name that is not UTF-8":
        return data[:footer] + data[footer:].replace(b"region", b"r\xffgion")
    if how == "no footer":
        return data[:footer]
    if how == "one letter of a name":
        return data[:footer] + data[footer:].replace(b"region", b"rebion", 1)
    return data[: footer + 9] + b"\xff" * 9 + data[footer + 18 :]


@pytest.mark.parametrize("how", ["a name that is not UTF-8", "no footer", "a broken footer", "one letter of a name"])
def test_a_damaged_footer_is_an_error_that_names_the_file(how, tmp_path):
    """In base files, in blocks of log files, when keys are looked up, and in files of rows to write."""
    data, storage = damaged(how), MemoryStorage("/t")
    base = parse_base_file("g-0_0-0-0_20260101000000000.parquet")
    storage.replace(f"p/{base.name}", data)
    with pytest.raises(CorruptMetadata, match=base.name):
        list(read_batches(storage, [("p", base)], SCHEMA))
    with pytest.raises(CorruptMetadata, match="the block"):
        list(
            records_of(
                [(LogBlock(BlockType.PARQUET_DATA, {}, data), "the block")], RecordShape(schema=SCHEMA, ordering=())
            )
        )
    with pytest.raises(CorruptMetadata):
        open_base_file(io.BytesIO(data), SCHEMA)
    path = tmp_path / "rows.parquet"
    path.write_bytes(data)
    for read in (lambda: read_files([path], None), lambda: parquet_stream([path])):
        with pytest.raises(WriteError, match=path.name):
            read()


NESTED = pa.table(
    {
        "_hoodie_record_key": ["a", "b"],
        "place": [{"city": "Rome", "spots": [{"east": 1}]}, None],
        "tags": pa.array([[("k", {"width": 1})], []], pa.map_(pa.string(), pa.struct([("width", pa.int64())]))),
    }
)


@pytest.mark.parametrize("column", ["_hoodie_record_key", "place", "city", "spots", "east", "tags", "width"])
def test_no_column_with_a_damaged_name_is_read_as_nulls(column):
    """Whichever letter of whichever name, nested ones too: it is an error with file and column, not an older file."""
    out, base = io.BytesIO(), parse_base_file("g-0_0-0-0_20260101000000000.parquet")
    pq.write_table(NESTED, out, store_schema=False)
    data = out.getvalue()
    # The footer begins with the schema, so its names come before those of the row groups.
    start = data.index(column.encode(), len(data) - 8 - int.from_bytes(data[-8:-4], "little"))
    for at in range(start, start + len(column)):
        storage = MemoryStorage("/t")
        storage.replace(f"p/{base.name}", data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(CorruptMetadata, match=rf"{base.name}.*'[a-z_.]*{column}[a-z_.]*'"):
            list(read_batches(storage, [("p", base)], NESTED.schema))
        with pytest.raises(CorruptMetadata, match=column), storage.open_read(f"p/{base.name}") as stream:
            open_base_file(stream, NESTED.schema)


def test_a_file_that_lacks_a_column_is_read_with_nulls():
    """It is from before the column was added; one without rows has no second copy of the names to compare."""
    base = parse_base_file("g-0_0-0-0_20260101000000000.parquet")
    for rows in (NESTED, NESTED.slice(0, 0)):
        out, storage = io.BytesIO(), MemoryStorage("/t")
        pq.write_table(rows.drop(["tags"]), out, store_schema=False)
        storage.replace(f"p/{base.name}", out.getvalue())
        found = pa.Table.from_batches(read_batches(storage, [("p", base)], NESTED.schema), NESTED.schema)
        assert rows.column("place").to_pylist() == found.column("place").to_pylist()
        assert [None] * rows.num_rows == found.column("tags").to_pylist()
