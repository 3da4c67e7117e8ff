"""
Streams the rows of file slices: base files merged with their log files.

In memory are the records of the log files, merged by key, and of the base file the keys of one row group and one batch
of rows. Rows whose key is not in the logs are passed on unchanged. Rows with a newer version in the logs are left out;
the newer versions follow at the end of the slice.

Source: rules/data-files 9; Hudi 1.1.1 ``KeyBasedFileGroupRecordBuffer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import ConfigError, CorruptMetadata, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import PARQUET_DAMAGE, compute
from hudi_py.formats.stored_values import conform_stored
from hudi_py.model.files import BaseFile, FileSlice, join_path
from hudi_py.rows.footer_bounds import bounds_of_groups
from hudi_py.rows.log_merge import MergedLogs
from hudi_py.rows.log_reading import LogReading, PartsOfRows, load_logs
from hudi_py.rows.log_records import KEY_COLUMN, Kind
from hudi_py.rows.ordering import ordering_values
from hudi_py.rows.precedence import incoming_wins
from hudi_py.rows.predicate import filtered
from hudi_py.rows.pruning import may_match
from hudi_py.rows.read import FileCount, one_line, open_parquet, read_batches

if TYPE_CHECKING:
    import pyarrow.parquet as pq

    from hudi_py.formats.bloom import HashedKeys
    from hudi_py.rows.predicate import Bounds, RowFilter
    from hudi_py.storage.base import Storage

_BATCH_ROWS: Final = 32768
_NEVER: Final = -1

Mask = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]


@attrs.define
class MergeCount:
    """
    Counts of the rows that merging one file slice changed.

    Args:
        logged: Number of keys that the log files hold.
        updated: Number of rows of the base file that the log files replace.
        deleted: Number of rows of the base file that they delete.
        inserted: Number of rows that only they hold.
    """

    logged: int = 0
    updated: int = 0
    deleted: int = 0
    inserted: int = 0


def read_slices(
    storage: Storage,
    slices: Sequence[FileSlice],
    schema: pa.Schema,
    logs: LogReading | None,
    filters: Sequence[RowFilter] = (),
    count: FileCount | None = None,
    keys: HashedKeys | None = None,
    *,
    use_threads: bool = True,
) -> Iterator[pa.RecordBatch]:
    """
    Stream the rows of file slices.

    Args:
        storage: The table's storage.
        slices: File slices of a snapshot; change files among their logs are passed over.
        schema: Columns to return, see `hudi_py.rows.read.chosen_columns`.
        logs: How log files are read; None where no slice has any.
        filters: Conditions on columns of *schema*.
        count: Files read and skipped are added to it.
        keys: The only record keys that rows meeting *filters* can have; None if unknown.
        use_threads: As for `hudi_py.rows.read.read_batches`.

    Raises:
        CorruptMetadata: A file is damaged, or its values do not fit the columns.
        UnsupportedTable: A log file has blocks that are not supported.
    """
    count = FileCount() if count is None else count
    for file_slice in slices:
        if logs is not None and any(not log.is_cdc for log in file_slice.log_files):
            count.read += 1
            yield from merged_rows(storage, file_slice, schema, logs, filters)
        elif file_slice.base_file is not None:
            files = [(file_slice.partition_path, file_slice.base_file)]
            yield from read_batches(storage, files, schema, filters, count, keys, use_threads=use_threads)


def merged_rows(
    storage: Storage,
    file_slice: FileSlice,
    schema: pa.Schema,
    reading: LogReading,
    filters: Sequence[RowFilter] = (),
    merges: MergeCount | None = None,
) -> Iterator[pa.RecordBatch]:
    """
    Stream the rows of one file slice with log files.

    Args:
        storage, file_slice, schema, reading, filters: As for `read_slices`.
        merges: Counts rows; complete after the last batch.

    Raises:
        CorruptMetadata, UnsupportedTable: As `read_slices`.
    """
    try:
        yield from _merged(storage, file_slice, schema, reading, filters, merges or MergeCount())
    except ConfigError as error:  # an ordering field of a type without order
        raise UnsupportedTable(f"{storage.root}: the log files cannot be merged: {error}") from error


def _merged(
    storage: Storage,
    file_slice: FileSlice,
    schema: pa.Schema,
    reading: LogReading,
    filters: Sequence[RowFilter],
    merges: MergeCount,
) -> Iterator[pa.RecordBatch]:
    try:
        records = load_logs(storage, file_slice, reading.shape(schema), reading)
    # An update of some columns needs the row that it updates, which is in files from before the range.
    except PartsOfRows:
        file_slice = _whole_slice(file_slice, reading)
        # The filter takes the rows of those commits from the merged ones.
        reading = attrs.evolve(reading, only=None, groups=None)
        records = load_logs(storage, file_slice, reading.shape(schema), reading)
    pending = _Pending(records, reading, merges)
    if file_slice.base_file is not None:
        partition, base = file_slice.partition_path, file_slice.base_file
        for batch in _base_batches(storage, partition, base, schema, pending, reading, filters):
            yield filtered(batch, filters)
    for batch in pending.rest(schema):
        yield filtered(batch, filters)


def _whole_slice(file_slice: FileSlice, reading: LogReading) -> FileSlice:
    """The slice with the files from before a range; itself where they are not known."""
    return reading.whole.get((file_slice.partition_path, file_slice.file_id), file_slice)


class _Group(NamedTuple):
    """
    The effect of the logs on the rows of one row group.

    Args:
        is_left: Which rows stay as they are; None for all.
        updated: Numbers of the rows in which some or all columns are replaced.
        by: Numbers of the log keys that replace them.
        is_newer: Which of these log records are newer than the row; the others only fill in what the row does not give.
    """

    is_left: Mask | None
    updated: Numbers
    by: Numbers
    is_newer: Mask


_NONE: Final = np.zeros(0, np.int64)
_UNTOUCHED: Final = _Group(None, _NONE, _NONE, np.zeros(0, np.bool_))


class _Pending:
    """
    Merged log records while the base file is read.

    A record applies to the first row with its key. Where it applies to further ones, it is shown in the place of each.
    """

    def __init__(self, logs: MergedLogs, reading: LogReading, merges: MergeCount) -> None:
        self.logs = logs
        self._reading = reading
        self._merges = merges
        merges.logged += len(logs)
        self._is_met = np.zeros(len(logs), np.bool_)
        self.is_shown = logs.kinds == Kind.ROW

    def may_meet(self, bounds: Bounds) -> bool:
        """Whether a row with a key within *bounds* may have one of the log keys."""
        # Without bounds any key may be among the rows.
        if bounds.minimum is None or bounds.maximum is None:
            return not bounds.has_only_nulls
        is_within = compute.and_(
            compute.greater_equal(self.logs.keys, pa.scalar(bounds.minimum, pa.string())),
            compute.less_equal(self.logs.keys, pa.scalar(bounds.maximum, pa.string())),
        )
        return bool(is_within.true_count)

    def meet(self, keys: Any, ordering: Callable[[Numbers], list[Any]]) -> _Group:
        """
        Args:
            keys: Keys of the rows of one row group.
            ordering: Returns the ordering values of rows by their numbers.
        """
        places = compute.index_in(keys, value_set=self.logs.keys).fill_null(_NEVER).to_numpy(zero_copy_only=False)
        rows = np.flatnonzero(places != _NEVER)
        met = places[rows].astype(np.int64)
        is_first = np.zeros(len(rows), np.bool_)
        is_first[np.unique(met, return_index=True)[1]] = True
        # A key that an earlier row group had is merged already.
        is_first &= ~self._is_met[met]
        if not self.logs.meets_copies:  # further rows of a key that the table has several times stay as they are
            rows, met, is_first = rows[is_first], met[is_first], is_first[is_first]
        if not len(rows):
            return _UNTOUCHED
        self._is_met[met] = True
        wins = self._wins(rows, met, ordering)
        is_row = self.logs.kinds[met] == Kind.ROW
        # The stored row is newer, so the record of the logs is not shown for it.
        self.is_shown[met[~wins & is_first]] = False
        self._merges.updated += int((wins & is_row).sum())
        self._merges.deleted += int((wins & ~is_row).sum())
        in_place = wins & is_row & ~is_first
        if self.logs.held is not None:
            # An older record of the logs has values to give only where rows may leave them out.
            in_place = is_row if self._reading.rules.filling is not None else is_row & wins
            self.is_shown[met[in_place]] = False  # shown in place of the stored row, whose other columns it takes
        is_left = np.ones(len(places), np.bool_)
        is_left[rows[wins | in_place]] = False
        return _Group(is_left, rows[in_place], met[in_place], wins[in_place])

    def _wins(self, rows: Numbers, met: Numbers, ordering: Callable[[Numbers], list[Any]]) -> Mask:
        rules, kinds = self._reading.rules, self.logs.kinds[met]
        if not rules.orders_base:
            return np.ones(len(rows), np.bool_)
        wins = incoming_wins([each.take(_numbers(met)) for each in self.logs.ordering], ordering(rows))
        # A delete without an ordering value has nothing by which it could lose.
        wins |= kinds == Kind.ALWAYS
        # In 0.15 a delete by key wins over the base file whatever its ordering value (rules/data-files 9.3).
        if rules.deletes_reset:
            wins |= kinds == Kind.DELETE
        return wins

    def updated(self, batch: pa.RecordBatch, by: Numbers, is_newer: Mask) -> pa.RecordBatch:
        """Rows of the base file, with the columns that the logs replace or fill in."""
        filling = self._reading.rules.filling
        picked = _numbers(by)
        columns = []
        for field in batch.schema:
            logged: Any = self.logs.rows.column(field.name).take(picked)
            if self.logs.held is None:
                columns.append(_whole(logged))
                continue
            stored: Any = batch.column(field.name)
            is_logged = self.logs.held[field.name][by]
            if filling is not None and not is_newer.all():
                is_logged = np.where(is_newer, is_logged, ~filling.given(stored))
            both = pa.concat_arrays([stored, _whole(logged)])
            number = np.arange(len(by))
            columns.append(both.take(_numbers(np.where(is_logged, number + len(by), number))))
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def rest(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows of the logs that are newer than those of the base file, or that the base file lacks."""
        numbers = np.flatnonzero(self.is_shown)
        self._merges.inserted += int((self.is_shown & ~self._is_met).sum())
        for start in range(0, len(numbers), _BATCH_ROWS):
            taken = self.logs.rows.select(schema.names).take(_numbers(numbers[start : start + _BATCH_ROWS]))
            yield from taken.combine_chunks().to_batches()


def _numbers(places: Numbers) -> Any:
    return pa.array(places)


def _whole(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _base_batches(
    storage: Storage,
    partition: str,
    base: BaseFile,
    schema: pa.Schema,
    pending: _Pending,
    reading: LogReading,
    filters: Sequence[RowFilter],
) -> Iterator[pa.RecordBatch]:
    """
    Rows of the base file that the log files leave unchanged or update.

    If no row of a row group can meet the conditions, only its keys are read: they are needed to find out which log
    records win over stored rows, but none of the stored rows is returned.
    """
    path = join_path(partition, base.name)
    more = [field for field in reading.columns if field.name not in schema.names]
    with open_parquet(storage, path, base, wanted=pa.schema([*schema, *more])) as file:
        stored = file.schema_arrow.names
        if reading.keys is None and KEY_COLUMN not in stored:
            raise CorruptMetadata(f"{storage.root}/{path} has no column {KEY_COLUMN} to merge the log files by")
        present = [name for name in schema.names if name in stored]
        ignored = () if reading.groups is None else (reading.groups,)
        try:
            bounds = bounds_of_groups(file)
            for number in range(file.metadata.num_row_groups):
                if not may_match(ignored, partial(bounds, number)):
                    continue
                is_ruled_out = not may_match(filters, partial(bounds, number))
                # The stored key column of rows that hold no keys says nothing: it is empty.
                may_meet = reading.keys is not None or any(
                    map(pending.may_meet, bounds(number, (KEY_COLUMN,), pa.string()))
                )
                if is_ruled_out and not may_meet:
                    continue

                def ordering(rows: Numbers, number: int = number) -> list[Any]:
                    names = [field.name for field in reading.columns if field.name in stored]
                    if not names:  # added later than this file; from a table without columns pyarrow can take no rows
                        return [pa.nulls(len(rows), field.type) for field in reading.ordering]
                    found = file.read_row_group(number, columns=names).take(_numbers(rows))
                    batch = found.combine_chunks().to_batches()[0]
                    rows_of_table = conform_stored(batch, pa.schema(reading.columns))
                    return [ordering_values(rows_of_table, field) for field in reading.ordering]

                group = pending.meet(_keys(file, number, reading), ordering) if may_meet else _UNTOUCHED
                if is_ruled_out and not len(group.updated):
                    continue
                start = 0
                for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=present, row_groups=[number]):
                    rows = conform_stored(batch, schema)
                    yield from _kept(rows, start, group, pending)
                    start += batch.num_rows
        except (*PARQUET_DAMAGE, WriteError) as error:
            raise CorruptMetadata(f"{storage.root}/{path} cannot be read: {one_line(error)}") from error


def _keys(file: pq.ParquetFile, number: int, reading: LogReading) -> Any:
    """Record keys of one row group, null for a row that is to be ignored."""
    if reading.keys is None:
        keys = _whole(file.read_row_group(number, columns=[KEY_COLUMN]).column(0)).cast(pa.string())
    else:
        fields = [field for field in reading.columns if field.name in reading.keys.record_key_fields]
        table = file.read_row_group(number, columns=[field.name for field in fields])
        batch = pa.RecordBatch.from_arrays([_whole(each) for each in table.columns], schema=table.schema)
        keys = reading.keys.record_keys(conform_stored(batch, pa.schema(fields)))
    only = reading.only
    if only is None:
        return keys
    column = _whole(file.read_row_group(number, columns=[only.column]).column(0)).cast(only.arrow)
    return compute.if_else(only.mask(column), keys, pa.scalar(None, pa.string()))


def _kept(batch: pa.RecordBatch, start: int, group: _Group, pending: _Pending) -> Iterator[pa.RecordBatch]:
    end = start + batch.num_rows
    if group.is_left is None:
        yield batch
        return
    is_left = group.is_left[start:end]
    yield batch if is_left.all() else batch.filter(pa.array(is_left))
    here = np.flatnonzero((group.updated >= start) & (group.updated < end))
    if len(here):
        rows = batch.take(_numbers(group.updated[here] - start))
        yield pending.updated(rows, group.by[here], group.is_newer[here])
