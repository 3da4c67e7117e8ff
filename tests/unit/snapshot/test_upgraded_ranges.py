"""
An upgrade of a table, and what is archived or cleaned behind it, changes no answer about the time before.

Log files of table version 6 have the time of their slice in their names, those of later versions that of their write.
"""

import itertools

import pyarrow as pa
import pytest

from hudi_py.errors import RefusedError
from support.rival_places import FILE_LOCK
from support.upgrading import upgrade
from support.writes import ALONE, SCHEMA, create_table, open_table

SETTINGS = {**ALONE, **FILE_LOCK, "hoodie.compact.inline.max.delta.commits": "1"}
ASKED = {
    "changes": lambda table, start, end: table.changes(start, end, with_meta=True),
    "with deletes": lambda table, start, end: table.changes(start, end, with_deletes=True),
    "each change": lambda table, start, end: table.change_log(start, end),
}


@pytest.fixture(params=[8, 9])
def version(request):
    return request.param


def rows(ts, ids):
    return pa.Table.from_pylist([{"id": each, "region": "eu", "ts": ts} for each in ids], schema=SCHEMA)


def opened(storage):
    return open_table(storage, **SETTINGS)


def answers(storage, ranges):
    """Of each range, by the requested times of its ends: what is told, or the error."""
    table, found = opened(storage), {}
    commits = (*table.archived_timeline().writes.completed(), *table.timeline.writes.completed())
    ends = {each.requested_time: each.completion_time or each.requested_time for each in commits}
    for (name, ask), (start, end) in itertools.product(ASKED.items(), ranges):
        try:
            told = ask(table, ends.get(start, start), ends[end]).to_arrow()
        except RefusedError as error:
            found[name, start, end] = error
        else:
            drops = [each for each in ("_hoodie_file_name",) if each in told.column_names]
            found[name, start, end] = sorted(map(str, told.drop_columns(drops).to_pylist()))
    return found


def test_ranges_before_an_upgrade_tell_the_same(version):
    """Rows in log files among them, which were left out in silence; also when their commits are archived."""
    storage = create_table(6, **{"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": "true"})
    opened(storage).upsert(rows(1, "abcd"))
    opened(storage).upsert(rows(2, "ab"))
    opened(storage).compact()
    opened(storage).delete(rows(3, "a"))
    opened(storage).upsert(rows(4, "bc"))
    opened(storage).upsert(rows(5, "b"))
    times = [each.requested_time for each in opened(storage).timeline.writes.completed()]
    ranges = list(itertools.combinations(["0", *times], 2))
    before = answers(storage, ranges)
    (last,) = before["changes", times[-2], times[-1]]
    assert "'ts': 5" in last
    upgrade(opened(storage), version)
    assert answers(storage, ranges) == before
    for ts in (6, 7, 8):
        opened(storage).upsert(rows(ts, "d"))
    opened(storage).archive(keep_min_commits=1, keep_max_commits=2)
    assert not {each.requested_time for each in opened(storage).timeline.writes}.intersection(times)
    assert answers(storage, ranges) == before


def test_ranges_whose_log_files_a_clean_deleted_are_refused(version):
    """None of them loses a row in silence."""
    storage = create_table(6, **{"hoodie.table.type": "MERGE_ON_READ", "hoodie.table.cdc.enabled": "true"})
    for ts, ids in enumerate(("abcd", "ab", "b", "c"), 1):
        opened(storage).upsert(rows(ts, ids))
    times = [each.requested_time for each in opened(storage).timeline.writes.completed()]
    ranges = list(itertools.combinations(["0", *times], 2))
    before = answers(storage, ranges)
    upgrade(opened(storage), version)
    opened(storage).upsert(rows(6, "a"))
    opened(storage).compact()
    assert opened(storage).clean(file_versions_retained=1)
    after = answers(storage, ranges)
    refused = {asked for asked, told in after.items() if isinstance(told, RefusedError)}
    assert ("changes", times[-2], times[-1]) in refused
    assert {asked: told for asked, told in after.items() if asked not in refused} == {
        asked: told for asked, told in before.items() if asked not in refused
    }
