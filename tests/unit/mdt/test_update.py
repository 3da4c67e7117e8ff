"""Recording actions: visible at the right moment, once, whatever interrupts it."""

from __future__ import annotations

import pytest

from hudi_py.errors import RefusedError
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.removal import disable_unmaintained_partitions, drop_metadata_table, partition_folders
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import record_rollback, write_delta_commit
from hudi_py.model.instant import Action, Instant, State
from hudi_py.testing import INTERRUPTION_MODES
from support.crash_points import interruptions
from support.metadata_tables import (
    LATER,
    LATEST,
    PROPERTIES,
    VERSIONS,
    begin,
    config_of,
    end,
    listing,
    partitions,
    store_of,
    table_of,
    timeline_of,
    update_properties,
    vanish,
)

NEW = "f-0_1-1-1_20991231235959000.parquet"
MDT = ".hoodie/metadata/"


def record(storage, changes, time=LATER):
    return write_delta_commit(MetadataTable(storage), timeline_of(storage), time, changes)


def rolled_back(storage, changes, time=LATER, rollback=LATEST):
    return record_rollback(MetadataTable(storage), timeline_of(storage), time, rollback, changes)


def oldest_file(storage) -> tuple[str, str]:
    path, files = min(listing(storage).items(), key=lambda item: item[0])
    return path, min(files)


def commit_and_clean(storage) -> ListingChanges:
    """A file in a new partition, one in an old one, and the oldest file gone."""
    path, old = oldest_file(storage)
    added = {path: {NEW: 11}, "new": {NEW: 22}}
    return ListingChanges(added=added, deleted={path: [old]}, written_partitions=(path, "new"))


def after(storage, changes: ListingChanges):
    found = listing(storage)
    for path, names in changes.deleted.items():
        found[path] = {name: size for name, size in found[path].items() if name not in names}
    for path, files in changes.added.items():
        found[path] = found.get(path, {}) | dict(files)
    return found


def fresh(version: str, table: str = "cow_cleaned"):
    storage = table_of(f"{table}-{version}")
    begin(storage, Action.COMMIT, LATER)
    return storage


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_recording_survives_every_interruption(version):
    """Interrupted at any mutation and run again: invisible before the action completes, right and once after it."""
    storage = fresh(version)
    changes, before = commit_and_clean(storage), listing(storage)
    wanted = after(storage, changes)
    for case in interruptions(lambda: fresh(version)):
        case.run(lambda faulty: record(faulty, changes))
        assert before == listing(case.storage), case
        record(case.storage, changes)
        once = case.storage.files()
        assert record(case.storage, changes).is_completed
        assert once == case.storage.files(), case
        assert before == listing(case.storage), case
        end(case.storage, Action.COMMIT, LATER)
        assert wanted == listing(case.storage), case
        assert "new" in partitions(case.storage)


@pytest.mark.parametrize("version", VERSIONS)
def test_another_attempt_with_other_changes_replaces_the_first(version):
    """A rollback that is planned anew records what it really did, and nothing of the attempt before."""
    other = ListingChanges(added={"new": {NEW: 5}}, written_partitions=("new",))
    wanted = after(fresh(version), other)
    first = commit_and_clean(fresh(version))
    for case in interruptions(lambda: fresh(version), INTERRUPTION_MODES[:1]):
        case.run(lambda faulty: record(faulty, first))
        for repeat in interruptions(case.storage.copy, INTERRUPTION_MODES[:1]):
            repeat.run(lambda faulty: record(faulty, other))
            record(repeat.storage, other)
            end(repeat.storage, Action.COMMIT, LATER)
            assert wanted == listing(repeat.storage), (case, repeat)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_taking_back_survives_every_interruption(version):
    """A commit completed in the metadata table and rolled back leaves no trace there."""

    def failed():
        storage = fresh(version)
        record(storage, changes)
        begin(storage, Action.ROLLBACK, LATEST)
        return storage

    changes = commit_and_clean(fresh(version))
    undone = ListingChanges(deleted={path: list(files) for path, files in changes.added.items()})
    before = listing(fresh(version))
    untouched = metadata_files_of(table_of(f"cow_cleaned-{version}"))
    for case in interruptions(failed):
        case.run(lambda faulty: rolled_back(faulty, undone))
        assert before == listing(case.storage), case
        for _ in range(2):
            rolled_back(case.storage, undone)
        vanish(case.storage, Action.COMMIT, LATER)
        assert before == listing(case.storage), case
        end(case.storage, Action.ROLLBACK, LATEST)
        assert before == listing(case.storage), case
        assert untouched == metadata_files_of(case.storage), case


def metadata_files_of(storage):
    return {path for path in storage.files() if path.startswith(MDT) and "/.aux/" not in path}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_commit_that_compaction_took_in_is_taken_back_by_deletions(version):
    """Restoring to before a compaction of the metadata table: the files go by records of the rollback."""
    storage = table_of(f"cow_cleaned-{version}")
    table = MetadataTable(storage)
    store = store_of(storage)
    base = table.slices(table.store.load())[0].base
    known = {i.requested_time: i.completion_time or i.requested_time for i in table.store.load()}
    old = [i for i in store.load().completed("commit") if known[i.requested_time] < base.instant_time][-1]
    present = {p: [f for f in files if old.requested_time in f] for p, files in listing(storage).items()}
    undone = ListingChanges(deleted={path: names for path, names in present.items() if names})
    assert undone.deleted
    wanted = after(storage, undone)
    store.remove(old)
    begin(storage, Action.ROLLBACK, LATEST)

    for case in interruptions(storage.copy):
        case.run(lambda faulty: rolled_back(faulty, undone, old.requested_time))
        assert rolled_back(case.storage, undone, old.requested_time).is_completed
        vanish(case.storage, Action.COMMIT, old.requested_time)
        end(case.storage, Action.ROLLBACK, LATEST)
        assert wanted == listing(case.storage), case


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rollback_of_what_the_metadata_table_never_saw_records_nothing(version):
    """Failed before it came so far."""
    storage = fresh(version)
    files = storage.files()
    assert rolled_back(storage, ListingChanges(deleted={"r0": [NEW]})) is None
    assert files == storage.files()


@pytest.mark.parametrize("version", VERSIONS)
def test_log_files_that_a_rollback_wrote_are_listed(version):
    """Layout 1: rolling back a delta commit adds log files."""
    storage = fresh(version)
    begin(storage, Action.ROLLBACK, LATEST)
    changes = ListingChanges(added={"r0": {".f-0_1.log.2_1-0-1": 9}}, deleted={"r0": [NEW]})
    wanted = after(storage, ListingChanges(added=changes.added))
    rolled_back(storage, changes)
    end(storage, Action.ROLLBACK, LATEST)
    assert wanted == listing(storage)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_deleted_twice_stays_deleted(version):
    """Two cleans of the same file: the second record would revive it, so it is left out."""
    storage = fresh(version)
    table = MetadataTable(storage)
    base = table.slices(table.store.load())[0].base.instant_time
    path, old = next(
        (p, f) for p, files in sorted(listing(storage).items()) for f in files if f.rpartition("_")[2][:17] < base
    )
    changes = ListingChanges(deleted={path: [old]})
    wanted = after(storage, changes)
    record(storage, changes)
    end(storage, Action.COMMIT, LATER)
    begin(storage, Action.CLEAN, LATEST)
    record(storage, changes, LATEST)
    end(storage, Action.CLEAN, LATEST)
    assert wanted == listing(storage)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_completed_instant_gets_no_records(version):
    """Readers follow the metadata table; what they read is not changed behind them."""
    storage = fresh(version)
    end(storage, Action.COMMIT, LATER)
    files = storage.files()
    with pytest.raises(RefusedError):
        record(storage, ListingChanges(added={"r0": {NEW: 1}}))
    assert files == storage.files()


@pytest.mark.parametrize("version", VERSIONS)
def test_an_action_without_changes_is_a_delta_commit_without_log_file(version):
    """As Hudi records the rollback of a write that left nothing."""
    storage = fresh(version)
    before = listing(storage)
    assert record(storage, ListingChanges()).is_completed
    end(storage, Action.COMMIT, LATER)
    assert before == listing(storage)
    assert not [path for path in storage.files() if path.startswith(f"{MDT}files/") and LATER in path]


def test_log_files_are_named_as_hudi_names_them():
    """Layout 1 counts versions within the slice; layout 2 carries the instant."""
    named = {}
    for version in VERSIONS:
        storage = fresh(version)
        known = set(storage.files())
        record(storage, ListingChanges(added={"r0": {NEW: 1}}))
        (named[version],) = (p for p in set(storage.files()) - known if p.startswith(f"{MDT}files/"))
    logs = [p for p in table_of("cow_cleaned-0.15.0").files() if p.startswith(f"{MDT}files/.files-0000-0_")]
    base = max(path.rpartition("_2")[2] for path in (p.partition(".log.")[0] for p in logs) if "_2" in path)
    last = max(int(p.partition(".log.")[2].partition("_")[0]) for p in logs if f"_2{base}.log" in p)
    assert f"{MDT}files/.files-0000-0_2{base}.log.{last + 1}_0-0-0" == named["0.15.0"]
    assert f"{MDT}files/.files-0000-0_{LATER}.log.1_0-0-0" == named["1.0.2"] == named["1.1.1"]


# --- switching off ----------------------------------------------------------------------------------------------------
def with_partitions(version: str, names: str):
    storage = table_of(f"cow_partitioned-{version}")
    update_properties(storage)({"hoodie.table.metadata.partitions": names})
    for name in names.split(","):
        if name != "files":
            storage.create_new(f"{MDT}{name}/x_0_1.hfile", b"stale")
    return storage


def drop_unmaintained(storage, update) -> bool:
    return disable_unmaintained_partitions(storage, config_of(storage), update, folders=partition_folders(storage))


@pytest.mark.parametrize("version", VERSIONS)
def test_switching_off_statistics_is_safe_at_every_interruption(version):
    """Never a property without its folder; afterwards only `files` is left, and files is untouched."""
    fresh_table = lambda: with_partitions(version, "column_stats,files,partition_stats")
    wanted = listing(fresh_table())
    for case in interruptions(fresh_table):
        case.run(lambda faulty: drop_unmaintained(faulty, update_properties(faulty)))
        for name in config_of(case.storage).metadata_partitions:
            assert any(path.startswith(f"{MDT}{name}/") for path in case.storage.files()), case
        storage = case.storage
        drop_unmaintained(storage, update_properties(storage))
        assert ("files",) == config_of(storage).metadata_partitions
        assert not [path for path in storage.files() if "stats/" in path], case
        assert wanted == listing(storage)


@pytest.mark.parametrize("index", ["record_index", "secondary_index_x", "expr_index_x"])
def test_indexes_that_are_not_kept_are_dropped(index, caplog):
    """With a warning that names each."""
    caplog.set_level("WARNING")
    storage = with_partitions("1.1.1", f"column_stats,files,{index}")
    assert drop_unmaintained(storage, update_properties(storage))
    assert config_of(storage).metadata_partitions == ("files",)
    assert not [path for path in storage.files() if f"/{index}/" in path]
    assert index in caplog.text


@pytest.mark.parametrize(
    "properties",
    [
        {"hoodie.table.metadata.partitions": "column_stats,files,something_new"},
        {
            "hoodie.table.metadata.partitions": "files",
            "hoodie.table.metadata.partitions.inflight": "secondary_index_x",
        },
    ],
)
def test_indexes_that_are_unknown_or_being_made_refuse_a_write(properties):
    """Before anything is changed, with the option that drops them in the message."""
    storage = with_partitions("1.1.1", "files")
    update_properties(storage)(properties)
    files = storage.files()
    with pytest.raises(RefusedError, match=r"hoodie\.metadata\.enable=false"):
        drop_unmaintained(storage, update_properties(storage))
    assert files == storage.files()


@pytest.mark.parametrize("version", VERSIONS)
def test_dropping_the_metadata_table_is_safe_at_every_interruption(version):
    """Never a property without a metadata table."""
    for case in interruptions(lambda: table_of(f"cow_partitioned-{version}")):
        case.run(lambda faulty: drop_metadata_table(faulty, config_of(faulty), update_properties(faulty)))
        storage = case.storage
        if config_of(storage).has_metadata_table:
            assert listing(storage)
        drop_metadata_table(storage, config_of(storage), update_properties(storage))
        assert not config_of(storage).has_metadata_table
        assert b"metadata.partitions" not in storage.read(PROPERTIES)
        assert not [path for path in storage.files() if path.startswith(MDT)], case


def test_a_metadata_table_that_never_became_ready_is_dropped():
    """Named as being built, not as built: nobody reads it, and nobody keeps it in step."""
    storage = table_of("cow_partitioned-1.1.1")
    update = update_properties(storage)
    update({"hoodie.table.metadata.partitions": "", "hoodie.table.metadata.partitions.inflight": "files"})
    assert drop_unmaintained(storage, update)
    assert not config_of(storage).has_metadata_table
    assert not [path for path in storage.files() if path.startswith(MDT)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_attempt_of_real_hudi_is_continued(version):
    """A clean of Hudi's that died in the metadata table is resumed by us under the same instant."""
    storage = fresh(version)
    MetadataTable(storage).store.request(Action.DELTA_COMMIT, LATER, b"")
    changes = commit_and_clean(storage)
    wanted = after(storage, changes)
    record(storage, changes)
    end(storage, Action.COMMIT, LATER)
    assert wanted == listing(storage)
    assert Instant(LATER, Action.DELTA_COMMIT, State.COMPLETED, None).requested_time in {
        i.requested_time for i in MetadataTable(storage).store.load().completed()
    }
