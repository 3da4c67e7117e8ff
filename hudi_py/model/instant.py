"""Instants: an action at a time in a state. Pure values."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from hudi_py.errors import TimelineStateError


class Action(enum.Enum):
    """What an instant does; values are the words in file names."""

    COMMIT = "commit"
    DELTA_COMMIT = "deltacommit"
    REPLACE_COMMIT = "replacecommit"
    CLUSTERING = "clustering"  # layout 2, pending only: completes as a replacecommit
    COMPACTION = "compaction"  # pending only: completes as a commit
    LOG_COMPACTION = "logcompaction"  # pending only: completes as a deltacommit
    CLEAN = "clean"
    ROLLBACK = "rollback"
    RESTORE = "restore"
    SAVEPOINT = "savepoint"
    INDEXING = "indexing"

    __hash__ = object.__hash__  # identity is enough for an enum, and six times faster than hashing the name


class State(enum.IntEnum):
    """The states of an instant, in their order."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


COMPARABLE_ACTION: Final = {
    **{action: action for action in Action},
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
"""The action under which an instant completes. Instants with equal time and comparable action are the same instant."""


@attrs.frozen(slots=True)
class Instant:
    """
    One action on the timeline, in one state.

    Requested times are strings of 14, 17 or more digits, as on disk, and are compared as strings. Instants have no
    built-in order, because some questions need the order by requested time and others by completion time.

    Args:
        requested_time: Requested time, e.g. ``20260101120000000``.
        action: What the instant does.
        state: Requested, inflight or completed.
        completion_time: Completion time of a completed instant in layout 2; None otherwise.
        file_name: Name of the file from which the instant was read, relative to the timeline folder.
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None = None
    file_name: str | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def is_completed(self) -> bool:
        """Whether the instant is completed."""
        return self.state is State.COMPLETED

    @property
    def is_pending(self) -> bool:
        """Whether the instant is requested or inflight."""
        return self.state is not State.COMPLETED

    @property
    def comparable_action(self) -> Action:
        """The action under which this instant completes, e.g. commit for a compaction."""
        return COMPARABLE_ACTION[self.action]

    def __str__(self) -> str:
        return f"{self.action.value} {self.requested_time} ({self.state.name.lower()})"


def advance(instant: Instant, *, completion_time: str | None = None) -> Instant:
    """
    Return *instant* in its next state; writes nothing.

    Raises:
        TimelineStateError: The instant is already completed.
    """
    if instant.is_completed:
        raise TimelineStateError(
            f"{instant.action.value} {instant.requested_time} is already completed; "
            "reload the timeline, another writer may have finished it"
        )
    state = State(instant.state + 1)
    # A clustering, compaction or log compaction changes its name when it completes.
    action = instant.comparable_action if state is State.COMPLETED else instant.action
    return Instant(instant.requested_time, action, state, completion_time)
