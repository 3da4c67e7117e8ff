"""
One new log file: the changes of a delta commit to one file group.

Each delta commit writes a new file, so nothing is ever appended to a file of another writer. Rows are in a data block,
deletes in a delete block after it.

Source: rules/data-files 9.1, 9.2; Hudi 0.15.0, 1.0.2, 1.1.1 ``HoodieAppendHandle``.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.avro_rows import encode_data_block
from hudi_py.formats.delete_block import DeletedKey, OrderingValue, encode_delete_block
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.formats.record_positions import encode_positions
from hudi_py.formats.record_schema import meta_fields, with_meta_fields
from hudi_py.model.files import LogFile, join_path
from hudi_py.model.records import RuntimeStats, WriteStat
from hudi_py.rows.base_file import AVRO_SCHEMA_KEY, BaseFileOptions, open_parquet
from hudi_py.rows.column_ranges import ranges_of_rows
from hudi_py.rows.merge import RowChanges
from hudi_py.rows.positions import RecordPositions
from hudi_py.rows.written import NO_KEYS, FileTarget, KeyChanges, WrittenFile, sequence_numbers

_PIECE_BYTES_MAX: Final = 8 * 1024 * 1024
"""Rows of one data block, in bytes of Arrow: encoding takes ten times that. Hudi's blocks have up to 256 MiB."""
_KINDS: Final = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_string, "string"),
    (pa.types.is_date, "date"),
    (pa.types.is_decimal, "decimal"),
    (pa.types.is_timestamp, "long"),  # to Hudi's comparison a timestamp is its number
)


@attrs.frozen(kw_only=True)
class LogSlice:
    """
    The slice of a file group that takes new log files.

    Args:
        partition_path: Relative path of the partition.
        file_id: The group's file id.
        base_instant_time: The slice's base time: that of its base file, or of the pending compaction that opened it.
        base_file: Name of its base file, in layout 2 of that of an older slice before a pending compaction; ``""`` if
            there is none.
        logs: Its log files, oldest first; in layout 1 those of failed writes included.
    """

    partition_path: str
    file_id: str
    base_instant_time: str
    base_file: str = ""
    logs: tuple[LogFile, ...] = ()


@attrs.frozen(kw_only=True)
class LogTarget:
    """
    Which log file is written.

    Args:
        file_slice: The slice that takes it.
        write_token: See `FileTarget`.
        instant_time: Requested time of the delta commit.
        tells_slice: Whether names of log files name the slice that they belong to (layout 1).
        records_slice: Whether the stat names the slice; with change data capture in layout 2, too: its readers compare
            the log file with the files that the stat names.
    """

    file_slice: LogSlice
    write_token: str
    instant_time: str
    tells_slice: bool
    records_slice: bool = attrs.field(default=attrs.Factory(lambda self: self.tells_slice, takes_self=True))

    @property
    def version(self) -> int:
        """Number of the file: within its slice in layout 1, always 1 in layout 2 (one file per delta commit)."""
        # Files of failed writes count, too: their names are taken until a rollback deletes them.
        versions = (log.version for log in self.file_slice.logs) if self.tells_slice else ()
        return 1 + max(versions, default=0)

    @property
    def name(self) -> str:
        """File name."""
        time = self.file_slice.base_instant_time if self.tells_slice else self.instant_time
        return f".{self.file_slice.file_id}_{time}.log.{self.version}_{self.write_token}"

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return join_path(self.file_slice.partition_path, self.name)


@attrs.frozen(kw_only=True)
class LogFileOptions:
    """
    How log files are laid out.

    Args:
        in_parquet: Whether data blocks are Parquet; otherwise Avro.
        has_positions: Whether blocks say at which rows of the base file their records are, where that has copies of a
            key, see `hudi_py.rows.positions`.
        ordering_fields: Columns whose values are stored with deletes that have them.
        parquet: Layout of Parquet blocks.
    """

    in_parquet: bool = False
    has_positions: bool = False
    ordering_fields: tuple[str, ...] = ()
    parquet: BaseFileOptions = attrs.field(factory=BaseFileOptions)


def encode_log_file(
    changes: RowChanges,
    target: LogTarget,
    avro_schema: str,
    options: LogFileOptions,
    first_row_index: int = 0,
    positions: RecordPositions | None = None,
) -> bytes:
    """
    Encode the log file that holds *changes*.

    Args:
        changes: Changes of this file group.
        target: Names the file.
        avro_schema: Record schema of the commit, without meta columns.
        options: Layout.
        first_row_index: Where the row numbers inside the sequence numbers start.
        positions: At which rows of the base file the changes are; None if the file does not say it.

    Raises:
        WriteError: A value is null where the table's schema has no null.
    """
    deletes = changes.deletes
    deleted: Iterable[DeletedKey] | None = None
    of_rows, of_deleted = positions, None
    # No block without a key: one whose positions are empty makes Apache Hudi ignore those of all blocks.
    if deletes is not None and compute.any(deletes).as_py():
        gone = changes.rows.filter(deletes)
        deleted = _deleted(gone, changes.keys.filter(deletes), target, options.ordering_fields)
        if positions is not None:
            are_gone = deletes.to_numpy(zero_copy_only=False)
            of_rows, of_deleted = positions.part(~are_gone), positions.part(are_gone)
    header = {HeaderKey.INSTANT_TIME: target.instant_time, HeaderKey.SCHEMA: with_meta_fields(avro_schema)}
    out, start = io.BytesIO(), 0
    # Rows before deletes: within one file no key is in both, and Hudi writes them in this order.
    for piece in _stored_rows(changes, target, first_row_index):
        stop = start + piece.num_rows
        texts = _texts(header, None if of_rows is None else of_rows.part(slice(start, stop)))
        start = stop
        out.write(encoded_rows(piece, texts, options))
    if deleted is not None:
        out.write(encoded_deletes(deleted, _texts(header, of_deleted)))
    return out.getvalue()


def encoded_rows(rows: pa.RecordBatch, header: Mapping[int, str], options: LogFileOptions) -> bytes:
    """
    Return a data block.

    Args:
        rows: Its rows, with their meta columns.
        header: Its header, which has the schema.
        options: Layout.

    Raises:
        WriteError: A value is null where the table's schema has no null.
    """
    schema_text = header[HeaderKey.SCHEMA]
    if options.in_parquet:
        return encode_log_block(
            LogBlock(BlockType.PARQUET_DATA, dict(header), _parquet(rows, schema_text, options.parquet))
        )
    return encode_log_block(LogBlock(BlockType.AVRO_DATA, dict(header), encode_data_block(rows, schema_text)))


def encoded_deletes(deleted: Iterable[DeletedKey], header: Mapping[int, str]) -> bytes:
    """Return a delete block of keys that have no row in the same file."""
    return encode_log_block(LogBlock(BlockType.DELETE, dict(header), encode_delete_block(deleted)))


def _texts(header: Mapping[HeaderKey, str], positions: RecordPositions | None) -> dict[int, str]:
    texts = {int(key): text for key, text in header.items()}
    if positions is not None:
        texts[HeaderKey.RECORD_POSITIONS] = encode_positions(positions.rows)
        texts[HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS] = positions.base_instant_time
    return texts


def written_log(
    target: LogTarget,
    changes: RowChanges,
    options: BaseFileOptions,
    *,
    size_bytes: int,
    elapsed_ms: int,
    first_row_index: int = 0,
) -> WrittenFile:
    """
    Return the stat of a log file as the table's release records it (rules/data-files 8).

    Args:
        target, changes, first_row_index: As `encode_log_file`.
        options: Tells what is gathered for the indexes of the metadata table (`ranged`, `tracks_keys`).
        size_bytes: Size of the file.
        elapsed_ms: Time that writing it took.
    """
    deleted = 0 if changes.deletes is None else int(compute.sum(changes.deletes).as_py() or 0)
    # A file without rows must name its columns, too.
    nothing = _with_meta(changes.rows.slice(0, 0), changes.keys.slice(0, 0), target, first_row_index)
    stat = log_stat(
        target, rows=len(changes.keys) - deleted, deleted=deleted, size_bytes=size_bytes, elapsed_ms=elapsed_ms
    )
    return WrittenFile(
        stat,
        ranges=ranges_of_rows(
            itertools.chain([nothing], _stored_rows(changes, target, first_row_index)), options.ranged
        )
        if options.ranged
        else (),
        keys=_key_changes(changes) if options.tracks_keys else None,
    )


def log_stat(target: LogTarget, *, rows: int, deleted: int, size_bytes: int, elapsed_ms: int) -> WriteStat:
    """
    Return the stat of a log file with this number of rows and deleted keys; further arguments as for `written_log`.
    """
    file_slice, name = target.file_slice, target.name
    earlier = tuple(log.name for log in file_slice.logs) if target.records_slice else ()
    return WriteStat(
        file_id=file_slice.file_id,
        path=target.path,
        partition_path=file_slice.partition_path,
        prev_commit=file_slice.base_instant_time if target.records_slice else target.instant_time,
        base_file=file_slice.base_file if target.records_slice else "",
        log_version=target.version,
        log_offset=0,
        log_files=(*earlier, name),
        num_writes=rows,
        # Which rows are new is unknown without the base file, so all count as updates, as in Hudi.
        num_update_writes=rows,
        num_deletes=deleted,
        total_write_bytes=size_bytes,
        file_size_in_bytes=size_bytes,
        runtime_stats=RuntimeStats(total_upsert_time=elapsed_ms),
    )


def _key_changes(changes: RowChanges) -> KeyChanges:
    if changes.deletes is None:
        return KeyChanges(changes.keys, NO_KEYS)
    return KeyChanges(changes.keys.filter(compute.invert(changes.deletes)), changes.keys.filter(changes.deletes))


def _stored_rows(changes: RowChanges, target: LogTarget, first_row_index: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of each data block; deletes stand in a block of their own."""
    rows, keys = changes.rows, changes.keys
    if changes.deletes is not None:
        kept = compute.invert(changes.deletes)
        rows, keys = rows.filter(kept), keys.filter(kept)
    for start, count in pieces_of(rows):
        yield _with_meta(rows.slice(start, count), keys.slice(start, count), target, first_row_index + start)


def _with_meta(rows: pa.RecordBatch, keys: Array, target: LogTarget, first_row_index: int) -> pa.RecordBatch:
    file_slice, count = target.file_slice, len(keys)
    of_file = FileTarget(
        partition_path=file_slice.partition_path,
        file_id=file_slice.file_id,
        write_token=target.write_token,
        instant_time=target.instant_time,
    )
    columns: list[Any] = [
        pa.repeat(target.instant_time, count),
        sequence_numbers(of_file, first_row_index, count),
        keys,
        pa.repeat(file_slice.partition_path, count),
        pa.repeat(file_slice.file_id, count),  # a log record has the id where a base file's has the name
    ]
    return pa.RecordBatch.from_arrays([*columns, *rows.columns], schema=pa.schema([*meta_fields(), *rows.schema]))


def pieces_of(rows: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield start and number of rows of each data block."""
    # At least one row, however large it is.
    step = max(rows.num_rows // max(rows.nbytes // _PIECE_BYTES_MAX, 1), 1)
    for start in range(0, rows.num_rows, step):
        yield start, min(step, rows.num_rows - start)


def _parquet(rows: pa.RecordBatch, schema_text: str, options: BaseFileOptions) -> bytes:
    out = io.BytesIO()
    table = pa.Table.from_batches([rows])
    with open_parquet(out, table, options) as writer:
        writer.write_table(table)
        # Hudi reads the columns of a Parquet block by this schema.
        writer.add_key_value_metadata({AVRO_SCHEMA_KEY: schema_text})
    return out.getvalue()


def _deleted(
    rows: pa.RecordBatch, keys: Array, target: LogTarget, ordering_fields: Sequence[str]
) -> Iterator[DeletedKey]:
    values = [rows.column(name) for name in ordering_fields if name in rows.schema.names]
    return deleted_keys(keys, values, target.file_slice.partition_path)


def deleted_keys(keys: Array, ordering: Sequence[Any], partition: str) -> Iterator[DeletedKey]:
    """
    Yield deleted keys as a delete block stores them.

    Args:
        keys: The keys.
        ordering: Their ordering values, one array for each ordering field.
        partition: Path of their partition.
    """
    # A delete carries all of its ordering values or none; without them it always wins (see `log_rules`).
    columns = [_ordering(column) for column in ordering]
    whole = np.ones(len(keys), np.bool_)
    for column in ordering:
        whole &= column.is_valid().to_numpy(zero_copy_only=False)
    for at, key in enumerate(keys.to_pylist()):
        yield DeletedKey(str(key), partition, tuple(column[at] for column in columns) if columns and whole[at] else ())


def _ordering(column: Any) -> list[OrderingValue]:
    kind = next(kind for is_kind, kind in _KINDS if is_kind(column.type))
    # As the number behind the type: days, or the unit of the timestamp.
    if pa.types.is_date(column.type):
        column = column.view(pa.int32())
    elif pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    return [OrderingValue(kind, value) for value in column.to_pylist()]
