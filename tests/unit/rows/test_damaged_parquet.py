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
    return data[: footer + 9] + b"\xff" * 9 + data[footer + 18 :]


@pytest.mark.parametrize("how", ["a name that is not UTF-8", "no footer", "a broken footer"])
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
        open_base_file(io.BytesIO(data))
    path = tmp_path / "rows.parquet"
    path.write_bytes(data)
    for read in (lambda: read_files([path], None), lambda: parquet_stream([path])):
        with pytest.raises(WriteError, match=path.name):
            read()
