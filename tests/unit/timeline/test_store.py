"""Instant files: what may become of one while other processes are at work (rules/timeline 3)."""

import attrs
import pytest

from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.model.instant import Action, State
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.timeline.store import TimelineStore
from support.tables import TableBuilder, at

LATE = "20270101000000000"  # than the clock of any table here


@pytest.mark.parametrize("layout", [1, 2])
def test_an_instant_is_completed_once(layout):
    """Of two processes that complete the same one the slower is told, and leaves no second completed file."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]}, state=State.INFLIGHT)
    first, second = (builder.table().contents.store for _ in range(2))
    (instant,) = first.load().pending("commit")
    completed = first.complete(instant, b"{}")
    with pytest.raises(ConflictError):
        second.complete(instant, b"{}", after=LATE)
    assert [each for each in second.files_of(instant) if each.is_completed] == [completed]


@pytest.mark.parametrize("layout", [1, 2])
def test_an_instant_that_was_rolled_back_goes_no_further(layout):
    """Its file is gone: a later state would make a write out of nothing."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]}, state=State.INFLIGHT)
    store = builder.table().contents.store
    (instant,) = store.load().pending("commit")
    for each in store.files_of(instant):
        store.remove(each)
    with pytest.raises(ConflictError, match="rolled"):
        store.complete(instant, b"{}")
    assert store.files_of(instant) == ()


@pytest.mark.parametrize("layout", [1, 2])
def test_an_instant_that_was_listed_and_is_gone_is_a_conflict(layout):
    """Another process archived it or rolled it back; a file that nobody listed may just not be there."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    store = builder.table().contents.store
    (instant,) = store.load().completed("commit")
    builder.storage.delete(store.path(instant))
    for read in (store.read, store.look_through):
        with pytest.raises(ConflictError, match=f"{at(1)}.* no longer exists: another process .* try again") as raised:
            read(instant)
        assert isinstance(raised.value, NotFound)  # for those who can do without it
        with pytest.raises(NotFound) as raised:
            read(attrs.evolve(instant, file_name=None))
        assert not isinstance(raised.value, ConflictError)


def test_times_of_two_processes_never_meet():
    """Each is larger than all that were given before, than the timeline's and than the one it is asked to follow."""
    builder = TableBuilder()
    stores = [builder.table().contents.store for _ in range(3)]
    given: list[str] = []
    for number in range(12):
        given.append(stores[number % 3].new_time(after=None if number % 4 else LATE))
    assert given == sorted(set(given))
    assert given[0] > LATE


class Overtaken(DelegatingStorage):
    """Another process is given a later time right before this one reserves its own."""

    def create_new(self, path: str, data: bytes, *, lasts: bool = True) -> None:
        if not self.given:
            self.given.append(self.other.new_time(after=LATE))
        self.inner.create_new(path, data, lasts=lasts)


def test_a_time_is_larger_than_one_given_since_it_was_chosen():
    """The clocks of two processes differ: whoever reserves a smaller time behind a larger one takes another."""
    builder = TableBuilder()
    storage = Overtaken(builder.storage)
    storage.given, storage.other = [], builder.table().contents.store
    store = TimelineStore(storage, builder.table().config, builder.clock)
    time = store.new_time()
    assert time > storage.given[0] > LATE
    assert builder.table().contents.store.new_time() > time


@pytest.mark.parametrize("layout", [1, 2])
def test_a_reopened_write_has_its_earlier_states(layout):
    """Also where they were missing: a write without them would look archived."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    store = builder.table().contents.store
    completed = store.load().completed("commit")[0]
    for each in store.files_of(completed):
        if each.is_pending:
            store.remove(each)
    store.reopen(completed)
    assert [each.state for each in store.files_of(completed)] == [State.REQUESTED, State.INFLIGHT]


@pytest.mark.parametrize("layout", [1, 2])
def test_a_write_that_another_process_has_rolled_back_is_not_reopened(layout):
    """The other one has finished the rollback and removed the write: its files would be left pending for ever."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    store = builder.table().contents.store
    completed = store.load().completed("commit")[0]
    store.reopen(completed)
    for each in store.files_of(completed):
        store.remove(each)
    store.reopen(completed)
    assert store.files_of(completed) == ()


def test_an_instant_that_was_removed_is_read_again():
    """Another plan may stand under its name since."""
    store = TableBuilder().table().contents.store
    instant = store.request(Action.CLEAN, at(1), b"old")
    assert store.read(instant) == b"old"
    store.remove(instant)
    store.storage.create_new(store.path(instant), b"new")
    assert store.read(instant) == b"new"


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("state", State)
def test_a_folder_where_the_file_of_an_instant_should_be_is_an_error(layout, state):
    """Whether it was completed cannot be told: every command stops and names it, the check as a finding."""
    builder = TableBuilder(layout)
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["a"]})
    store = builder.table().contents.store
    (path,) = (
        store.path(each) for each in store.load().all_states if (each.requested_time, each.state) == (at(2), state)
    )
    whole = builder.storage.read(path)
    builder.put(f"{path}/file")  # on an object store, what begins like the file is no harm while that is there
    assert len(store.load()) == 2
    builder.storage.delete(path)
    before = builder.storage.files()
    table = builder.table()
    for run in (
        lambda: list(table.rows()),
        table.overview,
        lambda: table.clean(commits_retained=1),
        table.create_savepoint,
        lambda: table.rollback(at(2)),
    ):
        with pytest.raises(CorruptMetadata, match=rf"{path} is a folder, where the file of .*{at(2)}.* should be"):
            run()
    (found,) = builder.table().check()
    assert (found.code, path in found.message) == ("instant-unreadable", True)
    assert builder.storage.files() == before
    builder.storage.delete(f"{path}/file")
    builder.put(path, whole)
    assert len(store.load()) == 2
