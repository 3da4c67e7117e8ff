"""Small Parquet files that would unpack to much: refused by the footer, before a row is read."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import parquet_file
from hudi_py.formats.log_block import BlockType, LogBlock
from hudi_py.model.files import parse_base_file
from hudi_py.rows.log_records import RecordShape, records_of
from hudi_py.rows.lookup import open_base_file
from hudi_py.rows.read import read_batches
from hudi_py.storage.memory import MemoryStorage

BASE = parse_base_file("g-0_0-0-0_20260101000000000.parquet")
SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("n", pa.int64())])
ZEROS = pa.table({"_hoodie_record_key": pa.repeat("", 200_000), "n": pa.repeat(0, 200_000)}, schema=SCHEMA)


def parquet(table, **how):
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", use_dictionary=False, store_schema=False, **how)
    return out.getvalue()


def rows_of_base(data):
    storage = MemoryStorage("/t")
    storage.replace(f"p/{BASE.name}", data)
    return sum(batch.num_rows for batch in read_batches(storage, [("p", BASE)], SCHEMA))


def rows_of_block(data):
    blocks = [(LogBlock(BlockType.PARQUET_DATA, {}, data), BASE.name)]
    shape = RecordShape(schema=pa.schema([*SCHEMA, ("ts", pa.int64())]), ordering=())
    return sum(len(each.keys) for each in records_of(blocks, shape))


@pytest.fixture
def low_limits(monkeypatch):
    """The real limits need a gigabyte; what they are compared with is real."""
    monkeypatch.setattr(parquet_file, "PARQUET_GROUP_BYTES_ALWAYS", 1 << 20)
    monkeypatch.setattr(parquet_file, "PARQUET_ROWS_ALWAYS", 300_000)


@pytest.mark.parametrize("read", [rows_of_base, rows_of_block, lambda data: open_base_file(io.BytesIO(data))])
@pytest.mark.usefixtures("low_limits")
def test_a_small_file_that_unpacks_to_much_is_refused(read):
    """Zeros that compress to a thousandth: memory would grow with what the file says, not with what it holds."""
    with pytest.raises(CorruptMetadata, match=r"row group 0 unpacks to \d{7} bytes"):
        read(parquet(ZEROS))


@pytest.mark.parametrize("read", [rows_of_base, rows_of_block])
@pytest.mark.usefixtures("low_limits")
def test_many_row_groups_count_where_they_are_in_memory_together(read):
    """A base file is read group by group, a block of a log file at once."""
    data = parquet(ZEROS, row_group_size=50_000)
    if read is rows_of_base:
        assert ZEROS.num_rows == read(data)
    else:
        with pytest.raises(CorruptMetadata, match=rf"{BASE.name}.*row group 1 unpacks"):
            read(data)


@pytest.mark.parametrize("read", [rows_of_base, rows_of_block])
@pytest.mark.usefixtures("low_limits")
def test_more_rows_than_a_file_of_its_size_can_have_are_refused(read):
    """Nulls take no bytes, so a file of a kilobyte could keep a reader busy for hours."""
    nulls = pa.table({name: pa.nulls(400_000, pa.string()) for name in SCHEMA.names})
    with pytest.raises(CorruptMetadata, match=rf"{BASE.name}.*400000 rows in \d{{3,4}} bytes"):
        read(parquet(nulls))


def test_a_page_that_claims_to_be_large_is_an_error():
    """Its header is not in the footer; Arrow compares the claim with what it unpacks."""
    data = parquet(ZEROS.select(["n"]), write_statistics=False)
    # Compact Thrift: field 1 (kind) 0x15 0x00, field 2 (unpacked bytes) 0x15 and a varint, whose last byte is small.
    at = data.index(b"\x15\x00\x15") + 3
    size = next(count for count in range(1, 9) if data[at + count - 1] < 0x80)
    assert size > 2
    with pytest.raises(CorruptMetadata, match=BASE.name):
        rows_of_base(data[:at] + b"\xfe" + b"\xff" * (size - 2) + b"\x7f" + data[at + size :])


def test_files_of_usual_size_are_read():
    """The limits leave room for any row group and any number of rows that a writer of Hudi chooses."""
    assert (
        ZEROS.num_rows == rows_of_base(parquet(ZEROS)) == rows_of_block(parquet(ZEROS.append_column("ts", ZEROS["n"])))
    )
