"""Settings of the layout of Parquet files, which the files show."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import writes


def file_of(operation, **settings):
    """The only base file of a table after one write of 20,000 rows."""
    storage = writes.create_table(9)
    rows = pa.table({"id": [f"k{n:05}" for n in range(20_000)], "region": ["eu"] * 20_000, "ts": range(20_000)})
    getattr(writes.open_table(storage, **settings, **writes.ALONE), operation)(rows)
    (content,) = (content for name, content in storage.files().items() if name.endswith(".parquet"))
    assert pq.read_table(io.BytesIO(content)).num_rows == 20_000
    return pq.ParquetFile(io.BytesIO(content)).metadata


def encodings(metadata, name):
    group = metadata.row_group(0)
    chunks = (group.column(number) for number in range(group.num_columns))
    return next(set(chunk.encodings) for chunk in chunks if chunk.path_in_schema == name)


@pytest.mark.parametrize("operation", ["bulk_insert", "insert"])
def test_block_size_dictionaries_and_page_size_decide_the_layout(operation):
    """Smaller blocks make more row groups; without dictionaries no column has one; smaller pages take more bytes."""
    plain = file_of(operation)
    assert plain.num_row_groups == 1
    assert file_of(operation, **{"hoodie.parquet.block.size": 200_000}).num_row_groups > 1
    assert {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & encodings(plain, "region")
    without = file_of(operation, **{"hoodie.parquet.dictionary.enabled": False})
    assert not {"RLE_DICTIONARY", "PLAIN_DICTIONARY"} & encodings(without, "region")
    small = file_of(operation, **{"hoodie.parquet.page.size": 500, "hoodie.parquet.compression.codec": "uncompressed"})
    large = file_of(operation, **{"hoodie.parquet.compression.codec": "uncompressed"})
    assert small.row_group(0).total_byte_size > large.row_group(0).total_byte_size
