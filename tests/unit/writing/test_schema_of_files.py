"""The schema of a table whose timeline does not tell it any more."""

from __future__ import annotations

import io

import pyarrow.parquet as pq
import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.model.files import join_path
from hudi_py.writing.schema_of_files import schema_text_of_files
from writes import OLD, SCHEMA, create_table, open_table, upsert


def written():
    """A table of one commit."""
    storage = create_table(9)
    upsert(storage, OLD)
    return open_table(storage)


def test_the_newest_file_tells_what_the_commit_told():
    """The same text, without the meta columns that the footer has."""
    table = written()
    assert schema_text_of_files(table.storage, table.base_files(), "t") == table.schema_text()


def test_a_file_without_avro_text_tells_its_columns():
    """As Spark's row writer leaves it."""
    table = written()
    for partition, file in table.base_files():
        path, sink = join_path(partition, file.name), io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(table.storage.read(path))).replace_schema_metadata(None), sink)
        table.storage.replace(path, sink.getvalue())
    text = schema_text_of_files(table.storage, table.base_files(), "t")
    assert text is not None
    assert parse_record_schema(text).names == SCHEMA.names


def test_a_table_without_files_has_no_schema():
    """Its first rows decide."""
    assert schema_text_of_files(create_table(9), [], "t") is None


def test_a_damaged_file_is_an_error():
    """A guess would drop columns."""
    table = written()
    for partition, file in table.base_files():
        table.storage.replace(join_path(partition, file.name), b"PAR1")
    with pytest.raises(CorruptMetadata):
        schema_text_of_files(table.storage, table.base_files(), "t")
