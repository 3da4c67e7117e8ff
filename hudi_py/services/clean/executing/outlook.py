"""What a clean would do about the cleans that are pending; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hudi_py.fsview.listing import FolderListing
from hudi_py.model.files import join_path
from hudi_py.model.instant import Instant, State
from hudi_py.services.clean.executing.recheck import recheck_of
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents


@attrs.frozen(kw_only=True)
class PendingOutlook:
    """
    What becomes of one pending clean.

    Args:
        instant: The clean.
        files: Relative path of each file that would be deleted, and is there, to its size in bytes (None: unknown).
        spared_files: Relative paths of planned files that somebody needs by now, sorted.
        why_spared: The first of them and who needs it, else why the plan is not right; ``""`` where it is.
        refused: Partition path to why its planned files, which are not among *files*, will refuse to go.
        is_withdrawn: Whether the plan is taken off the timeline instead, and made anew: nothing was deleted by it yet.
    """

    instant: Instant
    files: Mapping[str, int | None]
    spared_files: tuple[str, ...] = ()
    why_spared: str = ""
    refused: Mapping[str, str] = attrs.field(factory=dict)
    is_withdrawn: bool = False

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files; None where the size of one is unknown."""
        sizes = list(self.files.values())
        return None if None in sizes else sum(size or 0 for size in sizes)


def outlook(contents: Contents, instant: Instant) -> PendingOutlook:
    """
    Judge one pending clean as the clean that carries it out will.

    Raises:
        CorruptMetadata, RefusedError: As that clean.
    """
    recheck = recheck_of(contents, instant)
    recheck.look()
    spared = tuple(sorted(join_path(path, name) for path, names in recheck.spared.items() for name in names))
    found = PendingOutlook(
        instant=instant,
        files={},
        spared_files=spared,
        why_spared=recheck.why,
        is_withdrawn=instant.state is State.REQUESTED and not recheck.is_right,
    )
    if found.is_withdrawn:
        return found
    folders = FolderListing(contents.store.storage)
    left = recheck.left()
    refused = barred(contents.store.storage, left)
    files = {}
    for path, names in sorted(left.items()):
        if path in refused:
            continue
        sizes = {entry.name: entry.size_bytes for entry in folders.partition(path, details=True)}
        files.update({join_path(path, name): sizes[name] for name in names if name in sizes})
    return attrs.evolve(found, files=files, refused=refused)


def barred(storage: Storage, paths: Iterable[str]) -> dict[str, str]:
    """Those of the partitions whose files the storage will refuse to delete, and why."""
    barriers = ((path, storage.barrier(path)) for path in sorted(paths))
    return {path: barrier for path, barrier in barriers if barrier is not None}
