"""The doubles that crash tests rest on, and the recording wrapper."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest

from hudi_py.errors import OutcomeUnknown, StorageError
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.testing import (
    INTERRUPTION_MODES,
    Crash,
    FailNth,
    ReportFailure,
    SlowStorage,
    StopAfter,
    StopBefore,
    TornCreate,
    TornWrite,
    interruptions,
)


def fresh() -> MemoryStorage:
    return MemoryStorage.from_files({"old/1": b"1", "old/2": b"2", "old/3": b"3", "x": b"x"})


def operation(storage) -> None:
    """Five mutations of different kinds, with reads between them; may be repeated at any point."""
    storage.replace("plan", b"the plan")
    with storage.open_write("data") as stream:
        stream.write(b"0123456789")
    storage.list("old")
    storage.delete_many(["old/1", "old/2"])
    storage.delete_folder("old")
    if storage.size("done") is None:
        storage.create_new("done", b"ok")


EXPECTED = {"plan": b"the plan", "data": b"0123456789", "done": b"ok", "x": b"x"}


def test_every_interruption_is_reached_and_each_mode_ends_with_a_survivor():
    """Six modes, five mutations each plus the round in which none is hit; recovery ends in one state."""
    fired: Counter[str] = Counter()
    survivors = []
    for case in interruptions(fresh):
        if case.run(operation):
            fired[case.mode.name] += 1
        else:
            survivors.append(case.mode.name)
        for _ in range(2):
            operation(case.storage)
            assert case.storage.files() == EXPECTED, case
    assert fired == {mode.name: 5 for mode in INTERRUPTION_MODES}
    assert survivors == [mode.name for mode in INTERRUPTION_MODES]


def test_a_sample_of_interruptions_leaves_no_mutation_out():
    """What one mode passes over, its neighbour hits."""
    hit = {(case.mode.name, case.n) for case in interruptions(fresh, every=2) if case.run(operation)}
    assert {n for _, n in hit} == set(range(5))
    assert hit == {(mode.name, n) for m, mode in enumerate(INTERRUPTION_MODES) for n in range(m % 2, 5, 2)}


def test_operation_that_cannot_recover_is_found_out():
    """The generator is of use only if a careless operation fails under it."""

    def careless(storage) -> None:
        storage.create_new("a", b"1")
        storage.create_new("b", b"2")

    broken = set()
    for case in interruptions(fresh):
        case.run(careless)
        try:
            careless(case.storage)
        except StorageError:
            broken.add((case.mode.name, case.n)) if case.faulty.fired else None
    assert {("stop before", 1), ("stop after", 0), ("succeed but report failure", 1)} <= broken
    assert ("stop before", 0) not in broken


def test_a_case_must_be_run():
    """Else a loop that forgets it would pass without testing anything."""
    with pytest.raises(RuntimeError, match="was not run"):
        list(interruptions(fresh))


def test_a_failure_of_its_own_is_not_taken_for_the_interruption():
    """An operation that fails untouched is broken, whatever the mode."""

    def failing(storage) -> None:
        raise OutcomeUnknown("by itself")

    for case in interruptions(fresh):
        with pytest.raises(OutcomeUnknown):
            case.run(failing)
        break


@pytest.mark.parametrize(("double", "is_done"), [(StopBefore, False), (StopAfter, True)])
def test_stopping(double, is_done):
    """The n-th mutation is or is not done; no ``except Exception`` survives; afterwards nothing works any more."""
    inner = fresh()
    storage = double(inner, 1)
    storage.replace("a", b"1")
    storage.read("a")
    with pytest.raises(Crash):
        try:
            storage.replace("b", b"2")
        except Exception:
            pytest.fail("a crash was swallowed")
        finally:
            with pytest.raises(Crash):
                storage.delete("a")
    for call in (lambda: storage.read("a"), lambda: storage.list(""), lambda: storage.open_write("c")):
        with pytest.raises(Crash):
            call()
    assert ("b" in inner.files()) is is_done
    assert inner.read("a") == b"1"
    assert storage.fired == "replace b"


def test_failing_once_and_for_ever():
    """Without effect, as often as asked."""
    for times, expected in ((1, ["a", "c", "d"]), (2, ["a", "d"]), (None, ["a"])):
        storage = FailNth(MemoryStorage(), 1, times, retryable=True)
        for path in "abcd":
            try:
                storage.replace(path, b"")
            except StorageError as error:
                assert error.retryable
        assert list(storage.inner.files()) == expected


def test_reported_failure_has_happened():
    """The effect is there, the caller hears otherwise."""
    storage = ReportFailure(MemoryStorage(), 0, error=OutcomeUnknown("lost"))
    with pytest.raises(OutcomeUnknown, match="lost"):
        storage.create_new("a", b"1")
    assert storage.read("a") == b"1"


def test_tearing():
    """Half of a stream, half of a bulk deletion, half of a folder; a creation only where the backend tears."""
    for double, act, expected in (
        (TornWrite, lambda s: s.open_write("x").close(), {"x": b""}),
        (TornWrite, write_ten, {"x": b"01234"}),
        (TornWrite, lambda s: s.delete_many(["old/3", "old/1", "x"]), {"old/1": None, "old/3": None}),
        (TornWrite, lambda s: s.delete_folder("old"), {"old/1": None, "old/2": None}),
        (TornWrite, lambda s: s.create_new("new", b"0123"), {}),
        (TornCreate, lambda s: s.create_new("new", b"0123"), {"new": b"01"}),
    ):
        inner = fresh()
        with pytest.raises(Crash):
            act(double(inner, 0))
        merged = {**fresh().files(), **expected}
        assert inner.files() == {path: data for path, data in merged.items() if data is not None}


def write_ten(storage) -> None:
    with storage.open_write("x") as stream:
        stream.write(b"0123456789")


def test_stream_left_by_an_exception_writes_and_counts_nothing():
    """It never reaches its close."""
    storage = StopBefore(fresh(), 0)
    with pytest.raises(KeyError), storage.open_write("a") as stream:
        stream.write(b"1")
        raise KeyError
    del stream
    assert storage.count == 0
    assert storage.inner.files() == fresh().files()


def test_only_chosen_verbs_count():
    """Reading too, if a test wants it."""
    storage = FailNth(fresh(), 1, verbs={"read"})
    storage.replace("a", b"")
    storage.read("a")
    with pytest.raises(StorageError):
        storage.read("a")


def test_recording_tells_calls_and_counts():
    """Paths in order; a bulk deletion is one call."""
    storage = RecordingStorage(fresh())
    storage.list("old")
    storage.delete_many(["old/1", "x"])
    storage.create_new("n", b"")
    assert storage.calls == [("list", "old"), ("delete_many", "old/1"), ("delete_many", "x"), ("create_new", "n")]
    assert storage.mutations == storage.calls[1:]
    assert storage.counts == {"list": 1, "delete_many": 1, "create_new": 1}
    twin = pickle.loads(pickle.dumps(storage))
    assert twin.calls == storage.calls
    storage.clear()
    assert (storage.calls, storage.counts, len(twin.calls)) == ([], Counter(), 4)


def test_slow_storage_waits_before_each_call():
    """With an injected clock nobody waits."""
    waited: list[float] = []
    storage = SlowStorage(fresh(), 0.5, sleep=waited.append)
    storage.read("x")
    storage.replace("x", b"")
    assert waited == [0.5, 0.5]


def test_memory_copies_are_independent_and_pickles_in_process_are_not():
    """An engine ships pickles within the process: its tasks must change the same table."""
    storage = fresh()
    twin, copy = pickle.loads(pickle.dumps(storage)), storage.copy()
    twin.delete("x")
    assert storage.size("x") is None
    assert copy.read("x") == b"x"
