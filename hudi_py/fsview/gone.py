"""
Finds out whether all files with the rows of an earlier time still exist.

A clean by commits or by hours records since when every snapshot is complete; a clean by file versions does not, because
it deletes superseded files however young they are. Apache Hudi then silently returns fewer rows; here, the names that
cleans recorded are compared with the files that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final

import attrs

from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.formats.properties import parse_properties
from hudi_py.fsview.build import GroupKey, ViewContext
from hudi_py.fsview.listing import walk_partitions
from hudi_py.model.files import (
    PARTITION_METAFILE,
    BaseFile,
    FileSlice,
    LogFile,
    bases_of,
    join_path,
    newest_by_group,
    parse_base_file,
    parse_data_file,
)
from hudi_py.model.instant import Action, Instant
from hudi_py.storage.base import Storage
from hudi_py.timeline.archive import has_archive, load_archived_files, load_archived_replaced
from hudi_py.timeline.before_start import Before, may_mention_earlier
from hudi_py.timeline.cleaned import deleted_since, reaches_back
from hudi_py.timeline.completions import contents_of
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_METAFILES_MAX: Final = 64  # limits the cost for a table that was never archived, where every metafile would be read


@attrs.frozen
class Left:
    """
    The files that are left of what a reader needs, of each file group that has any.

    Args:
        bases: Partition path and newest base file of each file group.
        newest: Of each file group, the time of its newest file.
    """

    bases: Sequence[tuple[str, BaseFile]]
    newest: Mapping[GroupKey, str]

    @classmethod
    def of_slices(cls, slices: Collection[FileSlice]) -> Left:
        """From one slice for each file group."""
        return cls(
            bases_of(slices),
            {
                (each.partition_path, each.file_id): max(
                    (each.base_instant_time, *(log.instant_time for log in each.log_files))
                )
                for each in slices
            },
        )

    @classmethod
    def of_names(cls, names: Mapping[str, Collection[str]]) -> Left:
        """From the names of the files of such slices, by partition path."""
        return cls(
            [(path, base) for path, some in names.items() for name in some if (base := parse_base_file(name))],
            {(path, file_id): time for path, some in names.items() for file_id, time in newest_by_group(some).items()},
        )


def first_gone(
    contents: Contents,
    timeline: Timeline,
    context: ViewContext,
    time: str,
    left: Left,
    *,
    with_pending: bool,
    of: Callable[[str, BaseFile | LogFile], bool] = lambda _path, _file: True,
) -> str | None:
    """
    Relative path of a file with rows of *time* that an active or archived clean deleted; None if there is none.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline.
        context: View context of the table, or of the table at *time*.
        time: Instant time.
        left: What is left of *time*.
        with_pending: As `deleted_since`.
        of: Selects the files that count, by partition path and file; *left* may leave out others.

    Raises:
        RefusedError: The archive, which is needed for the answer, is missing.
        CorruptMetadata: A clean is damaged, or the archive.
    """
    store = contents.store
    is_before = timeline.is_before_commits(time)
    if is_before:
        refuse_without_archive(contents, timeline, time, left.bases)
    deleted = deleted_since(contents, timeline, time, with_pending=with_pending)
    replaced: Mapping[GroupKey, str] | None = None
    if is_before or not reaches_back(timeline, time):  # all that may be asked of the archive, in one pass
        archived = load_archived_files(
            store.storage, store.config, cleaned_since=time, replaced=True, bases=is_before, bases_until=time
        )
        replaced = archived.replaced
        # The archive begins after the time in question, so what happened before it is unknown.
        if is_before and time < archived.first:
            _refuse_before_archive(contents, timeline, time, archived.first, left.bases)
        for partition, names in archived.cleaned.items():
            deleted.setdefault(partition, []).extend(names)
        there = {(partition, base.file_id): base.instant_time for partition, base in left.bases}
        for key, file in archived.bases.items():  # the record of a clean may be lost; the commits name what they wrote
            if there.get(key, "") < file.time:
                deleted.setdefault(key[0], []).append(file.name)
    counted = [
        (partition, file)
        for partition, names in deleted.items()
        for file in map(parse_data_file, names)
        if file is not None and of(partition, file)
    ]
    # First without the replaced groups of the archive, which are read only if a file seems to be missing.
    gone = gone_at(context, time, left, counted)
    if gone is None:
        return None
    replaced = load_archived_replaced(store.storage, store.config) if replaced is None else replaced
    return gone_at(attrs.evolve(context, replaced={**replaced, **context.replaced}), time, left, counted)


def refuse_without_archive(
    contents: Contents, timeline: Timeline, time: str, found: Iterable[tuple[str, BaseFile]]
) -> None:
    """
    Refuse a time before the active timeline if the archive is missing, and anything shows that there was one.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline.
        time: Instant time, before the start of the timeline.
        found: As `gone_at`.

    Raises:
        RefusedError: Commits were archived, and the archive is missing.
    """
    store = contents.store
    why = told_of_lost_archive(contents, timeline, found)
    if why is not None:
        raise RefusedError(
            f"it is unknown what the table held at {time}: its timeline begins at {timeline.first_not_savepointed}, "
            f"and the archive of what came before, {store.storage.root}/{store.config.history_folder}, is missing "
            f"({why}); ask for a later time"
        )


def _refuse_before_archive(
    contents: Contents, timeline: Timeline, time: str, first: str, found: Iterable[tuple[str, BaseFile]]
) -> None:
    """
    Raises:
        RefusedError: There are files from before the first archived commit: an earlier archive was lost.
    """
    for path, each in found:
        if each.instant_time < first and timeline.find(each.instant_time) is None:
            raise RefusedError(
                f"it is unknown what the table held at {time}: the archive, {contents.store.storage.root}/"
                f"{contents.store.config.history_folder}, begins at {first}, and {join_path(path, each.name)} was "
                "written before, so an earlier archive was lost; ask for a later time"
            )


def told_of_lost_archive(
    contents: Contents, timeline: Timeline, found: Iterable[tuple[str, BaseFile]] = ()
) -> str | None:
    """
    A sentence which proves that commits were archived although there is no archive at all; None without proof.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline.
        found: Base files with their partition paths; their times may be proof too.
    """
    store = contents.store
    if has_archive(store.storage, store.config):
        return None
    # All rollbacks and restores: without an archive all that ever were are active, and what they undid was not
    # archived.
    telling = _that_may_tell(contents, timeline)
    before = Before(timeline, contents_of(contents, (*telling, *timeline.of((Action.ROLLBACK, Action.RESTORE)))))
    # From cheap to expensive: names that the caller has, contents of the timeline, and then files of the table.
    why = next(
        (f"{join_path(path, each.name)} is there" for path, each in found if before.is_archived(each.instant_time)),
        None,
    )
    return why or next((each.why for each in before.earlier()), None) or _partition_before(store.storage, before)


def _that_may_tell(contents: Contents, timeline: Timeline) -> Iterator[Instant]:
    """Commits and cleans that may mention what came before the timeline."""
    start = timeline.first_not_savepointed
    for instant in (*timeline.commits.completed(), *timeline.completed(Action.CLEAN)):
        with suppress(NotFound):  # archived or undone meanwhile
            if start is not None and may_mention_earlier(contents.store.read(instant), start):
                yield instant


def _partition_before(storage: Storage, before: Before) -> str | None:
    """A sentence about a partition that an archived write created, from its metafile; only some are read."""
    for path, _ in islice(walk_partitions(storage), _METAFILES_MAX):
        metafile = join_path(path, PARTITION_METAFILE)
        with suppress(NotFound, CorruptMetadata):
            created = parse_properties(storage.read(metafile), metafile).get("commitTime", "")
            if before.is_archived(created):
                return f"{metafile} says that {created} created the partition"
    return None


def gone_at(
    context: ViewContext, time: str, left: Left, deleted: Iterable[tuple[str, BaseFile | LogFile]]
) -> str | None:
    """
    Relative path of a file with rows of *time* that is deleted, or about to be; None if no file is. Pure.

    Args:
        context: View context of the table, or of the table at *time*.
        time: Instant time.
        left: What is left of *time*.
        deleted: Partition paths and files that later cleans deleted, or began to.
    """
    bases = {(partition, base.file_id): base.instant_time for partition, base in left.bases}
    gone_log: str | None = None
    for partition, file in deleted:
        key = (partition, file.file_id)
        replaced_at = context.replaced.get(key)
        if file.instant_time > time or (replaced_at is not None and replaced_at <= time):
            continue
        if isinstance(file, BaseFile):
            # The file itself may still exist, because its deletion is pending or failed: its rows are not promised.
            if context.is_committed(file.instant_time) and bases.get(key, "") <= file.instant_time:
                return join_path(partition, file.name)
        elif (
            gone_log is None
            # Change logs hold no rows of a snapshot (rules/data-files 9.4), and writes that failed never did.
            and not file.is_cdc
            and context.is_completed(file.instant_time)
            # What is left of the group is older, so the rows are in no file that is left. A slice without a base file
            # leaves no other trace.
            and file.instant_time > left.newest.get(key, "")
        ):
            gone_log = join_path(partition, file.name)
    return gone_log
