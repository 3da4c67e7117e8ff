"""
The rows that changed in a range of time together with those that were deleted in it.

A row is deleted if its file group had its key before the range, and no file of its partition has it at the end. It
is shown as it was before the range, with `DELETED` set. A row that was inserted and deleted within the range is not
shown: it is neither in the snapshot before the range nor in the one at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa

from hudi_py.config.settings import Settings
from hudi_py.errors import RefusedError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.gone import Left, first_gone
from hudi_py.fsview.listing import Listing
from hudi_py.model.files import FileSlice
from hudi_py.rows.predicate import OneOf
from hudi_py.snapshot.batches import Batches, Pieces
from hudi_py.snapshot.beside_clean import refuse_what_a_clean_took, which_clean
from hudi_py.snapshot.changes import Changes, open_changes
from hudi_py.snapshot.range_contents import RangeContents
from hudi_py.snapshot.select import size_of
from hudi_py.snapshot.window import Window
from hudi_py.timeline.archive import load_archived_replaced
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    from hudi_py.rows.condition import Where

DELETED: Final = "_hoodie_is_deleted"
"""The column that Apache Hudi takes for a mark of deletion when such rows are written to a table."""
_RECORD_KEY: Final = META_COLUMNS[2]


@attrs.frozen
class Deleted:
    """
    File slices of one partition; the rows of *before* whose keys *after* lacks are the deleted ones.

    Args:
        before: Slices before the range.
        after: Slices at its end.
    """

    before: tuple[FileSlice, ...]
    after: tuple[FileSlice, ...]


@attrs.frozen(kw_only=True)
class ReadChanged:
    """
    Reads deleted or changed rows; can be pickled and sent to another process.

    Args:
        before, after: As for `ChangedRows`, without slices.
        changed: Reads changed rows.
        asked: ``where``, ``columns``, ``with_meta``, as for `Changes.rows`.
        schema: Columns of the batches.
    """

    before: Changes
    after: Changes
    changed: Callable[[Any], Iterator[pa.RecordBatch]]
    asked: Mapping[str, Any]
    schema: pa.Schema

    def __call__(self, piece: Deleted | FileSlice) -> Iterator[pa.RecordBatch]:
        if isinstance(piece, Deleted):
            yield from self._deleted(piece)
        else:
            yield from self._marked(self.changed(piece), is_deleted=False)

    def _deleted(self, piece: Deleted) -> Iterator[pa.RecordBatch]:
        # Keys first, rows only of slices that lost one: most slices lost none.
        left = _keys(_with_slices(self.after, piece.after))
        for each in piece.before:
            keys = _keys(_with_slices(self.before, [each]))
            gone = keys.filter(compute.invert(compute.is_in(keys, value_set=left)))
            if len(gone):
                only = OneOf(_RECORD_KEY, frozenset(filter(None, gone.to_pylist())))
                found = attrs.evolve(_with_slices(self.before, [each]), commits=only)
                yield from self._marked(found.rows(**self.asked), is_deleted=True)

    def _marked(self, rows: Iterable[pa.RecordBatch], *, is_deleted: bool) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            marks: Array = pa.array([is_deleted] * len(batch), pa.bool_())
            columns = [batch.column(name) for name in self.schema.names[:-1]]
            yield pa.RecordBatch.from_arrays([*columns, marks], schema=self.schema)


class ChangedRows(Batches):
    """
    Deleted rows, then changed ones, as Arrow batches, see `Batches`.

    Args:
        changed: The changed rows.
        before: The file groups that the range touched, before the range; all of their rows.
        after: The same groups at the end of the range; all of their rows.
        where, columns, with_meta: As for `Changes.rows`.

    Attributes:
        schema: Columns of the changed rows, and the boolean `DELETED`.
    """

    def __init__(
        self,
        changed: Changes,
        before: Changes,
        after: Changes,
        *,
        where: Where = (),
        columns: Sequence[str] | None = None,
        with_meta: bool = False,
    ) -> None:
        self._before = before
        self._after = after
        self._asked = {"where": where, "columns": columns, "with_meta": with_meta}
        self._changed = changed.rows(where=where, columns=columns, with_meta=with_meta)
        self.schema = marked_schema(self._changed.schema)

    def _facts(self) -> Mapping[str, object]:
        return self._changed._facts()  # noqa: SLF001  # the same, and what was deleted

    def in_pieces(self) -> Pieces:
        """One piece for the deleted rows of each partition, then one for each file slice with changed rows."""
        after: dict[str, list[FileSlice]] = {}
        for file_slice in self._after.slices:
            after.setdefault(file_slice.partition_path, []).append(file_slice)
        deleted = [
            Deleted(tuple(slices), tuple(after.get(path, ())))
            # Slices come sorted by partition, so `groupby` sees each partition once.
            for path, slices in groupby(self._before.slices, lambda each: each.partition_path)
        ]
        changed = self._changed.in_pieces()
        read = ReadChanged(
            before=_with_slices(self._before, ()), after=_with_slices(self._after, ()), changed=changed.read,
            asked=self._asked, schema=self.schema,
        )  # fmt: skip
        sizes = [sum(map(size_of, (*each.before, *each.after))) for each in deleted]
        return Pieces(read=read, pieces=(*deleted, *changed.pieces), sizes=(*sizes, *changed.sizes))


def marked_schema(changed: pa.Schema) -> pa.Schema:
    """The columns of changed rows, followed by `DELETED`."""
    fields = [field for field in changed if field.name != DELETED]
    return pa.schema([*fields, pa.field(DELETED, pa.bool_())])


def _with_slices(changes: Changes, slices: Sequence[FileSlice]) -> Changes:
    return attrs.evolve(changes, slices=tuple(slices))


def _keys(changes: Changes) -> Array:
    if not changes.slices:
        none: Array = pa.array([], pa.string())
        return none
    found: Array = changes.rows(columns=[_RECORD_KEY]).to_arrow()[_RECORD_KEY].combine_chunks()
    return found


def open_changed_rows(
    contents: Contents,
    timeline: Timeline,
    listing: Listing,
    settings: Settings,
    window: Window,
    *,
    where: Where = (),
    columns: Sequence[str] | None = None,
    with_meta: bool = False,
) -> ChangedRows:
    """
    Find the files with the rows that changed in a range and with those that were deleted in it.

    Args:
        contents, timeline, listing, settings, window: As for `open_changes`.
        where, columns, with_meta: As for `Changes.rows`.

    Raises:
        RefusedError: As `open_changes`, or a clean deleted files that held rows before the range.
        ConfigError, UnsupportedTable, CorruptMetadata: As `open_changes`.
    """
    # Three looks at one listing: the rows that changed, all rows of the same groups at the end, and all before the
    # range.
    changed = open_changes(contents, timeline, listing, settings, window)
    after = open_changes(contents, timeline, listing, settings, window, whole=True)
    before = _before(contents, timeline, listing, window, after)
    return ChangedRows(changed, before, after, where=where, columns=columns, with_meta=with_meta)


def _before(contents: Contents, timeline: Timeline, listing: Listing, window: Window, after: Changes) -> Changes:
    """The file groups that the range wrote to or replaced, as they were before it; all of their rows."""
    if not window.after:  # before the first commit there was no row to delete
        return attrs.evolve(after, slices=())
    touched = {(file_slice.partition_path, file_slice.file_id) for file_slice in after.slices}
    # A replaced group has no slice at the end of the range, so *after* does not name it.
    touched |= _replaced(contents, timeline, window)
    until = Window("", window.after)
    contained = RangeContents(contents, timeline, until)
    found = [
        each
        for path in sorted({path for path, _ in touched})
        for each in contained.slices_of(path, listing)
        if (path, each.file_id) in touched
    ]
    try:
        refuse_what_a_clean_took(contents, timeline, contained.context, window.after)
    except RefusedError as error:  # the clean has not recorded yet what it deletes, so the next check does not see it
        raise RefusedError(f"the rows deleted {window} cannot be read: {error}") from error
    gone = first_gone(
        contents, timeline, contained.context, window.after, Left.of_slices(found),
        with_pending=False, of=lambda path, file: (path, file.file_id) in touched,
    )  # fmt: skip
    if gone is not None:
        raise RefusedError(
            f"the rows deleted {window} cannot be read: {which_clean(contents, gone)} deleted {gone}, which held rows "
            f"before that range; {contained.earliest_begin()}"
        )
    return attrs.evolve(after, window=until, slices=tuple(found), view_context=contained.context)


def _replaced(contents: Contents, timeline: Timeline, window: Window) -> set[GroupKey]:
    contained = RangeContents(contents, timeline, window)
    replaced = dict(contained.context.replaced)
    if contained.reaches_back:
        store = contents.store
        replaced = {**load_archived_replaced(store.storage, store.config), **replaced}
    return {key for key, time in replaced.items() if contained.times.get(time, time) in window}
