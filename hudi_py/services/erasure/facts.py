"""What holds bytes that should be gone, and the verdict. Frozen values."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping

import attrs

from hudi_py.model.shown import Shown


class ErasureVerdict(enum.Enum):
    """Whether the bytes are gone; the values are words of the report."""

    GONE = "gone"
    HELD = "held"
    UNPROVEN = "unproven"

    __hash__ = object.__hash__


class ErasurePlace(enum.Enum):
    """Where a file lies; the values are words of the report."""

    TABLE = "table"
    QUARANTINE = "quarantine"
    METADATA_TABLE = "metadata table"
    TIMELINE = "timeline"

    __hash__ = object.__hash__


class ErasureHolds(enum.Enum):
    """What a file holds; the values are words of the report."""

    ROWS = "rows"
    KEYS = "record keys"
    VALUES = "smallest and largest values of columns"
    UNKNOWN = "unknown"

    __hash__ = object.__hash__


@attrs.frozen
class ErasureTrace:
    """
    What was found in one file.

    Args:
        holds: The most that it holds.
        keys: Which of the keys asked for, as the file has them; empty if a partition was asked for.
        why_unsure: Why it is not certain that it holds anything; ``""`` if it is.
    """

    holds: ErasureHolds
    keys: tuple[str, ...] = ()
    why_unsure: str = ""


@attrs.frozen(kw_only=True)
class HeldFile:
    """
    A file that holds such bytes, or may hold them.

    Args:
        path: Relative to the table.
        place: Where it lies.
        trace: What it holds.
        size_bytes: Its size; None if the storage does not tell.
        why_kept: What keeps it, each a sentence; the deciding rule first.
        until: What has to happen before it is deleted, each a sentence; empty if the next clean that is due deletes it.
    """

    path: str
    place: ErasurePlace
    trace: ErasureTrace
    size_bytes: int | None = None
    why_kept: tuple[str, ...] = ()
    until: tuple[str, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether it certainly holds them."""
        return not self.trace.why_unsure


@attrs.frozen(kw_only=True)
class LastRemoval:
    """
    When the last file that may have held the bytes was deleted, as far as that is on record.

    Args:
        at: ISO 8601 in UTC; None if it is not on record.
        by: What deleted it, or why that is unknown.
    """

    at: str | None
    by: str


@attrs.frozen(kw_only=True, repr=False)
class ErasureReport(Shown):
    """
    Which files hold bytes of a partition or of record keys.

    Args:
        partition: Path of the partition; None for all.
        keys: The record keys; empty for all rows of the partition.
        looked_at: When the search began, ISO 8601 in UTC.
        files_seen: Number of files that were looked at.
        held: Files that hold such bytes or may hold them, by path.
        doubts: Why the search as a whole cannot prove that they are gone.
        last_removal: When the last of them was deleted; None while the verdict is another than gone.
    """

    partition: str | None
    keys: tuple[str, ...]
    looked_at: str
    files_seen: int
    held: tuple[HeldFile, ...] = ()
    doubts: tuple[str, ...] = ()
    last_removal: LastRemoval | None = None

    @property
    def verdict(self) -> ErasureVerdict:
        """Gone only if every place was looked at, and nothing there may hold them."""
        if any(each.is_certain for each in self.held):
            return ErasureVerdict.HELD
        return ErasureVerdict.UNPROVEN if self.held or self.doubts else ErasureVerdict.GONE

    def _facts(self) -> Mapping[str, object]:
        return {"verdict": self.verdict.value, "held": len(self.held), "doubts": self.doubts}

    def _listed(self) -> Iterable[tuple[str, str, str]]:
        return ((each.path, each.trace.holds.value, "; ".join(each.why_kept)) for each in self.held)
