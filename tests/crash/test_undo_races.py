"""Two services that undo or pin one commit at the same moment, without a lock, in every order of their steps."""

from __future__ import annotations

import pytest

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action
from hudi_py.storage.memory import MemoryStorage
from support import writes
from support.history_tables import open_in
from support.tables import TableBuilder, at
from support.turns import interleavings

LATE = (ConfigError, ConflictError, RefusedError)


def on_timeline(verb: str, path: str) -> bool:
    """Calls by which one service can see or hinder another; the rest is in nobody's way."""
    return path in (".hoodie", ".hoodie/timeline") or (path.rpartition("/")[2][:1].isdigit() and ".hoodie" in path)


def looks_or_tells(verb: str, path: str) -> bool:
    """Of those the calls by which one learns of the other, where there are many."""
    return verb in ("list", "create_new") and on_timeline(verb, path)


def fresh(layout: int) -> MemoryStorage:
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {"eu": ["a"]})
    return builder.storage


UNDOING = {
    "rollback": lambda storage: open_in(storage).rollback(at(2)),
    "restore": lambda storage: open_in(storage).restore(at(1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("starts", ["savepoint", "undoing"])
@pytest.mark.parametrize("undoing", UNDOING)
@pytest.mark.parametrize("layout", [1, 2])
def test_commit_is_pinned_or_undone_never_both(layout, undoing, starts, record_property):
    """Whoever loses says so and leaves nothing behind; a savepoint that is there can be gone back to."""

    def pin(storage):
        return open_in(storage).create_savepoint(at(2))

    order = (pin, UNDOING[undoing]) if starts == "savepoint" else (UNDOING[undoing], pin)
    seen, runs = set(), 0
    for what, storage, one, other in interleavings(lambda: fresh(layout), *order, on_timeline):
        runs += 1
        pinned, undone = (one, other) if starts == "savepoint" else (other, one)
        timeline = open_in(storage).timeline
        is_pinned, is_undone = pinned.error is None, undone.error is None
        assert not (is_pinned and is_undone), what
        for each in (one, other):
            assert each.error is None or isinstance(each.error, LATE), (what, repr(each.error))
        savepoints = [i.requested_time for i in timeline.of((Action.SAVEPOINT,))]
        assert savepoints == ([at(1), at(2)] if is_pinned else [at(1)]), what
        assert [i.requested_time for i in timeline.writes] == ([at(1)] if is_undone else [at(1), at(2)]), what
        assert not timeline.pending(), what
        for instant in timeline.completed(Action.SAVEPOINT):
            held = open_in(storage).contents.savepoint(instant).files
            assert {join_path(path, name) for path, names in held.items() for name in names} <= set(storage.files()), (
                what
            )
        seen.add((is_pinned, is_undone))
    assert {(True, False), (False, True)} <= seen
    record_property("interleavings", runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "policy", "starts"), [(6, "LAZY", "write"), (9, "EAGER", "write"), (9, "LAZY", "rollback")]
)
def test_write_builds_on_a_commit_or_that_is_undone_never_both(version, policy, starts, record_property):
    """A write merges into the newest file while another process rolls its commit back: no undone row comes back."""
    settings = {"hoodie.clean.failed.writes.policy": policy}
    table = writes.create_table(version)
    writes.upsert(table, writes.OLD)
    writes.upsert(table, [{"id": "a", "region": "eu", "ts": 2}])
    last = writes.open_table(table).timeline.commits.completed()[-1].requested_time

    def write(storage):
        writes.upsert(storage, [{"id": "d", "region": "eu", "ts": 5}], **settings)

    def roll_back(storage):
        writes.open_table(storage, **settings).rollback(last)

    order = (write, roll_back) if starts == "write" else (roll_back, write)
    seen, runs = set(), 0
    for what, storage, one, other in interleavings(table.copy, *order, looks_or_tells):
        runs += 1
        writing, undoing = (one, other) if starts == "write" else (other, one)
        for each in (one, other):  # who was too late is told to try again
            assert each.error is None or isinstance(each.error, LATE), (what, repr(each.error))
        is_written = writing.error is None
        is_there = any(i.requested_time == last for i in writes.open_table(storage).timeline.commits.completed())
        assert is_there == (undoing.error is not None), (what, repr(undoing.error))
        expected = {"a": 2 if is_there else 1, "b": 1} | ({"d": 5} if is_written else {})
        assert {row["id"]: row["ts"] for row in writes.rows_of(storage)} == expected, what
        seen.add((is_written, is_there))
    assert {(True, True), (True, False)} <= seen
    record_property("interleavings", runs)


@pytest.mark.slow
@pytest.mark.parametrize("starts", ["archival", "savepoint"])
@pytest.mark.parametrize("layout", [1, 2])
def test_a_savepointed_commit_stays_active_beside_archival(layout, starts, record_property):
    """Or the savepoint is refused: nobody could restore to it."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"eu": ["a"]})

    def archive(storage):
        open_in(storage).archive(keep_min_commits=1, keep_max_commits=2)

    def pin(storage):
        open_in(storage).create_savepoint(at(3))

    def counts(verb: str, path: str) -> bool:
        return on_timeline(verb, path) or "/archived" in path or "/history" in path

    order = (archive, pin) if starts == "archival" else (pin, archive)
    seen, runs = set(), 0
    for what, storage, one, other in interleavings(builder.storage.copy, *order, counts):
        runs += 1
        archiving, pinning = (one, other) if starts == "archival" else (other, one)
        timeline = open_in(storage).timeline
        is_pinned = pinning.error is None
        assert pinning.error is None or isinstance(pinning.error, LATE), (what, repr(pinning.error))
        assert archiving.error is None or isinstance(archiving.error, LATE), (what, repr(archiving.error))
        assert is_pinned == (timeline.find(at(3), Action.SAVEPOINT) is not None), what
        assert not is_pinned or timeline.find(at(3), Action.COMMIT) is not None, what
        seen.add(is_pinned)
    assert seen == {True, False}
    record_property("interleavings", runs)
