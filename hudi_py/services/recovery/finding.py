"""The findings of recovery, and the steps that it proposes. Pure values."""

from __future__ import annotations

import enum

import attrs

from hudi_py.model.instant import Instant


class Problem(enum.Enum):
    """Kinds of findings; values are the words in the report."""

    PROPERTIES = "properties half rewritten"
    DAMAGED_INSTANT = "damaged instant"
    FAILED_WRITE = "write not completed"
    LIVE_WRITE = "write is running"
    PLANNED_SERVICE = "planned, not carried out"
    STARTED_SERVICE = "begun, not completed"
    PENDING_CLEAN = "clean not completed"
    PENDING_ROLLBACK = "rollback not completed"
    PENDING_RESTORE = "restore not completed"
    PENDING_SAVEPOINT = "savepoint not completed"
    INTERRUPTED_ARCHIVAL = "archived, not yet deleted"
    STALE_MARKERS = "markers of a write that is over"
    STALE_HEARTBEAT = "heartbeat of a write that is over"
    ORPHANS = "files of a write that was undone"
    LATE_FILES = "files of late tasks"
    UNKNOWN_FILES = "files of no known write"
    LOST_FILES = "committed files are missing"
    METADATA_TABLE = "metadata table out of step"
    TEMPORARY_FILES = "temporary files"
    LOCK = "lock left behind"
    PARTITION_METAFILE = "damaged partition metafile"
    CONTRADICTION = "found by hudi-py check"


class Step(enum.Enum):
    """
    Proposed steps, in the order in which they are taken; values are the words in the report.

    The order: what every other step reads (properties, plans), what no write can begin beside (the restore), rollbacks
    before cleans, which need to know what is committed, and files last, when no instant refers to them any more.
    """

    RESTORE_PROPERTIES = "take the valid one of the two files"
    MEND_PLAN = "put the plan back from its copy"
    QUARANTINE = "move out of the timeline"
    REDO = "carry its plan out again"
    FINISH_RESTORE = "finish the restore"
    REMOVE_SAVEPOINT = "remove"
    FINISH_ROLLBACK = "finish the rollback"
    ROLL_BACK = "roll back"
    FINISH_CLEAN = "finish the clean"
    SETTLE_CLEAN = "finish the clean, without the files that are needed"
    WITHDRAW_CLEAN = "withdraw the plan; the next clean makes a new one"
    REWRITE_METAFILE = "write it again"
    REMOVE_FILES = "delete"
    DROP_METADATA_TABLE = "drop the metadata table, to be created again"
    LEAVE = "leave as it is"
    DECIDE = "needs you"


def seconds(ms: int | None) -> str:
    """A duration in milliseconds, as texts have it."""
    return f"{(ms or 0) // 1000} s"


ORDER = {step: position for position, step in enumerate(Step)}


@attrs.frozen(kw_only=True)
class RecoveryFinding:
    """
    Something in the table that is damaged or unfinished.

    Args:
        problem: Kind of the finding.
        step: Proposed step.
        evidence: Sentences: what was found, and why the step is safe, or why none is taken.
        instant: The instant concerned; None if there is none.
        requested_time: Requested time of the write concerned if *instant* is None; ``""`` if there is none.
        paths: Files and folders (with a trailing slash) that the step deletes or writes, relative to the table.
        content: What the step writes to the only file in *paths*.
    """

    problem: Problem
    step: Step
    evidence: tuple[str, ...]
    instant: Instant | None = None
    requested_time: str = ""
    paths: tuple[str, ...] = ()
    content: bytes = b""

    @property
    def time(self) -> str:
        """Requested time of the instant or write concerned; ``""`` if there is none."""
        return self.instant.requested_time if self.instant is not None else self.requested_time

    @property
    def is_settled_by_us(self) -> bool:
        """Whether recovery takes a step itself."""
        return self.step not in (Step.LEAVE, Step.DECIDE)


@attrs.frozen(kw_only=True)
class RecoveryOutcome:
    """
    A finding, and what was done about it.

    Args:
        finding: The finding.
        done: Whether its step was taken; False in a dry run, and for findings that recovery leaves alone.
        error: Why the step failed; None otherwise.
    """

    finding: RecoveryFinding
    done: bool
    error: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether a person has to deal with it."""
        return self.error is not None or self.finding.step is Step.DECIDE
