"""A delta commit interrupted at every call that changes something: nothing of it is visible, or all of it."""

import pytest

from hudi_py.services.check.findings import Severity
from hudi_py.timeline.markers import instants_with_markers
from support.change_logs import rows_by_changes
from support.crash_points import EVERY, interruptions
from support.writes import CHANGES, NEW, OLD, create_table, merged_rows_of, open_table, upsert

SETTINGS = {"hoodie.index.bloom.num_entries": 100, "hoodie.metadata.enable": True}


def table_with_logs(version):
    """Two file groups, one of them with a log file: OLD."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    upsert(storage, [{**OLD[0], "ts": 0}, {"id": "y", "region": "eu", "ts": 0}, OLD[1]], **SETTINGS)
    upsert(storage, [OLD[0]], **SETTINGS)
    upsert(storage, [{"id": "y", "region": "eu", "ts": 0}], operation="DELETE", **SETTINGS)
    return storage


def rows_by_id(storage):
    """Rows by their ids, as OLD and NEW have them."""
    return sorted(merged_rows_of(storage), key=lambda row: row["id"])


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_delta_commit_interrupted_anywhere_is_invisible_or_whole(record_property, version):
    """
    The next write rolls it back: log files go in layout 2, in layout 1 a rollback block takes back what they hold.

    No write goes on in a file of a dead one: what is committed stays byte for byte.
    """
    original = table_with_logs(version)
    assert rows_by_id(original) == OLD
    committed = {path: data for path, data in original.files().items() if path.startswith(("eu/", "us/"))}
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: upsert(storage, CHANGES, **SETTINGS))
        found = rows_by_id(case.storage)
        commits = len(open_table(case.storage).timeline.completed("deltacommit"))
        assert found == (OLD if commits == 3 else NEW), case
        upsert(case.storage, CHANGES, **SETTINGS)
        assert rows_by_id(case.storage) == NEW, case
        table = open_table(case.storage)
        assert len(table.timeline.completed("deltacommit")) == commits + 1, case
        assert not table.timeline.pending(), case
        assert not instants_with_markers(case.storage), case
        serious = [str(each) for each in open_table(case.storage).check() if each.severity is not Severity.INFO]
        assert not serious, case
        assert committed.items() <= case.storage.files().items(), case
    record_property("interruptions", count)
    assert count * EVERY > 60


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 8, 9])
def test_delta_commit_with_change_logs_interrupted_anywhere_tells_each_change_once(record_property, version):
    """What a failed write logged is told by nobody: the rows follow from the single changes after the next write."""
    cdc = {"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": True}
    original = create_table(version, **cdc)
    upsert(original, OLD, **SETTINGS)
    upsert(original, [OLD[0]], **SETTINGS)  # a log file
    assert rows_by_id(original) == rows_by_changes(original) == OLD
    count = 0
    for case in interruptions(original.copy):
        # Into a small file, too, which is written again with a change log of its own.
        rows = [*CHANGES, {"id": "z", "region": "us", "ts": 2}]
        count += case.run(lambda storage: upsert(storage, rows, **SETTINGS))  # noqa: B023 - called at once
        upsert(case.storage, rows, **SETTINGS)
        assert rows_by_id(case.storage) == rows_by_changes(case.storage) == [*NEW, rows[-1]], case
        assert not open_table(case.storage).timeline.pending(), case
    record_property("interruptions", count)
    assert count * EVERY > 60


@pytest.mark.parametrize("version", [6, 8, 9])
def test_undoing_a_delta_commit_brings_back_the_rows_before(version):
    """By rollback, and by a restore to a savepoint; cleans and writes go on behind it."""
    storage = table_with_logs(version)
    savepoint = open_table(storage).timeline.completed("deltacommit")[-1].requested_time
    open_table(storage, **SETTINGS).create_savepoint(savepoint)
    upsert(storage, CHANGES, **SETTINGS)
    last = open_table(storage).timeline.completed("deltacommit")[-1].requested_time
    open_table(storage, **SETTINGS).rollback(last)
    assert rows_by_id(storage) == OLD
    upsert(storage, CHANGES, **SETTINGS)
    upsert(storage, [{**CHANGES[0], "ts": 7}], **SETTINGS)
    open_table(storage, **SETTINGS).restore(savepoint)
    assert rows_by_id(storage) == OLD
    upsert(storage, CHANGES, **SETTINGS)
    open_table(storage, **SETTINGS).clean(commits_retained=1)
    assert rows_by_id(storage) == NEW
    assert not [each for each in open_table(storage).check() if each.severity is not Severity.INFO]
