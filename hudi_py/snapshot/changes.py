"""
The rows that changed in a range of time, as a value that stays as it was when it was opened.

A row has changed if its ``_hoodie_commit_time`` names a commit of the range; it is shown as it was at the end of the
range. Compactions and clusterings keep that column, so rows that they copy have not changed. Only partitions that
commits of the range wrote to are listed, and only files that they wrote are opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from hudi_py.config.settings import Settings
from hudi_py.fsview.build import GroupKey, ViewContext
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.moved import with_moved
from hudi_py.model.files import FileSlice
from hudi_py.snapshot.bootstrap import with_sources
from hudi_py.snapshot.range_contents import RangeContents
from hudi_py.snapshot.select import has_logs
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.snapshot.window import Window
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

if TYPE_CHECKING:
    import pyarrow as pa

    from hudi_py.rows.log_reading import LogReading
    from hudi_py.rows.predicate import ColumnFilter


@attrs.frozen(kw_only=True, eq=False, slots=False, repr=False)
class Changes(Snapshot):
    """
    The rows that changed in a range of time, as they were at its end.

    Args:
        window: The range.
        commits: Selects the rows that a commit of the range changed last; None for all rows.
        slices: The newest slices at the end of the range, of those that its commits wrote.
        whole_slices: Those with log files, with the files from before the range, too; by partition path and file id.
        view_context: View context of the table at the end of the range.
    """

    _window: Window
    _commits: ColumnFilter | None
    _whole_slices: Mapping[GroupKey, FileSlice]
    slices: tuple[FileSlice, ...]
    view_context: ViewContext

    def _facts(self) -> Mapping[str, object]:
        return {"table": self.storage.root, "range": str(self._window), "slices": len(self.slices)}

    def _slices(self) -> Iterable[FileSlice]:
        return self.slices

    def _log_reading(self, slices: Sequence[FileSlice], schema: pa.Schema) -> LogReading | None:
        """
        As in `Snapshot`, but unchanged rows of base files are left out before logs are merged, as Hudi does.

        In table version 9 each of them; before, the row groups that hold no others.
        """
        found = super()._log_reading(slices, schema)
        if found is None:
            return None
        found = attrs.evolve(found, ends_at_later=False)
        if self._commits is None:
            return found
        behind = with_moved(with_sources(self.storage, self.config, self._whole_slices.values()), self._moved_columns())
        whole = dict(zip(self._whole_slices, behind, strict=True))
        if self.config.format.ranges_come_first:
            return attrs.evolve(found, only=self._commits, whole=whole)
        return attrs.evolve(found, groups=self._commits, whole=whole)

    def row_commits(self) -> ColumnFilter | None:
        """Selects the rows that a commit of the range changed last."""
        return self._commits

    def _may_merge(self, *, read_optimized: bool) -> bool:
        """As in `Snapshot`: in ranges Hudi 0.15 shows what it shows where log files are merged."""
        return True

    @property
    def _logs_until(self) -> str | None:
        # In layout 2 requested times do not order commits by completion, so a later block can be of an earlier commit:
        # which blocks count follows from the view context alone.
        return None if self.config.format.layout.has_completion_times else self._window.until

    def _log_context(self) -> ViewContext:
        return self.view_context


def open_changes(
    contents: Contents,
    timeline: Timeline,
    listing: Listing,
    settings: Settings,
    window: Window,
    *,
    whole: bool = False,
) -> Changes:
    """
    Find the files with the rows that changed in a range.

    Args:
        contents: Reads the instants of the timeline.
        timeline: The active timeline, as loaded before *listing*.
        listing: The listing of partitions and files.
        settings: The table's settings.
        window: The range.
        whole: Take all rows of the slices that the range wrote to, whenever they changed last.

    Raises:
        RefusedError: A clean deleted files that held the rows at the end of the range, or a write within it may still
            complete (layout 1).
        UnsupportedTable: The rows do not record which commit changed them.
        CorruptMetadata: A file that a commit wrote is missing, or the archive is damaged.
    """
    config = contents.store.config
    contained = RangeContents(contents, timeline, window)
    contained.refuse_pending_writes()
    slices: list[FileSlice] = []
    behind: dict[GroupKey, FileSlice] = {}
    for path, entries in contained.partitions(listing):
        written = contained.slices(path, entries, only_of_range=True)
        if not whole and not (contained.may_lack_columns and has_logs(written)):
            slices += written
            continue
        groups = {each.file_id for each in written}
        all_files = [file_slice for file_slice in contained.slices(path, entries) if file_slice.file_id in groups]
        slices += all_files if whole else written
        behind |= {(path, file.file_id): file for file in all_files if has_logs([file])}
    is_all = whole or window.is_everything
    found = Changes(
        contents=contents, timeline=timeline, config=config, settings=settings,
        window=window, commits=None if is_all else contained.commits, slices=tuple(slices),
        whole_slices=behind, view_context=contained.context,
    )  # fmt: skip
    # Only now, after the listing: a clean that ran meanwhile has recorded its deletions by then.
    contained.refuse_deleted_files(found.slices)
    return found
