"""Base files beside log files of change data capture, and single changes of archived, replaced and compacted files."""

import attrs
import pytest

from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model.files import FileSlice, parse_base_file, parse_log_file
from hudi_py.snapshot.select import base_files
from support import writes

TIME = "20260101000000000"
BASE = parse_base_file(f"g-0_0-1-2_{TIME}.parquet")
CHANGES = parse_log_file(f".g-0_{TIME}.log.1_0-1-2.cdc")
ROWS = parse_log_file(f".g-0_{TIME}.log.1_0-1-2")


def slice_of(*logs):
    return FileSlice("p", "g-0", TIME, BASE, logs)


def test_change_files_are_not_merged():
    """They tell what changed, and the base file beside them holds the rows already."""
    assert base_files((slice_of(CHANGES),), "t") == (("p", BASE),)


def test_files_of_rows_are_not_passed_over():
    """Beside change files either."""
    with pytest.raises(UnsupportedTable, match="log files"):
        base_files((slice_of(CHANGES, ROWS),), "t")


def changes_of(table, begin=None, end=None):
    return [
        (each["op"], *((side and (side["id"], side["ts"])) for side in (each["before"], each["after"])))
        for each in table.change_log(begin, end).to_arrow().to_pylist()
    ]


def row(key, ts, region="eu"):
    return {"id": key, "region": region, "ts": ts}


LOGGED = {"hoodie.table.cdc.enabled": "true", "hoodie.metadata.enable": "false"}
MERGED = LOGGED | {"hoodie.datasource.write.table.type": "MERGE_ON_READ", "hoodie.index.type": "SIMPLE"}


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_lost_archive_is_not_taken_for_an_empty_one(version):
    """The changes of its commits would be missing, and nothing would show it."""
    storage = writes.create_table(version, **LOGGED)
    for ts in range(1, 6):
        writes.upsert(storage, [row("a", ts)])
    writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    table = writes.open_table(storage)
    whole = changes_of(table)
    assert len(whole) == 5
    active = table.timeline.writes.completed()
    begin = active[0].completion_time or active[0].requested_time
    storage.delete_folder(table.config.history_folder)
    lost = writes.open_table(storage)
    with pytest.raises(RefusedError, match="the archive is missing"):
        lost.change_log()
    assert changes_of(lost, begin) == whole[len(whole) - len(active) + 1 :]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_of_a_replaced_group_are_not_those_that_a_savepoint_kept(version):
    """They are of an older version: the newer one, which the overwrite replaced, is deleted."""
    storage = writes.create_table(version, **LOGGED)
    writes.upsert(storage, [row("a", 1)])
    writes.open_table(storage).create_savepoint()
    writes.upsert(storage, [row("a", 2)])
    writes.upsert(storage, [row("b", 3)], operation="INSERT_OVERWRITE")
    whole = writes.open_table(storage)
    assert ("d", ("a", 2), None) in changes_of(whole)
    for ts in (4, 5, 6):
        writes.upsert(storage, [row("c", ts, f"p{ts}")])
    assert writes.open_table(storage).clean(commits_retained=1)
    cleaned = writes.open_table(storage)
    second = [each.completion_time or each.requested_time for each in cleaned.timeline.writes.completed()][1]
    with pytest.raises(RefusedError, match=r"clean.*deleted.*the earliest begin that is possible is"):
        changes_of(cleaned, second)


@pytest.mark.parametrize("version", [8, 9])
def test_a_compaction_that_completes_after_the_range_takes_no_change_with_it(version):
    """It was planned within the range: from then on its base file counts, not before."""
    storage = writes.create_table(version, **MERGED)
    for ts in (1, 2, 3):
        writes.upsert(storage, [row("a", ts)])
    planned = writes.open_table(storage, **{"hoodie.compact.inline.max.delta.commits": 1}).schedule_compaction()
    assert planned is not None
    writes.upsert(storage, [row("a", 4)])
    end = writes.open_table(storage).changed_until()
    before = changes_of(writes.open_table(storage), None, end)
    assert before == [
        ("i", None, ("a", 1)), ("u", ("a", 1), ("a", 2)), ("u", ("a", 2), ("a", 3)), ("u", ("a", 3), ("a", 4))
    ]  # fmt: skip
    writes.open_table(storage).compact(instant=planned)
    assert changes_of(writes.open_table(storage), None, end) == before


@pytest.mark.parametrize("lost", ["base", "log"])
def test_an_archived_change_whose_slice_has_a_gap_is_refused(lost):
    """The archive of layout 1 does not name the files of a slice; their names do."""
    storage = writes.create_table(6, **MERGED)
    for ts in (1, 2, 3, 4):
        writes.upsert(storage, [row("a", ts)])
    assert writes.open_table(storage, **{"hoodie.compact.inline.max.delta.commits": 1}).compact()
    for ts in (5, 6):
        writes.upsert(storage, [row("a", ts)])
    whole = changes_of(writes.open_table(storage))
    writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    assert len(writes.open_table(storage).timeline.writes.completed()) == 3
    assert changes_of(writes.open_table(storage)) == whole
    names = sorted(each.name for each in storage.list("eu"))
    gone = next(each for each in names if (".parquet" in each if lost == "base" else ".log.2_" in each))
    storage.delete(f"eu/{gone}")
    with pytest.raises(RefusedError, match="the earliest begin that is possible is"):
        writes.open_table(storage).change_log()


@pytest.mark.parametrize("version", [6, 8, 9])
def test_new_rows_beside_copied_ones_are_told_without_a_change_log(version):
    """Apache Hudi logs nothing where an insert copies a file's rows, and then cannot read the changes itself."""
    storage = writes.create_table(version, **LOGGED)
    writes.upsert(storage, [row("a", 1)])
    writes.upsert(storage, [row("b", 2)])
    table = writes.open_table(storage)
    whole = changes_of(table)
    second = table.timeline.writes.completed()[1]
    metadata = table.contents.commit(second)
    [stat] = metadata.partition_to_write_stats["eu"]
    assert (stat.num_writes, stat.num_inserts, len(stat.cdc_stats)) == (2, 1, 1)
    for log in stat.cdc_stats:
        storage.delete(log)
    unlogged = attrs.evolve(metadata, partition_to_write_stats={"eu": (attrs.evolve(stat, cdc_stats=None),)})
    storage.replace(table.contents.store.path(second), encode_commit(unlogged, as_json=version == 6, sync=bytes(16)))
    assert changes_of(writes.open_table(storage)) == whole == [("i", None, ("a", 1)), ("i", None, ("b", 2))]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("rows", [0, 1])
def test_deletes_of_keys_that_were_not_there_are_no_changes(version, rows):
    """Apache Hudi counts flagged rows of new keys as deletes of a new file group, which may then have no rows."""
    storage = writes.create_table(version, **LOGGED)
    writes.upsert(storage, [row("a", 1), row("b", 1, "us")])
    table = writes.open_table(storage)
    [first] = table.timeline.writes.completed()
    metadata = table.contents.commit(first)
    [stat] = metadata.partition_to_write_stats["us"]
    assert (stat.prev_commit, stat.num_inserts) == ("null", 1)
    counted = attrs.evolve(stat, num_deletes=1, num_writes=rows, num_inserts=rows)
    stats = metadata.partition_to_write_stats | {"us": (counted,)}
    changed = attrs.evolve(metadata, partition_to_write_stats=stats)
    storage.replace(table.contents.store.path(first), encode_commit(changed, as_json=version == 6, sync=bytes(16)))
    expected = [("i", None, ("a", 1)), ("i", None, ("b", 1))][: 1 + rows]
    assert sorted(changes_of(writes.open_table(storage))) == expected
