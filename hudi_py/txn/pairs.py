"""
Decides what a rollback, restore, savepoint or archival does beside pending actions: one table of pairs. Pure.

Every pending action was right when it was planned. Whether it still is, and what to do about it, is decided here and
nowhere else. A service finds out how the pending action is related to it, calls `judge`, and changes nothing before it
has all answers.

docs/decisions/pairs.md has the same table for people, and what Apache Hudi does.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from typing import Final, TypeAlias

import attrs

from hudi_py.model.instant import Action, Instant, State


class Service(enum.Enum):
    """The service that runs; values are texts for people."""

    ROLLBACK = "rollback of a completed commit"
    RESTORE = "restore"
    SAVEPOINT_CREATE = "creation of a savepoint"
    SAVEPOINT_DELETE = "deletion of a savepoint"
    ARCHIVE = "archival"


class Relation(enum.Enum):
    """How the pending action is related to what the service does; the first one that applies decides."""

    NEEDED = "its plan deletes files that are needed afterwards"
    BUILT_ON = "its plan reads what the undone commits wrote"
    ALIVE = "it is to be undone, and its heartbeat is not expired"
    SAME = "it is about the same commits"
    ANY = "in every other case"


class Answer(enum.Enum):
    """What the service does."""

    ALLOWED = "goes on, and leaves it as it is"
    INCLUDED = "deals with it along"
    WITHDRAWN = "removes its plan, then goes on"
    ENDS_THERE = "goes only as far as it"
    REFUSED = "refuses, and changes nothing"


@attrs.frozen(kw_only=True)
class Pair:
    """
    One entry of the table.

    Args:
        service: The service that runs.
        action: Action of the pending instant; CLUSTERING also for one of layout 1, whose files say replacecommit.
        states: Its states.
        relation: How it is related to what the service does.
        answer: What the service does.
        reason: Why, in one sentence; if it is refused, also what to do.
    """

    service: Service
    action: Action
    states: tuple[State, ...]
    relation: Relation
    answer: Answer
    reason: str

    def __str__(self) -> str:
        states = " or ".join(state.name.lower() for state in self.states)
        return f"{self.service.value} beside {self.action.value} {states}, {self.relation.name}"


PENDING: Final = (State.REQUESTED, State.INFLIGHT)
_REQUESTED: Final = (State.REQUESTED,)
_INFLIGHT: Final = (State.INFLIGHT,)
WRITES: Final = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
REWRITES: Final = (Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING)


# fmt: off
_CLEAN: Final = (Action.CLEAN,)
_Rows: TypeAlias = tuple[tuple[tuple[Action, ...], tuple[State, ...], Relation, Answer, str], ...]
_UNDOING: Final[_Rows] = (  # what a rollback and a restore have in common
    ((*REWRITES, *WRITES), PENDING, Relation.ALIVE, Answer.REFUSED,
     ("its writer is at work, by its heartbeat; wait until it is completed, or stop it and wait until the heartbeat is "
      "expired")),
    (_CLEAN, _REQUESTED, Relation.NEEDED, Answer.WITHDRAWN,
     "nothing was deleted by it yet; carried out later, as Apache Hudi would, it deletes the latest rows"),
    (_CLEAN, _INFLIGHT, Relation.NEEDED, Answer.REFUSED,
     ("it may be deleting at this moment; finish it with hudi-py clean or hudi-py recover, after which what it deleted "
      "cannot come back")),
    (_CLEAN, PENDING, Relation.ANY, Answer.ALLOWED,
     "what it deletes is needed neither before nor afterwards"),
    ((Action.INDEXING,), PENDING, Relation.ANY, Answer.REFUSED,
     "the index that it builds would keep what is undone; let Apache Hudi finish it, or drop the index with it"),
)
_TABLE: Final[dict[Service, _Rows]] = {
    Service.ROLLBACK: (
        *_UNDOING,
        (REWRITES, _REQUESTED, Relation.BUILT_ON, Answer.WITHDRAWN,
         "its plan names files that are deleted, and nobody has begun it; it is planned again when it is due"),
        (REWRITES, _INFLIGHT, Relation.BUILT_ON, Answer.REFUSED,
         ("it reads what that commit wrote and may be at work; stop it and take it back to its plan first with hudi-py "
          "rollback")),
        (REWRITES, PENDING, Relation.ANY, Answer.ALLOWED,
         "its plan reads nothing of that commit"),
        (WRITES, PENDING, Relation.ANY, Answer.REFUSED,
         ("it may build on that commit; wait until it is completed, or stop its writer and roll that back first with "
          "hudi-py rollback")),
        ((Action.ROLLBACK,), PENDING, Relation.SAME, Answer.INCLUDED,
         "its stored plan is carried out, no second one is made"),
        ((Action.ROLLBACK,), PENDING, Relation.ANY, Answer.ALLOWED,
         "it undoes another write, which nobody reads"),
        ((Action.RESTORE,), PENDING, Relation.ANY, Answer.REFUSED,
         "it undoes commits in its own order; finish the restore first with hudi-py recover"),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.SAME, Answer.REFUSED,
         ("the commit is being savepointed, or that was interrupted; delete the savepoint first with hudi-py savepoint "
          "delete")),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.ANY, Answer.ALLOWED,
         "it pins another commit, whose files stay"),
    ),
    Service.RESTORE: (
        *_UNDOING,
        ((*REWRITES, *WRITES), PENDING, Relation.SAME, Answer.INCLUDED,
         "it began after the savepoint, so it is undone with the rest, its plan too"),
        ((*REWRITES, *WRITES), PENDING, Relation.ANY, Answer.ALLOWED,
         "it began before the savepoint, and what it reads stays"),
        ((Action.ROLLBACK,), PENDING, Relation.SAME, Answer.INCLUDED,
         "its stored plan is carried out as a part of the restore"),
        ((Action.ROLLBACK,), PENDING, Relation.ANY, Answer.ALLOWED,
         "it undoes a write that nobody reads; the next writer undoes that again"),
        ((Action.RESTORE,), PENDING, Relation.SAME, Answer.INCLUDED,
         "it is to the same savepoint, and goes on from its stored plan"),
        ((Action.RESTORE,), PENDING, Relation.ANY, Answer.REFUSED,
         ("it is to another savepoint, and some commits may be undone already; finish that one first with hudi-py "
          "recover")),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.SAME, Answer.REFUSED,
         ("it is being created on a commit that would be undone, or that was interrupted; delete it first with hudi-py "
          "savepoint delete")),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.ANY, Answer.ALLOWED,
         "it pins a commit that stays"),
    ),
    Service.SAVEPOINT_CREATE: (
        (_CLEAN, PENDING, Relation.NEEDED, Answer.REFUSED,
         ("it was planned without this savepoint and deletes what that would hold; finish it with hudi-py clean, then "
          "savepoint a later commit")),
        (_CLEAN, PENDING, Relation.ANY, Answer.ALLOWED,
         "it deletes nothing that the savepoint holds"),
        ((*REWRITES, *WRITES, Action.INDEXING), PENDING, Relation.ANY, Answer.ALLOWED,
         "it adds files, and the commit's own stay"),
        ((Action.ROLLBACK, Action.RESTORE), PENDING, Relation.SAME, Answer.REFUSED,
         "it undoes the commit; finish that first with hudi-py recover"),
        ((Action.ROLLBACK, Action.RESTORE), PENDING, Relation.ANY, Answer.ALLOWED,
         "it undoes other writes"),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.SAME, Answer.INCLUDED,
         "it was interrupted and is completed now"),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.ANY, Answer.ALLOWED,
         "it pins another commit"),
    ),
    Service.SAVEPOINT_DELETE: (
        ((Action.RESTORE,), PENDING, Relation.SAME, Answer.REFUSED,
         "it goes back to this savepoint and needs its files; finish it first with hudi-py recover"),
        ((Action.RESTORE,), PENDING, Relation.ANY, Answer.ALLOWED,
         "it goes back to another savepoint; one of Apache Hudi that stopped at this one can go on then"),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.SAME, Answer.INCLUDED,
         "it was interrupted, pins nothing, and is removed"),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.ANY, Answer.ALLOWED,
         "it pins another commit"),
        ((Action.CLEAN, *REWRITES, *WRITES, Action.ROLLBACK, Action.INDEXING), PENDING, Relation.ANY, Answer.ALLOWED,
         "no file is deleted with the savepoint; the next clean judges again"),
    ),
    Service.ARCHIVE: (
        ((Action.RESTORE,), PENDING, Relation.ANY, Answer.REFUSED,
         "it may have to undo what would be archived; finish it first with hudi-py recover"),
        ((*REWRITES, *WRITES), PENDING, Relation.ANY, Answer.ENDS_THERE,
         "what is archived behind a pending write would look completed with it"),
        ((Action.SAVEPOINT,), _INFLIGHT, Relation.ANY, Answer.ENDS_THERE,
         "its commit stays active, or nothing could be restored to it"),
        ((Action.CLEAN, Action.ROLLBACK, Action.INDEXING), PENDING, Relation.ANY, Answer.ALLOWED,
         "it is never archived itself, and what it needs stays active by the other bounds"),
    ),
}
# fmt: on
PAIRS: Final = tuple(
    Pair(service=service, action=action, states=states, relation=relation, answer=answer, reason=reason)
    for service, rows in _TABLE.items()
    for actions, states, relation, answer, reason in rows
    for action in actions
)


def judge(service: Service, instant: Instant, relations: Collection[Relation] = ()) -> Pair:
    """
    What a service does beside a pending instant.

    Args:
        service: The service that runs.
        instant: The pending instant; a clustering of layout 1 with the action `Action.CLUSTERING`.
        relations: The relations that apply; `Relation.ANY` always does.

    Raises:
        KeyError: The table has no such pair. Unknown actions are refused when the timeline is loaded.
    """
    wanted = {*relations, Relation.ANY}
    # In the order of the enum: what would lose rows is found before what would merely be about the same commits.
    for relation in Relation:
        if relation in wanted:
            for pair in PAIRS:
                if (pair.service, pair.action, pair.relation) == (service, instant.action, relation) and (
                    instant.state in pair.states
                ):
                    return pair
    raise KeyError(f"{service.value} beside {instant}")
