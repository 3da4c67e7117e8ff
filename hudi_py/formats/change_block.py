"""
Blocks of change logs (``.cdc`` files beside base files): which keys a commit changed, and from what to what.

What a record holds depends on the table's logging mode: the operation and the key; these and the row before; or the
operation, the time and both rows. The schema in the block's header tells which.

Source: Hudi ``HoodieCDCUtils``, ``HoodieCDCLogger``, ``HoodieCDCDataBlock``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import decode_record
from hudi_py.formats.log_block import DATA_BLOCK_VERSION, BlockType, HeaderKey, iterate_log_blocks

_INT: Final = struct.Struct(">i")
OPERATIONS: Final = frozenset("iud")


class Change(NamedTuple):
    """
    One record of a change log.

    Args:
        operation: ``i``, ``u`` or ``d``.
        key: Record key; None where the log holds rows only.
        before: The row before; None where there was none, or the log does not tell.
        after: The row after; likewise.
    """

    operation: str
    key: str | None
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


@attrs.frozen(kw_only=True)
class ChangeBlock:
    """
    One block.

    Args:
        changes: In the order of the file.
        has_before: Its records hold the row before.
        has_after: Its records hold the row after.
        row_schema: Avro text of those rows; None where it holds none.
    """

    changes: tuple[Change, ...]
    has_before: bool
    has_after: bool
    row_schema: str | None


def decode_change_log(data: bytes, source: str) -> Iterator[ChangeBlock]:
    """
    Decode the blocks of a change log.

    Raises:
        CorruptMetadata: A block is damaged, or is none of a change log: a completed commit names the file, so all of
            it has to be there.
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
    fields = _fields(schema, place)
    changes = tuple(_change(record, place) for record in _records(content, schema, place))
    row = _row_schema(fields.get("before", fields.get("after")))
    return ChangeBlock(changes=changes, has_before="before" in fields, has_after="after" in fields, row_schema=row)


def _fields(schema: str, place: str) -> dict[str, Any]:
    try:
        return {field["name"]: field["type"] for field in json.loads(schema)["fields"]}
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptMetadata(f"{place}: the schema of a change log does not parse: {error!r}") from error


def _row_schema(avro: Any) -> str | None:
    """Of ``["null", record]``."""
    record = next((each for each in avro or () if isinstance(each, dict)), None)
    return None if record is None else json.dumps(record)


def _records(content: bytes, schema: str, place: str) -> Iterator[dict[str, Any]]:
    try:
        version, count = _INT.unpack_from(content)[0], _INT.unpack_from(content, _INT.size)[0]
        position = 2 * _INT.size
        if version != DATA_BLOCK_VERSION:
            raise CorruptMetadata(f"{place}: a data block of version {version}, which is not known")
        for _ in range(count):
            end = position + _INT.size + _INT.unpack_from(content, position)[0]
            yield decode_record(content[position + _INT.size : end], schema, place)
            position = end
    except struct.error as error:
        raise CorruptMetadata(f"{place}: the block ends within a record") from error


def _change(record: dict[str, Any], place: str) -> Change:
    operation = record.get("op")
    if operation not in OPERATIONS:
        raise CorruptMetadata(f"{place}: {operation!r} is no operation of a change log")
    return Change(operation, record.get("record_key"), record.get("before"), record.get("after"))
