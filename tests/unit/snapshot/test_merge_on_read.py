"""Snapshots of merge-on-read tables that real Hudi wrote: savepoints, pickles, conditions, lost log files."""

import pickle
import re
from datetime import timedelta, timezone
from itertools import pairwise

import pytest

import hudi_py
from hudi_py.errors import CorruptMetadata, RefusedError, UnsupportedTable
from hudi_py.formats.log_block import MAGIC, iterate_log_blocks
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.storage.local import LocalStorage
from support import fixtures
from support.tables import TableBuilder, at

VERSIONS = ("0.15.0", "1.0.2", "1.1.1")
TABLES = pytest.mark.parametrize("name", [f"mor_event_time-{version}" for version in VERSIONS])


def opened(name, folder):
    return hudi_py.open_table(fixtures.unpack_rows(name, folder))


def rows(found):
    return sorted((row for batch in found for row in batch.to_pylist()), key=str)


@TABLES
def test_a_savepoint_holds_log_files_too(name, tmp_path):
    """What it shows is the table as it was at its commit, whatever is written to the same slice later."""
    table = opened(name, tmp_path)
    times = [each.requested_time for each in table.timeline.commits.completed()]
    before = rows(table.rows(with_meta=True))
    table.create_savepoint()
    assert rows(table.rows(savepoint=times[-1], with_meta=True)) == before
    assert rows(table.rows(savepoint=times[-1], with_meta=True)) == rows(table.rows(as_of=times[-1], with_meta=True))


@TABLES
def test_a_snapshot_is_read_elsewhere_too(name, tmp_path):
    """Sent to another process it holds what it needs, log files included."""
    table = opened(name, tmp_path)
    time = table.timeline.commits.completed()[3].requested_time
    for snapshot in (table.snapshot(), table.as_of(time)):
        assert rows(pickle.loads(pickle.dumps(snapshot)).rows()) == rows(snapshot.rows())


@pytest.mark.parametrize(
    "name", [*(f"mor_event_time-{version}" for version in VERSIONS), "mor_partial_update-1.1.1", "mor_evolved-1.0.2"]
)
def test_conditions_choose_among_merged_rows(name, tmp_path):
    """Not among those of the base file, whose statistics say nothing of what the log files changed."""
    table = opened(name, tmp_path)
    everything = rows(table.rows())
    ordered = sorted(row["ts"] for row in everything if row["ts"] is not None)
    for ts in {ordered[0], ordered[len(ordered) // 2], ordered[-1]}:
        for operator, is_met in (("=", ts.__eq__), (">", ts.__lt__), ("<=", ts.__ge__)):
            found = rows(table.rows(where=f"ts {operator} {ts}"))
            assert found == [row for row in everything if row["ts"] is not None and is_met(row["ts"])]
    ids = sorted(({"id": row["id"]} for row in everything if row["ts"] is not None), key=str)
    assert rows(table.rows(columns=["id"], where="ts is not null")) == ids


@TABLES
def test_a_lost_log_file_is_never_passed_over(name, tmp_path):
    """Deleted or cut off: older rows would be shown as the latest."""
    root = fixtures.unpack_rows(name, tmp_path)
    table = hudi_py.open_table(root)
    newest = max(table.file_slices("r0"), key=lambda each: len(each.log_files))
    path = root / "r0" / newest.log_files[-1].name
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    with pytest.raises(CorruptMetadata, match="cut off"):
        rows(hudi_py.open_table(root).rows())
    path.unlink()
    with pytest.raises(CorruptMetadata, match="missing"):
        rows(hudi_py.open_table(root).rows())


@TABLES
def test_a_damaged_frame_of_a_block_never_shows_older_rows(name, tmp_path):
    """Its magic or its size, of each block: those bytes were written by a completed commit."""
    table = opened(name, tmp_path)
    before, storage = rows(table.rows()), LocalStorage(str(tmp_path / name.rpartition("-")[0]))
    logs = [
        f"{each.partition_path}/{log.name}" for each in table.snapshot().slices_with_rows() for log in each.log_files
    ]
    damages = 0
    for path in logs:
        content = storage.read(path)
        for block in iterate_log_blocks(content, path):
            for place in (block.offset, block.offset + len(MAGIC)):  # the magic, and the size behind it
                storage.replace(path, content[:place] + b"\x7f" + content[place + 1 :])
                with pytest.raises(CorruptMetadata, match=re.escape(path)):
                    rows(hudi_py.open_table(storage.root).rows())
                damages += 1
        storage.replace(path, content)
    assert damages >= 2 * len(logs) > 0
    assert rows(table.rows()) == before


@TABLES
def test_who_takes_base_files_for_the_rows_is_stopped(name, tmp_path):
    """A list of base files lacks what lies in log files."""
    with pytest.raises(UnsupportedTable, match="has log files"):
        opened(name, tmp_path).base_files()


def test_a_table_merged_by_a_java_class_shows_its_base_files(tmp_path):
    """Merging is refused by the name of the class; read-optimized needs none."""
    root = fixtures.unpack_rows("mor_event_time-0.15.0", tmp_path)
    path = root / ".hoodie" / "hoodie.properties"
    text = path.read_text(encoding="utf-8").replace("DefaultHoodieRecordPayload", "DefaultPayloadOfOurs")
    LocalStorage(str(root)).replace(".hoodie/hoodie.properties", text.encode())
    table = hudi_py.open_table(root)
    with pytest.raises(UnsupportedTable, match="DefaultPayloadOfOurs"):
        table.rows()
    expected = fixtures.expected_rows("mor_event_time-0.15.0")["read_optimized"]["rows"]
    assert len(rows(table.rows(read_optimized=True))) == expected


@pytest.mark.parametrize("layout", [1, 2])
def test_log_files_that_a_clean_took_are_not_passed_over(layout):
    """Of a slice without a base file nothing else is left to tell; Apache Hudi shows fewer rows then."""
    builder = TableBuilder(layout)
    builder.log_files(at(1), [("r0", "a", at(1))])
    builder.commit(at(2), {"r0": ["b"]})
    builder.commit(at(3), {"r0": ["a"]}, operation="COMPACT")
    assert len(builder.table().as_of(at(2)).slices_with_rows()) == 2
    assert builder.table().clean(file_versions_retained=1)
    with pytest.raises(RefusedError, match=r"clean .*deleted .*\.log\."):
        builder.table().as_of(at(2)).slices_with_rows()
    assert len(builder.table().as_of(at(3)).slices_with_rows()) == 2


@pytest.mark.parametrize(("layout", "is_archived"), [(1, False), (2, False), (2, True)])
def test_deleted_rows_of_log_files_that_a_clean_took_are_not_passed_over(layout, is_archived):
    """Without the slice before the range nobody knows which of its rows were deleted, archived clean or not."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.log_files(at(1), [("r0", "a", at(1))])
    builder.commit(at(2), {"r0": ["b"]})
    builder.commit(at(3), {"r0": ["a"]})
    builder.clock.moment = parse_instant_time(at(4), timezone.utc) + timedelta(minutes=1)
    assert builder.table().clean(file_versions_retained=1)
    if is_archived:
        for number in (6, 7, 8):
            builder.commit(at(number), {"r0": ["b"]}, operation="COMPACT")
        builder.table(compact_inline_trigger_strategy="TIME_ELAPSED").archive(keep_min_commits=1, keep_max_commits=2)
    table = builder.table()
    assert is_archived != bool(table.timeline.of([Action.CLEAN]))
    with pytest.raises(RefusedError, match=r"rows deleted .*cannot be read: .*clean .*deleted .*\.log\."):
        table.changes(at(2), with_deletes=True)


@pytest.mark.parametrize("name", ["mor_cdc-0.15.0", "mor_cdc-1.0.2"])
def test_a_range_whose_log_files_a_clean_took_is_refused(name, tmp_path):
    """What lay in log files alone leaves no trace in the files that are left; each other range is what it was."""
    table = opened(name, tmp_path)
    times = [each.completion_time or each.requested_time for each in table.timeline.writes.completed()]
    ranges = list(pairwise(times))
    before = [rows(table.changes(*each)) for each in ranges]
    assert table.clean(commits_retained=1)
    refused = 0
    for each, changed in zip(ranges, before, strict=True):
        try:
            assert rows(table.changes(*each)) == changed, each
        except RefusedError as error:
            refused += (
                f"{each[1]} cannot be read: " in str(error) and " deleted " in str(error) and ".log." in str(error)
            )
    assert refused


@pytest.mark.parametrize("name", ["mor_event_time-0.15.0", "mor_event_time-1.0.2", "mor_log_compacted-1.1.1"])
def test_a_savepoint_is_read_after_a_restore_to_it(name, tmp_path):
    """It holds whole slices, with log files of later writes, which the restore deletes."""
    table = opened(name, tmp_path)
    time = table.timeline.commits.completed()[-2].requested_time
    before = rows(table.rows(as_of=time))
    table.create_savepoint(time)
    assert rows(table.rows(savepoint=time)) == before
    table.restore(time)
    for each in ({"savepoint": time}, {"as_of": time}, {}):
        assert rows(table.rows(**each)) == before


def test_a_range_holds_the_log_files_of_archived_commits(tmp_path):
    """In layout 1 no name of a log file tells its commit, and archival takes the commits that do from the timeline."""
    table = opened("mor_evolved-0.15.0", tmp_path)
    times = [each.requested_time for each in table.timeline.commits.completed()]
    ranges = [(times[0], times[2]), (times[0], None)]
    before = [rows(table.changes(*each, with_meta=True)) for each in ranges]
    settings = {"hoodie.clean.commits.retained": 1, "hoodie.compact.inline.max.delta.commits": 1}
    hudi_py.open_table(table.storage.root, settings=settings).archive(keep_min_commits=2, keep_max_commits=3)
    after = hudi_py.open_table(table.storage.root)
    assert times[2] not in {each.requested_time for each in after.timeline.commits}
    assert all(before)
    assert [rows(after.changes(*each, with_meta=True)) for each in ranges] == before
