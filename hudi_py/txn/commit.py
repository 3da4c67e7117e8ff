"""
The life of an action on the timeline, in stages: prepared, requested, begun, ready, recorded, completed.

Each stage is a type that only the stage before returns, so none can be left out or taken in another order::

    Prepared   it has a time; nothing is on the timeline      request: stores the plan
    Requested  its plan is stored, any process can go on      begin: files may be written or deleted
    Begun      inflight; invisible to readers                 ready: lock, fresh timeline, conflict check
    Ready      the lock is held, no process was faster        record: the metadata table is updated
    Recorded   the metadata table has it                      publish: the completed file, the commit point

docs/architecture.md describes what actions do between two stages, and how services differ on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import attrs

from hudi_py.errors import ConflictError, HudiError
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.words import shell_word
from hudi_py.runtime.log import log
from hudi_py.timeline.completions import pending_targets
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.lock import NO_LOCK
from hudi_py.timeline.store import Said, TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.conflict import Verdict, judge


class Record(Protocol):
    """Records an action in the metadata table, right before it completes."""

    def __call__(self, timeline: Timeline, instant: Instant, /) -> str | None:
        """
        Record the action; repeatable.

        Args:
            timeline: The table's timeline, just loaded; the action is inflight in it.
            instant: The action.

        Returns:
            A time that the completion time has to exceed; None if there is none.
        """


def not_recorded(_timeline: Timeline, _instant: Instant, /) -> str | None:
    """A `Record` for actions that change no files, which the metadata table does not have."""
    return None


@attrs.frozen
class Prepared:
    """
    An action that has a time and nothing on the timeline.

    Args:
        store: The table's timeline; the caller holds its lock.
        action: The action.
        time: Its requested time.
    """

    store: TimelineStore
    action: Action
    time: str

    def request(self, plan: Said | None = None) -> Requested:
        """
        Store the plan.

        Raises:
            ConflictError: The timeline has an instant of that time and action, or is the table's no longer.
            ConfigError: Another process holds a lock of the table, and this one has none.
        """
        _look(self.store)
        return Requested(self.store, self.store.request(self.action, self.time, plan))

    def open(self) -> Begun:
        """
        Begin without a plan, as savepoints do; an interrupted one is continued.

        Raises:
            ConflictError: Another process has begun it at the same time.
            ConfigError: As `request`.
        """
        _look(self.store)
        # Loaded here and not taken from the caller: a savepoint of the same time may have been begun since.
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
    def withdrawn_if_refused(self, check: Callable[[Timeline], None] | None = None) -> Iterator[Timeline]:
        """
        Check again with a fresh timeline; if the body raises, the instant is removed.

        Without a lock, another process may have begun something between our first check and our first file. Actions
        that exclude each other all check again after their own first file, so at least one notices the other.

        Args:
            check: Of a requested instant: raises if others rely on the plan by now, so that it has to stay.

        Raises:
            ConflictError: For any error in the body.
        """
        try:
            yield self.store.load()
        except HudiError as error:
            # Without this, a plan that must not be carried out would stay, and the next run would carry it out.
            if check is None:
                self.store.remove(self.instant)
            else:
                withdraw(self.store, [self.instant], str(error), check)
            raise ConflictError(f"another process was faster, nothing was changed: {error}") from error

    def remove(self) -> None:
        """Remove the instant, its inflight file first: a crash in between leaves a plan that was never begun."""
        for state in (State.INFLIGHT, State.REQUESTED):
            if state <= self.instant.state:
                self.store.remove(Instant(self.instant.requested_time, self.instant.action, state))


class Requested(_OnTimeline):
    """An action whose plan is stored; already inflight if it was interrupted."""

    def begin(self, said: Said | None = None) -> Begun:
        """
        Make it inflight, unless it is already.

        Args:
            said: Content of the inflight file.

        Raises:
            ConflictError: Another process removed its plan, or has begun it at the same time.
        """
        # Resumed: the inflight file stays as it is, whoever wrote it. It may hold what the interrupted run had planned.
        if self.instant.state is State.INFLIGHT:
            return Begun(self.store, self.instant)
        return Begun(self.store, self.store.transition(self.instant, said))


class Begun(_OnTimeline):
    """An inflight action: its files may be written or deleted, and readers do not see them."""

    def look_for_plan(self, planned: Instant) -> None:
        """
        Look whether the plan, which another process may withdraw at this moment, was there until now (see `withdraw`).

        That one looks for the inflight file behind the removal, and this one for the plan behind the inflight file, so
        at least one of them notices the other.

        Args:
            planned: The action as it was before it began; inflight if it was interrupted, which keeps its plan.

        Raises:
            ConflictError: The plan is gone; the inflight file is removed, too.
        """
        plan = self.store.path(planned)
        if planned.state is State.REQUESTED and self.store.storage.size(plan) is None:
            self.store.remove(self.instant)
            raise ConflictError(
                f"{self.store.storage.root}/{plan} is gone: another process withdrew the plan of {planned} at this "
                "moment; nothing was changed; try again"
            )

    @contextmanager
    def ready(self) -> Iterator[Ready]:
        """
        Hold the lock until the end of the body, load the timeline, and check that the action may complete.

        Raises:
            ConflictError: Another process completed it, rolled it back or withdrew it, or holds the lock.
        """
        with self.store.lock.held(f"{self.instant.action.value} {self.instant.requested_time}"):
            # What was loaded before the lock was ours may be outdated: the holder before may have changed the table.
            timeline = self.store.load()
            _check(self.store, self.instant, timeline)
            yield Ready(self, timeline)

    def in_step(self, data_timeline: Timeline) -> Recorded:
        """
        Skip the check for an action of a metadata table: its writer holds the data table's lock and has checked both.

        Args:
            data_timeline: Timeline of the data table; times of the metadata table are later than all of its times.
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
        """Update the metadata table, before the commit point: readers do not see completed files that it lacks."""
        return Recorded(self.begun, tell(self.timeline, self.begun.instant))


@attrs.frozen
class Recorded:
    """
    An action that the metadata table has; it counts there as soon as the action completes.

    Args:
        begun: The action.
        after: A time that its completion time has to exceed; None if there is none.
    """

    begun: Begun
    after: str | None

    def publish(self, said: Said) -> Instant:
        """
        Create the completed file, the commit point; everything after it is clean-up.

        Raises:
            ConflictError: Another process was faster, rolled it back or withdrew it, or holds the lock now.
        """
        store = self.begun.store
        done = store.complete(self.begun.instant, said, after=self.after)
        store.told.completed(store, done)
        return done


def prepared(store: TimelineStore, action: Action, *, timeline: Timeline | None = None) -> Prepared:
    """
    Take a new time for an action.

    Args:
        store: The table's timeline; the caller holds its lock.
        action: The action.
        timeline: The timeline, if it was just loaded.
    """
    return Prepared(store, action, store.new_time(timeline))


def cancelling(root: str, instant: Instant) -> str:
    """Return the command that withdraws the plan of a pending compaction, log compaction or clustering."""
    command = {Action.COMPACTION: "compact", Action.LOG_COMPACTION: "compact --logs"}.get(instant.action, "cluster")
    return f"hudi-py {command} {shell_word(root)} --cancel {instant.requested_time}"


def withdraw(
    store: TimelineStore,
    instants: Iterable[Instant],
    because: str,
    check: Callable[[Timeline], None] | None = None,
) -> None:
    """
    Remove requested instants that were not begun.

    Args:
        store: The table's timeline.
        instants: Instants whose plans are no longer valid.
        because: The reason, for the log.
        check: Called with the timeline before and after a plan is removed; raises if the plan is needed.

    Raises:
        ConflictError: Another process has begun one of them at the same time, or *check* refused; its plan was
            restored.
    """
    for instant in instants:
        # First while the plan is there: if it was removed and this process then ended, nobody would put it back.
        _held_against(check, store)
        # Looked for after the plan is deleted: a process that begins it later does not find it any more.
        # Kept, for it may have to be put back.
        plan = store.read_plan(instant)
        store.remove(instant)
        if any(each.state is not State.REQUESTED for each in store.files_of(instant)):
            # An inflight action without its plan could be neither finished nor rolled back.
            store.request(instant.action, instant.requested_time, plan)
            raise ConflictError(f"another process has begun {instant} at this moment; try again")
        try:
            _held_against(check, store)
        except ConflictError:
            store.request(instant.action, instant.requested_time, plan)
            raise
        log.warning("plan.withdrawn", instant=str(instant), because=because)


def _held_against(check: Callable[[Timeline], None] | None, store: TimelineStore) -> None:
    if check is None:
        return
    try:
        check(store.load())
    except HudiError as error:
        raise ConflictError(f"another process was faster, nothing was changed: {error}") from error


def _look(store: TimelineStore) -> None:
    """Look, before an action begins, for what was not known when the table was opened."""
    store.lock.look()
    # A metadata table is moved with its table, whose writer has looked.
    if store.is_of_data and store.lock is not NO_LOCK:
        store.refuse_if_moved()


def _check(store: TimelineStore, ours: Instant, now: Timeline) -> None:
    verdict = judge(ours, now)
    # Of a process that took ours for dead, by its clock or because this one was stopped: it plans the rollback under
    # the lock and deletes our files without it, so our heartbeat may look well although they are going.
    if ours.requested_time in pending_targets(now, Contents(store)):
        verdict = Verdict.TAKEN_BACK
    if verdict is not Verdict.CLEAR:
        store.refuse_if_moved()  # if so, that is why
        raise ConflictError(f"{store.storage.root}: {ours} {verdict.value}")
