"""The files in question, and what was decided about each. Frozen values."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import attrs

from hudi_py.model.files import join_path
from hudi_py.model.shown import Shown


class OrphanFate(enum.Enum):
    """What happens to a file that no instant knows; the values are words of the report."""

    REMOVE = "remove"
    YOUNG = "young"
    KEEP = "keep"

    __hash__ = object.__hash__


class OrphanAction(enum.Enum):
    """What a run does with the files to remove."""

    SHOW = "dry run"
    QUARANTINE = "quarantine"
    DELETE = "delete"

    __hash__ = object.__hash__


@attrs.frozen(slots=True)
class OrphanFile:
    """
    A file that may belong to no instant, as it was listed.

    Args:
        partition_path: Relative path of its folder.
        name: Its name.
        size_bytes: Its size in bytes; 0 if the storage does not tell.
        modified_ms: When it was last written, in epoch milliseconds; None if the storage does not tell.
    """

    partition_path: str
    name: str
    size_bytes: int
    modified_ms: int | None

    @property
    def path(self) -> str:
        """Path relative to the table."""
        return join_path(self.partition_path, self.name)


@attrs.frozen(slots=True)
class OrphanVerdict:
    """
    A suspect that is not a file of the table, and what happens to it.

    Args:
        file: The file.
        fate: Whether it is removed.
        reason: Why it belongs to no instant.
        why_kept: What keeps it; ``""`` if it is removed.
    """

    file: OrphanFile
    fate: OrphanFate
    reason: str
    why_kept: str = ""


@attrs.frozen(kw_only=True, repr=False)
class OrphanReport(Shown):
    """
    What was found, and what was or would be done.

    Args:
        action: What was asked for.
        older_than_ms: Only files are removed that were written before this time, in epoch milliseconds.
        files_seen: Number of data files in the table's folders.
        verdicts: Every file that no instant knows, by path.
        empty_folders: Folders without any file, deepest first; relative paths.
        doubts: Why nothing may be removed from this table now; empty if nothing speaks against it.
        left: Number of files to remove that a limit left for the next run.
        done: Paths of the files that were moved or deleted.
        failed: Path to why it could not be moved or deleted.
        removed_folders: Empty folders that were removed.
        quarantine: Folder, relative to the table, to which files were moved; None if none were.
        other_tables: Folders of other tables below this one, which are not looked into.
    """

    action: OrphanAction
    older_than_ms: int
    files_seen: int = 0
    verdicts: tuple[OrphanVerdict, ...] = ()
    empty_folders: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    left: int = 0
    done: tuple[str, ...] = ()
    failed: Mapping[str, str] = attrs.field(factory=dict)
    removed_folders: tuple[str, ...] = ()
    quarantine: str | None = None
    other_tables: tuple[str, ...] = ()

    @property
    def to_remove(self) -> tuple[OrphanVerdict, ...]:
        """The files that are removed, if nothing speaks against it."""
        return tuple(verdict for verdict in self.verdicts if verdict.fate is OrphanFate.REMOVE)

    @property
    def bytes_to_remove(self) -> int:
        """Their sizes together."""
        return sum(each.file.size_bytes for each in self.to_remove)

    def _facts(self) -> Mapping[str, object]:
        return {
            "action": self.action.value,
            "to_remove": len(self.to_remove),
            "bytes_to_remove": self.bytes_to_remove,
            "done": len(self.done),
            "doubts": self.doubts,
            "quarantine": self.quarantine,
        }

    def _listed(self) -> Iterable[tuple[str, str, str]]:
        return (
            (verdict.file.path, verdict.fate.value, verdict.why_kept or verdict.reason) for verdict in self.verdicts
        )
