"""File slices made in memory: a base file under log files with blocks of any kind, and what a read must show."""

import io
import json

import attrs
import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.formats.hfile_writer import HFileWriter
from hudi_py.formats.log_block import (
    BlockType,
    HeaderKey,
    LogBlock,
    encode_log_block,
    join_data_block,
)
from hudi_py.formats.record_schema import format_record_schema
from hudi_py.model.files import FileSlice, parse_base_file, parse_log_file
from hudi_py.rows.condition_text import parse_condition
from hudi_py.rows.log_reading import log_reading
from hudi_py.rows.log_rules import LogRules
from hudi_py.rows.predicate import filters_of
from hudi_py.rows.slice_reader import read_slices

BASE_TIME = "20260101000000000"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string())])
EVENT = LogRules(ordering_fields=("ts",), orders_logs=True, orders_base=True)
COMMIT = LogRules()
META = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_record_key", "_hoodie_partition_path")


def row(key, ts, value=None):
    return {"id": key, "ts": ts, "v": value or f"{key}{ts}"}


def base_file(storage, rows, schema=SCHEMA, row_group_size=3, key=None):
    """Rows in row groups of three, with their own keys or one for all; returns the file."""
    file = parse_base_file(f"g-0_0-0-0_{BASE_TIME}.parquet")
    data = pa.Table.from_pylist([{"_hoodie_record_key": each["id"] if key is None else key, **each} for each in rows],
                                schema=pa.schema([("_hoodie_record_key", pa.string()), *schema]))  # fmt: skip
    out = io.BytesIO()
    pq.write_table(data, out, row_group_size=row_group_size)
    storage.replace(f"p/{file.name}", out.getvalue())
    return file


def avro_bodies(rows, text):
    parsed = fastavro.parse_schema(json.loads(text))
    bodies = []
    for each in rows:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, {**dict.fromkeys(META), "_hoodie_record_key": each["id"], **each})
        bodies.append(out.getvalue())
    return bodies


def data_block(rows, schema=SCHEMA, kind=BlockType.AVRO_DATA, **header):
    """Rows as one block of each kind that Hudi writes."""
    record = json.loads(format_record_schema(schema, "t"))
    meta = [{"name": name, "type": ["null", "string"]} for name in META]
    text = json.dumps({**record, "fields": [*meta, *record["fields"]]})
    keys = {int(HeaderKey.INSTANT_TIME): "1", int(HeaderKey.SCHEMA): text}
    keys |= {int(HeaderKey[name]): value for name, value in header.items()}
    if kind is BlockType.PARQUET_DATA:
        out = io.BytesIO()
        table = pa.Table.from_pylist([{"_hoodie_record_key": each["id"], **each} for each in rows])
        pq.write_table(table, out)
        content = out.getvalue()
    elif kind is BlockType.HFILE_DATA:
        out = io.BytesIO()
        writer = HFileWriter(out)
        ordered = sorted(rows, key=lambda each: each["id"].encode())
        for each, body in zip(ordered, avro_bodies(ordered, text), strict=True):
            writer.append(each["id"].encode(), body)
        writer.close(info={})
        content = out.getvalue()
    else:
        content = join_data_block(avro_bodies(rows, text))
    return encode_log_block(LogBlock(kind, keys, content))


def log_file(storage, number, data):
    file = parse_log_file(f".g-0_{BASE_TIME}.log.{number}_0-0-0")
    storage.replace(f"p/{file.name}", data)
    return file


def read(storage, base, logs, rules=EVENT, schema=SCHEMA, where=(), table=None, keys=None, memory=None):
    """Rows by key, as text of all columns; *memory*: bytes of log records that are held."""
    file_slice = FileSlice("p", "g-0", BASE_TIME, base, tuple(logs))
    reading = log_reading(rules, lambda _: True, None, table or schema, "t", keys)
    reading = attrs.evolve(reading, memory_bytes=memory)
    filters = filters_of([parse_condition(each) for each in where], schema)
    batches = list(read_slices(storage, [file_slice], schema, reading, filters))
    assert all(each.schema == schema for each in batches)
    return sorted((each for batch in batches for each in batch.to_pylist()), key=lambda each: tuple(each.values())[:2])


def merged(base, blocks, rules):
    """The model: each key's rows in order of arrival, the base file's first."""
    found = {each["id"]: each for each in base}
    for rows in blocks:
        for each in rows:
            known = found.get(each["id"])
            if known is None or not rules.orders_logs or each["ts"] >= known["ts"]:
                found[each["id"]] = each
    return sorted(found.values(), key=lambda each: each["id"])
