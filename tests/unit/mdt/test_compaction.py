"""Compaction and creation change no listing, whatever interrupts them."""

from __future__ import annotations

import pytest

from hudi_py.errors import RefusedError
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.compaction import is_due
from hudi_py.mdt.create import create_metadata_table
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import record_rollback, write_delta_commit
from hudi_py.model.instant import Action
from hudi_py.model.records import CompactionPlan
from hudi_py.txn.commit import Prepared
from support.crash_points import interruptions
from support.metadata_tables import (
    LATER,
    VERSIONS,
    begin,
    compact_metadata_table,
    config_of,
    end,
    listing,
    on_disk,
    partitions,
    store_of,
    table_of,
    timeline_of,
    update_properties,
    vanish,
)

ROUNDS = 4
TIMES = [f"2099010100000{number:04d}" for number in range(20)]


def compacted(storage, least=1):
    return compact_metadata_table(storage, timeline_of(storage), least)


def commit(storage, number, *, complete=True):
    """One file more, and the one of the commit before gone."""
    time = TIMES[number]
    begin(storage, Action.COMMIT, time)
    gone = {"r0": [f"f-0_1-1-1_{TIMES[number - 1]}.parquet"]} if number else {}
    changes = ListingChanges(added={"r0": {f"f-0_1-1-1_{time}.parquet": 9}}, deleted=gone, written_partitions=("r0",))
    write_delta_commit(MetadataTable(storage), timeline_of(storage), time, changes)
    if complete:
        end(storage, Action.COMMIT, time)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.slow
def test_compaction_survives_every_interruption(version):
    """Same listing at each moment; afterwards one base file without logs; commits go on."""
    fresh = table_of(f"cow_cleaned-{version}")
    for number in range(ROUNDS):
        commit(fresh, number)
    wanted = listing(fresh)
    for case in interruptions(fresh.copy):
        case.run(compacted)
        assert wanted == listing(case.storage), case
        later = case.storage.copy()
        commit(later, ROUNDS)  # a commit beside the interrupted compaction
        expected = listing(later)
        compacted(case.storage)
        assert wanted == listing(case.storage), case
        table = MetadataTable(case.storage)
        (file_slice,) = table.slices(table.store.load())
        assert () == file_slice.logs, case
        assert compacted(case.storage) is None
        for storage in (case.storage, later):
            if storage is case.storage:
                commit(storage, ROUNDS)
            compacted(storage)
            assert expected == listing(storage), case


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_waits_for_actions_that_may_still_fail(version):
    """Records of a pending commit stay in the logs, where they can be taken back."""
    storage = table_of(f"cow_cleaned-{version}")
    before = listing(storage)
    commit(storage, 0, complete=False)
    assert compacted(storage) is None
    begin(storage, Action.ROLLBACK, LATER)
    record_rollback(MetadataTable(storage), timeline_of(storage), TIMES[0], LATER, ListingChanges())
    assert before == listing(storage)
    vanish(storage, Action.COMMIT, TIMES[0])
    end(storage, Action.ROLLBACK, LATER)
    assert before == listing(storage)
    assert compacted(storage).is_completed
    assert before == listing(storage)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("action", [Action.COMMIT, Action.CLEAN, Action.ROLLBACK])
@pytest.mark.parametrize("number", [0, ROUNDS], ids=["older", "newer"])
def test_compaction_waits_for_every_pending_action(version, action, number):
    """
    Hudi 0.15.0 and 1.0.2 roll back nothing that is older than the last compaction; and its records come later.

    0.15.0 itself waits for what is not newer than the last delta commit (``validateCompactionScheduling``).
    """
    storage = table_of(f"cow_cleaned-{version}")
    for each in range(1, ROUNDS):
        commit(storage, each)
    begin(storage, action, TIMES[number])
    files = storage.files()
    assert compacted(storage) is None
    assert files == storage.files()
    end(storage, action, TIMES[number])
    assert compacted(storage).is_completed


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("is_newest", [False, True])
def test_what_a_dead_action_left_is_taken_back_first(version, is_newest):
    """Hudi rolls back pending delta commits too; one that is younger than all that is known may be at work."""
    fresh = table_of(f"cow_cleaned-{version}")
    if not is_newest:
        commit(fresh, 1)
    before, seen = listing(fresh), 0
    for case in interruptions(fresh.copy):
        case.run(lambda storage: commit(storage, 0, complete=False))
        vanish(case.storage, Action.COMMIT, TIMES[0])
        dead = timeline(case.storage).pending(Action.DELTA_COMMIT)
        if dead:
            seen += 1
            assert (compacted(case.storage) is None) is is_newest, case
            assert timeline(case.storage).pending(Action.DELTA_COMMIT) == (dead if is_newest else ()), case
            assert before == listing(case.storage), case
    assert seen


@pytest.mark.parametrize("version", VERSIONS)
def test_a_compaction_that_was_begun_waits_too(version):
    """Its plan may name log files of an action that has been taken back to inflight since."""
    fresh = table_of(f"cow_cleaned-{version}")
    commit(fresh, 0)
    waiting = 0
    for case in interruptions(fresh.copy):
        case.run(compacted)
        table = MetadataTable(case.storage)
        begin(case.storage, Action.COMMIT, TIMES[1])
        if table.store.load().pending(Action.COMPACTION):
            waiting += 1
            assert compacted(case.storage) is None, case
            assert table.store.load().pending(Action.COMPACTION), case
    assert waiting


@pytest.mark.parametrize("version", VERSIONS)
def test_being_due_is_told_by_the_timeline(version):
    """Delta commits since the last compaction are counted; one that was begun is due whatever their number."""
    storage = table_of(f"cow_cleaned-{version}")
    compacted(storage)
    for number in range(ROUNDS):
        assert [is_due(timeline(storage), least) for least in (number, number + 1)] == [True, False]
        commit(storage, number)
    fresh = storage.copy
    for case in interruptions(fresh):
        case.run(compacted)
        table = MetadataTable(case.storage)
        begun = bool(table.store.load().pending(Action.COMPACTION))
        assert is_due(table.store.load(), 100) is begun, case


def timeline(storage):
    return MetadataTable(storage).store.load()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_partition_that_base_file_and_logs_list_goes_when_a_clean_removes_it(version):
    """One deletion would only cancel what the log files say; whatever interrupts it, and through compactions."""
    original = table_of(f"cow_cleaned-{version}")
    commit(original, 0)
    assert compacted(original).is_completed
    commit(original, 1)
    before = listing(original)
    begin(original, Action.CLEAN, TIMES[2])
    changes = ListingChanges(deleted={"r0": list(before["r0"])}, deleted_partitions=("r0",))

    def record(storage):
        return write_delta_commit(MetadataTable(storage), timeline_of(storage), TIMES[2], changes)

    for case in interruptions(original.copy):
        case.run(record)
        assert before == listing(case.storage), case
        record(case.storage)
        record(case.storage)
        end(case.storage, Action.CLEAN, TIMES[2])
        assert before.keys() - {"r0"} == set(partitions(case.storage)) == listing(case.storage).keys(), case
    later = case.storage.copy()
    assert compacted(later).is_completed
    for storage in (case.storage, later):  # the partition comes back with its next commit
        commit(storage, 3)
        assert set(before) == set(partitions(storage)) == listing(storage).keys()


def test_compaction_is_not_due_before_its_time():
    """As many delta commits as Hudi waits for."""
    storage = table_of("cow_cleaned-1.1.1")
    files = storage.files()
    assert compacted(storage, 10) is None
    assert files == storage.files()


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_a_metadata_table_is_made_whatever_interrupts_it(version):
    """The listing given is the listing read; before the last step the table has none."""
    name = f"cow_nomdt-{version}"
    wanted = on_disk(name)

    def create(storage):
        config = config_of(storage)
        create_metadata_table(storage, config, timeline_of(storage), wanted, update_properties(storage))

    for case in interruptions(lambda: table_of(name)):
        case.run(create)
        if not config_of(case.storage).has_metadata_table:
            create(case.storage)
        assert ("files",) == config_of(case.storage).metadata_partitions
        assert wanted == listing(case.storage), case
        assert tuple(sorted(wanted)) == partitions(case.storage)
    commit(case.storage, 0)
    assert {"f-0_1-1-1_" + TIMES[0] + ".parquet"} == listing(case.storage)["r0"].keys() - wanted["r0"].keys()


def test_a_metadata_table_is_not_made_beside_unfinished_actions():
    """Nor where there is one."""
    storage = table_of("cow_nomdt-1.1.1")
    begin(storage, Action.COMMIT, LATER)
    for each in (storage, table_of("cow_cleaned-1.1.1")):
        files = each.files()
        with pytest.raises(RefusedError):
            create_metadata_table(each, config_of(each), store_of(each).load(), {}, update_properties(each))
        assert files == each.files()


@pytest.mark.parametrize("version", [each for each in VERSIONS if each != "0.15.0"])
def test_no_action_gets_the_time_of_an_interrupted_compaction(version):
    """A completed delta commit of that time would make the base files of the compaction look completed."""
    fresh = table_of(f"cow_cleaned-{version}")
    for number in range(ROUNDS):
        commit(fresh, number)
    taken = 0
    for case in interruptions(fresh.copy):
        case.run(compacted)
        pending = MetadataTable(case.storage).store.load().pending(Action.COMPACTION)
        taken += len(pending)
        time = store_of(case.storage).new_time()
        assert all(time > each.requested_time for each in pending), case
    assert taken


@pytest.mark.parametrize("version", [each for each in VERSIONS if each != "0.15.0"])
def test_a_base_file_is_not_completed_by_a_delta_commit_of_its_time(version):
    """As earlier releases of hudi_py left it: the listing is that of the slice below."""
    storage = table_of(f"cow_cleaned-{version}")
    for number in range(ROUNDS):
        commit(storage, number)
    time = str(int(TIMES[ROUNDS]) + 1)
    table = MetadataTable(storage)
    (before,) = table.slices(table.store.load())
    Prepared(table.store, Action.COMPACTION, time).request(CompactionPlan(operations=(), extra_metadata={}, version=1))
    storage.create_new(f".hoodie/metadata/files/{before.file_id}_0-0-0_{time}.hfile", b"half")
    begin(storage, Action.COMMIT, time)
    write_delta_commit(table, timeline_of(storage), time, ListingChanges(written_partitions=("r0",)))
    (after,) = table.slices(table.store.load())
    assert after.base == before.base
