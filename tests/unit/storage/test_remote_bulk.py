"""Bulk deletion in pages: every path gets its outcome, prefixes take turns, and throttling slows it down."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import StorageError
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.remote_backends import KEYS_PER_DELETE
from hudi_py.storage.remote_bulk import KEYS_MIN, REQUESTS_MAX, Pace, delete_in_pages, spread
from hudi_py.storage.retry import Retry
from support.laws import examples

SLOW = StorageFailure("SlowDown", True)
LOCKED = StorageFailure("AccessDenied", False)


class Store:
    """Answers page after page by *rule*, which gets the page's number; remembers what was sent and the pauses."""

    def __init__(self, rule=lambda number: None):
        self.rule, self.pages, self.pauses, self.lock = rule, [], [], threading.Lock()

    def send(self, page):
        with self.lock:
            number = len(self.pages)
            self.pages.append(list(page))
        answer = self.rule(number)
        if isinstance(answer, StorageError):
            raise answer
        return answer or dict.fromkeys(page, True)

    def delete(self, paths, pace=None, attempts_max=6):
        retry = Retry(attempts_max, sleep=self.pauses.append)
        return delete_in_pages(paths, self.send, pace or Pace(), lambda: retry.begin("delete"))


def paths_of(partitions, files):
    return [f"p{partition}/{number}" for partition in range(partitions) for number in range(files)]


@examples(100)
@given(st.integers(0, 12), st.integers(0, 200), st.sets(st.integers(0, 20)))
def test_every_path_has_an_outcome_in_its_order_whatever_is_throttled(partitions, files, throttled):
    """Pages are refused for a moment here and there; nothing is lost, and nothing is asked for twice in a round."""
    paths = paths_of(partitions, files)
    store = Store(lambda number: StorageError("SlowDown", True) if number in throttled else None)
    assert store.delete(paths, attempts_max=30) == dict.fromkeys(paths, True)
    assert list(store.delete(paths)) == paths
    assert all(len(page) <= KEYS_PER_DELETE for page in store.pages)


def test_requests_are_far_fewer_than_files():
    """Modest pages, and still a hundred times fewer requests than one for each file."""
    store = Store()
    store.delete(paths_of(100, 100))
    assert len(store.pages) == 10_000 // KEYS_PER_DELETE


def test_prefixes_take_turns():
    """A store counts requests by prefix: each page touches as many as there are."""
    paths = paths_of(5, 10)
    assert [path.partition("/")[0] for path in spread(paths)[:5]] == ["p0", "p1", "p2", "p3", "p4"]
    assert sorted(spread(paths)) == sorted(paths)
    assert spread(["b", "a/1", "a/2"]) == ["b", "a/1", "a/2"]


def test_throttling_slows_it_down_and_peace_speeds_it_up():
    """Half as much after each round of trouble, with a pause, and back again."""
    pace = Pace()
    calm = Store()
    calm.delete(paths_of(20, 400), pace)
    assert (pace.requests, pace.keys, calm.pauses) == (REQUESTS_MAX, KEYS_PER_DELETE, [])
    busy = Store(lambda number: StorageError("SlowDown", True) if number < 5 else None)
    assert set(busy.delete(paths_of(1, 300), pace).values()) == {True}
    assert min(map(len, busy.pages)) < KEYS_PER_DELETE
    assert busy.pauses
    for _ in range(20):
        pace.was_throttled()
    assert (pace.requests, pace.keys) == (1, KEYS_MIN)
    calm.delete(paths_of(20, 100), pace)
    assert (pace.requests, pace.keys) == (REQUESTS_MAX, KEYS_PER_DELETE)


def test_single_keys_that_stay_throttled_hold_up_nothing():
    """They wait behind the others, and are given up alone."""
    store = Store()
    store.send = lambda page: {path: SLOW if path == "p0/0" else True for path in page}
    outcome = store.delete(paths_of(3, 300))
    assert outcome.pop("p0/0") == SLOW
    assert set(outcome.values()) == {True}
    assert store.pauses[-5:] == sorted(store.pauses[-5:])
    assert len(store.pauses) >= 5


def test_a_refused_page_ends_it():
    """Asking for the other pages would only take the same time again; each path says why."""
    store = Store(lambda number: StorageError("AccessDenied") if number else None)
    outcome = store.delete(paths_of(1, 4 * KEYS_PER_DELETE))
    assert len(store.pages) <= 3
    refused = [each for each in outcome.values() if each is not True]
    assert len(refused) == 3 * KEYS_PER_DELETE
    assert set(refused) == {StorageFailure("AccessDenied", False)}


def test_it_gives_up_after_so_many_rounds_in_vain():
    """A store that is away: bounded attempts with growing pauses, then every path says why."""
    store = Store(lambda number: StorageError("away", True))
    outcome = store.delete(paths_of(1, 1000), attempts_max=4)
    assert len(store.pages) == 4
    assert len(store.pauses) == 3
    assert store.pauses == sorted(store.pauses)
    assert set(outcome.values()) == {StorageFailure("away", True)}


def test_a_refused_key_is_not_repeated():
    """Only what may succeed later is sent again."""
    store = Store(lambda number: {"a": True, "b": SLOW, "c": LOCKED} if number == 0 else None)
    assert store.delete(["a", "b", "c"]) == {"a": True, "b": True, "c": LOCKED}
    assert store.pages == [["a", "b", "c"], ["b"]]
