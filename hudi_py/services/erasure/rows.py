"""
Does one file hold rows, or rows with certain keys? Answered from its content, never from statistics or filters.

A filter or a range of keys in a footer is only as right as its writer was; for a proof the keys themselves are read.
All blocks of a log file count, those of writes that failed or were undone too: their bytes are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs
import pyarrow as pa

from hudi_py.errors import CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.change_block import decode_change_log
from hudi_py.formats.delete_block import decode_delete_block
from hudi_py.formats.log_block import BlockType, LogBlock, iterate_log_blocks
from hudi_py.model.files import BaseFile, LogFile, parse_data_file
from hudi_py.rows.log_records import KEY_COLUMN, RecordShape, records_of
from hudi_py.rows.lookup import open_base_file
from hudi_py.services.erasure.facts import ErasureHolds, ErasureTrace
from hudi_py.storage.base import Storage

_KEYS_ONLY: Final = RecordShape(schema=pa.schema([(KEY_COLUMN, pa.string())]), ordering=())
_READ: Final = (".parquet", ".orc")


@attrs.frozen
class Wanted:
    """
    What is looked for.

    Args:
        keys: Texts of record keys, in every form that a release may have stored; empty for any row.
        key_fields: The fields that keys are made of; empty if unknown.
    """

    keys: frozenset[str]
    key_fields: tuple[str, ...] = ()

    def among(self, found: Array) -> tuple[str, ...]:
        """Those of the keys that are in *found*, texts."""
        values = pa.array(sorted(self.keys), pa.string())
        mask = compute.is_in(values, value_set=found.cast(pa.string()))
        return tuple(str(key) for key in values.filter(mask).to_pylist())


def trace_in(storage: Storage, path: str, size_bytes: int | None, wanted: Wanted) -> ErasureTrace | None:
    """
    What a file holds of what is wanted; None if it certainly holds nothing of it.

    Args:
        storage: Of the table.
        path: Relative to the table.
        size_bytes: Its size, if it is known.

    Raises:
        NotFound: It is not there any more.
        StorageError: It cannot be read.
    """
    if size_bytes == 0:
        return None
    parsed = parse_data_file(path.rpartition("/")[2])
    try:
        if isinstance(parsed, BaseFile) and path.endswith(_READ):
            return _in_base_file(storage, path, wanted)
        if isinstance(parsed, LogFile):
            return _in_log_file(storage, path, wanted, is_change_log=parsed.is_cdc)
    except NotFound:
        raise
    except (CorruptMetadata, UnsupportedTable, pa.ArrowException, KeyError) as error:
        return _unsure(wanted, f"it cannot be read: {error}")
    return _unsure(wanted, "it is no file of a form that hudi_py reads")


def _unsure(wanted: Wanted, why: str) -> ErasureTrace:
    # Whatever a file in the folder of a partition holds, its bytes are there; of keys only its content could tell.
    return ErasureTrace(ErasureHolds.UNKNOWN, (), why if wanted.keys else "")


def _in_base_file(storage: Storage, path: str, wanted: Wanted) -> ErasureTrace | None:
    with storage.open_read(path) as stream:
        file = open_base_file(stream)
        if not file.metadata.num_rows:
            return None
        if not wanted.keys:
            return ErasureTrace(ErasureHolds.ROWS)
        if KEY_COLUMN not in file.schema_arrow.names:
            return ErasureTrace(ErasureHolds.UNKNOWN, (), f"its rows have no column {KEY_COLUMN}")
        found: set[str] = set()
        # In batches: a file may have hundreds of millions of rows.
        for batch in file.iter_batches(columns=[KEY_COLUMN]):
            found.update(wanted.among(batch.column(0)))
    return ErasureTrace(ErasureHolds.ROWS, tuple(sorted(found))) if found else None


def _in_log_file(storage: Storage, path: str, wanted: Wanted, *, is_change_log: bool) -> ErasureTrace | None:
    source = f"{storage.root}/{path}"
    data = storage.read(path)
    if is_change_log:
        return _worst(list(_in_changes(data, source, wanted)))
    return _worst([each for block in iterate_log_blocks(data, source) if (each := _in_block(block, source, wanted))])


def _in_block(block: LogBlock, source: str, wanted: Wanted) -> ErasureTrace | None:
    if block.block_type is BlockType.COMMAND:
        return None
    if block.block_type is BlockType.CORRUPT:
        # A torn block may have most of its rows.
        return _unsure(wanted, f"byte {block.offset}: bytes that are no block, as writers leave that died")
    place = f"{source} (block at byte {block.offset})"
    if block.block_type is BlockType.DELETE:
        deleted = pa.array([each.record_key for each in decode_delete_block(block.content, place)], pa.string())
        return _trace(ErasureHolds.KEYS, deleted, wanted)
    found = [records.keys for records in records_of([(block, place)], _KEYS_ONLY)]
    return _trace(ErasureHolds.ROWS, pa.concat_arrays(found), wanted) if found else None


def _in_changes(data: bytes, source: str, wanted: Wanted) -> Iterator[ErasureTrace]:
    for block in decode_change_log(data, source):
        rows = [side for side in (block.before, block.after) if side is not None]
        if not len(block.operations):
            continue
        holds = ErasureHolds.ROWS if rows else ErasureHolds.KEYS
        columns = [block.keys] if block.keys is not None else [_key_column(side, wanted) for side in rows]
        for column in columns:
            if column is None and wanted.keys:
                yield ErasureTrace(ErasureHolds.UNKNOWN, (), "its changes are rows without their keys")
            elif column is None:
                yield ErasureTrace(holds)
            elif found := _trace(holds, column, wanted):
                yield found


def _key_column(rows: Array, wanted: Wanted) -> Array | None:
    """The keys of rows without meta columns, None if they are made of more than one text or number."""
    if len(wanted.key_fields) != 1:
        return None
    position = rows.type.get_field_index(wanted.key_fields[0])
    if position < 0:
        return None
    column = compute.struct_field(rows, [position])
    is_plain = pa.types.is_string(column.type) or pa.types.is_integer(column.type)
    return column.cast(pa.string()) if is_plain else None


def _trace(holds: ErasureHolds, keys: Array, wanted: Wanted) -> ErasureTrace | None:
    if not wanted.keys:
        return ErasureTrace(holds) if len(keys) else None
    found = wanted.among(keys)
    return ErasureTrace(holds, found) if found else None


def _worst(traces: Sequence[ErasureTrace]) -> ErasureTrace | None:
    """One trace for a file: what is certain counts more than what is not, rows more than keys."""
    if not traces:
        return None
    order = list(ErasureHolds)
    worst = min(traces, key=lambda each: (bool(each.why_unsure), order.index(each.holds)))
    keys = tuple(sorted({key for each in traces for key in each.keys}))
    return attrs.evolve(worst, keys=keys)
