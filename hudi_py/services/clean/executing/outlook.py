"""What a clean would do about the cleans that are pending; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.fsview.listing import sizes_of
from hudi_py.model.files import join_path
from hudi_py.model.instant import Instant, State
from hudi_py.services.clean.executing.recheck import recheck_of
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents


@attrs.frozen(kw_only=True)
class PendingOutlook:
    """
    What the next clean will do about one pending clean.

    Args:
        instant: The pending clean.
        files: Relative paths of existing files that would be deleted, with sizes in bytes (None: unknown).
        spared_files: Relative paths of planned files that something needs now, sorted.
        why_spared: The first of them and what needs it, else why the plan is not valid; ``""`` if it is valid.
        refused: Partitions whose planned files cannot be deleted, with the reason; their files are not in *files*.
        is_withdrawn: Whether the plan is removed from the timeline and made again: it has not deleted anything yet.
    """

    instant: Instant
    files: Mapping[str, int | None]
    spared_files: tuple[str, ...] = ()
    why_spared: str = ""
    refused: Mapping[str, str] = attrs.field(factory=dict)
    is_withdrawn: bool = False

    @property
    def size_bytes(self) -> int | None:
        """Bytes of all files; None if a size is unknown."""
        sizes = list(self.files.values())
        return None if None in sizes else sum(size or 0 for size in sizes)


def outlook(contents: Contents, instant: Instant, policy: str | None = None) -> PendingOutlook:
    """
    Judge one pending clean as the clean that carries it out will; *policy* as for `Recheck`.

    Raises:
        CorruptMetadata, RefusedError: As `execute_clean`.
    """
    recheck = recheck_of(contents, instant, policy=policy)
    recheck.run()
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
    left = recheck.left()
    refused = barred(contents.store.storage, left)
    planned = (join_path(path, name) for path in sorted(left) if path not in refused for name in left[path])
    # Only those that are there: an interrupted attempt has deleted the others.
    files = sizes_of(contents.store.storage, planned)
    return attrs.evolve(found, files=files, refused=refused)


def plans_too(pending: Sequence[PendingOutlook], config: CleanConfig) -> bool:
    """Whether a clean makes a plan of its own besides, or in place of, those that are pending. Pure."""
    return not pending or config.allow_multiple or any(each.is_withdrawn for each in pending)


def barred(storage: Storage, paths: Iterable[str]) -> dict[str, str]:
    """The partitions whose files the storage will refuse to delete, with the reason."""
    barriers = ((path, storage.barrier(path)) for path in sorted(paths))
    return {path: barrier for path, barrier in barriers if barrier is not None}
