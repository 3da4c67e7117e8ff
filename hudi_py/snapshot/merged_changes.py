"""
Changes in log files of rows: a file group before a commit is compared with the group after it.

Only the keys in the commit's own log files are looked up. A key has not changed if its row is the same before and
after: the logged row had a lower ordering value than the stored one, or the logged delete had no row to delete.

Source: Hudi ``HoodieCDCExtractor`` (``LOG_FILE``), ``CDCFileGroupIterator``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs
import pyarrow as pa

from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.fsview.as_of import readable_slices
from hudi_py.fsview.build import ViewContext, build_partition
from hudi_py.model.files import FileSlice, parse_base_file, parse_log_file
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.rows.predicate import OneOf

if TYPE_CHECKING:
    from collections.abc import Callable

    from hudi_py.config.table import TableConfig
    from hudi_py.fsview.written_ranges import WrittenRanges
    from hudi_py.rows.log_reading import LogReading
    from hudi_py.storage.base import Storage

_RECORD_KEY: Final = META_COLUMNS[2]


@attrs.frozen(kw_only=True)
class Merge:
    """
    One file group around one commit.

    Args:
        own: The log files of the commit alone.
        before: The newest slice before the commit; None if the group did not exist.
        after: The newest slice with the commit.
        reading: How log files are read with the commit.
        time: Requested time of the commit.
    """

    own: FileSlice
    before: FileSlice | None
    after: FileSlice | None
    reading: LogReading
    time: str

    def rows_before(self, storage: Storage, row: pa.Schema) -> Iterator[pa.RecordBatch]:
        """All rows that the group had before the commit."""
        from hudi_py.rows.slice_reader import read_slices

        assert self.before is not None, self
        return read_slices(storage, [self.before], row, self._without)

    @property
    def _without(self) -> LogReading:
        return attrs.evolve(self.reading, counts=partial(_is_other, self.reading.counts, self.time))

    def tables(self, storage: Storage, row: pa.Schema) -> tuple[Sequence[str], pa.Table, pa.Table]:
        """
        The keys that the commit logged, and the rows that they had before and after, with their keys.

        Args:
            storage: The table's storage.
            row: Columns of the rows.
        """
        from hudi_py.rows.log_reading import logged_keys

        keys = logged_keys(storage, self.own, attrs.evolve(self.reading, counts=partial(_is, self.time)))
        columns = row if _RECORD_KEY in row.names else pa.schema([*row, pa.field(_RECORD_KEY, pa.string())])
        found = [
            _rows(storage, each, columns, reading, keys)
            for each, reading in ((self.before, self._without), (self.after, self.reading))
        ]
        return keys, found[0], found[1]


def _rows(
    storage: Storage, file_slice: FileSlice | None, columns: pa.Schema, reading: LogReading, keys: Sequence[str]
) -> pa.Table:
    from hudi_py.rows.slice_reader import read_slices

    slices = [] if file_slice is None else [file_slice]
    only = OneOf(_RECORD_KEY, frozenset(keys))
    return pa.Table.from_batches(read_slices(storage, slices, columns, reading, [only]), columns).combine_chunks()


def _is(time: str, other: str) -> bool:
    return time == other


def _is_other(counts: Callable[[str], bool], time: str, other: str) -> bool:
    return other != time and counts(other)


class Merges:
    """
    The file groups of a table around one commit.

    Args:
        config: The table's configuration.
        schema: All columns of the table.
        context: The view as the table was right after the commit.
        time: Requested time of the commit.
        source: The table's location, for messages.
        pending: Requested times of pending compactions.
        written: Tells who wrote in a log file.
    """

    def __init__(
        self,
        config: TableConfig,
        schema: pa.Schema,
        context: ViewContext,
        time: str,
        source: str,
        pending: Collection[str] = (),
        written: WrittenRanges | None = None,
    ) -> None:
        from hudi_py.rows.log_reading import log_reading

        self._context = attrs.evolve(context, replaced={})  # a group is looked up before it was replaced, too
        self._pending = pending
        self._time = time
        self._visible: dict[str, dict[str, list[str]]] = {}
        tells_slice = context.log_naming.tells_slice
        rules = log_rules_of(config.properties, source)
        # In layout 1 the name of a log file does not have the time of its write, so later blocks have to be left out.
        reading = log_reading(rules, context.is_completed, time if tells_slice else None, schema, source)
        # The commit may follow blocks of a write that was requested later and failed, or of its rollback.
        self._reading = attrs.evolve(reading, ends_at_later=False, written=written)

    def of(self, partition: str, file_id: str, logs: Iterable[str], names: Iterable[str]) -> Merge:
        """
        Args:
            partition: Path of the partition.
            file_id: The group's file id.
            logs: Names of the log files that the commit wrote.
            names: Names of all existing files.
        """
        own = tuple(filter(None, map(parse_log_file, sorted(logs))))
        if partition not in self._visible:
            self._visible[partition] = self._by_group(names)
        of_group = self._visible[partition].get(file_id, [])
        of_commit = {log.name for log in own}
        without = [name for name in of_group if name not in of_commit and not self._is_own(name)]
        return Merge(
            # A table that was upgraded from layout 1 has log files that are named after their slice.
            own=FileSlice(partition, file_id, own[0].instant_time if own else self._time, None, own),
            before=self._newest(partition, without),
            after=self._newest(partition, of_group),
            reading=self._reading,
            time=self._time,
        )

    def _newest(self, partition: str, names: Iterable[str]) -> FileSlice | None:
        view = build_partition(self._context, partition, ((name, None) for name in names))
        return next(iter(readable_slices(self._context, view, self._pending)), None)

    def _by_group(self, names: Iterable[str]) -> dict[str, list[str]]:
        """File id to names of the group's files that are visible after the commit."""
        found: dict[str, list[str]] = {}
        for name in names:
            base, log = parse_base_file(name), parse_log_file(name)
            if base is not None and self._context.is_committed(base.instant_time):
                found.setdefault(base.file_id, []).append(name)
            tells_slice = self._context.log_naming.tells_slice
            if log is not None and (tells_slice or self._context.is_completed(log.instant_time)):
                found.setdefault(log.file_id, []).append(name)
        return found

    def _is_own(self, name: str) -> bool:
        base, log = parse_base_file(name), parse_log_file(name)
        if base is not None:
            return base.instant_time == self._time
        return log is not None and not self._context.log_naming.tells_slice and log.instant_time == self._time
