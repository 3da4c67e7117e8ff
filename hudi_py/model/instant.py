"""Instants: one action at one time in one state. Pure values, no storage."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from hudi_py.errors import TimelineStateError


class Action(enum.Enum):
    """What an instant does; values are the words on disk."""

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
    """States in the order in which an instant goes through them."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


COMPARABLE_ACTION: Final = {
    **{action: action for action in Action},
    Action.COMPACTION: Action.COMMIT,
    Action.LOG_COMPACTION: Action.DELTA_COMMIT,
    Action.CLUSTERING: Action.REPLACE_COMMIT,
}
"""The action under which an instant completes; two instants of equal time and comparable action are one."""


@attrs.frozen(slots=True)
class Instant:
    """
    One action on the timeline, in one state.

    Requested times are digit strings as on disk (14, 17 or more digits) and compare as strings. There is no
    built-in order, because whether requested or completion time decides depends on the question.

    Args:
        requested_time: When the action was requested, digits as on disk.
        action: What it does, the word in the file name.
        state: How far it is.
        completion_time: Layout 2, completed instants only; None otherwise.
        file_name: Name of the file this instant was read from, relative to the timeline folder.
    """

    requested_time: str
    action: Action
    state: State
    completion_time: str | None = None
    file_name: str | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def is_completed(self) -> bool:
        """Whether the completed file exists."""
        return self.state is State.COMPLETED

    @property
    def is_pending(self) -> bool:
        """Whether the completed file does not exist yet."""
        return self.state is not State.COMPLETED

    @property
    def comparable_action(self) -> Action:
        """The action under which this instant completes."""
        return COMPARABLE_ACTION[self.action]

    def __str__(self) -> str:
        return f"{self.action.value} {self.requested_time} ({self.state.name.lower()})"


def advance(instant: Instant, *, completion_time: str | None = None) -> Instant:
    """
    Return *instant* one state further; touches no storage.

    Raises:
        TimelineStateError: It is already completed.
    """
    if instant.is_completed:
        raise TimelineStateError(
            f"{instant.action.value} {instant.requested_time} is already completed; "
            "reload the timeline, another writer may have finished it"
        )
    state = State(instant.state + 1)
    action = instant.comparable_action if state is State.COMPLETED else instant.action
    return Instant(instant.requested_time, action, state, completion_time)
