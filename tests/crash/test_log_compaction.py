"""A log compaction interrupted at every call that changes something: rows stay the same, the next run finishes it."""

import pytest

from hudi_py.model.instant import Action
from hudi_py.services.check.findings import Severity
from hudi_py.testing import INTERRUPTION_MODES
from hudi_py.timeline.markers import instants_with_markers
from support.crash_points import EVERY, interruptions
from support.writes import create_table, merged_rows_of, open_table, upsert

SETTINGS = {
    "hoodie.index.bloom.num_entries": 100,
    "hoodie.metadata.enable": True,
    "hoodie.log.compaction.blocks.threshold": 2,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.clean.automatic": False,
    "hoodie.archive.automatic": False,
}
DELETED = {"id": "y", "region": "us", "ts": 0}
VERSIONS = pytest.mark.parametrize("version", [6, 9])


def row(key, region, ts):
    return {"id": key, "region": region, "ts": ts}


def table_with_logs(version):
    """Two file groups with two log files each: updates in one, a deletion and an update in the other."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    upsert(storage, [row("a", "eu", 1), row("b", "us", 1), DELETED], **SETTINGS)
    upsert(storage, [row("a", "eu", 2)], **SETTINGS)
    upsert(storage, [DELETED], operation="DELETE", **SETTINGS)
    upsert(storage, [row("a", "eu", 3), row("b", "us", 3)], **SETTINGS)
    return storage


def rows_by_id(storage, **how):
    return sorted(merged_rows_of(storage, **how), key=lambda each: each["id"])


def serious(storage):
    return [str(each) for each in open_table(storage).check() if each.severity is not Severity.INFO]


def log_compactions(storage):
    table = open_table(storage)
    return [
        each
        for each in table.timeline.completed(Action.DELTA_COMMIT)
        if table.contents.commit(each).operation_type == "LOG_COMPACT"
    ]


@pytest.mark.slow
@VERSIONS
def test_log_compaction_interrupted_anywhere_is_done_by_the_next_run(record_property, version):
    """Carried out or planned anew; rows before, in between, after and as of an earlier time are the same."""
    original = table_with_logs(version)
    before = rows_by_id(original)
    earlier = open_table(original).timeline.completed(Action.DELTA_COMMIT)[1].requested_time
    first = rows_by_id(original, as_of=earlier)
    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: open_table(storage, **SETTINGS).compact_logs())
        assert rows_by_id(case.storage) == before, case
        if count % 2:
            assert not [each for each in open_table(case.storage).recover() if each.error], case
        assert rows_by_id(case.storage, as_of=earlier) == first, case
        open_table(case.storage, **SETTINGS).compact_logs()
        assert rows_by_id(case.storage) == before, case
        assert rows_by_id(case.storage, as_of=earlier) == first, case
        assert log_compactions(case.storage), case
        assert not open_table(case.storage).timeline.pending(), case
        assert not instants_with_markers(case.storage), case
        assert not serious(case.storage), case
    record_property("interruptions", count)
    assert count * EVERY > 40


@pytest.mark.slow
@VERSIONS
def test_check_finds_no_error_where_a_log_compaction_stopped(version):
    """Neither before nor after recovery: its log files are of an action that is still pending."""
    original = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    for ts in range(1, 5):
        upsert(original, [row("a", "eu", ts)], **SETTINGS)

    def errors(storage):
        return [str(each) for each in open_table(storage, **SETTINGS).check() if each.severity is Severity.ERROR]

    count = 0
    for case in interruptions(original.copy):
        count += case.run(lambda storage: open_table(storage, **SETTINGS).compact_logs())
        assert not errors(case.storage), case
        open_table(case.storage, **SETTINGS).recover()
        assert not errors(case.storage), case
    assert count * EVERY > 20


@pytest.mark.slow
@VERSIONS
def test_whatever_an_interrupted_log_compaction_left_others_go_on(version):
    """A write, a clean, a compaction and a recovery beside it: the rows are those written, the table is intact."""
    original = table_with_logs(version)
    for case in interruptions(original.copy, INTERRUPTION_MODES[:1]):
        case.run(lambda storage: open_table(storage, **SETTINGS).compact_logs())
        upsert(case.storage, [row("a", "eu", 9)], **SETTINGS)
        after = rows_by_id(case.storage)
        assert [each["ts"] for each in after if each["id"] == "a"] == [9], case
        open_table(case.storage, **SETTINGS).clean(commits_retained=1)
        assert rows_by_id(case.storage) == after, case
        open_table(case.storage, **SETTINGS).recover()
        assert rows_by_id(case.storage) == after, case
        open_table(case.storage, **SETTINGS).compact()
        assert rows_by_id(case.storage) == after, case
        open_table(case.storage, **SETTINGS).compact_logs()
        assert rows_by_id(case.storage) == after, case
        open_table(case.storage, **SETTINGS).clean(commits_retained=1)
        assert rows_by_id(case.storage) == after, case
        assert not open_table(case.storage).timeline.pending(), case
        assert not serious(case.storage), case
