"""
How the log files of file slices are read at one time; reads their records and merges them among themselves.

Source: rules/data-files 9; Hudi 1.1.1 ``BaseHoodieLogRecordReader``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.formats.arrow_types import Field
from hudi_py.formats.log_block import LogBlock
from hudi_py.model.files import FileSlice, LogFile, join_path
from hudi_py.rows.log_merge import MergedLogs, merge_records
from hudi_py.rows.log_parts import LogParts, held_or_in_parts
from hudi_py.rows.log_records import KEY_COLUMN, LogRecords, RecordShape, records_of
from hudi_py.rows.log_rules import LogRules
from hudi_py.rows.log_scan import WHOLE_BYTES_MAX, read_log_blocks, scan_blocks, with_content
from hudi_py.rows.lost_blocks import refuse_lost
from hudi_py.rows.ordering import ordering_columns, ordering_field
from hudi_py.runtime.ahead import Source, in_turn

if TYPE_CHECKING:
    from hudi_py.formats.column_history import MovedColumns
    from hudi_py.fsview.written_ranges import WrittenRanges
    from hudi_py.rows.keys import KeyGenerator
    from hudi_py.rows.predicate import ColumnFilter
    from hudi_py.storage.base import Storage

_AHEAD_BYTES_MAX: Final = 32 << 20  # of log files of one slice that are read at one time
REMOTE_THREADS: Final = 4  # which wait for answers, however few cores there are


class PartsOfRows(RefusedError):
    """Log files update some columns of a row whose other columns are not in the slice."""


@attrs.frozen(kw_only=True)
class LogReading:
    """
    How the log files of a table are read at one time.

    Args:
        rules: How records are merged.
        counts: Whether the blocks of an instant count.
        until: Instant time of an earlier snapshot; None for the latest.
        ends_at_later: As for `scan_blocks`.
        ordering: The ordering fields that the table has, in the order of *rules*; a field of a struct under its whole
            name.
        columns: The columns that hold their values, and those that *keys* needs.
        keys: Computes the keys of rows that do not hold them; None where they do.
        only: Rows of base files that do not meet this are ignored, as if they did not exist; None to use all rows.
        groups: Row groups of base files in which no row can meet this are ignored; None to use all.
        whole: Where *only* some commits count, the slices that hold the other columns of their rows, too, by partition
            path and file id: they are read where log files have updates of some columns.
        moved: Where the columns of log blocks are today; None if all have kept their names.
        meets_copies: See `MergedLogs`; of log files that give the positions of all their records in the base file, it
            is true in any case.
        memory_bytes: Records that are held at a time, in bytes of Arrow: more go through temporary files; None for all.
        spill_folder: Folder of these files; None for the machine's.
        written: Tells who wrote in a log file, where something in it is passed over; None if nobody knows.
    """

    rules: LogRules
    counts: Callable[[str], bool]
    until: str | None = None
    ends_at_later: bool = True
    ordering: tuple[Field, ...] = ()
    columns: tuple[Field, ...] = ()
    keys: KeyGenerator | None = None
    only: ColumnFilter | None = None
    groups: ColumnFilter | None = None
    whole: Mapping[tuple[str, str], FileSlice] = attrs.field(factory=dict)
    moved: MovedColumns | None = None
    meets_copies: bool = False
    memory_bytes: int | None = None
    spill_folder: str | None = None
    written: WrittenRanges | None = None

    def by_ids(self, moved: MovedColumns | None, *, has_ids: bool) -> LogReading:
        """
        As this one, for a table whose columns may have ids.

        Args:
            moved: Where the columns of log blocks are today.
            has_ids: Whether the table uses schema on read.
        """
        widens = self.rules.avro_widens_floats and not (has_ids and self.rules.ids_keep_float_texts)
        return attrs.evolve(self, moved=moved, rules=attrs.evolve(self.rules, avro_widens_floats=widens))

    def shape(self, schema: pa.Schema) -> RecordShape:
        """Records with the columns of *schema*, and what merging needs besides."""
        # Key and ordering fields are needed for merging, even if nobody asked for these columns.
        key = () if self.keys is not None else (pa.field(KEY_COLUMN, pa.string()),)
        more = [field for field in (*key, *self.columns) if field.name not in schema.names]
        return RecordShape(
            schema=pa.schema([*schema, *more]),
            ordering=self.ordering,
            delete_marker=self.rules.delete_marker,
            marks_any_case=self.rules.marks_any_case,
            keys=self.keys,
            avro_widens_floats=self.rules.avro_widens_floats,
            moved=self.moved,
        )


def log_reading(
    rules: LogRules,
    counts: Callable[[str], bool],
    until: str | None,
    schema: pa.Schema,
    source: str,
    keys: KeyGenerator | None = None,
) -> LogReading:
    """
    Args:
        rules, counts, until, keys: As for `LogReading`.
        schema: All columns of the table. Ordering fields that it lacks are ignored: Hudi's writers name one by default.
        source: The table's location, for messages.

    Raises:
        UnsupportedTable: An ordering field is of a type without order.
    """
    found = [field for field in (ordering_field(schema, name) for name in rules.ordering_fields) if field is not None]
    for field in found:
        if pa.types.is_nested(field.type):
            raise UnsupportedTable(
                f"{source}: rows are ordered by {field.name}, whose values are nested and have no order; "
                "read the table with Apache Hudi, or its base files alone (read-optimized)"
            )
    # Without any ordering field no two records can be compared, so the later one wins.
    if not found:
        rules = attrs.evolve(rules, orders_logs=False, orders_base=False)
    elif rules.deletes_reset and any(field.name not in schema.names for field in found):
        # Hudi 0.15 looks for the ordering value of a log record among the columns, and finds none in a struct.
        rules = attrs.evolve(rules, orders_logs=False)
    columns = ordering_columns(schema, found)
    if keys is not None:
        missing = [name for name in keys.record_key_fields if name not in schema.names]
        if missing:
            raise UnsupportedTable(f"{source}: rows hold no record keys, nor the key column {missing[0]}")
        columns += ordering_columns(schema, [schema.field(name) for name in keys.record_key_fields])
        columns = tuple({field.name: field for field in columns}.values())
    return LogReading(rules=rules, counts=counts, until=until, ordering=tuple(found), columns=columns, keys=keys)


def load_logs(
    storage: Storage, file_slice: FileSlice, shape: RecordShape, logs: LogReading, stack: ExitStack
) -> MergedLogs | Iterator[MergedLogs]:
    """
    The records of a slice's log files, merged among themselves.

    Args:
        storage: The table's storage.
        file_slice: The slice, its log files oldest first.
        shape: The columns to read.
        logs: How they are read.
        stack: Frees temporary files.

    Returns:
        All of them; or, if there are more than fit into memory, parts of them to be taken one after the other, each
        with other keys.

    Raises:
        CorruptMetadata, UnsupportedTable: A log file is damaged, or has content that hudi_py does not read.
        PartsOfRows: A range of time begins between a row and an update of some of its columns.
        SpillError: The disk for temporary files is full, or fails.
    """
    source = f"{storage.root}/{join_path(file_slice.partition_path, file_slice.file_id)}"
    positions_in = set[str | None]()
    read = _without_mixture(records_of(blocks_of(storage, file_slice, logs), shape), logs, source, positions_in)
    # Of a range of time, the records decide first which files are read.
    limit = None if logs.whole else logs.memory_bytes
    found = held_or_in_parts(read, shape, limit, logs.spill_folder, stack)
    merged = partial(
        _merged_records,
        file_slice=file_slice,
        shape=shape,
        logs=logs,
        source=source,
        has_positions=are_by_position(positions_in, file_slice),
    )
    return map(merged, found.read()) if isinstance(found, LogParts) else merged(found)


def _without_mixture(
    records: Iterator[LogRecords], logs: LogReading, source: str, positions_in: set[str | None]
) -> Iterator[LogRecords]:
    for each in records:
        positions_in.add(each.positions_in)
        if logs.rules.filling is not None and each.columns is not None:
            raise UnsupportedTable(
                f"{source} has updates of some columns in a table with hoodie.table.partial.update.mode, which "
                "releases of Hudi merge differently; read the table with Apache Hudi, or its base files alone "
                "(read-optimized)"
            )
        yield each


def _merged_records(
    records: Sequence[LogRecords],
    file_slice: FileSlice,
    shape: RecordShape,
    logs: LogReading,
    source: str,
    *,
    has_positions: bool,
) -> MergedLogs:
    # In both cases the row that an update belongs to is not read: there is no base file, or its rows are before the
    # range.
    if file_slice.base_file is None or logs.only is not None or logs.groups is not None:
        _refuse_parts_of_rows(records, source)
    merged = merge_records(records, shape, logs.rules)
    return attrs.evolve(merged, meets_copies=logs.meets_copies or has_positions)


def are_by_position(positions_in: set[str | None], file_slice: FileSlice) -> bool:
    """
    Return whether Hudi merges log records by position: those whose blocks have *positions_in* (see `LogRecords`).

    Of a key that the base file holds several times, the log files then have a record for each of its rows. One block
    without positions, and all are merged by key.
    """
    base = file_slice.base_file
    return base is not None and positions_in == {base.instant_time}


def _refuse_parts_of_rows(records: Sequence[LogRecords], source: str) -> None:
    """Without the row that it updates, an update of some columns would be shown as a row that is null in the others."""
    parts = [record for record in records if record.columns is not None]
    if not parts:
        return
    whole = {str(key) for each in records if each.columns is None for key in each.keys.to_pylist()}
    halves = {str(key) for part in parts for key in part.keys.to_pylist()} - whole
    if halves:
        raise PartsOfRows(
            f"{source} has updates of some columns of the row with key {min(halves)!r}, whose other columns were "
            "written before the range begins, in files that are deleted; begin the range at 0, or read a snapshot"
        )


def logged_keys(storage: Storage, file_slice: FileSlice, logs: LogReading) -> list[str]:
    """
    The keys of all records in the log files of a slice, rows and deletes, without repetition.

    Raises:
        CorruptMetadata, UnsupportedTable: As `load_logs`.
    """
    shape = logs.shape(pa.schema([]))
    records = list(records_of(blocks_of(storage, file_slice, logs), shape))
    return [str(each) for each in merge_records(records, shape, logs.rules).keys.to_pylist()]


def blocks_of(storage: Storage, file_slice: FileSlice, logs: LogReading) -> Iterator[tuple[LogBlock, str]]:
    """
    The blocks of a slice that count, with their contents and places, oldest first; see `headers_of`.
    """
    for path, block in headers_of(storage, file_slice, logs):
        source = f"{storage.root}/{path}"
        yield with_content(storage, path, block, source), f"{source} (block at byte {block.offset})"


def headers_of(storage: Storage, file_slice: FileSlice, logs: LogReading) -> Iterator[tuple[str, LogBlock]]:
    """
    The blocks of a slice that count, with the path of their file, oldest first; those of large files without contents.

    Bytes that are not a block are skipped with a warning, as in Apache Hudi: a writer that died leaves them. If rows of
    a completed commit are lost with what is passed over (`hudi_py.rows.lost_blocks`), or if a file is shorter than a
    completed commit recorded, the read is refused.
    """

    def blocks_in(log: LogFile) -> Generator[tuple[LogFile, LogBlock, str], None, None]:
        path = join_path(file_slice.partition_path, log.name)
        for block in read_log_blocks(
            storage, path, f"{storage.root}/{path}", log.size_bytes, whole_bytes_max=whole_bytes_max
        ):
            yield log, block, f"{storage.root}/{path}"

    files = sorted((log for log in file_slice.log_files if not log.is_cdc), key=lambda each: each.order)
    sources = [Source(partial(blocks_in, log), log.size_bytes or 0) for log in files]
    # The contents of files that are read whole are held until all blocks are known.
    is_large = logs.memory_bytes is not None and sum(each.size_bytes or 0 for each in files) > logs.memory_bytes
    whole_bytes_max = 0 if is_large else WHOLE_BYTES_MAX
    threads = REMOTE_THREADS if "://" in storage.root else 1  # a local disk answers at once
    # Closed at the end, because blocks that were read ahead hold threads and open streams.
    with closing(in_turn(sources, threads=threads, weight_max=_AHEAD_BYTES_MAX)) as blocks:
        found = scan_blocks(
            blocks,
            logs.counts,
            logs.until,
            ends_at_later=logs.ends_at_later,
            slice_time=file_slice.base_instant_time if logs.written is not None and logs.written.names_writes else None,
        )
    refuse_lost(found, storage.root, file_slice.partition_path, logs.written)
    for log, block in found.blocks:
        yield join_path(file_slice.partition_path, log.name), block
