"""
Files that a clean could not delete, remembered for the next one.

Apache Hudi writes them into the completed clean and forgets them: an incremental plan looks at their partition again
only when somebody writes there, and a listing through the metadata table never shows them again. So they are named in
a file of our own, and the next plan looks into their folders. It judges them like any others: a file that is needed
again by then stays. Hudi does not read the file, and it may be lost: then the next look at every folder finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hudi_py.errors import StorageError
from hudi_py.model.files import is_partition_path
from hudi_py.runtime.log import log
from hudi_py.services.clean.notes import Note
from hudi_py.storage.base import Storage

Leftovers = Mapping[str, frozenset[str]]
"""Partition path to names of files."""


def _parse(document: Any) -> Leftovers:
    files = {str(path): frozenset(map(str, names)) for path, names in document["files"].items()}
    strange = sorted(path for path in files if not is_partition_path(path))
    if strange:
        raise ValueError(f"{strange[0]!r} is no partition of a table")
    return files


LEFTOVERS: Final = Note[Leftovers](name="leftovers", parse=_parse, absent={}, damaged={})
"""What the cleans so far could not delete."""


def after_clean(known: Leftovers, planned: Mapping[str, Iterable[str]], failed: Iterable[str]) -> Leftovers:
    """What is left once a plan is carried out: what failed, and what was known and is not part of it. Pure."""
    left = {path: names.difference(planned.get(path, ())) for path, names in known.items()}
    for file in failed:
        path, _, name = file.rpartition("/")
        left[path] = left.get(path, frozenset()) | {name}
    return {path: names for path, names in left.items() if names}


def remember_leftovers(storage: Storage, known: Leftovers, leftovers: Leftovers) -> None:
    """
    Store *leftovers* in the place of *known*.

    Raises:
        StorageError: A file would be forgotten. Where only names of files that are gone would stay, nothing is lost.
    """
    if leftovers == known:
        return
    files = {path: sorted(names) for path, names in sorted(leftovers.items())}
    try:
        LEFTOVERS.store(storage, {"files": files} if files else None)
    except StorageError as error:
        if any(names - known.get(path, frozenset()) for path, names in leftovers.items()):
            raise
        log.warning("clean.leftovers.not_stored", path=LEFTOVERS.path, reason=str(error))
