"""
Blocks of change logs (``.cdc`` files beside base files): keys that a commit changed, with the rows before and after.

What a record contains depends on the logging mode of the table, see `hudi_py.model.change_logging`; the schema in the
header of a block shows which mode its writer had.

Source: Hudi ``HoodieCDCUtils``, ``HoodieCDCLogger``, ``HoodieCDCDataBlock``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.avro_rows import encode_data_block
from hudi_py.formats.data_block import decode_data_block
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block, iterate_log_blocks
from hudi_py.formats.record_schema import without_meta_fields
from hudi_py.model.change_logging import LoggingMode

OPERATIONS: Final[Any] = pa.array(["i", "u", "d"])
_COLUMNS: Final = frozenset({"op", "record_key", "before", "after"})
_KEY_SCHEMA: Final = {
    "type": "record",
    "name": "Record",
    "fields": [{"name": "op", "type": ["string", "null"]}, {"name": "record_key", "type": ["string", "null"]}],
}


@attrs.frozen(kw_only=True, eq=False)
class ChangeBlock:
    """
    One block of n changes, in the order of the file.

    Args:
        operations: n texts: ``i``, ``u`` or ``d``.
        keys: n record keys; None if the log has rows only.
        before: n rows as structs, as they were written, null where there was no row; None if the log lacks them.
        after: The rows after the change; null and None as for *before*.
    """

    operations: Array
    keys: Array | None
    before: Array | None
    after: Array | None


def change_schema_text(mode: LoggingMode, record_schema: str) -> str:
    """
    Return the Avro schema of the records of a change log.

    Args:
        mode: What the log holds.
        record_schema: Avro JSON of the table's rows; meta columns in it are left out.
    """
    if mode is LoggingMode.KEYS:
        return json.dumps(_KEY_SCHEMA, separators=(",", ":"))
    # Clusterings of Apache Hudi 0.15 store a schema with the meta columns, which later commits take over.
    row = json.loads(without_meta_fields(record_schema))
    # Avro defines a named type once, so the second row refers to the first by its name.
    types: dict[str, Any] = {"op": "string", "ts_ms": "string", "record_key": "string", "before": row}
    types["after"] = f"{row['namespace']}.{row['name']}" if "namespace" in row else row["name"]
    fields = [{"name": name, "type": ["null", types[name]], "doc": "", "default": None} for name in mode.columns]
    schema = {"type": "record", "name": "CDC", **{key: row[key] for key in ("namespace",) if key in row}}
    return json.dumps({**schema, "fields": fields}, separators=(",", ":"))


def encode_change_block(changes: pa.RecordBatch, schema_text: str, instant_time: str) -> bytes:
    """
    Encode a block of a change log.

    Args:
        changes: n changes with the columns of the logging mode, rows as structs; n may be 0.
        schema_text: See `change_schema_text`.
        instant_time: Requested time of the commit.

    Raises:
        WriteError: A value is null where the schema does not allow null.
    """
    header = {int(HeaderKey.INSTANT_TIME): instant_time, int(HeaderKey.SCHEMA): schema_text}
    return encode_log_block(LogBlock(BlockType.CDC_DATA, header, encode_data_block(changes, schema_text)))


def decode_change_log(data: bytes, source: str) -> Iterator[ChangeBlock]:
    """
    Decode the blocks of a change log.

    Raises:
        CorruptMetadata: A block is damaged, or is not part of a change log: a completed commit names the file, so it
            has to be complete.
    """
    for block in iterate_log_blocks(data, source):
        place = f"{source} (block at byte {block.offset})"
        if block.block_type is not BlockType.CDC_DATA:
            raise CorruptMetadata(f"{place}: a block of type {block.block_type.name} in a change log; it is damaged")
        schema = block.header.get(HeaderKey.SCHEMA)
        if schema is None:
            raise CorruptMetadata(f"{place}: a data block without a schema")
        yield _decode_block(block.content, schema, place)


def _decode_block(content: bytes, schema: str, place: str) -> ChangeBlock:
    # The time of a change is left out: the commit that names the file has it.
    found = decode_data_block(content, schema, place, _COLUMNS)
    columns: dict[str, Array] = dict(zip(found.schema.names, found.columns, strict=True))
    operations = columns.get("op")
    if operations is None or not _are_operations(operations):
        raise CorruptMetadata(f"{place}: {_first_other(operations)!r} is not an operation of a change log")
    for side in ("before", "after"):
        if side in columns and not pa.types.is_struct(columns[side].type):
            raise CorruptMetadata(f"{place}: {side} has the type {columns[side].type} and is not a row; it is damaged")
    return ChangeBlock(
        operations=operations,
        keys=columns.get("record_key"),
        before=columns.get("before"),
        after=columns.get("after"),
    )


def _are_operations(operations: Array) -> bool:
    return pa.types.is_string(operations.type) and compute.is_in(operations, value_set=OPERATIONS).false_count == 0


def _first_other(operations: Array | None) -> object:
    values: list[object] = [] if operations is None else operations.to_pylist()
    known = OPERATIONS.to_pylist()
    return next((value for value in values if value not in known), None)
