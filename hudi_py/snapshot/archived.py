"""
Do all files still exist that archived commits wrote as the newest of their file groups?

`hudi_py.fsview.checked` compares folders with the active commits. A file group that was not written since its last
commit was archived is named by the archive alone: if its file is lost, a reader would show an older version, or
nothing. So reading rows also reads the archive, where that costs little compared with opening the data files, see
docs/decisions/lost-files.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.fsview.expected import WAY_OUT, replaced_groups
from hudi_py.fsview.named import base_paths, group_of
from hudi_py.model.files import BaseFile, join_path, parse_base_file
from hudi_py.model.instant import Action
from hudi_py.model.words import counted
from hudi_py.runtime.log import log
from hudi_py.timeline.archive import ArchivedCommit, archive_bytes, archived_commits
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_BYTES_PER_FILE: Final = 512  # 50 to 100 microseconds; to open a data file and read its rows takes a millisecond
_BYTES_ALWAYS: Final = 128 * 1024  # some ten milliseconds

Newest = dict[bytes, str]
"""Path of a file group (partition path and file id) to the time of its newest base file."""


def refuse_what_is_missing(
    contents: Contents, timeline: Timeline, files: Sequence[tuple[str, BaseFile]], bytes_max: int | None
) -> None:
    """
    Refuse a latest snapshot that lacks a file which an archived commit wrote as the newest of its group.

    Args:
        contents: Reads the table's instants.
        timeline: The active timeline, as loaded before *files* were listed.
        files: Partition path and base file of the snapshot.
        bytes_max: A larger archive is not read; None for 512 bytes per file of the snapshot, at least 128 KiB.

    Raises:
        CorruptMetadata: A file is missing.
        ConflictError: The table changed meanwhile.
    """
    if bytes_max is None:
        bytes_max = max(_BYTES_ALWAYS, len(files) * _BYTES_PER_FILE)
    store = contents.store
    if not bytes_max:
        return
    try:
        # Asked before anything is read: a long archive may take longer to read than the table.
        size = archive_bytes(store.storage, store.config)
        if size > bytes_max:
            log.info("read.archive.passed", table=store.storage.root, bytes=size, bytes_max=bytes_max)
            return
        before = partial(_was_archived, {each.requested_time for each in timeline.instants}, timeline.last_time)
        newest, replaced = newest_written(filter(before, archived_commits(store.storage, store.config)))
    except (CorruptMetadata, NotFound) as error:  # as before: the check reports it, and writers are stopped by it
        log.warning("read.archive.unreadable", table=store.storage.root, error=str(error))
        return
    there = {join_path(path, base.file_id).encode(): base.instant_time for path, base in files}
    missing = {group: time for group, time in newest.items() if there.get(group, "") < time}
    # Groups replaced since may lack files rightly; active replacecommits are read only if something is missing.
    if missing:
        for instant in timeline.completed(Action.REPLACE_COMMIT):
            for key in replaced_groups(contents.commit(instant)):
                replaced[join_path(*key).encode()] = instant.requested_time
    missing = {group: time for group, time in missing.items() if replaced.get(group, "") < time}
    if not missing:
        return
    group = min(missing)
    # A commit that completed, or a clean that deleted, between loading and listing explains the difference, too.
    if store.load().instants != timeline.instants:
        raise ConflictError(
            f"{store.storage.root} was changed by another process while it was listed, and {group.decode()}* of "
            f"{missing[group]} is not among its files; try again"
        )
    more = f" (and files of {counted(len(missing) - 1, 'more file group')})" if len(missing) > 1 else ""
    raise CorruptMetadata(
        f"{store.storage.root}/{group.decode()}*_{missing[group]}.*{more} is missing, which the archived commit "
        f"{missing[group]} wrote last: older rows, or no rows, would be shown as the latest. {WAY_OUT}"
    )


def _was_archived(active: Collection[str], last_time: str | None, commit: ArchivedCommit) -> bool:
    """Whether a commit was archived when the timeline was loaded: a snapshot may be read again long after that."""
    return commit.time not in active and (last_time is None or commit.time <= last_time)


def newest_written(commits: Iterable[ArchivedCommit]) -> tuple[Newest, Newest]:
    """The time of the newest base file of each group that the commits wrote, and when each group was replaced last."""
    newest: Newest = {}
    replaced: Newest = {}
    for commit in commits:
        if commit.is_replacing:
            _keep_newest(replaced, {join_path(*key).encode(): commit.time for key in commit.replaced()})
        paths = base_paths(commit.data, commit.time) if commit.data else None
        if paths is None:
            _keep_newest(newest, _decoded(commit))
        else:
            _keep_newest(newest, dict.fromkeys(map(group_of, paths), commit.time))
    return newest, replaced


def _decoded(commit: ArchivedCommit) -> Newest:
    """Base files of a commit whose paths cannot be found in its undecoded bytes: log files, other formats, layout 1."""
    found: Newest = {}
    for path in commit.written():
        folder, _, name = path.rpartition("/")
        base = parse_base_file(name)
        if base is not None:
            found[join_path(folder, base.file_id).encode()] = base.instant_time
    return found


def _keep_newest(known: Newest, found: Mapping[bytes, str]) -> None:
    for group, time in found.items():
        if known.get(group, "") < time:
            known[group] = time
