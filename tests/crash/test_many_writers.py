"""Several writers on one table, in every order of their storage calls up to a bound (`support.simulation`)."""

from __future__ import annotations

import logging
import os
import random

import pyarrow as pa
import pytest

from hudi_py.errors import ConflictError, HudiError, NotFound, ServiceFailed
from hudi_py.local.rows import ArrowRows
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table_merge import Clause, Merge, Rows
from hudi_py.table_statements import rows_to_delete, rows_to_update
from hudi_py.timeline.properties_file import update_properties
from support import writes
from support.laws import SHARE
from support.many_writers import (
    ACTORS,
    METADATA,
    SERVICES,
    SEVERAL,
    contents,
    drawn_violations,
    rows,
    service,
    table,
    violations,
)
from support.rival_places import PLACES
from support.rival_processes import drawn, play
from support.simulation import SerialOrders
from support.taken_out import FINDING, taken_out


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    yield
    logging.getLogger("hudi_py").setLevel(logging.NOTSET)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "names"),
    [
        (9, ("upsert new", "insert_overwrite")),
        (6, ("update where", "upsert new")),
        (8, ("insert", "delete where")),
        (9, ("clean", "upsert")),
    ],
)
def test_any_order_ends_like_some_serial_one(version, names, record_property):
    """Rows as if the writers that succeeded had run one after another; nothing is left; the check is clean."""
    found = list(violations(version, names, 1))
    assert [each for each in found if each is not None] == []
    record_property("schedules", len(found))


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_rows_of_a_partition_that_was_dropped_are_shown_beside_its_clean(version):
    """The clean takes the dropped partition's folder; a write that began before may have rows for it."""
    assert not any(violations(version, ("drop", "insert_overwrite", "clean"), 1))


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_two_rollbacks_undo_two_commits_or_the_same_one(version):
    """Both may choose the newest; after two the table has no commit and no columns, which is no damage."""
    assert not any(violations(version, ("rollback", "rollback"), 1))


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_a_policy_that_comes_between_plan_and_deletion_leaves_no_plan(version):
    """The process that planned is refused, and Apache Hudi, which knows no policy, would carry the plan out."""
    assert [each for each in violations(version, ("clean", "policy"), 1) if each is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("names", [("rollback", "maintain"), ("rollback", "rollback")])
def test_a_rollback_that_two_carry_out_adds_the_log_files_that_its_record_names(names):
    """The slower one adds none: no metadata table would know it."""
    assert [each for each in violations(6, names, 1, "MERGE_ON_READ", **METADATA) if each is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_a_row_that_comes_back_is_in_the_index_whichever_write_was_requested_first(version):
    """An overwrite takes its key out of the index with a later time than that of the write which then finds no row."""
    found = violations(version, ("upsert", "insert_overwrite_table"), 1, **METADATA)
    assert [each for each in found if each is not None] == []


@pytest.mark.slow
@pytest.mark.parametrize("part", FINDING)
def test_the_simulation_finds_what_is_taken_out(part):
    """Without the lock, the conflict check, the look at one's own instant or the fence, a wrong order is found."""
    with taken_out(part):
        assert any(violations(9, FINDING[part], 1))


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_a_writer_that_is_taken_for_dead_leaves_nothing(version):
    """Whenever another process rolls it back, also while it writes its files."""
    assert not any(violations(version, ("upsert new", "rollback pending"), 1))


class Meanwhile:
    """A statement during which another process does something."""

    def __init__(self, statement, storage, other):
        self.statement, self.storage, self.other = statement, storage, other
        self.conditions, self.adds = statement.conditions, statement.adds

    def check(self, *given):
        self.statement.check(*given)

    def find(self, *given):
        found = self.statement.find(*given)
        if self.other is not None:
            other, self.other = self.other, None
            other(self.storage)
        return found


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize(
    ("where", "retries"),
    [
        ("region = 'eu' and ts = 4", 0),
        ("region in ('eu', 'ap') and ts = 4", 0),
        ("_hoodie_partition_path != 'us' and ts = 4", 0),
        ("(region = 'us' or ts = 4) and id = 'd'", 1),
        ("ts = 4", 1),
    ],
)
def test_a_statement_reads_the_partitions_of_its_condition(version, where, retries):
    """What others change elsewhere cannot meet it; what they change there may, and it is done again."""
    storage = table(version)
    statement = Meanwhile(
        rows_to_update({"ts": "ts + 100"}, where),
        storage,
        lambda storage: service(storage).write(rows(("b", "us", 20)), "UPSERT"),
    )
    assert service(storage).change(statement, "UPSERT").retries == retries
    assert contents(storage) == [("eu", "a", 1), ("eu", "d", 104), ("us", "b", 20)]


class Overtaken:
    """Rows during whose write another process writes, a number of times."""

    def __init__(self, storage, given, others):
        self.storage, self.rows, self.others = storage, rows(*given), list(others)
        self.schema = self.rows.schema

    def shaped(self, *_, **__):
        return self

    def checked(self, *_, **__):
        return self

    def write(self, job):
        results = self.rows.write(job)
        if self.others:
            self.others.pop(0)(self.storage)
        return results


class Preceded(Overtaken):
    """Rows before whose write another process writes: the write has begun, and has not looked at any file yet."""

    def write(self, job):
        if self.others:
            self.others.pop(0)(self.storage)
        return self.rows.write(job)


INDEXED = {**METADATA, "hoodie.index.type": "RECORD_INDEX"}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("other", ["insert", "bulk_insert", "insert_overwrite", "cluster"])
def test_a_record_index_that_is_newer_than_the_write_is_not_damaged(version, other):
    """It tells of the present: a key may lie in a file group that was not there when the write began."""
    storage = table(version, settings=INDEXED)
    given = [("a", "eu", 20), ("c", "eu", 20), ("n", "eu", 20)]
    preceded = Preceded(storage, given, [lambda storage: {**ACTORS, **SERVICES}[other](storage, **INDEXED)])
    result = service(storage, **INDEXED).write(preceded, "UPSERT")
    assert result.retries == 1, result.conflicts
    assert [row for row in contents(storage) if row[0] == "eu" and row[1] in "acn"] == sorted(
        (region, key, ts) for key, region, ts in given
    )
    assert not writes.open_table(storage).timeline.pending()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_write_that_loses_is_done_again(version):
    """On the newer state, as often as allowed; the result says how often, and nothing of the lost ones is left."""
    storage = table(version)
    overtaken = Overtaken(storage, [("n", "eu", 20)], [ACTORS["upsert new"]] * 3)
    result = service(storage).write(overtaken, "UPSERT")
    assert (result.retries, result.put_onto) == (3, ())
    assert len(result.conflicts) == 3
    assert all("another writer was faster" in each and "'eu'" in each for each in result.conflicts)
    assert contents(storage) == [("eu", "a", 1), ("eu", "d", 4), ("eu", "n", 20), ("us", "b", 6)]
    writes.assert_tidy(storage, "three lost attempts")


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_nobody_touched_is_put_onto_the_newer_state(version):
    """Its rows are written once."""
    storage = table(version)
    overtaken = Overtaken(storage, [("n", "ap", 20)], [ACTORS["upsert"]] * 3)
    result = service(storage).write(overtaken, "UPSERT")
    assert (result.retries, result.conflicts, len(result.put_onto)) == (0, (), 1)
    assert ("ap", "n", 20) in contents(storage)
    assert ("eu", "a", 5) in contents(storage)


DROP = {"hoodie.datasource.write.insert.drop.duplicates": True}
FAIL = {"hoodie.datasource.insert.dup.policy": "fail"}
LOOKING = {
    "drop beside drop": (("INSERT", DROP), ("INSERT", DROP)),
    "drop beside upsert": (("INSERT", DROP), ("UPSERT", {})),
    "upsert beside drop": (("UPSERT", {}), ("INSERT", DROP)),
    "drop beside fail": (("INSERT", DROP), ("INSERT", FAIL)),
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("case", LOOKING)
def test_a_key_that_both_looked_for_is_there_once(version, case):
    """An insert that drops or refuses known keys reads them; only SNAPSHOT does not look, as Apache Hudi."""
    (operation, settings), (other, of_other) = LOOKING[case]
    for level, count in (("WRITE_SERIALIZABLE", 1), ("SNAPSHOT", 2)):
        storage, more = table(version), {"hoodie_py.write.isolation": level}

        def overtake(storage, more=more):
            service(storage, **of_other, **more).write(rows(("n", "eu", 2)), other)

        overtaken = Overtaken(storage, [("n", "eu", 1)], [overtake])
        assert service(storage, **settings, **more).write(overtaken, operation).retries == 2 - count
        assert sum(row[:2] == ("eu", "n") for row in contents(storage)) == count


SOURCE = pa.table({"id": ["a", "n"], "region": ["eu", "eu"], "ts": [50, 50]})


@pytest.mark.parametrize("version", [6, 9])
def test_what_a_merge_left_out_because_of_a_row_that_is_gone(version):
    """Of the two orders of a merge of new rows and a deletion of both keys, each ends with both rows or with none."""
    storage = table(version)
    statement = Meanwhile(
        Merge(source=SOURCE, on=("id", "region"), clauses=(Clause(rows=Rows.NEW),)),
        storage,
        lambda storage: service(storage).change(rows_to_delete("id in ('a', 'n')"), "DELETE"),
    )
    assert service(storage).change(statement, "UPSERT").retries == 1
    assert contents(storage) == [("eu", "a", 50), ("eu", "d", 4), ("eu", "n", 50), ("us", "b", 1)]


NEW_IDS = Merge(
    source=pa.table({"id": ["k", "j"], "region": ["us", "us"], "ts": [50, 50]}),
    on=("id",),
    clauses=(Clause(rows=Rows.NEW),),
)


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("seer_first", [True, False])
def test_three_writes_end_like_some_serial_order(version, seer_first):
    """An upsert counts as earlier than an insert that it missed, unless a merge saw that insert, and not the upsert."""
    storage = table(version)
    given = rows(("k", "eu", 2), ("j", "eu", 2))
    others = [
        lambda storage: service(storage).write(rows(("k", "eu", 1)), "INSERT"),
        lambda storage: service(storage).change(NEW_IDS, "UPSERT"),
    ]
    upsert = [lambda storage: service(storage).write(given, "UPSERT")]
    expected = SerialOrders(storage.copy, [*others, *upsert], contents).of(range(3))
    if seer_first:
        others.reverse()
    overtaken = Overtaken(storage, [], [lambda storage: [each(storage) for each in others]])
    overtaken.rows, overtaken.schema = given, given.schema
    assert service(storage).write(overtaken, "UPSERT").retries == (not seer_first)
    assert contents(storage) in expected


MOVING = {
    "GLOBAL_BLOOM": {"hoodie.index.type": "GLOBAL_BLOOM"},
    "RECORD_INDEX": {**INDEXED, "hoodie.record.index.update.partition.path": True},
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("index", MOVING)
def test_a_row_that_stays_away_because_of_one_that_is_deleted_meanwhile(index, kind):
    """A row that loses against a stored one of another partition writes nothing, and still has read that one."""
    settings = MOVING[index]
    storage = table(9, kind, settings=settings)
    given = [("d", "us", 2), ("j", "us", 5)]
    works = [
        lambda storage: service(storage, **settings).write(rows(*given), "UPSERT"),
        lambda storage: service(storage, **settings).write(rows(("d", "eu", 0), ("j", "us", 0)), "DELETE"),
    ]
    expected = SerialOrders(storage.copy, works, contents).of(range(2))
    result = service(storage, **settings).write(Overtaken(storage, given, works[1:]), "UPSERT")
    assert result.retries == 1
    assert contents(storage) in expected


@pytest.mark.parametrize("version", [6, 9])
def test_a_new_column_is_not_hidden_by_a_write_that_was_requested_later(version):
    """Readers take the columns of the last requested write, whoever completed last."""
    storage = table(version)
    overtaken = Overtaken(storage, [], [ACTORS["insert"]])
    overtaken.rows = ArrowRows(pa.table({"id": ["z"], "region": ["ap"], "ts": [1], "more": ["x"]}))
    overtaken.schema = overtaken.rows.schema
    assert service(storage).write(overtaken, "UPSERT").retries == 1
    found = writes.open_table(storage).rows(where="id = 'z'", columns=["more"]).to_arrow()
    assert found.to_pylist() == [{"more": "x"}]


NEVER = {"hoodie.clean.failed.writes.policy": "NEVER"}


@pytest.mark.parametrize("version", [6, 9])
def test_a_writer_that_rolls_nothing_back_shows_that_it_runs(version):
    """Others have another policy, and take a write without a heartbeat for dead."""
    storage = table(version)
    overtaken = Overtaken(storage, [("n", "eu", 20)], [ACTORS["upsert"], SERVICES["clean"]])
    assert service(storage, **NEVER).write(overtaken, "INSERT").retries == 0
    assert not writes.open_table(storage).timeline.of([Action.ROLLBACK]).instants
    # Nor does one that rolls nothing back take the attempt of another for dead.
    begun = []

    def another(*_):
        begun.append(1)
        if len(begun) == 1:
            with pytest.raises(HudiError, match="its writer is at work"):
                writes.open_table(storage, **SEVERAL, **NEVER).cluster()

    opened = writes.open_table(storage, **SEVERAL, **NEVER)
    assert opened.run_clustering(opened.services.clustering(on_group=another))
    assert begun


def _properties(storage):
    update_properties(storage, {"hoodie.table.version.note": "upgraded"}, FixedClock(writes.START))


def _columns(storage):
    wider = pa.table({"id": ["z"], "region": ["ap"], "ts": [1], "more": ["x"]})
    service(storage).write(ArrowRows(wider), "UPSERT")


def _restore(storage):
    store = writes.open_table(storage).contents.store
    store.request(Action.RESTORE, store.new_time(), b"")


MEANWHILE = {
    "hoodie.table.version.note of the table was changed": _properties,
    "changed the columns of the table": _columns,
    "takes the table back": _restore,
    "another writer was faster": ACTORS["drop"],
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("reason", MEANWHILE)
def test_what_else_ends_a_write(version, reason):
    """Columns, properties (as by an upgrade) or partitions changed meanwhile, or a restore began."""
    storage = table(version)
    overtaken = Overtaken(storage, [("d", "eu", 20)], [MEANWHILE[reason]])
    settings = {"hoodie.write.num.retries.on.conflict.failures": 0}
    with pytest.raises(ConflictError, match=reason):
        service(storage, **settings).write(overtaken, "UPSERT")
    left = [each.action for each in writes.open_table(storage).timeline.pending()]
    assert left == [Action.RESTORE] * (MEANWHILE[reason] is _restore)


@pytest.mark.parametrize("version", [6, 9])
def test_a_switch_that_changes_no_file_ends_no_write(version):
    """Nor a new policy: a load of hours is not done again because somebody decided what is kept."""
    storage = table(version)
    overtaken = Overtaken(
        storage, [("n", "eu", 20)], [lambda storage: writes.open_table(storage, **SEVERAL).forbid_deletion()]
    )
    assert service(storage).write(overtaken, "UPSERT").retries == 0
    assert ("eu", "n", 20) in contents(storage)


@pytest.mark.parametrize("version", [6, 9])
def test_a_write_that_always_loses_says_so(version):
    """Exit code 4; the rows of the others are there, and nothing of the loser."""
    storage = table(version)
    settings = {"hoodie.write.num.retries.on.conflict.failures": 1}
    overtaken = Overtaken(storage, [("a", "eu", 20)], [ACTORS["upsert"]] * 2)
    with pytest.raises(ConflictError, match="tried 2 times") as caught:
        service(storage, **settings).write(overtaken, "UPSERT")
    assert caught.value.exit_code == 4
    assert ("eu", "a", 5) in contents(storage)
    writes.assert_tidy(storage, "all attempts lost")


@pytest.mark.parametrize("settings", [SEVERAL, {}])
def test_a_completed_write_is_never_repeated(settings):
    """Its rows are visible: if only its markers or the lock cannot be deleted, the error says so."""
    storage = table(9)
    before = len(writes.open_table(storage).timeline.commits.completed())
    failing = FailAfterCommit(storage, before)
    writer = service(failing, **{**dict.fromkeys(SEVERAL), **settings})
    with pytest.raises(ServiceFailed, match="do not write them again"):
        writer.write(rows(("n", "eu", 7)), "INSERT")
    assert contents(storage).count(("eu", "n", 7)) == 1


class FailAfterCommit(DelegatingStorage):
    """As soon as there is a further commit, nothing can be deleted any more: it is said to be missing."""

    def __init__(self, inner, commits):
        super().__init__(inner)
        self.commits = commits

    def _around(self, verb, paths, call):
        is_deletion = verb.startswith("delete") and any("/20" in path for path in paths)
        if is_deletion and len(writes.open_table(self.inner).timeline.commits.completed()) > self.commits:
            raise NotFound("simulated failure")
        return call()


@pytest.mark.slow
def test_a_write_to_the_log_of_a_later_slice_is_undone(record_property):
    """The other write was requested later and completed first, so the log file that is appended to has its time."""
    found = list(violations(6, ("delete", "insert_overwrite"), 1, "MERGE_ON_READ"))
    assert [each for each in found if each is not None] == []
    record_property("schedules", len(found))


@pytest.mark.slow
@pytest.mark.parametrize(("version", "names"), [(6, ("upsert new", "compact")), (9, ("compact", "update where"))])
def test_writers_of_log_files_beside_a_compaction(version, names, record_property):
    """Log files that the compaction has not read are in the slice after it, or their write is done again."""
    found = list(violations(version, names, 1, "MERGE_ON_READ"))
    assert [each for each in found if each is not None] == []
    record_property("schedules", len(found))


@pytest.mark.slow
@pytest.mark.daily
@pytest.mark.parametrize("seed", range(1, 21))
def test_processes_that_are_killed_and_stopped_lose_nothing(tmp_path, seed, record_property):
    """Acknowledged rows are there once, what failed is not there, what was cut off whole or not at all."""
    place = {5: "zookeeper", 10: "dynamodb", 15: "s3"}.get(seed, "file")
    with PLACES[place](tmp_path) as where:
        wrong, counts = play(tmp_path, seed, drawn(seed, workers=4, count=3), where)
    assert wrong == []
    record_property("steps", dict(counts))


ANYBODY = (*ACTORS, *SERVICES)


@pytest.mark.slow
@pytest.mark.parametrize("name", ANYBODY)
def test_any_two_end_like_some_serial_order(name):
    """
    Each action beside each other one, in an order of two random interruptions; `tools/long_run.py` plays all orders.

    Rows as if those that succeeded had run one after another; nothing is left, no file is of no instant.
    """
    chance = random.Random(f"{name} {os.environ.get('HUDI_TEST_DAY', '')}")
    others = ANYBODY[ANYBODY.index(name) :]
    for other in chance.sample(others, -(-len(others) // SHARE)):
        names = (name, other) if chance.random() < 0.5 else (other, name)
        version, kind = chance.choice((6, 8, 9)), chance.choice(("COPY_ON_WRITE", "MERGE_ON_READ"))
        settings = chance.choice(({}, METADATA, INDEXED))
        found = drawn_violations(version, names, chance, 1, kind, **settings)
        assert [each for each in found if each is not None] == [], settings
