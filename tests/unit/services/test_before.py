"""What writes found, and whether it is still there: the judgement alone (hudi_py.services.rollback.before)."""

from __future__ import annotations

import pytest

from hudi_py.fsview.expected import ExpectedSlice, Written
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.services.rollback.before import Touch, judge_before, together, touched_groups
from hudi_py.versions.format import LogNaming
from support.tables import TableBuilder, at

BASE = TableBuilder.base_name
A = ("eu", "a")


def log(time, file_id="a", suffix=""):
    return f".{file_id}_{time}.log.1_0-1-0{suffix}"


def commit(time, *stats, replaced=None):
    """A completed write of (file name, previous commit) in ``eu``."""
    written = tuple(
        WriteStat(file_id=name.lstrip(".").partition("_")[0], path=f"eu/{name}", partition_path="eu", prev_commit=prev)
        for name, prev in stats
    )
    metadata = CommitMetadata(partition_to_write_stats={"eu": written}, partition_to_replace_file_ids=replaced)
    return Instant(time, Action.COMMIT, State.COMPLETED), metadata


@pytest.mark.parametrize("is_merge_on_read", [False, True])
@pytest.mark.parametrize("previous", [None, "", "null", at(2), at(3), at(1)])
def test_a_write_tells_the_slice_that_it_merged_with(previous, is_merge_on_read):
    """Only one before it; what stands for none, or for its own time, tells of a new group."""
    found = touched_groups([commit(at(2), (BASE("a", at(2)), previous))], is_merge_on_read=is_merge_on_read)
    is_told = previous == at(1)
    assert found == {
        A: Touch(base_time=at(1) if is_told else None, is_certain=is_told and not is_merge_on_read, was_there=is_told)
    }


def test_the_oldest_write_tells_how_a_group_was_found():
    """Newest first they come; a group that was written and replaced by one of them was written to."""
    writes = [
        commit(at(4), (BASE("a", at(4)), at(3)), replaced={"eu": ["a", "b"]}),
        commit(at(3), (BASE("a", at(3)), at(1))),
    ]
    assert touched_groups(writes, is_merge_on_read=False) == {
        A: Touch(base_time=at(1), is_certain=True, was_there=True),
        ("eu", "b"): Touch(was_there=True),
    }
    newest = touched_groups(writes[:1], is_merge_on_read=False)
    assert newest[A] == Touch(base_time=at(3), is_certain=True, was_there=True)


def test_what_is_no_data_file_is_no_touch():
    """Whatever a commit names besides."""
    nameless = WriteStat(file_id="a", path=None, partition_path="eu", prev_commit=at(1))
    without_group = WriteStat(file_id=None, path=f"eu/{BASE('a', at(2))}", partition_path="eu", prev_commit=at(1))
    instant, metadata = commit(at(2), ("notes.txt", at(1)))
    stats = (*metadata.partition_to_write_stats["eu"], nameless, without_group)
    metadata = CommitMetadata(partition_to_write_stats={"eu": stats})
    assert touched_groups([(instant, metadata)], is_merge_on_read=False) == {}
    assert touched_groups([commit(at(2), (log(at(2)), at(1)))], is_merge_on_read=True).keys() == {A}


def judged(touch, there=(), *, expected=None, cleaned=(), naming=LogNaming.BY_SLICE, archived=()):
    """Of group ``a`` in ``eu``, where the writes of the third time are undone."""
    return judge_before(
        {A: touch}, {} if expected is None else {A: expected}, {"eu": there}, {"eu": cleaned} if cleaned else {},
        {at(3)}, naming, {"eu": archived} if archived else {},
    )  # fmt: skip


APPENDED = Touch(base_time=at(1), was_there=True)
MERGED = Touch(base_time=at(1), is_certain=True, was_there=True)


def written(name):
    """A file that a completed commit of its time names."""
    is_log = name[0] == "."
    time = at(2)
    instant = Instant(time, Action.COMMIT, State.COMPLETED)
    return Written("eu", name, "a", time, 1, instant, is_log)


ONE, TWO, THREE = (BASE("a", at(number)) for number in (1, 2, 3))


def test_a_new_group_was_nothing_before():
    """Nothing is needed and nothing can be lost; files of the writes themselves do not count."""
    before = judged(Touch(), [THREE, ".hoodie_partition_metadata"])
    assert (before.needed, before.lost, before.hidden) == ({}, (), ())
    assert before.groups == {A}


@pytest.mark.parametrize("touch", [APPENDED, MERGED, Touch(was_there=True)])
def test_a_group_that_was_there_and_left_nothing_is_lost(touch):
    """With only files of the writes to undo, and those of other groups."""
    assert judged(touch, [THREE, BASE("b", at(1))]).lost == ("eu/a",)


def test_a_group_of_log_files_alone_was_there():
    """Merge on read: rows may have no base file yet."""
    assert judged(APPENDED, [log(at(1))]).lost == ()


def test_what_two_need_is_needed():
    """Partition by partition, of either alone too."""
    assert together({"eu": ["a"], "us": ["b"]}, {"eu": ["c"], "de": ["d"]}) == {
        "eu": {"a", "c"},
        "us": {"b"},
        "de": {"d"},
    }


def test_a_merge_needs_the_very_base_that_it_read():
    """An older or a newer one is another state."""
    assert judged(MERGED, [ONE, TWO]).lost == ()
    assert judged(MERGED, [ONE, TWO]).needed == {"eu": {ONE, TWO}}
    for there in ([TWO], [BASE("a", at(0))]):
        assert judged(MERGED, there).lost == ("eu/a",)


def test_what_commits_tell_counts_before_what_the_write_says():
    """All files of the slice that the commits name have to be there."""
    told = ExpectedSlice(written(TWO), (written(log(at(2))),))
    assert judged(APPENDED, [ONE, TWO, log(at(2))], expected=told).needed == {"eu": {TWO, log(at(2))}}
    for missing in (TWO, log(at(2))):
        there = {ONE, TWO, log(at(2))} - {missing}
        assert judged(APPENDED, there, expected=told).lost == (f"eu/{missing}",)
    assert judged(APPENDED, [TWO, log(at(2))], expected=told, cleaned=[BASE("a", at(4))]).lost == ()
    newer = BASE("a", at(4))
    assert judged(APPENDED, [ONE, TWO, log(at(2)), newer], expected=told).needed == {"eu": {TWO, log(at(2)), newer}}
    assert judged(MERGED, [log(at(2))], expected=told).lost == (f"eu/{TWO}",)


def test_without_commits_cleans_tell_whether_the_newest_slice_is_there():
    """What they deleted of newer slices was it; of older ones, and of other groups, it was not."""
    there = [TWO, log(at(2))]
    assert judged(APPENDED, there, cleaned=[ONE, log(at(1)), BASE("b", at(4))]).lost == ()
    assert judged(APPENDED, there, cleaned=[BASE("a", at(4))]).lost == (f"eu/{BASE('a', at(4))}",)
    assert judged(APPENDED, there, cleaned=[f".a_{at(2)}.log.2_0-1-0"]).lost == (f"eu/.a_{at(2)}.log.2_0-1-0",)
    assert judged(APPENDED, there, cleaned=[TWO.replace("0-1-0", "0-9-0")]).lost == ()  # of a task that was retried
    assert judged(APPENDED, [ONE], cleaned=[THREE]).lost == ()  # it is of the writes to undo
    assert judged(MERGED, [ONE], cleaned=[BASE("a", at(4))]).lost == ()  # it says itself what it merged with


@pytest.mark.parametrize("naming", LogNaming)
def test_needed_is_the_slice_and_what_lies_on_it(naming):
    """Names of log files tell their slice in one layout; in the other all of them are needed."""
    logs = [log(at(number)) for number in (1, 2)]
    before = judged(Touch(was_there=True), [ONE, TWO, *logs, log(at(2), suffix=".cdc")], naming=naming)
    assert before.needed == {"eu": {TWO, *(logs[1:] if naming is LogNaming.BY_SLICE else logs)}}


def test_what_is_needed_and_archived_behind_a_savepoint_is_hidden():
    """Readers would take it for a failed write's; of what is not needed nothing is said."""
    assert judged(Touch(was_there=True), [ONE, TWO], archived=[ONE]).hidden == ()
    assert judged(Touch(was_there=True), [ONE, TWO], archived=[TWO]).hidden == (f"eu/{TWO}",)
