"""
Merging a file group of `record_index` or `bloom_filters`: of each key the newest record counts, no two are merged.

The log files are in memory, the base file passes as a stream. Pure but for that.

Source: rules/data-files 11.3; Apache Avro 1.11 specification, binary encoding.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import fastavro

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.log_block import BlockType, LogBlock
from hudi_py.mdt.blocks import decode_key, deleted_keys, open_block, open_hfile
from hudi_py.mdt.lookup import Stored
from hudi_py.mdt.records import parsed_schema
from hudi_py.mdt.table import MetadataTable, Slice
from hudi_py.model.files import LogFile


class _Logged(NamedTuple):
    """What the log files say of a key: its record, or that it was deleted (None)."""

    stored: Stored | None


def has_records(table: MetadataTable, file_slice: Slice, blocks: list[tuple[LogFile, LogBlock]]) -> bool:
    """Whether the log files of a slice leave any record."""
    return any(each.stored is not None for each in _logged(table, file_slice, blocks).values())


def merged_records(
    table: MetadataTable, file_slice: Slice, blocks: list[tuple[LogFile, LogBlock]], stack: contextlib.ExitStack
) -> Iterator[tuple[str, Stored]]:
    """
    The records of a slice, by the bytes of their keys.

    Args:
        table: The metadata table.
        file_slice: The slice.
        blocks: Those of its log files that count, see `hudi_py.mdt.blocks.visible_blocks`.
        stack: Closes the base file.

    Raises:
        CorruptMetadata: A file is damaged.
    """
    logged = _logged(table, file_slice, blocks)
    # Both sides are in order of the bytes of their keys, so one pass over the base file is enough, however large it is.
    waiting = sorted(logged, key=str.encode, reverse=True)
    for key, stored in _stored(table, file_slice, stack):
        while waiting and waiting[-1].encode() < key.encode():
            yield from _present(waiting.pop(), logged)
        if waiting and waiting[-1] == key:
            yield from _present(waiting.pop(), logged)
        else:
            yield key, stored
    while waiting:
        yield from _present(waiting.pop(), logged)


def renamed(records: Iterable[tuple[str, Stored]], schema: str, file_name: str) -> Iterator[tuple[str, bytes]]:
    """
    Key and bytes of each record, as a base file of that name holds them.

    Args:
        records: See `merged_records`.
        schema: That of the base file.
        file_name: Its name.

    Raises:
        CorruptMetadata: A record does not decode.
    """
    # A place of `record_index` is shared by many keys, and their records are equal.
    known: dict[tuple[bytes, str], bytes] = {}
    for key, stored in records:
        at = stored.value, stored.schema
        value = known.get(at)
        if value is None:
            # Emptied as a whole: keys of one place are spread over the file, so there is no better choice to drop.
            if len(known) >= _KNOWN_MAX:
                known.clear()
            value = known[at] = _renamed(stored, schema, file_name)
        yield key, value


_KNOWN_MAX: Final = 1024


def _renamed(stored: Stored, schema: str, file_name: str) -> bytes:
    try:
        record: Any = fastavro.schemaless_reader(io.BytesIO(stored.value), parsed_schema(stored.schema), None)
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed_schema(schema), {**record, "_hoodie_file_name": file_name})
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{stored.source}: a record does not decode: {error!r}") from error
    return out.getvalue()


def _present(key: str, logged: dict[str, _Logged]) -> Iterator[tuple[str, Stored]]:
    stored = logged[key].stored
    if stored is not None:
        yield key, stored


def _stored(table: MetadataTable, file_slice: Slice, stack: contextlib.ExitStack) -> Iterator[tuple[str, Stored]]:
    if file_slice.base is None:
        return
    path = file_slice.path(file_slice.base.name)
    source = table.source(path)
    hfile, schema = open_hfile(stack.enter_context(table.storage.open_read(path)), source)
    for key, value in hfile:
        yield decode_key(key, source), Stored(value, schema, source)


def _logged(table: MetadataTable, file_slice: Slice, blocks: list[tuple[LogFile, LogBlock]]) -> dict[str, _Logged]:
    found: dict[str, _Logged] = {}
    for log, block in blocks:
        source = f"{table.source(file_slice.path(log.name))} (block at byte {block.offset})"
        if block.block_type is BlockType.DELETE:
            found.update((key, _Logged(None)) for key in deleted_keys(block, file_slice.partition, source))
            continue
        hfile, schema = open_block(block, source)
        for key, value in hfile:
            found[decode_key(key, source)] = _Logged(Stored(value, schema, source))
    return found
