"""Base files in memory, small enough to make hundreds of them."""

import io
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.formats.bloom import BloomSizing
from hudi_py.formats.conform import conform_batch
from hudi_py.formats.record_schema import format_record_schema
from hudi_py.model.files import parse_base_file
from hudi_py.rows.base_file import BaseFileOptions, BaseFileWriter
from hudi_py.rows.merge import combine_changes, merge_base_file
from hudi_py.rows.written import FileTarget

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("ts", pa.int64()),
        pa.field("v", pa.list_(pa.field("element", pa.string()))),
    ]
)
OPTIONS = BaseFileOptions(compression="snappy", bloom=BloomSizing(entries=50))


def target(instant_time, write_token="3-1-2", file_id="f-0", partition_path="eu"):
    return FileTarget(
        partition_path=partition_path, file_id=file_id, write_token=write_token, instant_time=instant_time
    )


def batch(rows, schema=SCHEMA):
    """Rows (dicts) as a conformed batch."""
    return conform_batch(pa.RecordBatch.from_pylist(rows, schema=schema), schema)


def write(rows, instant_time="20260101000000001", *, schema=SCHEMA, options=OPTIONS, per_batch=1000, **more):
    """Write one file; returns its bytes. The key is the column ``id``."""
    sink = io.BytesIO()
    writer = BaseFileWriter(sink, target(instant_time), schema, format_record_schema(schema, "t"), options, **more)
    for start in range(0, len(rows), per_batch):
        part = batch(rows[start : start + per_batch], schema)
        writer.write_new(part, part.column(0))
    assert writer.close() == len(sink.getvalue())
    return sink.getvalue()


def merge(
    old, rows, instant_time, rules, *, deletes=None, schema=SCHEMA, options=OPTIONS, previous="20260101000000001"
):
    """Merge rows (dicts) into the file *old*; returns (bytes, result)."""
    table = pa.Table.from_batches([batch(rows, schema)])
    mask = None if deletes is None else pa.array(deletes, pa.bool_())
    changes = combine_changes(table, table.column("id").combine_chunks(), rules, mask)
    return apply(old, changes, instant_time, rules, schema=schema, options=options, previous=previous)


def apply(old, changes, instant_time, rules, *, schema=SCHEMA, options=OPTIONS, previous="20260101000000001"):
    """Merge ready-made changes."""
    sink = io.BytesIO()
    result = merge_base_file(
        io.BytesIO(old),
        parse_base_file(target(previous).name),
        changes,
        sink=sink,
        target=target(instant_time),
        avro_schema=format_record_schema(schema, "t"),
        rules=rules,
        options=options,
    )
    assert result.stat.file_size_in_bytes == len(sink.getvalue())
    return sink.getvalue(), result


def read(data):
    """Rows of a file, meta columns included, as dicts."""
    return pq.read_table(io.BytesIO(data)).to_pylist()


@pytest.fixture(scope="session")
def files():
    """The helpers above; a session's, so that Hypothesis may use them."""
    return SimpleNamespace(
        SCHEMA=SCHEMA, OPTIONS=OPTIONS, target=target, batch=batch, write=write, merge=merge, apply=apply, read=read
    )
