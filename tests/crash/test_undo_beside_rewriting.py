"""A commit is rolled back or gone behind at the moment at which its rows are rewritten: they never come back."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, ConflictError, RefusedError
from support import writes
from support.turns import interleavings

LATE = (ConfigError, ConflictError, RefusedError)
MERGE_ON_READ = {"hoodie.table.type": "MERGE_ON_READ"}
SETTINGS = {
    **writes.LAZY,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.log.compaction.blocks.threshold": 2,
}
REWRITING = {
    "cluster": ({}, lambda table: table.cluster()),
    "cluster files of logs": (MERGE_ON_READ, lambda table: table.cluster()),
    "compact": (MERGE_ON_READ, lambda table: table.compact()),
    "compact logs": (MERGE_ON_READ, lambda table: table.compact_logs()),
}
UNDOING = ("rollback", "restore")


def looks_or_tells(verb: str, path: str) -> bool:
    """Calls by which one learns of the other."""
    is_told = path in (".hoodie", ".hoodie/timeline") or path.rpartition("/")[2][:1].isdigit()
    return verb in ("list", "create_new") and ".hoodie" in path and is_told


def fresh(version, more):
    """Two rows, of which one was changed twice."""
    storage = writes.create_table(version, **more)
    writes.upsert(storage, writes.OLD)
    for ts in (2, 3):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": ts}])
    return storage


@pytest.mark.slow
@pytest.mark.parametrize("starts", ["rewriting", "undoing"])
@pytest.mark.parametrize("undoing", UNDOING)
@pytest.mark.parametrize("name", REWRITING)
@pytest.mark.parametrize("version", [6, 9])
def test_rows_are_rewritten_or_undone_never_both(version, name, undoing, starts, record_property):
    """Whoever is too late says so; what was undone is in no file that is read."""
    more, rewrite = REWRITING[name]
    table = fresh(version, more)
    commits = writes.open_table(table).timeline.commits.completed()
    before, last = commits[-2].requested_time, commits[-1].requested_time
    if undoing == "restore":
        writes.open_table(table).create_savepoint(before)

    def rewriting(storage):
        rewrite(writes.open_table(storage, **SETTINGS))

    def undo(storage):
        opened = writes.open_table(storage, **SETTINGS)
        opened.rollback(last) if undoing == "rollback" else opened.restore(before)

    order = (rewriting, undo) if starts == "rewriting" else (undo, rewriting)
    seen, runs = set(), 0
    for what, storage, one, other in interleavings(table.copy, *order, looks_or_tells):
        runs += 1
        for each in (one, other):
            assert each.error is None or isinstance(each.error, LATE), (what, repr(each.error))
        undone = (other if starts == "rewriting" else one).error is None
        assert ts_of(storage) == {"a": 2 if undone else 3, "b": 1}, what
        opened = writes.open_table(storage)
        if undone:
            opened.recover()  # a plan that was left
            opened.rollback_failed_writes()
            assert ts_of(storage) == {"a": 2, "b": 1}, what
        assert not [each for each in writes.open_table(storage).check() if each.severity.name == "ERROR"], what
        seen.add(undone)
    assert True in seen
    record_property("interleavings", runs)


def ts_of(storage):
    return {row["id"]: row["ts"] for row in writes.merged_rows_of(storage)}


STATEMENTS = {
    "update": lambda table: table.update({"ts": "ts + 10"}, where="id = 'a'"),
    "delete": lambda table: table.delete(where="ts = 3"),
    "overwrite": lambda table: table.insert_overwrite(row("eu", 20)),
    "drop": lambda table: table.drop_partitions(["eu"]),
}


def row(region, ts):
    return pa.Table.from_pylist([{"id": "a", "region": region, "ts": ts}], writes.SCHEMA)


def after(name, ts):
    """What a statement leaves of the row that was changed to *ts*."""
    return {"update": ts + 10, "delete": None if ts == 3 else ts, "overwrite": 20, "drop": None}[name]


@pytest.mark.slow
@pytest.mark.parametrize("starts", ["statement", "rollback"])
@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize(("version", "more"), [(6, {}), (9, {}), (9, MERGE_ON_READ)])
def test_a_statement_reads_what_stays_or_is_told(version, more, name, starts):
    """Rows that were undone are neither changed and kept, nor do they decide what else is deleted."""
    table = fresh(version, more)
    last = writes.open_table(table).timeline.commits.completed()[-1].requested_time

    def change(storage):
        STATEMENTS[name](writes.open_table(storage, **SETTINGS, **writes.ALONE))

    def undo(storage):
        writes.open_table(storage, **SETTINGS).rollback(last)

    order, seen = (change, undo) if starts == "statement" else (undo, change), set()
    for what, storage, one, other in interleavings(table.copy, *order, looks_or_tells):
        for each in (one, other):
            assert each.error is None or isinstance(each.error, LATE), (what, repr(each.error))
        changing, undoing = (one, other) if starts == "statement" else (other, one)
        done = changing.error is None, undoing.error is None
        ts = 2 if done[1] else 3
        expected = {"a": after(name, ts) if done[0] else ts, "b": 1}
        assert ts_of(storage) == {key: value for key, value in expected.items() if value is not None}, (what, done)
        seen.add(done)
    assert {(True, False)} <= seen
    assert any(undone for _, undone in seen)
