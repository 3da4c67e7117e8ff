"""One action in stages: what each stage makes sure of before the next one may come (hudi_py.txn.commit)."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.commit import Begun, Prepared, Requested, not_recorded, prepared, withdraw
from hudi_py.txn.conflict import Verdict, judge
from support.tables import TableBuilder, at

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
DONE = CommitMetadata()


class Held:
    """A lock that notes when it is held."""

    is_used = True

    def __init__(self):
        self.depth, self.purposes = 0, []

    @contextmanager
    def held(self, purpose):
        self.depth, self.purposes = self.depth + 1, [*self.purposes, purpose]
        try:
            yield
        finally:
            self.depth -= 1

    def look(self):
        pass

    def check(self):
        pass


def store_of(layout, lock=None):
    """Of a table with one commit, which the recorded storage tells of."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    table = builder.table()
    storage = RecordingStorage(builder.storage)
    return TimelineStore(storage, table.config, builder.clock, lock=lock or Held())


def states(store, time):
    return [each.state for each in store.load().all_states if each.requested_time == time]


@LAYOUTS
def test_each_stage_leaves_one_file_more(layout):
    """Prepared nothing, requested and begun one each, and only what is published is visible."""
    store = store_of(layout)
    first = prepared(store, Action.COMMIT)
    assert states(store, first.time) == []
    requested = first.request()
    assert states(store, first.time) == [State.REQUESTED]
    begun = requested.begin()
    assert states(store, first.time) == [State.REQUESTED, State.INFLIGHT]
    with begun.ready() as ready:
        recorded = ready.record(not_recorded)
        assert store.load().find(first.time).is_pending
        done = recorded.publish(DONE)
    assert store.load().find(first.time) == done
    assert done.is_completed


@LAYOUTS
def test_the_lock_is_held_from_the_look_to_the_end(layout):
    """From before the timeline is loaded until after the clean-up; the metadata table is told in between."""
    store = store_of(layout)
    begun = prepared(store, Action.COMMIT).request().begin()
    with begun.ready() as ready:
        assert store.lock.depth == 1
        seen = []
        recorded = ready.record(lambda timeline, instant: seen.append((timeline, instant)))
        recorded.publish(DONE)
        assert store.lock.depth == 1
    assert store.lock.depth == 0
    assert store.lock.purposes == [f"commit {begun.instant.requested_time}"]
    assert seen == [(ready.timeline, begun.instant)]


def test_a_commit_completes_after_what_the_metadata_table_says():
    """In layout 2 its completion time is larger than that of its record there (rules/data-files 10.4)."""
    store = store_of(2)
    late = "20270101000000000"
    with prepared(store, Action.COMMIT).request().begin().ready() as ready:
        done = ready.record(lambda *_: late).publish(DONE)
    assert done.completion_time > late


@LAYOUTS
@pytest.mark.parametrize("is_completed", [True, False])
def test_what_another_process_ended_is_told_to_nobody(layout, is_completed):
    """
    Completed or taken back meanwhile: the metadata table is not asked, nothing is written.

    A record of an action that is no longer on the timeline counts there, so files that were deleted would be listed.
    """
    store = store_of(layout)
    begun = prepared(store, Action.COMMIT).request().begin()
    if is_completed:
        store.complete(begun.instant, DONE)
    else:
        begun.remove()
    store.storage.clear()
    with pytest.raises(ConflictError), begun.ready():
        pytest.fail("the body must not run")
    # The timeline, and whether it is the table's still: an upgrade ends actions, too.
    assert store.storage.calls == [("list", store.folder), ("read", ".hoodie/hoodie.properties")]
    assert store.lock.depth == 0


@LAYOUTS
def test_who_is_refused_at_the_second_look_leaves_nothing(layout):
    """Its own file goes, with the reason told, and it is an error by which callers try again."""
    store = store_of(layout)
    requested = prepared(store, Action.ROLLBACK).request(b"plan")
    with pytest.raises(ConflictError, match="a savepoint came"), requested.withdrawn_if_refused():
        raise RefusedError("a savepoint came")
    assert states(store, requested.instant.requested_time) == []


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_what_was_interrupted_goes_on_from_where_it_is(layout, state):
    """A stored plan is begun once, however often it is taken up."""
    store = store_of(layout)
    first = prepared(store, Action.CLEAN).request(b"plan")
    if state is State.INFLIGHT:
        first.begin(b"plan")
    again = Requested(store, store.load().find(first.instant.requested_time)).begin(b"plan")
    assert again.instant.state is State.INFLIGHT
    assert states(store, first.instant.requested_time) == [State.REQUESTED, State.INFLIGHT]


@LAYOUTS
def test_a_savepoint_that_was_interrupted_is_opened_again_and_a_completed_one_is_not(layout):
    """Two processes that pin one commit get one savepoint."""
    store = store_of(layout)
    savepoint = Prepared(store, Action.SAVEPOINT, at(1))
    assert savepoint.open().instant == Instant(at(1), Action.SAVEPOINT, State.INFLIGHT)
    begun = savepoint.open()
    store.complete(begun.instant, b"x")
    with pytest.raises(ConflictError):
        savepoint.open()


@LAYOUTS
def test_plans_that_nobody_has_begun_are_withdrawn(layout):
    """Each of them, without a trace, and nothing else; it is told for the sake of what."""
    store = store_of(layout)
    plans = [prepared(store, action).request() for action in (Action.CLEAN, Action.ROLLBACK)]
    before = store.load().without(plans[0].instant).without(plans[1].instant)
    withdraw(store, [each.instant for each in plans], "rollback")
    assert store.load() == before
    assert [states(store, each.instant.requested_time) for each in plans] == [[], []]


@LAYOUTS
def test_only_what_was_seen_is_taken_back(layout):
    """Another process has begun it meanwhile: its inflight file stays, for files may be gone already."""
    store = store_of(layout)
    requested = prepared(store, Action.CLEAN).request()
    begun = requested.begin()
    requested.remove()
    assert states(store, requested.instant.requested_time) == [State.INFLIGHT]
    begun.remove()
    assert states(store, requested.instant.requested_time) == []


@LAYOUTS
def test_a_plan_that_was_begun_meanwhile_is_not_withdrawn(layout):
    """Its requested file exists again, with what it said, and who wanted to withdraw it is told."""
    store = store_of(layout)
    requested = prepared(store, Action.CLEAN).request(b"plan")
    requested.begin(b"plan")
    with pytest.raises(ConflictError):
        withdraw(store, [requested.instant], "rollback")
    assert store.storage.read(store.path(requested.instant)) == b"plan"


@pytest.mark.parametrize(
    ("others", "verdict"),
    [
        (State.COMPLETED, Verdict.COMPLETED),
        (State.INFLIGHT, Verdict.CLEAR),
        (State.REQUESTED, Verdict.TAKEN_BACK),
        (None, Verdict.TAKEN_BACK),
    ],
)
def test_the_verdict_follows_from_the_timeline_alone(others, verdict):
    """Only an action that is inflight as we left it may complete; those of other times do not matter."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"eu": ["a"]})
    if others is not None:
        builder.commit(at(2), {"eu": ["b"]}, state=others)
    builder.commit(at(3), {"eu": ["c"]})
    ours = Instant(at(2), Action.COMMIT, State.INFLIGHT)
    assert judge(ours, builder.table().timeline) is verdict


def test_an_action_of_the_metadata_table_is_later_than_the_data_table():
    """Its writer holds the data table's lock and has looked at both timelines already: nothing is listed again."""
    store = store_of(1)
    timeline = store.load()
    begun = Begun(store, Instant(at(2), Action.COMMIT, State.INFLIGHT))
    assert begun.in_step(timeline).after == timeline.last_time
