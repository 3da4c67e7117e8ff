"""Commits and cleans of tables with a metadata table, interrupted at every call that changes something."""

import pytest

from crash.history_tables import fixture_in_memory
from crash.states import SerialEngine
from crash.test_write import CHANGES, NEW, OLD, create_table, open_table, rows_of, upsert
from hudi_py.services.check.findings import Severity
from hudi_py.table import Table
from hudi_py.testing import interruptions

CREATE = {"hoodie.metadata.enable": "true"}
FOLDERS = {"hoodie.metadata.enable": "false"}
COMPACT = {"hoodie.metadata.compact.max.delta.commits": 1}


def disagreements(storage):
    """Where metadata table, folders and instants differ; what is merely pending or left behind does not count."""
    found = Table(storage).check()
    return [each for each in found if each.severity is Severity.ERROR or each.code.startswith("mdt")]


def problems(storage):
    """Everything worse than news."""
    return [each for each in Table(storage).check() if each.severity is not Severity.INFO]


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, COMPACT], ids=["recorded", "compacted"])
@pytest.mark.parametrize("version", [6, 8, 9])
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
        for _ in range(2):
            upsert(case.storage, CHANGES, **settings)
            assert rows_of(case.storage) == rows_of(case.storage, **FOLDERS) == NEW, case
            assert not problems(case.storage), case
    record_property("interruptions", count)
    assert count > 60


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
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
    assert count > 60


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cow_cleaned", "cow_partition_dropped", "cow_nonpartitioned"])
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1"])
def test_clean_interrupted_anywhere_leaves_no_ghost(record_property, name, version):
    """The metadata table forgets what the clean deletes, before the clean completes."""
    original = fixture_in_memory(f"{name}-{version}")
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
    assert count > 20


def clean(storage):
    return open_table(storage).clean(commits_retained=1, engine=SerialEngine())


def data_of(storage):
    return {path for path in storage.files() if not path.startswith(".hoodie/")}
