"""
Removes the folders of dropped partitions.

A writer looks for the metafile of a partition when it begins, and writes its files later. If the metafile was gone by
then, nobody would show its rows. So the metafile stays while a write is pending; and if a write began, or wrote a file,
while it was deleted, it is made again. A write that begins later sees that it is missing, and makes it itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from hudi_py.errors import AlreadyExists
from hudi_py.formats.partition_metafile import format_partition_metadata
from hudi_py.model.files import PARTITION_METAFILE, join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.runtime.log import log
from hudi_py.storage.base import Entry
from hudi_py.storage.deleters import Deleter
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import Permit
from hudi_py.timeline.store import TimelineStore

_WRITING: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT})


def delete_partitions(
    contents: Contents, clean: Instant, partition_paths: Sequence[str], permit: Permit, deleter: Deleter
) -> dict[str, tuple[str, ...]]:
    """
    Remove the folders of dropped partitions that have only their metafile (rule A-54).

    A file that was created after planning keeps the folder: its writer may still be running (K-10).

    Returns:
        The paths of those that are gone, with the names that were left in them.
    """
    gone: dict[str, tuple[str, ...]] = {}
    for paths in permit.in_parts([path for path in partition_paths if path]):
        gone |= _delete_some(contents, clean, paths, deleter)
    return gone


def _delete_some(
    contents: Contents, clean: Instant, paths: Sequence[str], deleter: Deleter
) -> dict[str, tuple[str, ...]]:
    store = contents.store
    found: dict[str, tuple[str, ...] | None] = {}
    is_written = _is_written(contents, paths)
    if not is_written:
        found = {path: _emptied(store, path, deleter) for path in paths}
        is_written = _is_written(contents, paths)
    gone = {}
    for path in paths:
        # Listed again: a write that began and completed meanwhile is not pending.
        left = store.storage.list(path)
        names = found.get(path)
        if is_written or left:
            _mark(store, clean, path, left)
        elif names is not None:
            # Not with what is in it: that would be the file of a writer that came in between.
            store.storage.delete_empty(path)
            gone[path] = names
    return gone


def _is_written(contents: Contents, paths: Sequence[str]) -> bool:
    """Whether a pending write may add files to the partitions; a rewrite cannot complete without groups in them."""
    for each in contents.store.load().writes.pending():
        if each.action in _WRITING and not contents.is_clustering(each):
            log.warning(
                "clean.partitions.kept", partitions=len(paths), pending=f"{each.requested_time} {each.action.value}"
            )
            return True
    return False


def _emptied(store: TimelineStore, partition_path: str, deleter: Deleter) -> tuple[str, ...] | None:
    """Delete the metafile of a partition without other files; return the names that were there, or None if it stays."""
    storage = store.storage
    # Listed now and not taken from the plan, which may be hours old.
    entries = storage.list(partition_path)
    if any(not _is_metafile(entry) for entry in entries):
        log.warning("clean.partition.kept", partition=partition_path, files_left=len(entries))
        return None
    for entry in entries:
        path = join_path(partition_path, entry.name)
        if deleter.undoable_from:
            deleter.remove(storage, [path])
        storage.delete(path)
    return tuple(entry.name for entry in entries)


def _mark(store: TimelineStore, clean: Instant, path: str, entries: Iterable[Entry]) -> None:
    """Make the metafile of a partition if it is not among the entries of its folder, as after a crash of this clean."""
    if any(map(_is_metafile, entries)):
        return
    text = format_partition_metadata(path, instant_time=clean.requested_time, written_at=store.clock.now())
    with suppress(AlreadyExists):  # the writer made it
        store.storage.create_new(join_path(path, PARTITION_METAFILE), text)


def _is_metafile(entry: Entry) -> bool:
    return not entry.is_folder and entry.name.startswith(PARTITION_METAFILE)
