"""
All single changes in a range of time, from the change logs of a table with change data capture.

Each change has its operation, the time of its commit, the row before and the row after. Commits follow in the order in
which they completed (layout 1: were requested), and the changes of a commit file group by file group. A row that
changed twice is listed twice.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, CorruptMetadata, NotFound, RefusedError, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import Array
from hudi_py.formats.change_block import ChangeBlock, decode_change_log
from hudi_py.formats.conform import conform_array
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.formats.stored_values import as_hudi_reads
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.gone import told_of_lost_archive
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.needed import NeededFiles
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.model.change_logging import LoggingMode, logging_mode
from hudi_py.model.files import BaseFile, join_path, parse_base_file
from hudi_py.rows.path_columns import PathColumns, path_columns_of
from hudi_py.rows.predicate import OneOf
from hudi_py.rows.read import chosen_columns, read_batches
from hudi_py.snapshot.batches import Batches, Pieces
from hudi_py.snapshot.beside_clean import which_clean
from hudi_py.snapshot.change_losses import Losses, with_sizes
from hudi_py.snapshot.change_plan import CommitFiles, Source, Step, is_change
from hudi_py.snapshot.merged_changes import Merges
from hudi_py.snapshot.range_contents import RangeContents
from hudi_py.snapshot.window import Window
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import moved_columns
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_py.model.instant import Instant

_COMMIT_TIME: Final = META_COLUMNS[0]
_COMMIT_NUMBER: Final = META_COLUMNS[1]
_RECORD_KEY: Final = META_COLUMNS[2]
_KEY_AND_ORIGIN: Final = pa.schema([(name, pa.string()) for name in (_RECORD_KEY, _COMMIT_TIME, _COMMIT_NUMBER)])


@attrs.frozen(kw_only=True)
class ReadChanges:
    """
    Reads the changes of one file group in one commit; can be pickled and sent to another process.

    Args:
        storage: The table's storage.
        window: The range.
        row: Columns of the rows before and after.
        whole: All columns of the table: whether a row has changed does not depend on the columns that are asked for.
        schema: Columns of the batches.
        path_columns: Columns that files lack; None if they have all.
    """

    _storage: Storage
    _window: Window
    _row: pa.Schema
    _whole: pa.Schema
    _schema: pa.Schema
    _path_columns: PathColumns | None = None

    def __call__(self, step: Step) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._changes(step)
        except NotFound as error:
            raise RefusedError(
                f"the changes {self._window} cannot be read any more: {error}; perhaps a clean deleted it meanwhile. "
                "Read again with a later begin"
            ) from error

    def _changes(self, step: Step) -> Iterator[pa.RecordBatch]:
        if step.source is Source.LOGS:
            for name in step.logs:
                path = join_path(step.partition_path, name)
                source, data = f"{self._storage.root}/{path}", self._storage.read(path)
                step.check_log(name, len(data), source)
                for block in decode_change_log(data, source):
                    yield self._logged(step, block, path)
            return
        if step.source is Source.MERGED:
            yield self._merged(step)
            return
        is_insert = step.source is Source.INSERTED
        for batch in self._all_rows(step):
            rows, none = pa.StructArray.from_arrays(batch.columns, fields=list(self._row)), self._no_rows(len(batch))
            operations: Array = pa.array(["i" if is_insert else "d"] * len(batch), pa.string())
            yield self._batch(step, operations, none if is_insert else rows, rows if is_insert else none)

    def _all_rows(self, step: Step) -> Iterator[pa.RecordBatch]:
        if step.merge is not None:
            return step.merge.rows_before(self._storage, self._row)
        file = step.after if step.source is Source.INSERTED else step.before
        assert file is not None, step
        files = [(step.partition_path, file)]
        if not step.is_partly_new:
            return read_batches(self._storage, files, self._row)
        timed = pa.schema([*self._row, pa.field(_COMMIT_TIME, pa.string())])
        # An insert into a small file copies the old rows of that file; only rows with the time of the commit are new.
        new = read_batches(self._storage, files, timed, [OneOf(_COMMIT_TIME, frozenset([step.time]))])
        return (batch.select(self._row.names) for batch in new)

    def _merged(self, step: Step) -> pa.RecordBatch:
        """The changes of the keys that the commit logged; rows that it did not write are left out."""
        assert step.merge is not None, step
        # All columns, whatever was asked for: a row has changed if any of its columns has. As in Hudi it has, too, if
        # it was written again as it was: only the number that its write gave it is another one then.
        compared = pa.schema([*self._whole, pa.field(_COMMIT_NUMBER, pa.string())])
        keys, *tables = step.merge.tables(self._storage, compared)
        places = [_places(each[_RECORD_KEY].to_pylist()) for each in tables]
        rows = [each.select(compared.names).to_pylist() for each in tables]
        changed = [pair for key in keys for pair in _changed(rows, places[0].get(key, ()), places[1].get(key, ()))]
        operations: Array = pa.array(
            ["d" if after is None else "i" if before is None else "u" for before, after in changed], pa.string()
        )
        columns = [self._taken(table, [pair[side] for pair in changed]) for side, table in enumerate(tables)]
        return self._batch(step, operations, *columns)

    def _taken(self, table: pa.Table, places: Sequence[int | None]) -> Array:
        """The rows at these positions; null where the position is None."""
        columns: list[Array] = [
            _whole(table[name], field.type) for name, field in zip(self._row.names, self._row, strict=True)
        ]
        rows: Any = pa.StructArray.from_arrays(columns, fields=list(self._row))
        taken: Array = rows.take(pa.array(places, pa.int64()))
        return taken

    def _logged(self, step: Step, block: ChangeBlock, path: str) -> pa.RecordBatch:
        sides = (
            self._looked_up(step, file, self._keys(block, other, path), path)
            if rows is None
            else self._rows(rows, path)
            for rows, file, other in ((block.before, step.before, "i"), (block.after, step.after, "d"))
        )
        return self._batch(step, block.operations, *sides)

    def _keys(self, block: ChangeBlock, other: str, path: str) -> list[str | None]:
        """The key of each change; None for the operation *other*, which has no row on this side."""
        operations = block.operations.to_pylist()
        keys: list[str | None] = [None] * len(operations) if block.keys is None else block.keys.to_pylist()
        if any(key is None and operation != other for key, operation in zip(keys, operations, strict=True)):
            raise CorruptMetadata(f"{self._storage.root}/{path}: a change without a row has no key either")
        return [None if operation == other else key for key, operation in zip(keys, operations, strict=True)]

    def _rows(self, rows: Array, path: str) -> Array:
        """The rows of the log in the types that the table's columns have today."""
        try:
            # Change logs keep the schema of their commit, and columns may have been added or widened since.
            return conform_array(rows, pa.struct(list(self._row)), "row", as_hudi_reads)
        except (WriteError, pa.ArrowException) as error:
            raise CorruptMetadata(f"{self._storage.root}/{path} does not fit the table's columns: {error}") from error

    def _looked_up(self, step: Step, file: BaseFile | None, keys: Sequence[str | None], path: str) -> Array:
        """The rows of a base file with these keys, null for a key of None; a key without a row is an error."""
        wanted = frozenset(key for key in keys if key is not None)
        if not wanted:
            return self._no_rows(len(keys))
        assert file is not None, step
        schema = self._row
        if _RECORD_KEY not in schema.names:
            schema = pa.schema([*schema, pa.field(_RECORD_KEY, pa.string())])
        found = self._rows_of(step, file, schema, wanted)
        place = dict(_places(found[_RECORD_KEY].to_pylist()))
        # As null, a missing row would make an update look like an insert or a delete.
        missing = wanted.difference(place)
        if missing:
            raise CorruptMetadata(
                f"{self._storage.root}/{path} names the key {min(missing)!r}, which {file.name} does not hold"
            )
        times = Counter(keys)
        # Of a key in several rows, the commit may have changed some: the log then names the key as often as that.
        unclear = frozenset(key for key in wanted if times[key] != len(place[key]) > 1)
        for key, is_changed in self._are_changed(step, file, unclear).items():
            changed = list(itertools.compress(place[key], is_changed))
            place[key] = changed if len(changed) == times[key] else place[key]
        return self._taken(found, _in_turn(keys, place))

    def _rows_of(self, step: Step, file: BaseFile, schema: pa.Schema, keys: frozenset[str]) -> pa.Table:
        """The rows of a base file that have one of these keys, in its order."""
        rows = read_batches(self._storage, [(step.partition_path, file)], schema, [OneOf(_RECORD_KEY, keys)])
        return pa.Table.from_batches(rows, schema).combine_chunks()

    def _are_changed(self, step: Step, file: BaseFile, keys: frozenset[str]) -> Mapping[str, Sequence[bool]]:
        """For each key whether its rows, in the order of the file, are those that the commit wrote or took away."""
        if not keys:
            return {}
        rows = self._rows_of(step, file, _KEY_AND_ORIGIN, keys).to_pylist()
        kept = frozenset[str | None]()
        if file is step.before and step.after is not None:  # a row that was taken over keeps its number
            kept = frozenset(self._rows_of(step, step.after, _KEY_AND_ORIGIN, keys)[_COMMIT_NUMBER].to_pylist())
        found: dict[str, list[bool]] = {}
        for row in rows:
            is_changed = row[_COMMIT_TIME] == step.time if file is step.after else row[_COMMIT_NUMBER] not in kept
            found.setdefault(row[_RECORD_KEY], []).append(is_changed)
        return found

    def _no_rows(self, count: int) -> Array:
        none: Array = pa.nulls(count, self._schema.field("before").type)
        return none

    def _filled(self, rows: Any, partition_path: str) -> Array:
        """The rows, with the values that only their path has."""
        if self._path_columns is None:
            return rows  # type: ignore[no-any-return]
        batch = pa.RecordBatch.from_arrays(rows.flatten(), schema=self._row)
        columns = self._path_columns.filled(batch, partition_path).columns
        filled: Array = pa.StructArray.from_arrays(columns, fields=list(self._row), mask=rows.is_null())
        return filled

    def _batch(self, step: Step, operations: Array, before: Array, after: Array) -> pa.RecordBatch:
        times: Array = pa.array([step.time] * len(operations), pa.string())
        before, after = (self._filled(each, step.partition_path) for each in (before, after))
        return pa.RecordBatch.from_arrays([operations, times, before, after], schema=self._schema)


def change_schema(row: pa.Schema) -> pa.Schema:
    """The schema of changes, for rows with the columns of *row*."""
    rows = pa.struct(list(row))
    return pa.schema([("op", pa.string()), ("ts", pa.string()), ("before", rows), ("after", rows)])


class ChangeLog(Batches):
    """
    Changes as Arrow batches, see `Batches`.

    Args:
        storage: The table's storage.
        window: The range.
        steps: Where the changes are, in order; all of their files existed when they were planned.
        row: Columns of the rows before and after.
        whole: All columns of the table.
        path_columns: Columns that files lack; None if they have all.

    Attributes:
        schema: ``op`` (``i``, ``u``, ``d``), ``ts`` (requested time of the commit), ``before`` and ``after``
            (structs of the columns asked for, null where there was no such row).
    """

    def __init__(
        self,
        storage: Storage,
        window: Window,
        steps: Sequence[Step],
        row: pa.Schema,
        whole: pa.Schema,
        path_columns: PathColumns | None = None,
    ) -> None:
        self._shown_facts = {"table": storage.root, "range": str(window), "steps": len(steps)}
        self._steps = tuple(steps)
        self.schema = change_schema(row)
        self._read = ReadChanges(
            storage=storage, window=window, row=row, whole=whole, schema=self.schema, path_columns=path_columns
        )

    def _facts(self) -> Mapping[str, object]:
        return self._shown_facts

    def in_pieces(self) -> Pieces:
        """One piece for each file group of each commit, in the order of the changes."""
        return Pieces(read=self._read, pieces=self._steps, sizes=tuple(each.size_bytes for each in self._steps))


def _places(keys: Iterable[str | None]) -> Mapping[str | None, Sequence[int]]:
    """The rows of each key; there are several where writers did not look keys up."""
    found: dict[str | None, list[int]] = {}
    for number, key in enumerate(keys):
        found.setdefault(key, []).append(number)
    return found


def _in_turn(keys: Sequence[str | None], places: Mapping[str | None, Sequence[int]]) -> list[int | None]:
    """The row of each change: those of one key in turn if there is a change of each, else the last one, as in Hudi."""
    times = Counter(keys)
    left = {key: list(rows) if times[key] == len(rows) else [rows[-1]] * times[key] for key, rows in places.items()}
    return [None if key is None else left[key].pop(0) for key in keys]


def _changed(
    rows: Sequence[Sequence[Mapping[str, Any]]], before: Sequence[int], after: Sequence[int]
) -> Iterator[tuple[int | None, int | None]]:
    """The rows of one key that are other ones after the commit, in pairs; None where there was no row, or is none."""
    gone, left = [], list(after)
    for number in before:
        same = next((other for other in left if _is_same(rows[0][number], rows[1][other])), None)
        if same is None:
            gone.append(number)
        else:
            left.remove(same)
    return zip_longest(gone, left)


def _is_same(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether two rows are equal; NaN counts as equal to NaN."""
    # In Python NaN differs from itself, so an unchanged row with one would count as changed.
    return before == after or repr(before) == repr(after)


def _whole(column: Any, arrow: pa.DataType) -> Array:
    whole: Array = column.combine_chunks() if column.num_chunks else pa.array([], arrow)
    return whole


def open_change_log(
    contents: Contents,
    timeline: Timeline,
    listing: Listing,
    window: Window,
    schema: pa.Schema,
    columns: Sequence[str] | None = None,
) -> ChangeLog:
    """
    Find the files with the single changes of a range.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline, as loaded before *listing*.
        listing: The listing of partitions and files.
        window: The range.
        schema: Columns of the table, without the ``_hoodie_*`` ones.
        columns: Names of the columns to return; None for all.

    Raises:
        ConfigError: A column does not exist.
        RefusedError: A clean deleted files with changes of the range, and the message names the earliest begin that is
            possible; or commits were archived, and the archive is missing.
        UnsupportedTable: The table has no change data capture, or its log files are merged by a Java class, or columns
            were renamed or dropped.
        CorruptMetadata: A commit recorded nothing from which its changes follow.
    """
    store = contents.store
    mode = logging_mode(store.config.properties, store.storage.root)
    if mode is None:
        raise UnsupportedTable(
            f"{store.storage.root} has no change data capture (hoodie.table.cdc.enabled), so single changes are not "
            "recorded; read what changed without the change log"
        )
    if moved_columns(contents, timeline) is not None:
        raise UnsupportedTable(
            f"{store.storage.root} uses schema on read, and columns were renamed or dropped: change logs have the "
            "columns of their time, which hudi_py does not translate; read what changed without the change log"
        )
    contained = RangeContents(contents, timeline, window, one_by_one=True)
    # One that completes later would belong into the range, and those who go on from its end would miss it.
    contained.refuse_pending_writes()
    if contained.reaches_back:
        _refuse_lost_archive(contents, timeline, window)
    row = chosen_columns(schema, columns)
    meta = [name for name in row.names if name in META_COLUMNS]
    if meta:
        raise ConfigError(f"change logs have no column {', '.join(meta)}; choose columns of the table")
    steps = _plan(contents, timeline, listing, window, contained, mode, schema)
    columns_of_path = path_columns_of(store.config)
    return ChangeLog(store.storage, window, steps, row, chosen_columns(schema, None), columns_of_path)


def _plan(
    contents: Contents,
    timeline: Timeline,
    listing: Listing,
    window: Window,
    contained: RangeContents,
    mode: LoggingMode,
    schema: pa.Schema,
) -> tuple[Step, ...]:
    store = contents.store
    names: dict[str, frozenset[str]] = {}
    groups: dict[GroupKey, list[BaseFile]] = {}
    steps: list[Step] = []
    last_damaged: tuple[Instant, Step] | None = None
    losses, written = Losses(contents, timeline, contained.times), WrittenRanges(contents, timeline)
    for instant, metadata in contained.writes():
        if not is_change(metadata):
            continue
        # Partitions are listed once, when the first commit that touches them comes.
        for path in {
            *metadata.partition_to_write_stats,
            *(metadata.partition_to_replace_file_ids or ()),
        } - names.keys():
            names[path] = frozenset(entry.name for entry in listing.partition(path))
            _add_groups(groups, path, names[path], contained)
        files = CommitFiles(
            time=instant.requested_time,
            source=f"{store.storage.root}/{store.path(instant)}",
            groups=groups,
            names=names,
            mode=mode,
            merges=cache(partial(_merges, contents, contained, schema, instant, written)),
            wrote=contained.wrote,
            has_logs=store.config.table_type is TableType.MERGE_ON_READ,
        )
        here = list(files.steps(metadata))
        here = losses.noted(instant, here, names)
        # The last one counts: the range can begin after it and be complete.
        last_damaged = next(((instant, each) for each in here if each.missing), last_damaged)
        steps += here
    if last_damaged is not None:
        instant, step = last_damaged
        path = join_path(step.partition_path, step.missing[0])
        raise RefusedError(
            f"the changes {window} cannot be read: {which_clean(contents, path)} deleted {path}, which "
            f"{instant} needs; the earliest begin that is possible is {contained.times[instant.requested_time]}"
        )
    return with_sizes(steps, NeededFiles(contents, timeline).recorded)


def _refuse_lost_archive(contents: Contents, timeline: Timeline, window: Window) -> None:
    """
    Raises:
        RefusedError: Commits were archived, and the archive is missing.
    """
    why = told_of_lost_archive(contents, timeline)
    if why is not None:
        raise RefusedError(
            f"the single changes {window} cannot be read: commits of that range were archived, and the archive is "
            f"missing ({why}); begin the range at {timeline.first_not_savepointed} or later"
        )


def _merges(
    contents: Contents, contained: RangeContents, schema: pa.Schema, instant: Instant, written: WrittenRanges
) -> Merges:
    config, root = contents.store.config, contents.store.storage.root
    context = contained.context_after(instant)
    return Merges(config, schema, context, instant.requested_time, root, contained.pending_compactions, written)


def _add_groups(
    groups: dict[GroupKey, list[BaseFile]], path: str, names: Iterable[str], contained: RangeContents
) -> None:
    bases = [base for base in map(parse_base_file, names) if base is not None]
    for base in sorted(bases, key=lambda each: (each.instant_time, each.name)):
        # A file of a failed write is neither the state before a change nor the state after it.
        if contained.context.is_committed(base.instant_time):
            groups.setdefault((path, base.file_id), []).append(base)
