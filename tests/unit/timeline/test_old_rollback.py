"""
An old rollback in front of the timeline: in layout 1 it stays active while commits are archived (rule D-12).

What was archived behind it is no less archived.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import RefusedError
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.mdt.table import is_committed
from hudi_py.model.instant import Action, Instant, State
from hudi_py.table import Table
from hudi_py.timeline.timeline import Timeline
from support import writes

KEEPS_ONE = writes.ALONE | {"hoodie.metadata.enable": False, "hoodie.clean.commits.retained": 1}


def table_of(kind, step=timedelta(minutes=1)):
    """Rows of eu and us, a rollback, a change of eu, and changes of us until that of eu is archived; its time."""
    storage = writes.create_table(6, **{"hoodie.datasource.write.table.type": kind})
    clock = writes.open_table(storage).services.metadata_table.clock

    def opened():
        clock.move(step)
        return Table(storage, settings=KEEPS_ONE, clock=clock)

    writes.upsert(storage, writes.OLD, opened())
    writes.upsert(storage, [{"id": "b", "region": "us", "ts": 2}], opened())
    undone = opened()
    undone.rollback(undone.timeline.writes.completed()[-1].requested_time)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 3}], opened())
    changed = opened().timeline.writes.completed()[-1].requested_time
    for ts in range(4, 14):
        writes.upsert(storage, [{"id": "b", "region": "us", "ts": ts}], opened())
    opened().archive(keep_min_commits=3, keep_max_commits=4)
    table = opened()
    assert table.timeline.instants[0].action.value == "rollback"
    assert table.timeline.find(changed) is None
    return table, changed


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_earlier_time_is_refused_where_the_archive_is_lost(kind):
    """What was archived between the rollback and the commits that are left is unknown then."""
    table, changed = table_of(kind)
    rows = {row["id"]: row["ts"] for row in table.as_of(changed).rows().to_arrow().to_pylist()}
    assert rows == {"a": 3, "b": 1}
    for path in table.storage.files():
        if path.startswith(".hoodie/archived/"):
            table.storage.delete(path)
    reopened = Table(table.storage, settings=KEEPS_ONE)
    with pytest.raises(RefusedError, match=rf"timeline begins at {table.timeline.commits.start}.*is missing"):
        reopened.as_of(changed).rows()


def test_what_an_archived_commit_wrote_counts_as_written():
    """Where bytes of a log file are passed over, it matters whether their write is completed."""
    table, changed = table_of("MERGE_ON_READ")
    assert WrittenRanges(table.contents, table.timeline).is_completed(changed)


def test_a_partition_expires_no_earlier():
    """Names of log files do not tell when they were written; the first commit that is left says not before when."""
    day = timedelta(days=1)
    table, _ = table_of("MERGE_ON_READ", step=10 * day)
    age = (table.contents.store.clock.now() - writes.START).days
    since_rollback = age - 50
    assert table.expire_partitions(days=since_rollback, by="last-change", dry_run=True).plan.expired == ()


@pytest.mark.parametrize("action", [Action.ROLLBACK, Action.CLEAN])
def test_what_the_metadata_table_archived_counts_as_committed(action):
    """A base file of a compaction behind it, which holds what no later one has."""
    times = [f"2026010100000{n}000" for n in range(6)]
    old, compaction, *left = times
    timeline = Timeline(
        (
            Instant(old, action, State.COMPLETED),
            *(Instant(time, Action.DELTA_COMMIT, State.COMPLETED) for time in left),
        )
    )
    assert is_committed(timeline, compaction)
    assert not is_committed(timeline, f"{times[-1]}9")
