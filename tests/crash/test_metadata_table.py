"""Commits and cleans of tables with a metadata table, interrupted at every call that changes something."""

import pytest

from hudi_py.mdt.table import MetadataTable
from hudi_py.model.instant import Action
from hudi_py.services.check.findings import Severity
from hudi_py.table import Table
from support.crash_points import EVERY, interruptions
from support.crash_states import SerialEngine
from support.history_tables import fixture_in_memory
from support.writes import CHANGES, NEW, OLD, create_table, open_table, rows_of, upsert

CREATE = {"hoodie.metadata.enable": "true"}
FOLDERS = {"hoodie.metadata.enable": "false"}
CLEANED = (
    "cow_cleaned-0.15.0",
    "cow_cleaned-1.0.2",
    "cow_cleaned-1.1.1",
    "cow_partition_dropped-1.1.1",
    "cow_nonpartitioned-0.15.0",
)
COMPACT = {"hoodie.metadata.compact.max.delta.commits": 1}


def disagreements(storage):
    """Where metadata table, folders and instants differ; what is merely pending or left behind does not count."""
    found = Table(storage).check()
    return [each for each in found if each.severity is Severity.ERROR or each.code.startswith("mdt")]


def stuck(storage):
    """Pending writes older than a compaction there: Hudi 0.15.0 and 1.0.2 fail to roll them back, and write no more."""
    compactions = MetadataTable(storage).store.load().of((Action.COMPACTION, Action.COMMIT)).instants
    pending = open_table(storage).timeline.pending()
    return [write for write in pending for each in compactions if write.requested_time <= each.requested_time]


def problems(storage):
    """Everything worse than news."""
    return [each for each in Table(storage).check() if each.severity is not Severity.INFO]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, COMPACT], ids=["recorded", "compacted"])
@pytest.mark.parametrize("version", [6, 9])
def test_write_interrupted_anywhere_is_in_both_or_in_neither(record_property, version, settings):
    """Whatever the moment, both listings show the same rows: those of before, or those of after."""
    original = create_table(version)
    upsert(original, OLD, **CREATE)
    upsert(original, OLD)
    assert open_table(original).config.has_metadata_table
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: upsert(storage, CHANGES, **settings))
        rows = rows_of(case.storage)
        assert rows in (OLD, NEW), case
        assert rows == rows_of(case.storage, **FOLDERS), case
        assert not disagreements(case.storage), case
        assert not stuck(case.storage), case
        for _ in range(2):
            upsert(case.storage, CHANGES, **settings)
            assert rows_of(case.storage) == rows_of(case.storage, **FOLDERS) == NEW, case
        assert not problems(case.storage), case
    record_property("interruptions", count)
    assert count * EVERY > 60


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_making_a_metadata_table_with_a_write_interrupted_anywhere(record_property, version):
    """The first write that is asked for one makes it of a listing."""
    original = create_table(version)
    upsert(original, OLD)
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: upsert(storage, CHANGES, **CREATE))
        rows = rows_of(case.storage)
        assert rows in (OLD, NEW), case
        assert rows == rows_of(case.storage, **FOLDERS), case
        for _ in range(2):
            upsert(case.storage, CHANGES, **CREATE)
            assert rows_of(case.storage) == rows_of(case.storage, **FOLDERS) == NEW, case
        assert open_table(case.storage).config.has_metadata_table, case
        assert not problems(case.storage), case
    record_property("interruptions", count)
    assert count * EVERY > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", CLEANED)
def test_clean_interrupted_anywhere_leaves_no_ghost(record_property, name):
    """The metadata table forgets what the clean deletes, before the clean completes."""
    original = fixture_in_memory(name)
    uninterrupted = original.copy()
    assert clean(uninterrupted)
    assert not problems(uninterrupted)
    count = 0
    for case in interruptions(original.copy):
        count += case.run(clean)
        assert not disagreements(case.storage), case
        for _ in range(2):
            clean(case.storage)
            assert not problems(case.storage), case
        assert data_of(case.storage) == data_of(uninterrupted), case
    record_property("interruptions", count)
    assert count * EVERY > 20


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_clean_that_compacts_interrupted_anywhere_leaves_the_metadata_table_true(record_property, version):
    """A table that is only cleaned: whatever the moment, the listing is true, and the next cleans get it small."""
    original = create_table(version)
    for _ in range(4):
        upsert(original, [*OLD, *CHANGES], **CREATE)
    for _ in range(2):
        assert clean_a_file(original)
    uninterrupted = original.copy()
    assert clean_a_file(uninterrupted, **COMPACT)
    assert MetadataTable(uninterrupted).store.load().completed(Action.COMMIT)
    wanted = rows_of(original)
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: clean_a_file(storage, **COMPACT))
        assert not disagreements(case.storage), case
        assert not stuck(case.storage), case
        upsert(later := case.storage.copy(), CHANGES)
        assert rows_of(later) == rows_of(later, **FOLDERS), case
        for _ in range(3):
            clean_a_file(case.storage, **COMPACT)
            assert wanted == rows_of(case.storage) == rows_of(case.storage, **FOLDERS), case
        assert not problems(case.storage), case
        table = MetadataTable(case.storage)
        (file_slice,) = table.slices(table.store.load())
        assert len(file_slice.logs) <= 1, case
    record_property("interruptions", count)
    assert count * EVERY > 30


def clean_a_file(storage, **settings):
    """One small step: a file each."""
    settings |= {"hoodie_py.clean.max.files": 1, "hoodie_py.clean.breakers": False}
    return open_table(storage, **settings).clean(commits_retained=1, engine=SerialEngine())


def clean(storage):
    return open_table(storage).clean(commits_retained=1, engine=SerialEngine())


def data_of(storage):
    return {path for path in storage.files() if not path.startswith(".hoodie/")}
