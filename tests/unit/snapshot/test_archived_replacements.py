"""Times after a replacement that is archived, while the clean that deleted the replaced groups is not."""

import pytest

from support.writes import NEW, OLD, create_table, merged_rows_of, open_table, upsert

ARCHIVING = {"hoodie.clean.commits.retained": 1, "hoodie.compact.inline.max.delta.commits": 1}


def again(rows, ts):
    """The rows with another ordering value."""
    return [{**row, "ts": ts} for row in rows]


def deleted_logs(table):
    """Names of the log files that cleans deleted."""
    cleans = map(table.contents.clean, table.timeline.completed("clean"))
    names = (name for clean in cleans for done in clean.partitions.values() for name in done.delete_path_patterns)
    return [name for name in names if ".log." in name]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("is_leased", [False, True])
def test_log_files_of_replaced_groups_are_not_missed_at_later_times(version, is_leased):
    """They held no rows then, which only the archive tells; under a lease, too, such a time was refused."""
    storage = create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    upsert(storage, OLD)
    upsert(storage, again(OLD, 2))
    upsert(storage, NEW, operation="INSERT_OVERWRITE_TABLE")
    upsert(storage, again(NEW, 4))
    open_table(storage).clean(commits_retained=1)
    assert deleted_logs(open_table(storage))
    for ts in (5, 6):
        upsert(storage, again(NEW, ts))
    table = open_table(storage)
    if is_leased:
        table.take_lease(ttl="30d")
    time, rows = table.timeline.commits.completed()[-1].requested_time, merged_rows_of(storage)
    upsert(storage, again(NEW, 7))
    open_table(storage, **ARCHIVING).archive(keep_min_commits=3, keep_max_commits=4)
    timeline = open_table(storage).timeline
    assert not timeline.completed("replacecommit")
    assert timeline.completed("clean")
    assert merged_rows_of(storage, as_of=time) == rows
