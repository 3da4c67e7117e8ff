"""Savepoints, rule by rule (rules/table-services C)."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError
from hudi_py.model.instant import Action, State
from support import writes
from support.fixtures import unpack
from support.tables import TableBuilder, at, data_files, done


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    """Three commits of one group, of which the second also wrote another partition."""
    builder = TableBuilder(request.param)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(3), {"eu": ["a"]})
    return builder


def held(builder: TableBuilder, time: str) -> dict[str, list[str]]:
    table = builder.table()
    files = table.contents.savepoint(table.timeline.find(time, Action.SAVEPOINT)).files
    return {path: list(names) for path, names in files.items()}


def test_default_is_the_last_completed_commit(builder):
    """C-1: without a time the newest completed commit is pinned, a pending one is not."""
    builder.commit(at(4), {"eu": ["a"]}, state=State.INFLIGHT)
    assert at(3) == builder.table().create_savepoint().requested_time


def test_files_are_the_latest_slices_at_that_time(builder):
    """C-4: one slice per group, none of a later commit."""
    builder.table().create_savepoint(at(2), user="ann", comment="before the import")
    assert held(builder, at(2)) == {"eu": [builder.base_name("a", at(2))], "us": [builder.base_name("b", at(2))]}


def test_files_that_are_lost_are_not_pinned(builder):
    """The slice before is no substitute; what was lost of later commits does not matter to an earlier savepoint."""
    lost = f"eu/{builder.base_name('a', at(3))}"
    builder.storage.delete(lost)
    with pytest.raises(CorruptMetadata, match=f"{lost} is missing"):
        builder.table().create_savepoint(at(3))
    builder.table().create_savepoint(at(2))
    assert held(builder, at(2)) == {"eu": [builder.base_name("a", at(2))], "us": [builder.base_name("b", at(2))]}


def test_files_that_only_the_metadata_table_has_are_not_pinned(tmp_path):
    """It goes on listing a file that was lost from its folder; a restore would end without the rows."""
    path = unpack("cow_cleaned-1.1.1", tmp_path)
    table = hudi_py.open_table(path)
    assert table.config.has_metadata_table
    partition, base = table.base_files()[0]
    (path / partition / base.name).unlink()
    with pytest.raises(CorruptMetadata, match=f"{base.name} is missing"):
        hudi_py.open_table(path).create_savepoint()
    assert not hudi_py.open_table(path).timeline.of((Action.SAVEPOINT,)).instants


@pytest.mark.parametrize("metadata", [{}, {"hoodie.metadata.enable": "true"}], ids=["folders", "metadata table"])
@pytest.mark.parametrize("version", [6, 9])
def test_files_that_are_cut_off_are_not_pinned(version, metadata):
    """A restore would end without their rows; the metadata table knows only the size that was recorded."""
    storage = writes.create_table(version)
    writes.upsert(storage, writes.OLD, **metadata)
    writes.upsert(storage, writes.CHANGES, **metadata)
    table = writes.open_table(storage, **metadata)
    partition, newest = max(table.base_files(), key=lambda file: file[1].instant_time)
    path = f"{partition}/{newest.name}"
    storage.replace(path, storage.read(path)[:-100])
    with pytest.raises(CorruptMetadata, match=f"{path}.*bytes"):
        table.refresh().create_savepoint()


def test_group_replaced_later_still_belongs_to_it(builder):
    """C-4: what a later replacecommit superseded was live at that time."""
    builder.commit(at(4), {"eu": ["n"]}, replaced={"eu": ["a"]})
    builder.table().create_savepoint(at(3))
    assert held(builder, at(3))["eu"] == [builder.base_name("a", at(3))]
    builder.table().create_savepoint(at(4))
    assert held(builder, at(4))["eu"] == [builder.base_name("n", at(4))]


def test_user_comment_and_time_are_kept(builder):
    """A savepoint tells who made it, why and when."""
    table = builder.table()
    table.create_savepoint(at(3), user="ann", comment="why")
    ((instant, content),) = table.services.savepoint().savepoints()
    assert (instant.requested_time, content.savepointed_by, content.comments) == (at(3), "ann", "why")
    assert content.savepointed_at_ms == int(builder.clock.now().timestamp() * 1000)


@pytest.mark.parametrize("time", [at(9), at(4)])
def test_only_completed_commits_can_be_savepointed(builder, time):
    """C-1: an unknown or pending instant is refused, and nothing is written."""
    builder.commit(at(4), {"eu": ["a"]}, state=State.INFLIGHT)
    before = builder.storage.files()
    with pytest.raises(ConfigError):
        builder.table().create_savepoint(time)
    assert before == builder.storage.files()


def test_empty_table_has_nothing_to_savepoint():
    """C-1: an empty timeline is an error."""
    with pytest.raises(ConfigError):
        TableBuilder(2).table().create_savepoint()


def test_commit_before_the_last_clean_is_refused(builder):
    """C-2: a completed clean has taken files of commits before its earliest."""
    builder.cleaned(at(5), earliest=at(2), last_commit=at(3))
    with pytest.raises(RefusedError):
        builder.table().create_savepoint(at(1))
    builder.table().create_savepoint(at(2))


def test_clean_without_an_earliest_commit_lets_any_pass(builder):
    """C-3: a clean by file versions stores an empty text, which no time is smaller than."""
    builder.cleaned(at(5), earliest="", last_commit=at(3))
    builder.table().create_savepoint(at(1))


def test_pending_clean_counts_by_its_plan(builder):
    """C-2: the plan of a pending clean bounds like a completed one."""
    builder.table().services.clean(builder.table().services.clean_config(commits_retained=1)).schedule()
    with pytest.raises(RefusedError):
        builder.table().create_savepoint(at(1))
    builder.table().create_savepoint(at(3))


def test_files_a_pending_clean_will_delete_cannot_be_pinned(builder):
    """K-19: a pending clean by file versions has no earliest commit, yet deletes what its plan names."""
    builder.table().services.clean(builder.table().services.clean_config(file_versions_retained=1)).schedule()
    with pytest.raises(RefusedError, match="pending clean"):
        builder.table().create_savepoint(at(2))
    builder.table().create_savepoint(at(3))


def test_second_savepoint_of_a_commit_is_refused(builder):
    """A savepoint is not overwritten silently."""
    builder.table().create_savepoint(at(3))
    with pytest.raises(RefusedError, match="already"):
        builder.table().create_savepoint(at(3))


def test_clean_spares_the_files(builder):
    """C-7: what a savepoint holds stays, until it is deleted."""
    builder.table().create_savepoint(at(1))
    builder.table().clean(file_versions_retained=1)
    assert f"eu/{builder.base_name('a', at(1))}" in data_files(builder.storage)
    assert f"eu/{builder.base_name('a', at(2))}" not in data_files(builder.storage)
    assert builder.table().delete_savepoint(at(1))
    builder.commit(at(8), {"eu": ["a"]})
    builder.table().clean(file_versions_retained=1)
    assert f"eu/{builder.base_name('a', at(1))}" not in data_files(builder.storage)


def test_files_on_the_timeline(builder):
    """C-5, C-6: inflight empty, then completed; deleted without a trace; deleting again is no error."""
    before = builder.storage.files()
    builder.table().create_savepoint(at(3))
    names = {path.rpartition("/")[2] for path in set(builder.storage.files()) - set(before) if ".aux" not in path}
    if builder.layout.version == 1:
        assert names == {f"{at(3)}.savepoint.inflight", f"{at(3)}.savepoint"}
    else:
        assert {name.partition("_")[0] for name in names} == {at(3), f"{at(3)}.savepoint.inflight"}
    assert builder.table().delete_savepoint(at(3))
    assert not builder.table().delete_savepoint(at(3))
    assert [path for path in builder.storage.files() if "savepoint" in path] == []


def test_completion_time_is_the_newest(builder):
    """A savepoint of an old commit completes now."""
    instant = builder.table().create_savepoint(at(1))
    if builder.layout.version == 2:
        assert instant.completion_time > done(at(3))


def archived_beyond(layout: int) -> TableBuilder:
    """A savepoint of the first commit; archival took the three behind it and left two."""
    builder = TableBuilder(layout)
    for number in range(1, 7):
        builder.commit(at(number), {"eu": ["a"]})
    builder.table().create_savepoint(at(1))
    builder.table().archive(keep_min_commits=3, keep_max_commits=4, archive_beyond_savepoint=True)
    assert [i.requested_time for i in builder.table().timeline.completed("commit")] == [at(1), at(5), at(6)]
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_savepoint_that_archival_has_passed_is_kept(layout):
    """D-7: without it the archived commits behind it would look uncommitted; so it stays, and nothing is changed."""
    builder = archived_beyond(layout)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="archival has gone beyond"):
        builder.table().delete_savepoint(at(1))
    assert before == builder.storage.files()


@pytest.mark.parametrize("layout", [1, 2])
def test_savepoint_that_archival_has_passed_goes_with_its_commit(layout):
    """D-7: its commit is archived like those behind it, so all of them look committed; the rows in sight stay."""
    builder = archived_beyond(layout)
    visible = builder.table().file_slices("eu")
    assert builder.table().delete_savepoint(at(1), archive_commit=True)
    table = builder.table()
    assert not table.timeline.of((Action.SAVEPOINT,)).instants
    assert [i.requested_time for i in table.timeline.completed("commit")] == [at(5), at(6)]
    assert at(1) in {i.requested_time for i in table.archived_timeline().completed("commit")}
    assert table.file_slices("eu") == visible
    assert table.partition("eu").uncommitted == ()
    assert table.check() == ()
    assert not table.delete_savepoint(at(1), archive_commit=True)


@pytest.mark.parametrize("layout", [1, 2])
def test_commit_of_a_savepoint_behind_another_one_stays(layout):
    """To Hudi the timeline begins with the commit of the first savepoint, so that one has to go first."""
    builder = TableBuilder(layout)
    for number in range(1, 8):
        builder.commit(at(number), {"eu": ["a"]})
    for number in (1, 3):
        builder.table().create_savepoint(at(number))
    builder.table().archive(keep_min_commits=4, keep_max_commits=5, archive_beyond_savepoint=True)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="nothing was changed"):
        builder.table().delete_savepoint(at(3), archive_commit=True)
    assert before == builder.storage.files()
    assert builder.table().delete_savepoint(at(1), archive_commit=True)
    assert builder.table().delete_savepoint(at(3), archive_commit=True)
    assert [i.requested_time for i in builder.table().timeline.completed("commit")] == [at(6), at(7)]


@pytest.mark.parametrize("layout", [1, 2])
def test_no_way_back_to_a_savepoint_that_archival_has_passed(layout):
    """B-27: whatever the setting says now, what is archived would not be undone."""
    builder = archived_beyond(layout)
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=f"it would undo 3 archived commits.*--savepoint {at(1)}"):
        builder.table().restore(at(1))
    with pytest.raises(RefusedError, match="archived"):
        builder.table(archive_beyond_savepoint=True).restore(at(1))
    assert before == builder.storage.files()


@pytest.mark.parametrize("layout", [1, 2])
def test_way_out_of_that_refusal_is_open(layout):
    """What the savepoint holds is readable, whatever has passed it; as of its time the table is not, as in Hudi."""
    builder = archived_beyond(layout)
    builder.table().clean(commits_retained=1)
    assert builder.table().timeline.completed("clean")
    found = builder.table().base_files(savepoint=at(1))
    assert [(path, base.name) for path, base in found] == [("eu", builder.base_name("a", at(1)))]
    with pytest.raises(RefusedError):
        builder.table().base_files(at(1))
    with pytest.raises(ConfigError):
        builder.table().base_files(savepoint=at(5))


@pytest.mark.parametrize("layout", [1, 2])
def test_first_commit_of_a_timeline_without_hole_can_be_let_go(layout):
    """Archival up to the savepoint is no obstacle, and neither is an archive that holds commits before it."""
    builder = TableBuilder(layout)
    for number in range(1, 7):
        builder.commit(at(number), {"eu": ["a"]})
    builder.table().create_savepoint(at(3))
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    assert builder.table().timeline.completed("commit")[0].requested_time == at(3)
    assert builder.table().delete_savepoint(at(3))


def hole_behind_savepoint(layout: int) -> TableBuilder:
    """Real Hudi archived everything but the savepointed and the last two commits; a group of each was written last."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(2), {"eu": ["a"]})
    for number in (3, 4, 5, 6):
        builder.commit(at(number), {"us": ["b"]})
    held = {"eu": [builder.base_name("a", at(1))], "us": [builder.base_name("b", at(1))]}
    first = {path: data for path, data in builder.storage.files().items() if f"/{at(1)}" in path}
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    for path, data in first.items():
        builder.put(path, data)
    builder.savepoint(at(1), held)
    assert [i.requested_time for i in builder.table().timeline.completed("commit")] == [at(1), at(5), at(6)]
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_what_is_archived_behind_a_savepoint_is_committed(layout):
    """D-7, Z-2: the archive says so, though the savepointed commit before it is still active."""
    builder = hole_behind_savepoint(layout)
    table = builder.table()
    assert [s.base_instant_time for s in table.file_slices("eu")] == [at(2)]
    assert table.partition("eu").uncommitted == ()
    assert "file-orphaned" not in {each.code for each in table.check()}
    assert [o.finding.problem for o in table.recover(dry_run=True) if "eu/" in " ".join(o.finding.paths)] == []


@pytest.mark.parametrize("layout", [1, 2])
def test_nothing_is_shown_where_the_archive_behind_a_savepoint_is_damaged(layout):
    """Older rows would be the latest, and the next write would build on them; the check reports the archive."""
    builder = hole_behind_savepoint(layout)
    folder = builder.table().config.history_folder
    for path in [path for path in builder.storage.files() if path.startswith(folder) and "ersion_" not in path]:
        builder.put(path, builder.storage.read(path)[:-1])
    with pytest.raises(CorruptMetadata, match="archive back from a backup"):
        builder.table().file_slices("eu")
    with pytest.raises(CorruptMetadata, match="archive back from a backup"):
        builder.table().plan_clean(file_versions_retained=1)
    assert "archive-unreadable" in {each.code for each in builder.table().check()}


@pytest.mark.parametrize("layout", [1, 2])
def test_files_of_a_failed_write_behind_a_savepoint_are_not(layout):
    """Z-2: what neither timeline knows stays out of sight."""
    builder = hole_behind_savepoint(layout)
    time = at(4)[:-1] + "1"
    builder.put(f"eu/{builder.base_name('x', time)}")
    assert "x" not in {s.file_id for s in builder.table().file_slices("eu")}
    assert [s.base_instant_time for s in builder.table().partition("eu").uncommitted] == [time]


@pytest.mark.parametrize("layout", [1, 2])
def test_nothing_is_shown_where_the_archive_behind_a_savepoint_is_lost(layout):
    """Without it what archived commits wrote last counts as failed, and older rows would be the latest."""
    builder = hole_behind_savepoint(layout)
    folder = builder.table().config.history_folder
    for path in [path for path in builder.storage.files() if path.startswith(folder)]:
        builder.storage.delete(path)
    uses = {
        "files": lambda t: t.file_slices("eu"),
        "rows": lambda t: t.base_files(),
        "plan": lambda t: t.plan_clean(file_versions_retained=1),
        "clean": lambda t: t.clean(file_versions_retained=1),
        "explain": lambda t: list(t.explain("eu")),
    }
    before = builder.storage.files()
    for use in uses.values():
        with pytest.raises(CorruptMetadata, match=rf"eu/.*{at(2)}.*bring the archive back"):
            use(builder.table())
    assert [each.where for each in builder.table().check() if each.code == "archive-unreadable"] == [
        "archived timeline"
    ]
    builder.table().recover()
    assert builder.storage.files() == before


@pytest.mark.parametrize("layout", [1, 2])
def test_what_was_taken_back_behind_a_savepoint_hides_nothing(layout):
    """A table that was never archived: its files of a write that was rolled back, or is under way, are no riddle."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["a"]}, state=State.INFLIGHT)
    (failed,) = (path for path in builder.storage.files() if path.startswith("eu/a") and at(2) in path)
    builder.table().rollback(at(2))
    builder.put(failed)
    builder.commit(at(4), {"us": ["b"]}, state=State.INFLIGHT)
    builder.commit(at(5), {"us": ["b"]})
    builder.table().create_savepoint(at(1))
    assert [s.base_instant_time for s in builder.table().file_slices("eu")] == [at(1)]
    assert "archive-unreadable" not in {each.code for each in builder.table().check()}


@pytest.mark.parametrize("layout", [1, 2])
def test_every_commit_savepointed(layout):
    """What is archived before the first of them is committed."""
    builder = TableBuilder(layout)
    for number in range(1, 6):
        builder.commit(at(number), {"eu": ["a"] if number > 1 else ["a", "old"]})
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    for number in (4, 5):
        builder.table().create_savepoint(at(number))
    assert {s.file_id for s in builder.table().file_slices("eu")} == {"a", "old"}


@pytest.mark.parametrize("layout", [1, 2])
def test_clean_keeps_the_newest_slice_behind_a_savepoint(layout):
    """What an archived commit behind the savepoint wrote last stays, and so does what the savepoint holds."""
    builder = hole_behind_savepoint(layout)
    builder.table().clean(file_versions_retained=1)
    left = data_files(builder.storage)
    assert {f"eu/{builder.base_name('a', at(n))}" for n in (1, 2)} == {path for path in left if path.startswith("eu/")}
    assert {f"us/{builder.base_name('b', at(n))}" for n in (1, 6)} == {path for path in left if path.startswith("us/")}
