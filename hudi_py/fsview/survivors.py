"""
Checks the newest files of groups whose older files are about to be deleted: are they as their commits wrote them?

Older files may be deleted because newer files have the rows. If the newest file is missing, cut off, or not a regular
file any more, the older files are all that is left of the rows. Names and sizes are compared with those that completed
commits of the active timeline recorded. Nothing is recorded there about files of archived commits: these must be
regular files that are not empty. If no group loses files, nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeAlias, TypeVar

from hudi_py.errors import ConflictError
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import Mismatch, damaged_file, is_size_right, mismatch_message
from hudi_py.fsview.group_files import GroupFiles, archived_replacements
from hudi_py.fsview.listing import listing_threads
from hudi_py.model.files import NOT_REGULAR, BaseFile, join_path, parse_base_file, parse_log_file
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

T = TypeVar("T")

Lost: TypeAlias = dict[GroupKey, str]
"""File group to a sentence: what is wrong with its newest file, and what to do."""


def lost_survivors(
    contents: Contents,
    timeline: Timeline,
    losing: Mapping[str, Sequence[str]],
    *,
    only: Collection[str] | None = None,
    compared: Collection[str] = (),
) -> Lost:
    """
    The file groups that lose files although their newest file is not as its commit wrote it.

    Args:
        contents: Reads the instants of the table's timeline.
        timeline: The timeline, just loaded.
        losing: Partition path to names of the files that are about to be deleted.
        only: Partition paths that the table still has; None for all. The commits of a metadata table name others too.
        compared: Partition paths whose sizes were compared with the commits when they were listed just now.

    Raises:
        ConflictError: The table changed meanwhile.
        CorruptMetadata: A replacecommit does not decode.
    """
    storage = contents.store.storage
    groups = {path: _groups_of(names) for path, names in losing.items() if only is None or path in only}
    recorded = GroupFiles(contents, timeline)
    sizes = recorded.sizes_of(groups)
    asked = [path for path in sizes if path not in compared]
    wrong = _in_each(storage, asked, lambda path: _wrong(storage, path, sizes[path]))
    lost = _messages(contents, recorded, wrong) if wrong else {}
    start = timeline.writes.start
    archived = {
        path: left for path, ids in groups.items() if (left := ids.difference(map(group_of, sizes.get(path, ()))))
    }
    if archived and start is not None:
        found = _in_each(
            storage,
            archived,
            lambda path: _damaged_of_archived(storage, path, archived[path], frozenset(losing[path]), start),
        )
        lost.update(found)
    # Only where something is wrong: a commit that another process rolled back meanwhile explains files that are
    # missing.
    if lost and contents.store.load().writes.instants != timeline.writes.instants:
        raise ConflictError(f"{storage.root} was changed by another process while it was looked at; try again")
    return lost


def group_of(name: str) -> str:
    """File id in the name of a base or log file."""
    log = parse_log_file(name) if name[:1] == "." else None
    return name.partition("_")[0] if log is None else log.file_id


def _groups_of(names: Sequence[str]) -> frozenset[str]:
    """The same for many names at once."""
    found = {name.partition("_")[0] for name in names}
    if any(each[:1] == "." for each in found):
        return frozenset(map(group_of, names))
    return frozenset(found)


def _in_each(storage: Storage, paths: Collection[str], ask: Callable[[str], list[T]]) -> list[T]:
    """What *ask* finds in each partition; several at once if each listing is a round trip."""
    threads = min(listing_threads(storage), len(paths))
    if threads <= 1:
        return [each for path in paths for each in ask(path)]
    with ThreadPoolExecutor(threads) as pool:
        return [each for found in pool.map(ask, paths) for each in found]


def _wrong(storage: Storage, path: str, recorded: Mapping[str, int]) -> list[tuple[str, str, int | None]]:
    """Partition path, name and present size of the files that do not have the *recorded* size."""
    there = storage.sizes(path, tuple(recorded))
    # The usual case, in one comparison.
    if there == recorded:
        return []
    return [
        (path, name, there.get(name))
        for name, size in recorded.items()
        if name not in there or not is_size_right(size, there[name], is_log=name[:1] == ".")
    ]


def _messages(contents: Contents, recorded: GroupFiles, wrong: Iterable[tuple[str, str, int | None]]) -> Lost:
    """The messages about wrong files; groups that an archived replacecommit replaced are left out."""
    sizes = {(path, name): size for path, name, size in wrong}
    groups: dict[str, set[str]] = {}
    for path, name in sizes:
        groups.setdefault(path, set()).add(group_of(name))
    files = [
        Mismatch(file, sizes[file.partition_path, file.name])
        for each in recorded.newest_of(groups).values()
        for file in each.files
        if (file.partition_path, file.name) in sizes
    ]
    since = {(each.file.partition_path, each.file.file_id): each.file.commit.requested_time for each in files}
    replaced = archived_replacements(contents, since)
    root = contents.store.storage.root
    found = {(each.file.partition_path, each.file.file_id): mismatch_message(root, each) for each in files}
    return {key: why for key, why in found.items() if key not in replaced}


def _damaged_of_archived(
    storage: Storage, path: str, file_ids: Collection[str], planned: Collection[str], start: str
) -> list[tuple[GroupKey, str]]:
    """The newest base files, of archived commits, that stay in some groups and are empty or not regular files."""
    newest: dict[str, BaseFile] = {}
    for entry in storage.list(path):  # folders too: one may be where a file should be
        base = parse_base_file(entry.name)
        # Files that the plan deletes do not survive, and those from the active timeline on were compared above.
        if base is None or base.file_id not in file_ids or base.name in planned or base.instant_time >= start:
            continue
        if base.file_id not in newest or newest[base.file_id].instant_time < base.instant_time:
            newest[base.file_id] = base
    sizes = storage.sizes(path, [base.name for base in newest.values()])
    return [
        (
            (path, base.file_id),
            damaged_file(f"{storage.root}/{join_path(path, base.name)}", size, 0, f"write {base.instant_time}"),
        )
        for base in newest.values()
        if (size := sizes.get(base.name)) is not None and size in (0, NOT_REGULAR)
    ]
