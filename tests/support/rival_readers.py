"""Readers among the processes that change a table: one that keeps a snapshot, and one that follows the changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import attrs

from hudi_py.errors import ConflictError, HudiError, NotFound, RefusedError, StorageError
from hudi_py.snapshot.snapshot import Snapshot
from hudi_py.table import Table
from hudi_py.timeline.store import InstantGone

LEASE_TTL = "30s"
"""Longer than processes are stopped, so a lease only ends before its reader where clocks jump."""
CONSUMER = "job"
Shown = dict[str, list[Any]]
"""Rows by key: batch and number."""


class Told(NamedTuple):
    """
    What is wrong with a second reading.

    Args:
        text: In words.
        is_wrong: Whether it gave other rows, rather than an error.
    """

    text: str
    is_wrong: bool


@attrs.frozen
class Leased:
    """
    A lease that this process holds, and what was read under it at first.

    Args:
        held: Gives it back when it is closed.
        snapshot: What is kept.
        rows: Of it.
        taken_s: When it was taken.
    """

    held: ExitStack
    snapshot: Snapshot
    rows: list[dict[str, Any]]
    taken_s: float

    @classmethod
    def take(cls, table: Table, *, savepoint: bool) -> Leased:
        """Take one, and read; with a savepoint where cleaners know no leases."""
        with ExitStack() as stack:
            snapshot = stack.enter_context(table.lease(ttl=LEASE_TTL, savepoint=savepoint))
            rows = _sorted(snapshot)
            return cls(stack.pop_all(), snapshot, rows, time.monotonic())

    @property
    def since(self) -> float:
        """Seconds since it was taken."""
        return time.monotonic() - self.taken_s

    def give_back(self) -> Told | None:
        """Read again, and give it back."""
        with self.held:
            return self.read_again()

    def read_again(self) -> Told | None:
        """Read; None if the rows are the same, or could not be read for another reason."""
        try:
            found = _sorted(self.snapshot)
        except HudiError as error:
            if isinstance(error, StorageError) and not isinstance(error, NotFound):  # of trouble with the storage
                return None
            return Told(f"{type(error).__name__}: {error}", is_wrong=False)
        if found != self.rows:
            return Told(f"{len(found)} rows after {len(self.rows)}", is_wrong=True)
        return None


def _sorted(snapshot: Snapshot) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = snapshot.rows().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: str(row["id"]))


class Follower:
    """
    Reads what has changed since it last read, and stores in the table how far it has come.

    Args:
        tell: Is given the rows that were read, before the progress is stored: after a crash they are read again.

    Attributes:
        has_begun: Whether it has read the whole table, and has a place from which it goes on.
    """

    def __init__(self, tell: Callable[[Shown], None]) -> None:
        self._tell = tell
        self.has_begun = False

    def follow(self, table: Table) -> str:
        """Read on; returns what is wrong, which is that a clean did not wait for this reader."""
        until, progress = table.changed_until(), table.consumer(CONSUMER)
        if until is None:
            return ""
        if not self.has_begun:
            # First its place, then the whole table: what completes in between is read twice.
            progress.at(until)
            self._tell(_shown(table.rows()))
            self.has_begun = True
            return ""
        since = progress.instant
        if until < since:  # the last that it read was rolled back, and nothing came since
            return ""
        try:
            # With what was deleted, which needs files from before the range.
            found = _shown(table.changes(since, until, with_deletes=True))
        except HudiError as error:
            if _may_pass(error):
                raise
            return f"a consumer that has read until {since}: {type(error).__name__}: {error}"
        self._tell(found)
        progress.at(until)
        return ""


def _may_pass(error: HudiError) -> bool:
    """Whether the same reading can succeed later: the storage failed, something has to end first or has just ended."""
    if isinstance(error, InstantGone):  # the timeline was listed before another process archived or undid it
        return True
    if isinstance(error, RefusedError):
        return "may still complete" in str(error) or "finish it first" in str(error)
    # Nothing keeps a write from being undone while somebody reads it without a lease.
    if isinstance(error, (NotFound, ConflictError)):
        return "undid the write" in str(error)
    return isinstance(error, StorageError)


def missed(table: Table, told: list[Shown]) -> list[str]:
    """
    Return which rows of a table that nobody changes any more a follower was not shown as they are.

    Args:
        table: The table.
        told: All that it was shown, in order; rows that were deleted since may be among that.
    """
    if not told:  # it was killed before it had begun
        return []
    found: Shown = {}
    for each in told:
        found |= each
    since, until = table.consumer(CONSUMER).instant, table.changed_until()
    try:
        if until >= since:  # else the last that it read was rolled back, and nothing came since
            found |= _shown(table.changes(since, until, with_deletes=True))
    except RefusedError as error:
        return [f"a consumer that has read until {since}: {error}"]
    return [
        f"a consumer was shown {found.get(key)} of {key}, which is {row}"
        for key, row in _shown(table.rows()).items()
        if found.get(key) != row
    ]


def _shown(rows: Any) -> Shown:
    found = rows.to_arrow().to_pylist()
    return {row["id"]: [row["batch"], row["n"]] for row in found if not row.get("_hoodie_is_deleted")}
