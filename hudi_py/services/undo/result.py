"""What an undo puts back, or would. Frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hudi_py.model.shown import Shown


@attrs.frozen(kw_only=True, repr=False)
class UndoReport(Shown):
    """
    One undo.

    Args:
        name: The removal: the requested time of a clean, or the name of a search for orphans.
        kind: ``clean`` or ``orphans``.
        files: Path of each file that is put back, to its size in bytes.
        restored: Paths that this run moved; those of an earlier attempt that was interrupted are not among them.
        rollback: Requested time of the rollback that records the undo of a clean; None in a dry run, and for orphans.
        is_dry_run: Whether nothing was written.
        reasons: Path to why the file had been removed, where that is known for each file.
    """

    name: str
    kind: str
    files: Mapping[str, int]
    restored: tuple[str, ...] = ()
    rollback: str | None = None
    is_dry_run: bool = False
    reasons: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def size_bytes(self) -> int:
        """Sizes of all files together."""
        return sum(self.files.values())

    def _facts(self) -> Mapping[str, object]:
        return {"name": self.name, "kind": self.kind, "files": len(self.files), "rollback": self.rollback}

    def _listed(self) -> Iterable[tuple[str, int]]:
        return self.files.items()
