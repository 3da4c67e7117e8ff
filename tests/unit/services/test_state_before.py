"""Rolling back to what was there right before, or not at all (rules/table-services B)."""

from __future__ import annotations

import pytest

from hudi_py.errors import RefusedError
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model.instant import State
from hudi_py.services.rollback import state_before
from hudi_py.services.rollback.state_before import StateBefore
from hudi_py.timeline.contents import Contents
from support.tables import SYNC, TableBuilder, at, data_files
from support.undoing import merge_on_read, times, update, updated


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    return updated(request.param)


def test_older_slice_that_a_savepoint_holds_is_not_the_state_before(builder):
    """The group would fall back by several commits that stay completed: refused, and the way out is named and works."""
    builder.table().create_savepoint(at(1))
    update(builder, at(3), {"eu": ["a"]}, at(2))
    builder.table().clean(file_versions_retained=1)
    before = builder.storage.files()
    assert sorted(data_files(builder.storage)) == [f"eu/{builder.base_name('a', at(t))}" for t in (1, 3)]
    for call in (builder.table().rollback, builder.table().services.rollback().plan):
        with pytest.raises(RefusedError, match=f"hudi-py restore {builder.storage.root} {at(1)}"):
            call(at(3))
    assert before == builder.storage.files()
    builder.table().restore(at(1))
    assert times(builder, "commit") == [at(1)]


def test_way_out_of_a_refused_rollback_tells_which_savepoints_are_in_its_way(builder):
    """The commit after the one that can be reached is savepointed, with a file that was deleted by hand."""
    builder.table().create_savepoint(at(1))
    update(builder, at(3), {"eu": ["a"]}, at(2))
    builder.savepoint(at(2), {})
    builder.table().clean(file_versions_retained=1)
    with pytest.raises(
        RefusedError, match=f"once the newer savepoints {at(2)} are deleted: hudi-py restore .* {at(1)}"
    ):
        builder.table().rollback(at(3))
    builder.table().delete_savepoint(at(2))
    builder.table().restore(at(1))


@pytest.mark.parametrize("layout", [1, 2])
def test_replaced_group_comes_back_whole_or_not_at_all(layout):
    """What a replacecommit replaced lives again with its newest slice; an older one that is left is another state."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {"eu": ["a"]})
    builder.commit(at(3), {"eu": ["n"]}, replaced={"eu": ["a"]})
    builder.table().clean(file_versions_retained=1)
    with pytest.raises(RefusedError, match=builder.base_name("a", at(2))):
        builder.table().rollback(at(3))


@pytest.mark.parametrize("layout", [1, 2])
def test_log_file_of_the_slice_before_has_to_be_there(layout):
    """Merge on read: without it the rows would be those of an earlier delta commit."""
    builder = merge_on_read(layout)
    builder.log_files(at(3), [("eu", "a", at(1))])
    (second,) = [path for path, data in builder.storage.files().items() if ".log.1" in path and at(2).encode() in data]
    assert builder.storage.delete(second)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=second.rpartition("/")[2]):
        builder.table().rollback(at(3))
    assert before == builder.storage.files()


@pytest.mark.parametrize("is_lost", [False, True])
@pytest.mark.parametrize("layout", [1, 2])
def test_archived_commits_before_are_told_by_what_cleans_deleted(layout, is_lost):
    """No active commit tells of a replaced group: what cleans deleted says whether its newest slice is there."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {"eu": ["a"]})
    for number in range(3, 7):
        builder.commit(at(number), {"us": ["b"]})
    builder.table().archive(keep_min_commits=2, keep_max_commits=3, archive_beyond_savepoint=True)
    builder.table().delete_savepoint(at(1), archive_commit=True)
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    builder.commit(at(8), {"eu": ["n"]}, replaced={"eu": ["a"]})
    if not is_lost:
        builder.table().rollback(at(8))
        assert [each.base_instant_time for each in builder.table().file_slices("eu")] == [at(2)]
        return
    builder.table().clean(file_versions_retained=1)
    assert f"eu/{builder.base_name('a', at(2))}" not in data_files(builder.storage)
    with pytest.raises(RefusedError, match=builder.base_name("a", at(2))):
        builder.table().rollback(at(8))


@pytest.mark.parametrize("layout", [1, 2])
def test_only_commit_before_archived_ones_stays(layout):
    """Without a start of the active timeline nothing counts as completed: no reader would see any row."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"eu": [f"g{number}"]})
    builder.table().archive(keep_min_commits=1, keep_max_commits=2)
    assert times(builder, "commit") == [at(5)]
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="the only active commit"):
        builder.table().rollback(at(5))
    assert before == builder.storage.files()
    assert len(builder.table().file_slices("eu")) == 5


@pytest.fixture(params=[1, 2])
def archived_behind_savepoint(request):
    """A savepoint, a commit that is archived behind it, and later ones that wrote the same file group again."""
    builder = TableBuilder(request.param)
    builder.commit(at(1), {"eu": ["a"]})
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {"eu": ["a"]})
    return builder


def _archive(builder):
    builder.table().archive(keep_min_commits=1, keep_max_commits=2, archive_beyond_savepoint=True)
    assert at(2) not in times(builder, "commit")


def test_commits_archived_after_all_active_ones_stay_in_sight(archived_behind_savepoint):
    """What is newer than the last active commit counts as failed: its rows would give way to those of the savepoint."""
    builder = archived_behind_savepoint
    builder.commit(at(3), {"us": ["b"]})
    builder.commit(at(4), {"eu": ["a"], "us": ["b"]})
    _archive(builder)
    assert times(builder, "commit") == [at(1), at(4)]
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=f"older, with savepoints, and .* {at(3)}.* would be hidden from readers"):
        builder.table().rollback(at(4))
    assert before == builder.storage.files()


def test_slice_archived_behind_a_savepoint_does_not_become_the_latest_one(archived_behind_savepoint):
    """Apache Hudi would show the rows of the savepoint, which are older: undoing stops, by rollback and restore."""
    builder = archived_behind_savepoint
    builder.commit(at(3), {"us": ["b"]})
    builder.table().create_savepoint(at(3))
    builder.commit(at(4), {"eu": ["a"]})
    _archive(builder)
    hidden = builder.base_name("a", at(2))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=f"hidden.* eu/{hidden}"):
        builder.table().rollback(at(4))
    with pytest.raises(RefusedError, match=f"hidden.* eu/{hidden}"):
        builder.table().restore(at(3))
    assert before == builder.storage.files()


@pytest.mark.parametrize("layout", [1, 2])
def test_first_commit_of_a_table_can_be_undone(layout):
    """Nothing was there before it, so nothing is lost."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.table().rollback(at(1))
    assert data_files(builder.storage) == []


def test_rows_that_a_clean_left_only_there_are_not_lost(builder):
    """After a clean by file versions the commit's files are the only ones: undoing it would lose every older row."""
    builder.table().clean(file_versions_retained=1)
    before = data_files(builder.storage)
    with pytest.raises(RefusedError, match="the rows before it cannot be restored"):
        builder.table().rollback(at(2))
    assert before == data_files(builder.storage)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("deleted", [(), (1,), (2,), (1, 2)])
def test_the_newest_slice_of_archived_commits_comes_back_or_nothing(layout, deleted):
    """A clean after the replacement could not delete all files of the group: what it recorded tells which are gone."""
    builder = TableBuilder(layout)
    for number in (1, 2):
        builder.commit(at(number), {"eu": ["a"]})
    for number in range(3, 7):
        builder.commit(at(number), {"us": ["b"]})
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    assert times(builder, "commit") == [at(5), at(6)]
    builder.commit(at(8), {"eu": ["n"]}, replaced={"eu": ["a"]})
    builder.table().clean(file_versions_retained=1)
    for number in {1, 2}.difference(deleted):
        builder.put(f"eu/{builder.base_name('a', at(number))}")
    if 2 in deleted:
        with pytest.raises(RefusedError, match=r"the rows before it cannot be restored .*: a clean deleted them"):
            builder.table().rollback(at(8))
        return
    builder.table().rollback(at(8))
    assert [each.base_instant_time for each in builder.table().file_slices("eu")] == [at(2)]


@pytest.mark.parametrize("layout", [1, 2])
def test_base_file_of_merge_on_read_without_a_predecessor_may_have_had_one(layout):
    """Its commit names none, and the commits before are archived: what a clean deleted of the group tells."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    for number in (1, 2):
        builder.commit(at(number), {"eu": ["a"]}, action="deltacommit")
    for number in range(3, 7):  # of compactions, before which delta commits may be archived
        builder.commit(at(number), {"us": ["b"]})
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    builder.commit(at(8), {"eu": ["a"]}, action="deltacommit")
    builder.table().clean(file_versions_retained=1)
    builder.put(f"eu/{builder.base_name('a', at(1))}")
    lost = (f"eu/{builder.base_name('a', at(2))}",)
    assert _judged(builder, *builder.table().timeline.writes.completed()[-1:]).lost == lost


def _judged(builder, *undone):
    table = builder.table()
    return StateBefore(table.contents, table.config).judge(table.timeline, undone)


def test_pending_writes_are_not_part_of_any_state(builder):
    """Readers do not see them, though inflight files of Apache Hudi say which groups they are going to write."""
    builder.commit(at(3), {"eu": ["n"]})
    last = builder.table().timeline.writes.completed()[-1]
    builder.commit(at(4), {"eu": ["a"]}, state=State.INFLIGHT)
    metadata = builder.table().contents.commit(builder.table().timeline.writes.completed()[-2])
    builder.instant(
        at(4), "commit", State.INFLIGHT, encode_commit(metadata, as_json=builder.layout.version == 1, sync=SYNC)
    )
    pending = builder.table().timeline.writes.pending()
    assert len(pending) == 1
    assert _judged(builder, last, *pending) == _judged(builder, last)
    assert _judged(builder, *pending).groups == frozenset()


def test_other_commits_are_not_decoded_where_the_undone_ones_name_their_base_files(builder, monkeypatch):
    """Decoding all of a long timeline would be most of what a rollback costs."""
    update(builder, at(3), {"eu": ["a"]}, at(2))
    decoded, real = [], Contents.commit

    def commit(self, instant):
        decoded.append(instant.requested_time)
        return real(self, instant)

    monkeypatch.setattr(Contents, "commit", commit)
    assert _judged(builder, builder.table().timeline.writes.completed()[-1]).lost == ()
    assert decoded == [at(3)]


def test_the_archive_is_asked_from_the_oldest_undone_write_on(builder, monkeypatch):
    """For cleans of groups that no commit tells of; for files, only where a savepoint kept the first commit active."""
    for number in (3, 4, 5):
        builder.commit(at(number), {"us": ["b"]}, replaced={"eu": ["gone"]})
    asked = []
    for name in ("load_archived_cleans", "load_archived_written"):
        monkeypatch.setattr(state_before, name, lambda *args, name=name: asked.append((name, *args[2:])) or {})
    undone = builder.table().timeline.writes.completed()[-2:]
    _judged(builder, *undone)
    assert asked == [("load_archived_cleans", at(4))]
    builder.table().create_savepoint(at(1))
    asked.clear()
    _judged(builder, *undone)
    assert asked == [("load_archived_cleans", at(4)), ("load_archived_written", at(1), at(4))]


@pytest.mark.parametrize("is_archived", [False, True])
@pytest.mark.parametrize("layout", [1, 2])
def test_what_archived_cleans_deleted_is_lost_too(layout, is_archived, monkeypatch):
    """The commits of the group are archived, an older file is left, and the newest one is known from a clean alone."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(2), {"eu": ["a"]})
    for path in [path for path in builder.storage.files() if path.startswith(f"{builder.folder}/20")]:
        builder.storage.delete(path)  # archived
    builder.commit(at(3), {"us": ["b"]})
    builder.commit(at(4), {"eu": ["n"]}, replaced={"eu": ["a"]})
    newest = builder.base_name("a", at(2))
    builder.storage.delete(f"eu/{newest}")
    told = {"eu": frozenset({newest})} if is_archived else {}
    monkeypatch.setattr(state_before, "load_archived_cleans", lambda *_: told)
    table = builder.table()
    undone = [each for each in table.timeline.writes.completed() if each.requested_time == at(4)]
    found = StateBefore(table.contents, table.config).judge(table.timeline, undone)
    assert ((f"eu/{newest}",) if is_archived else ()) == found.lost
