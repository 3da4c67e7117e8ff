"""A torn plan of a clean, as a crash on a file system leaves it, stands in the way of nothing: it deleted nothing."""

import pytest

from hudi_py.errors import CorruptMetadata
from support.writes import OLD, create_table, merged_rows_of, open_table, upsert

TORN = pytest.mark.parametrize("torn", [b"", b"Obj\x01\x04"], ids=["empty", "cut"])
VERSIONS = pytest.mark.parametrize("version", [6, 9])
TIME = "20300101000000000"


def table_beside(version, torn, states=("requested",)):
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    for ts in (1, 2, 3):
        upsert(storage, [{**OLD[0], "ts": ts}])
    for state in states:
        storage.create_new(f"{open_table(storage).config.timeline_folder}/{TIME}.clean.{state}", torn)
    return storage


def commits_of(storage):
    return [each.requested_time for each in open_table(storage).timeline.commits.completed()]


def leased(table, time):
    with table.lease(ttl="1h", at=time) as snapshot:
        return snapshot.rows().to_arrow().num_rows


ACTIONS = {
    "as of": lambda table, times: table.rows(as_of=times[0]).to_arrow().num_rows == 1,
    "changes": lambda table, times: table.changes(times[0], times[1]).to_arrow().num_rows == 1,
    "lease": lambda table, times: leased(table, times[0]) == 1,
    "savepoint": lambda table, times: table.create_savepoint(times[0]),
    "rollback": lambda table, times: table.rollback(times[-1]),
    "compaction": lambda table, times: table.compact(),
    "archival": lambda table, times: table.archive() is not None,
}


@TORN
@VERSIONS
@pytest.mark.parametrize("action", ACTIONS)
def test_action_is_done_beside_a_torn_plan(version, torn, action):
    """Nobody can have begun the clean, so its files are all there."""
    storage = table_beside(version, torn)
    table = open_table(storage, **{"hoodie.compact.inline.max.delta.commits": 1})
    assert ACTIONS[action](table, commits_of(storage))


@TORN
@VERSIONS
def test_restore_goes_back_beside_a_torn_plan(version, torn):
    """To a savepoint from before the plan."""
    storage = table_beside(version, torn, states=())
    first = commits_of(storage)[0]
    open_table(storage).create_savepoint(first)
    storage.create_new(f"{open_table(storage).config.timeline_folder}/{TIME}.clean.requested", torn)
    open_table(storage).restore(first)
    assert [row["ts"] for row in merged_rows_of(storage)] == [1]


@TORN
@VERSIONS
def test_earlier_time_is_refused_beside_a_torn_plan_that_has_begun(version, torn):
    """What it has deleted is not known, so the answer might be old rows; the latest ones it cannot touch."""
    storage = table_beside(version, torn, states=("requested", "inflight"))
    with pytest.raises(CorruptMetadata, match=f"{TIME}.clean.requested"):
        open_table(storage).rows(as_of=commits_of(storage)[0])
    assert [row["ts"] for row in merged_rows_of(storage)] == [3]
