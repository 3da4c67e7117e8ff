"""
Blocks of change logs (``.cdc`` files beside base files): keys that a commit changed, with the rows before and after.

What a record contains depends on the table's logging mode: operation and key; operation, key and the row before; or
operation, time and both rows. The schema in the block's header shows which.

Source: Hudi ``HoodieCDCUtils``, ``HoodieCDCLogger``, ``HoodieCDCDataBlock``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.data_block import decode_data_block
from hudi_py.formats.log_block import BlockType, HeaderKey, iterate_log_blocks

OPERATIONS: Final[Any] = pa.array(["i", "u", "d"])
_COLUMNS: Final = frozenset({"op", "record_key", "before", "after"})


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
