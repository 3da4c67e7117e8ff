"""A compaction interrupted at every call that changes something: rows stay as they are, the next run finishes it."""

import pytest

from hudi_py.services.check.findings import Severity
from hudi_py.testing import INTERRUPTION_MODES
from hudi_py.timeline.markers import instants_with_markers
from support.crash_points import EVERY, interruptions
from support.writes import create_table, merged_rows_of, open_table, upsert

SETTINGS = {
    "hoodie.index.bloom.num_entries": 100,
    "hoodie.metadata.enable": True,
    "hoodie.compact.inline.max.delta.commits": 2,
    "hoodie.clean.automatic": False,
    "hoodie.archive.automatic": False,
}
LATER = {"id": "a", "region": "eu", "ts": 9}


def table_with_logs(version):
    """Two file groups with log files: updates in one, a deletion in the other."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    rows = [{"id": "a", "region": "eu", "ts": 1}, {"id": "b", "region": "us", "ts": 1}]
    upsert(storage, [*rows, {"id": "y", "region": "us", "ts": 0}], **SETTINGS)
    upsert(storage, [{**rows[0], "ts": 3}], **SETTINGS)
    upsert(storage, [{"id": "y", "region": "us", "ts": 0}], operation="DELETE", **SETTINGS)
    return storage


def rows_by_id(storage, **how):
    return sorted(merged_rows_of(storage, **how), key=lambda row: row["id"])


def serious(storage):
    return [str(each) for each in open_table(storage).check() if each.severity is not Severity.INFO]


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_compaction_interrupted_anywhere_is_carried_out_by_the_next_run(record_property, version):
    """Rows before, in between and after are the same, as of an earlier time too; nothing is left behind."""
    original = table_with_logs(version)
    before = rows_by_id(original)
    earlier = open_table(original).timeline.completed("deltacommit")[0].requested_time
    first = rows_by_id(original, as_of=earlier)
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: open_table(storage, **SETTINGS).compact())
        assert rows_by_id(case.storage) == before, case
        if count % 2:
            assert not [each for each in open_table(case.storage).recover() if each.error], case
        assert rows_by_id(case.storage, as_of=earlier) == first, case
        open_table(case.storage, **SETTINGS).compact()
        table = open_table(case.storage)
        assert rows_by_id(case.storage) == before, case
        assert rows_by_id(case.storage, as_of=earlier) == first, case
        assert len(table.timeline.completed("commit")) == 1, case
        assert not table.timeline.pending(), case
        assert not instants_with_markers(case.storage), case
        assert not serious(case.storage), case
        assert all(not each.log_files for path in ("eu", "us") for each in table.file_slices(path)), case
    record_property("interruptions", count)
    assert count * EVERY > 40


@pytest.mark.slow
@pytest.mark.parametrize("version", [6, 9])
def test_whatever_an_interrupted_compaction_left_others_go_on(version):
    """A write, a clean and a recovery beside it: the rows are those that were written, and the table is intact."""
    original = table_with_logs(version)
    for case in interruptions(original.copy, INTERRUPTION_MODES[:1]):
        case.run(lambda storage: open_table(storage, **SETTINGS).compact())
        upsert(case.storage, [LATER], **SETTINGS)
        after = rows_by_id(case.storage)
        assert [row["ts"] for row in after if row["id"] == "a"] == [9], case
        open_table(case.storage, **SETTINGS).clean(commits_retained=1)
        assert rows_by_id(case.storage) == after, case
        open_table(case.storage, **SETTINGS).recover()
        assert rows_by_id(case.storage) == after, case
        for _ in range(2):
            open_table(case.storage, **SETTINGS).compact()
            assert rows_by_id(case.storage) == after, case
        open_table(case.storage, **SETTINGS).clean(commits_retained=1)
        assert rows_by_id(case.storage) == after, case
        assert not open_table(case.storage).timeline.pending(), case
        assert not serious(case.storage), case
