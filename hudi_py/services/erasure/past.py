"""
Since when files are gone: what commits wrote, held against what cleans, rollbacks and restores say they deleted.

A moment is given only if every file that a commit wrote and that is not there any more is named by such an instant: a
file that went without a record may have gone a minute ago. The moment is that of the last removal, so it may be later
than it had to be, and never earlier. What left quarantine, or was removed as an orphan, is in the journal of
`hudi_py.timeline.erasures`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import attrs

from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.fsview.gone import told_of_lost_archive
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import instant_epoch_ms, parse_instant_time
from hudi_py.rows.log_records import KEY_COLUMN
from hudi_py.timeline.archive_entries import stored_instants
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.erasures import load_erasures
from hudi_py.timeline.quarantine import load_manifest, removals, sizes_held
from hudi_py.timeline.timeline import WRITES, Timeline

_REMOVING: Final = (Action.CLEAN, Action.ROLLBACK, Action.RESTORE)
_STATISTICS: Final = ("recordsStats", "columnStats")


@attrs.frozen
class KeptBounds:
    """
    Smallest and largest values of one log file that the commit of Apache Hudi that wrote it keeps, in its own file.

    Hudi's releases for table version 6 write them where the metadata table has column statistics; the archive drops
    them.

    Args:
        commit: The commit.
        partition_path: Partition of the log file.
        file_name: Name of the log file.
        keys: Those of the column of record keys.
    """

    commit: Instant
    partition_path: str
    file_name: str
    keys: frozenset[str]


@attrs.frozen(kw_only=True)
class Past:
    """
    What the timeline and its archive say about the files of some partitions.

    Args:
        written: Paths of the files that completed commits wrote.
        removed: Path to when it was deleted, in epoch milliseconds, and by what.
        partitions: All partitions that an instant names.
        bounds: Values that commits of the active timeline keep.
        why_unknown: Why the past is not known as a whole; ``""`` if it is.
    """

    written: frozenset[str]
    removed: Mapping[str, tuple[int, str]]
    partitions: frozenset[str]
    bounds: tuple[KeptBounds, ...] = ()
    why_unknown: str = ""

    def last_removal(self, is_there: Collection[str]) -> tuple[int, str]:
        """
        When the last file went, in epoch milliseconds, and by what; 0 if none is known to have gone.

        Args:
            is_there: Paths of the files that are there.

        Raises:
            CorruptMetadata: It is not on record.
        """
        lost = sorted(path for path in self.written if path not in is_there and path not in self.removed)
        why = self.why_unknown or (
            f"{lost[0]} is not there, and no clean, rollback or restore says that it deleted it" if lost else ""
        )
        if why:
            raise CorruptMetadata(why)
        return max(self.removed.values(), default=(0, ""))


def load_past(
    contents: Contents, table: TableConfig, timeline: Timeline, is_counted: Callable[[str], bool], prefix: str = ""
) -> Past:
    """
    Read the timeline and its archive.

    Args:
        contents, table, timeline: Of the table.
        is_counted: Whether the files of a partition count.
        prefix: Goes before the names of what removed files.

    Raises:
        CorruptMetadata: The archive, or a completed instant, is damaged.
    """
    written: set[str] = set()
    removed: dict[str, tuple[int, str]] = {}
    partitions: set[str] = set()
    bounds: list[KeptBounds] = []
    for instant, content in _documents(contents, table, timeline):
        is_write = instant.action in WRITES
        try:
            named = list(_written(content) if is_write else _removed(instant.action, content))
            at = 0 if is_write else _moment(contents, instant, content)
            bounds += (KeptBounds(instant, *each) for each in bounds_in(content) if is_counted(each[0]))
        except (AttributeError, TypeError) as error:
            raise CorruptMetadata(f"{instant} does not hold what its action holds: {error}") from error
        partitions.update(path for path, _ in named)
        full = [join_path(path, name) for path, names in named if is_counted(path) for name in names]
        if is_write:
            written.update(full)
            continue
        by = f"{prefix}{instant.action.value} {instant.requested_time}"
        removed.update((each, max(removed.get(each, (0, "")), (at, by))) for each in full)
    unfinished = timeline.pending(*_REMOVING)
    why = told_of_lost_archive(contents, timeline) or ""
    if unfinished:
        why = why or f"{unfinished[0]} is pending, and may have deleted files already"
    return Past(
        written=frozenset(written),
        removed=removed,
        partitions=frozenset(partitions),
        bounds=tuple(bounds),
        why_unknown=why,
    )


def last_purge(contents: Contents, partition: str | None) -> tuple[int, str]:
    """
    When files of a partition (None: of any) last left quarantine or were removed as orphans; 0 if never.

    Raises:
        CorruptMetadata: It is unknown.
    """
    storage = contents.store.storage
    for name in removals(storage):
        manifest = load_manifest(storage, name)
        if manifest is None or manifest.tag is None or not (partition is None or partition in manifest.files):
            continue
        held = sizes_held(storage, manifest)
        if any(name not in held.get(path, {}) for path, names in manifest.files.items() for name in names):
            # By a rule of its own, and nobody was told; that they are gone is known since this very look.
            return int(contents.store.clock.now().timestamp() * 1000), f"the store, which deletes what {name} removed"
    ms = load_erasures(storage).last(partition)
    return ms, "the emptying of the quarantine, or a search for orphans"


def _documents(contents: Contents, table: TableConfig, timeline: Timeline) -> Iterator[tuple[Instant, Any]]:
    """Completed instants with their fields under the names on disk, the archived ones first."""
    active = {(each.requested_time, each.comparable_action) for each in timeline.completed()}
    for stored in stored_instants(contents.store.storage, table, with_contents=True):
        instant = stored.instant
        # A crash between archiving and deleting leaves an instant in both.
        if instant.is_completed and (instant.requested_time, instant.comparable_action) not in active:
            yield instant, stored.value() or {}
    for instant in timeline.completed():
        if instant.action in (*WRITES, *_REMOVING):
            try:
                yield instant, contents.plain(instant) or {}
            except NotFound as error:
                raise CorruptMetadata(f"{instant} was archived while it was read; try again") from error


def _written(content: Any) -> Iterator[tuple[str, list[str]]]:
    for path, stats in (content.get("partitionToWriteStats") or {}).items():
        names = [each for stat in stats for each in (stat.get("path"), *(stat.get("cdcStats") or ())) if each]
        yield path, [name.rpartition("/")[2] for name in names]
    for path in content.get("partitionToReplaceFileIds") or ():
        yield path, []


def bounds_in(content: Any) -> Iterator[tuple[str, str, frozenset[str]]]:
    """
    Yield the log files of which a commit keeps smallest and largest values: partition path, name, and those of keys.

    Args:
        content: The commit, with its fields under the names on disk.

    Raises:
        AttributeError, TypeError: It does not hold what a commit holds.
    """
    for path, stats in (content.get("partitionToWriteStats") or {}).items():
        for stat in stats:
            columns = [
                column
                for name in _STATISTICS
                for column in ((stat.get(name) or {}).get("val") or {}).values()
                if column.get("minValue") is not None or column.get("maxValue") is not None
            ]
            if columns:
                keys = (
                    each.get(end)
                    for each in columns
                    if each.get("columnName") == KEY_COLUMN
                    for end in ("minValue", "maxValue")
                )
                name = str(stat.get("path")).rpartition("/")[2]
                yield path, name, frozenset(str(key) for key in keys if key is not None)


def _removed(action: Action, content: Any) -> Iterator[tuple[str, list[str]]]:
    if action is Action.RESTORE:
        for rollbacks in (content.get("hoodieRestoreMetadata") or {}).values():
            for each in rollbacks:
                yield from _removed(Action.ROLLBACK, each)
        return
    for path, done in (content.get("partitionMetadata") or {}).items():
        # A file that was gone already is among the failed ones, too: then it is unknown when it went.
        failed = set(done.get("failedDeleteFiles") or ())
        named = {*(done.get("successDeleteFiles") or ()), *(done.get("deletePathPatterns") or ())}
        yield path, [str(text).rpartition("/")[2] for text in named - failed]


def _moment(contents: Contents, instant: Instant, content: Any) -> int:
    """When it was completed, in epoch milliseconds; in layout 1 when its work was done."""
    zone = contents.store.zone
    try:
        if instant.completion_time is not None:
            return instant_epoch_ms(instant.completion_time, zone)
        taken = timedelta(milliseconds=content.get("timeTakenInMillis") or 0)
        return int((parse_instant_time(instant.requested_time, zone) + taken).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise CorruptMetadata(f"{instant} has no time: {error}") from error
