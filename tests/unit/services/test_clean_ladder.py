"""Where incremental planning looks when the last clean's commit has left the active timeline."""

import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.model.instant import Action
from hudi_py.services.clean.planning import table_planner
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.timeline.archive import load_archived_partitions
from support.clean_histories import paths
from support.fixtures import fixture_names, unpack
from support.tables import TableBuilder, at

ARCHIVED = [name for name in fixture_names() if name.startswith("cow_archived")]
WRITES = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)


@pytest.mark.parametrize("name", ARCHIVED)
def test_archive_of_real_hudi_tells_which_partitions_each_commit_wrote(name, tmp_path):
    """Every completed commit from the asked one on, each with partitions of the table; nothing for a stranger."""
    table = Table(LocalStorage(unpack(name, tmp_path)))
    commits = sorted(i.requested_time for i in table.archived_timeline().completed(*WRITES))
    assert len(commits) > 2
    for position in (0, 2):
        found = load_archived_partitions(table.storage, table.config, commits[position])
        assert sorted(found) == commits[position:]
        assert all(each and each <= set(table.partitions()) for each in found.values())
    assert load_archived_partitions(table.storage, table.config, str(int(commits[0]) + 1)) is None


def story(layout):
    """The last clean stopped at c1, which is archived; r0 has garbage, r1 was not written since, r2 is news."""
    builder = TableBuilder(layout)
    for number in (1, 2):  # archived
        builder.put("r0/.hoodie_partition_metadata")
        builder.put(f"r0/{TableBuilder.base_name('f', at(number))}")
    builder.commit(at(3), {"r2": ["h"]})
    builder.commit(at(5), {"r2": ["h"]})
    builder.cleaned(at(4), earliest=at(1), last_commit=at(3))
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_archived_timeline_comes_before_a_full_scan(layout, monkeypatch):
    """The partitions of archived commits are looked at, and no others; the plan is that of a full scan."""
    builder = story(layout)
    builder.commit(at(0), {"r1": ["g"]})  # makes the partition; its instant files go again
    for path in builder.storage.files():
        if path.startswith(".hoodie") and at(0) in path:
            builder.storage.delete(path)
    monkeypatch.setattr(table_planner, "load_archived_partitions", lambda *_: {at(1): {"r0"}, at(2): {"r0"}})
    plan = builder.table().plan_clean(commits_retained=1, details=True)
    assert not plan.scope.everything
    assert f"partitions written from {at(1)}, which is archived" in plan.scope.reason
    assert "archived timeline" in plan.scope.cost
    assert {v.file_slice.partition_path for v in plan.verdicts} == {"r0", "r2"}
    full = builder.table(clean_incremental_enabled=False).plan_clean(commits_retained=1)
    assert paths(plan) == paths(full) == {f"r0/{TableBuilder.base_name('f', at(1))}"}


def unreadable(*_):
    raise CorruptMetadata("torn")


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("archive", [lambda *_: None, unreadable], ids=["silent", "damaged"])
def test_an_archive_that_does_not_tell_means_a_full_scan(layout, archive, monkeypatch):
    """Nothing is guessed, and the reason says why everything is looked at."""
    monkeypatch.setattr(table_planner, "load_archived_partitions", archive)
    plan = story(layout).table().plan_clean(commits_retained=1)
    assert plan.scope.everything
    assert "the archived timeline does not tell" in plan.scope.reason
    assert plan.scope.cost == "every partition is listed"


@pytest.mark.parametrize("layout", [1, 2])
def test_a_removed_savepoint_is_not_answered_by_the_archive(layout, monkeypatch):
    """What a savepoint held may lie in any partition (rule A-33)."""
    builder = story(layout)
    builder.cleaned(at(6), earliest=at(1), last_commit=at(5), savepoints=[at(2)])
    monkeypatch.setattr(table_planner, "load_archived_partitions", unreadable)
    assert builder.table().plan_clean(commits_retained=1).scope.everything
