"""Blocks of log files whose headers are damaged: older rows are never shown as the latest."""

import attrs
import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import CorruptMetadata
from hudi_py.formats.log_block import HeaderKey, encode_log_block, encode_rollback_block, iterate_log_blocks
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.model.files import parse_log_file
from hudi_py.writing.log_slices import GroupLogs, deleted_in_logs, keys_in_logs

UNKNOWN = "29991231235959000"
VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def rows(value, *keys):
    return pa.table({"id": list(keys), "v": [value] * len(keys)})


def table_with_logs(folder, version, upserts=2, **settings):
    """A base file, and a log file of each upsert; returns the path and the log files."""
    path = folder / "t"
    known = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": version,
        "hoodie.metadata.enable": False,
        **settings,
    }
    hudi_py.write(str(path), rows(0, "a", "b"), settings=known)
    for number in range(upserts):
        hudi_py.write(str(path), rows(number + 1, "a"), settings=known)
    return path, sorted(path.glob(".*.log.*"), key=lambda file: file.stat().st_mtime_ns)


def say(file, time):
    """Make all blocks of a file say that *time* wrote them; returns who did."""
    blocks = list(iterate_log_blocks(file.read_bytes(), file.name))
    file.write_bytes(
        b"".join(
            encode_log_block(attrs.evolve(each, header={**each.header, HeaderKey.INSTANT_TIME: time}))
            for each in blocks
        )
    )
    return blocks[0].header[HeaderKey.INSTANT_TIME]


def shown(path, **how):
    found = hudi_py.open_table(str(path)).rows(**how).to_arrow().to_pylist()
    return {row["id"]: row["v"] for row in found}


@VERSIONS
def test_a_block_of_an_unknown_write_is_refused_where_a_commit_wrote(version, tmp_path):
    """It would be left out like one of a write that never completed; base files alone are still read."""
    path, logs = table_with_logs(tmp_path, version)
    assert shown(path) == {"a": 2, "b": 0}
    writer = say(logs[-1], UNKNOWN)
    with pytest.raises(CorruptMetadata, match=writer):
        shown(path)
    assert shown(path, read_optimized=True) == {"a": 0, "b": 0}
    with pytest.raises(CorruptMetadata, match=writer):
        hudi_py.open_table(str(path)).changes("0").to_arrow()


@VERSIONS
def test_single_changes_leave_no_such_block_out(version, tmp_path):
    """A change that is not told is a row that its reader keeps as it was."""
    path, logs = table_with_logs(tmp_path, version, **{"hoodie.table.cdc.enabled": True})
    table = hudi_py.open_table(str(path))
    told = table.change_log().to_arrow().to_pylist()
    assert [each["after"]["v"] for each in told if each["after"]["id"] == "a"] == [0, 1, 2]
    writer = say(logs[-1], UNKNOWN)
    with pytest.raises(CorruptMetadata, match=writer):
        hudi_py.open_table(str(path)).change_log().to_arrow()


@pytest.mark.parametrize("version", [8, 9])
def test_a_block_of_another_write_than_the_name_says_is_refused(version, tmp_path):
    """Even one that is completed: as of a time between the two, other rows would be shown."""
    path, logs = table_with_logs(tmp_path, version)
    first = hudi_py.open_table(str(path)).timeline.writes.completed()[1].requested_time
    assert say(logs[-1], first) != first
    with pytest.raises(CorruptMetadata, match=r"log\.1.*damaged"):
        shown(path)


def test_a_block_that_nobody_wrote_is_refused_once_its_commit_is_archived(tmp_path):
    """No commit tells any more which bytes it wrote, but the archive knows all writes that there were."""
    keep = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    path, logs = table_with_logs(tmp_path, 6, upserts=7, **keep)
    table = hudi_py.open_table(str(path))
    start = table.timeline.writes.completed()[0].requested_time
    say_again = say(logs[0], UNKNOWN)
    assert say_again < start, "nothing was archived"
    with pytest.raises(CorruptMetadata, match="no such write"):
        shown(path)
    say(logs[0], say_again)
    assert shown(path) == {"a": 7, "b": 0}


@pytest.mark.parametrize("target", ["completed", "unknown"])
def test_a_rollback_block_takes_back_no_completed_commit(target, tmp_path):
    """One that names such a write is damaged; one of a write that left no block is no matter."""
    path, logs = table_with_logs(tmp_path, 6)
    completed = say(logs[-1], UNKNOWN)
    say(logs[-1], completed)
    named = completed if target == "completed" else UNKNOWN
    behind = logs[-1].with_name(logs[-1].name.replace(".log.2_", ".log.3_"))
    behind.write_bytes(encode_rollback_block(str(int(completed) + 1), named))
    if target == "unknown":
        assert shown(path) == {"a": 2, "b": 0}
        return
    with pytest.raises(CorruptMetadata, match="takes back"):
        shown(path)


@VERSIONS
@pytest.mark.parametrize("archives", [False, True])
def test_the_block_of_a_write_whose_instants_were_deleted_by_hand_is_left_out(version, archives, tmp_path):
    """As by Apache Hudi: people delete stuck instants, and what completed commits wrote is all there."""
    keep = {"hoodie.keep.min.commits": 2, "hoodie.keep.max.commits": 3, "hoodie.clean.commits.retained": 1}
    path, _ = table_with_logs(tmp_path, version, upserts=7, **(keep if archives else {}))
    timeline = hudi_py.open_table(str(path)).timeline
    last = timeline.writes.completed()[-1].requested_time
    assert (len(timeline.writes.completed()) < 8) == archives
    for file in (path / ".hoodie").rglob(f"{last}*"):
        if file.is_file():
            file.unlink()
    assert shown(path) == {"a": 6, "b": 0}


@VERSIONS
def test_a_write_looks_for_keys_in_no_log_file_whose_rows_are_lost(version, tmp_path):
    """A key that is overlooked would be written a second time; what a writer that died left behind is passed over."""
    path, logs = table_with_logs(tmp_path, version)
    last, table = logs[-1], hudi_py.open_table(str(path))
    content, log = last.read_bytes(), parse_log_file(last.name)
    written = WrittenRanges(table.contents, table.timeline)

    def keys():
        return [key for found in keys_in_logs(table.storage, "", [log], written) for key in found.to_pylist()]

    assert keys() == ["a"]
    last.write_bytes(content + content[: len(content) // 2])
    assert keys() == ["a"]
    last.write_bytes(content[:6] + b"\x7f" + content[7:])
    with pytest.raises(CorruptMetadata, match="its rows are lost"):
        keys()
    last.write_bytes(content)
    group = GroupLogs(
        file_slice=None,
        behind=tuple(parse_log_file(each.name) for each in logs),
        keyed=(),
        completed=table.view_context.is_completed,
        is_plain=False,
        written=written,
    )
    assert deleted_in_logs(table.storage, "", group) == set()
    say(last, UNKNOWN)
    with pytest.raises(CorruptMetadata, match="its rows are lost"):
        deleted_in_logs(table.storage, "", group)


def test_each_block_of_a_write_that_is_left_out_is_compared_with_the_commits(tmp_path):
    """That one block is really of a failed write says nothing of the next one that claims the same."""
    path, logs = table_with_logs(tmp_path, 6, upserts=3)
    failed = hudi_py.open_table(str(path)).timeline.writes.completed()[2].requested_time
    for file in (path / ".hoodie").glob(f"{failed}*"):
        file.unlink()
    assert shown(path) == {"a": 3, "b": 0}
    writer = say(logs[2], failed)
    with pytest.raises(CorruptMetadata, match=writer):
        shown(path)


@VERSIONS
def test_a_snapshot_is_read_on_when_its_commits_are_archived(version, tmp_path):
    """A later write has appended to its log file meanwhile; whose block that is, the archived commits tell, too."""
    few = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
    path, _ = table_with_logs(tmp_path, version, 3, **few)
    table = hudi_py.open_table(str(path))
    with table.lease(ttl="1h") as snapshot:
        before = {row["id"]: row["v"] for row in snapshot.rows().to_arrow().to_pylist()}
        for number in range(3):
            hudi_py.write(str(path), rows(9 + number, "a", "b"), settings=few)
        first = table.timeline.writes.completed()[0]
        hudi_py.open_table(str(path)).archive(keep_min_commits=2, keep_max_commits=3)
        assert hudi_py.open_table(str(path)).timeline.writes.completed()[0] != first
        assert before == {row["id"]: row["v"] for row in snapshot.rows().to_arrow().to_pylist()}
