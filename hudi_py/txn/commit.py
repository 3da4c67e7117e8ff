"""
The life of an action on the timeline, in stages: prepared, requested, begun, ready, recorded, completed.

Each stage is a type that only the stage before hands out, so none can be left out or taken in another order::

    Prepared   it has a time; nothing is on the timeline      request: stores the plan
    Requested  its plan is stored; whoever finds it goes on   begin: files may be written or deleted
    Begun      inflight; readers see nothing of it            ready: lock, fresh timeline, conflict check
    Ready      the lock is held, nobody was faster            record: the metadata table is told
    Recorded   the metadata table knows it                    publish: the completed file, the commit point

What else an action does between two stages, and how the services differ on purpose: docs/architecture.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import attrs

from hudi_py.errors import ConflictError, HudiError, TimelineStateError
from hudi_py.model.instant import Action, Instant, State
from hudi_py.runtime.log import log
from hudi_py.timeline.store import Said, TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.conflict import Verdict, judge


class Record(Protocol):
    """How the metadata table is told of an action that is about to complete."""

    def __call__(self, timeline: Timeline, instant: Instant, /) -> str | None:
        """
        Record the action; repeatable.

        Args:
            timeline: Of the table, fresh; the action is inflight there.
            instant: The action.

        Returns:
            A time that the completion time has to exceed, None where any will do.
        """


def not_recorded(_timeline: Timeline, _instant: Instant, /) -> str | None:
    """A `Record` for actions of which the metadata table is told nothing, for they change no files."""
    return None


@attrs.frozen
class Prepared:
    """
    An action that has a time and nothing on the timeline.

    Args:
        store: The table's timeline; the caller holds its lock.
        action: What is going to be done.
        time: Requested time.
    """

    store: TimelineStore
    action: Action
    time: str

    def request(self, plan: Said | None = None) -> Requested:
        """
        Store the plan.

        Raises:
            ConflictError: There is an instant of that time and action.
        """
        return Requested(self.store, self.store.request(self.action, self.time, plan))

    def open(self) -> Begun:
        """
        Begin without a plan, as savepoints do; one that was interrupted goes on.

        Raises:
            ConflictError: Another process has begun it at this moment.
        """
        timeline = self.store.load()
        found = timeline.find(self.time, self.action)
        if found is None:
            return Begun(self.store, self.store.open_savepoint(self.time))
        _check(self.store, found, timeline)
        return Begun(self.store, found)


@attrs.frozen
class _OnTimeline:
    """An action that others can see: the timeline, and the instant in its present state."""

    store: TimelineStore
    instant: Instant

    @contextmanager
    def withdrawn_if_refused(self) -> Iterator[Timeline]:
        """
        Look again, with a fresh timeline: where the body refuses, the instant is removed.

        Without a lock nothing else keeps another process from coming in between the look and our first file. Whoever
        does something that goes ill with ours looks again behind its own first file, so at least one sees the other.

        Raises:
            ConflictError: Of any error in the body.
        """
        try:
            yield self.store.load()
        except HudiError as error:
            self.store.remove(self.instant)
            raise ConflictError(f"another process was faster, nothing was changed: {error}") from error

    def remove(self) -> None:
        """Take back what nobody rests on: inflight, then requested, so that a crash between leaves less of the same."""
        for state in (State.INFLIGHT, State.REQUESTED):
            if state <= self.instant.state:
                self.store.remove(Instant(self.instant.requested_time, self.instant.action, state))


class Requested(_OnTimeline):
    """An action whose plan is stored; inflight already where it was interrupted."""

    def begin(self, said: Said | None = None) -> Begun:
        """
        Make it inflight, unless it is.

        Args:
            said: What the inflight file holds.

        Raises:
            TimelineStateError: Its plan was removed by another process.
            ConflictError: Another process has begun it at this moment.
        """
        if self.instant.state is State.INFLIGHT:
            return Begun(self.store, self.instant)
        return Begun(self.store, self.store.transition(self.instant, said))


class Begun(_OnTimeline):
    """An inflight action: its files may be written or deleted, readers see nothing of it."""

    @contextmanager
    def ready(self) -> Iterator[Ready]:
        """
        Hold the lock to the end of the body, load the timeline, and make sure that the action may complete.

        Raises:
            ConflictError: Another process completed it, or holds the lock.
            TimelineStateError: Another process took it back.
        """
        with self.store.lock.held(f"{self.instant.action.value} {self.instant.requested_time}"):
            timeline = self.store.load()
            _check(self.store, self.instant, timeline)
            yield Ready(self, timeline)

    def in_step(self, data_timeline: Timeline) -> Recorded:
        """
        Of an action of a metadata table, whose writer holds the data table's lock and has looked at both.

        Args:
            data_timeline: Of the data table: times of the metadata table are later than all that are on it.
        """
        return Recorded(self, data_timeline.last_time)


@attrs.frozen
class Ready:
    """
    An action that may complete; the lock is held.

    Args:
        begun: The action.
        timeline: Loaded under the lock.
    """

    begun: Begun
    timeline: Timeline

    def record(self, tell: Record) -> Recorded:
        """Tell the metadata table, before the commit point: what is completed and not in it is lost to readers."""
        return Recorded(self.begun, tell(self.timeline, self.begun.instant))


@attrs.frozen
class Recorded:
    """
    An action that the metadata table knows of; it counts there once the action completes.

    Args:
        begun: The action.
        after: Its completion time is later.
    """

    begun: Begun
    after: str | None

    def publish(self, said: Said) -> Instant:
        """
        Create the completed file; what follows is clean-up.

        Raises:
            ConflictError: Another process was faster, or has the lock now.
            TimelineStateError: Another process took it back.
        """
        return self.begun.store.complete(self.begun.instant, said, after=self.after)


def prepared(store: TimelineStore, action: Action, *, timeline: Timeline | None = None) -> Prepared:
    """
    Take a time.

    Args:
        store: The table's timeline; the caller holds its lock.
        action: What is going to be done.
        timeline: Where it was just loaded.
    """
    return Prepared(store, action, store.new_time(timeline))


def withdraw(store: TimelineStore, instants: Iterable[Instant], because: str) -> None:
    """
    Remove requested instants that nobody has begun.

    Args:
        store: The table's timeline.
        instants: Whose plans are no longer right.
        because: Of what, for the log.

    Raises:
        ConflictError: Another process has begun one at this moment; its plan is there again.
    """
    for instant in instants:
        plan = store.read_plan(instant)
        store.remove(instant)
        if any(each.state is not State.REQUESTED for each in store.files_of(instant)):
            store.request(instant.action, instant.requested_time, plan)
            raise ConflictError(f"another process has begun {instant} at this moment; try again")
        log.warning("plan.withdrawn", instant=str(instant), because=because)


def _check(store: TimelineStore, ours: Instant, now: Timeline) -> None:
    verdict = judge(ours, now)
    if verdict is not Verdict.CLEAR:
        kind = ConflictError if verdict is Verdict.COMPLETED else TimelineStateError
        raise kind(f"{store.storage.root}: {ours} {verdict.value}")
