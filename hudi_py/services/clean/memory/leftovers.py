"""
Files that a clean could not delete, remembered for the next one.

Apache Hudi records them in the completed clean and forgets them: an incremental plan examines their partition again
only after a write to it, and a listing through the metadata table never shows them again. So they are named in a file
of hudi_py, and the next plan examines their folders. It judges them like other files: one that is needed again by then
is kept. Hudi does not read this file. If it is lost, the next plan that examines all folders finds the files.

A checksum file (``.<name>.crc``, local disks only) may be impossible to delete although its data file was deleted. No
listing shows it and no plan names it, so the next clean tries to delete it directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hudi_py.errors import OutcomeUnknown, StorageError
from hudi_py.model.files import is_data_file, is_partition_path, join_path
from hudi_py.runtime.log import log
from hudi_py.services.clean.memory.notes import Note
from hudi_py.storage.base import Storage, StorageFailure, is_hidden

Leftovers = Mapping[str, frozenset[str]]
"""Partition path to names of files."""


def _parse(document: Any) -> Leftovers:
    files = {str(path): frozenset(map(str, names)) for path, names in document["files"].items()}
    # The names are joined to paths and deleted or listed: a damaged note must not lead out of the table.
    strange = sorted(path for path in files if not is_partition_path(path))
    if strange:
        raise ValueError(f"{strange[0]!r} is not a partition of a table")
    return files


LEFTOVERS: Final = Note[Leftovers](name="leftovers", parse=_parse, absent={}, damaged={})
"""Files that cleans could not delete. A damaged note counts as none: a full listing finds the files again."""


def after_clean(known: Leftovers, planned: Mapping[str, Iterable[str]], failed: Iterable[str]) -> Leftovers:
    """The files left after a plan was carried out: those that failed, and known ones not in the plan. Pure."""
    left = {path: names.difference(planned.get(path, ())) for path, names in known.items()}
    for file in failed:
        path, _, name = file.rpartition("/")
        left[path] = left.get(path, frozenset()) | {name}
    return {path: names for path, names in left.items() if names}


def _is_side_file(name: str) -> bool:
    """Whether it is the checksum file of a data file; only those are deleted without a plan."""
    return name.endswith(".crc") and is_hidden(name) and is_data_file(name[1:-4])


def without_side_files(leftovers: Leftovers) -> Leftovers:
    """The leftovers that a plan can name, without checksum files. Pure."""
    return {path: frozenset(name for name in names if not _is_side_file(name)) for path, names in leftovers.items()}


def side_files_left(storage: Storage, leftovers: Leftovers) -> Leftovers:
    """Try again to delete the checksum files among *leftovers*; returns those that fail again."""
    where = {
        join_path(path, name): (path, name)
        for path, names in leftovers.items()
        for name in names
        if _is_side_file(name)
    }
    left: dict[str, frozenset[str]] = {}
    for tried, outcome in (storage.delete_many(where) if where else {}).items():
        if isinstance(outcome, StorageFailure):
            path, name = where[tried]
            left[path] = left.get(path, frozenset()) | {name}
            log.warning("clean.side_file.refused", path=tried, reason=outcome.message)
    return left


def remember_leftovers(storage: Storage, known: Leftovers, leftovers: Leftovers) -> None:
    """
    Store *leftovers* in the place of *known*.

    Raises:
        StorageError: A file would be forgotten. Keeping only names of deleted files is allowed.
    """
    if leftovers == known:
        return
    files = {path: sorted(names) for path, names in sorted(leftovers.items())}
    try:
        LEFTOVERS.store(storage, {"files": files} if files else None)
    except (StorageError, OutcomeUnknown) as error:
        # New names would be forgotten; old ones that stay too long are only tried once more.
        if any(names - known.get(path, frozenset()) for path, names in leftovers.items()):
            raise
        log.warning("clean.leftovers.not_stored", path=LEFTOVERS.path, reason=str(error))
