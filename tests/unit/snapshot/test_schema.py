"""The schema of a table: from its commits, and where none tells it, from its newest file."""

from __future__ import annotations

import io

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.model.files import join_path
from hudi_py.rows.read import chosen_columns
from hudi_py.snapshot.schema import schema_text_of_files
from support.writes import OLD, SCHEMA, create_table, open_table, upsert


def written():
    """A table of one commit."""
    storage = create_table(9)
    upsert(storage, OLD)
    return open_table(storage)


def test_the_newest_file_tells_what_the_commit_told():
    """The same text, without the meta columns that the footer has."""
    table = written()
    assert schema_text_of_files(table.storage, table.base_files(), "t") == table.schema_text()


def without_schema(table):
    """The commit says nothing of columns, as when those that did are archived or rolled back."""
    (commit,) = table.timeline.completed("commit")
    metadata = attrs.evolve(table.contents.commit(commit), extra_metadata={})
    data = encode_commit(metadata, as_json=table.config.layout_version == 1, sync=bytes(16))
    table.storage.replace(f"{table.config.timeline_folder}/{commit.file_name}", data)
    return open_table(table.storage)


@pytest.mark.parametrize("change", [lambda table: table, without_schema], ids=["commit", "file"])
def test_the_table_has_the_columns_of_its_rows(change):
    """Latest or earlier, from the commit or the newest file: as rows and as Avro text they have one schema."""
    table = change(written())
    then = table.timeline.completed("commit")[0].requested_time
    for snapshot in (table.snapshot(), table.as_of(then), table.snapshot(then)):
        assert snapshot.schema == table.schema == table.rows().schema == snapshot.rows().schema == SCHEMA
        assert chosen_columns(parse_record_schema(snapshot.schema_text()), None) == SCHEMA
    assert table.schema_text() == written().schema_text()


def test_an_empty_table_has_no_columns():
    """Its first rows decide."""
    assert open_table(create_table(9)).schema == pa.schema([])
    assert open_table(create_table(9)).schema_text() is None


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


def test_a_damaged_file_is_an_error():
    """A guess would drop columns."""
    table = written()
    for partition, file in table.base_files():
        table.storage.replace(join_path(partition, file.name), b"PAR1")
    with pytest.raises(CorruptMetadata):
        schema_text_of_files(table.storage, table.base_files(), "t")
