"""Of a deleted file: which clean deleted it, by which policy, and whether it can come back."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import parse_data_file
from hudi_py.runtime.who import who_runs_this
from hudi_py.services.archive import gather
from support.tables import NOW, TableBuilder, at


def cleaned(layout, **settings):
    builder = TableBuilder(layout)
    for number in range(1, 5):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    table = builder.table()
    table.settings = table.settings.merged(settings)
    (result,) = table.clean(commits_retained=1)
    builder.clock.move(timedelta(seconds=1))
    return builder, result


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("is_archived", [False, True])
def test_the_clean_is_named_with_its_policy(layout, is_archived):
    """By path, by name and by file id together with files that are there; from the archive, too."""
    builder, result = cleaned(layout)
    gone = sorted(result.deleted_files)
    if is_archived:
        for day in range(2, 8):  # each day a commit and a clean
            builder.clock.move(timedelta(days=1))
            builder.commit(f"2026060{day}000000000", {"r0": ["f"], "r1": ["g"]})
            builder.clock.move(timedelta(hours=1))
            assert builder.table().clean(commits_retained=1)
        builder.clock.move(timedelta(hours=1))
        builder.table().archive(keep_min_commits=2, keep_max_commits=3)
        assert builder.table().timeline.find(result.instant) is None
    for target in (gone[0], gone[0].rpartition("/")[2], f"{builder.storage.root}/{gone[0]}"):
        (file,) = builder.table().explain(target).files
        assert (file.path, file.deleted_by.requested_time, file.removable) == (gone[0], result.instant, False)
        assert "KEEP_LATEST_COMMITS" in file.rule
        assert result.metadata.earliest_commit_to_retain in file.rule
        assert file.file_id == parse_data_file(gone[0].rpartition("/")[2]).file_id
        assert file.also == ()


@pytest.mark.parametrize(
    ("root", "named"),
    [
        ("s3://lake/trips", "s3a://lake/trips"), ("s3://lake/trips", "s3n://lake/trips"),
        ("s3a://lake/trips", "s3://lake/trips"), ("/lake/trips", "file:/lake/trips"),
    ],
)  # fmt: skip
def test_a_file_is_found_as_the_error_of_a_reader_names_it(root, named):
    """Readers of Hadoop have other names for the same store."""
    builder, result = cleaned(2)
    builder.storage._root = root
    gone = min(result.deleted_files)
    (file,) = builder.table().explain(f"{named}/{gone}").files
    assert file.path == gone


def test_of_a_table_with_a_retention_policy_it_is_said_who_ran_the_clean():
    """Other cleans are equal to those of Apache Hudi, which say nobody."""
    builder = TableBuilder(2)
    for hours in range(6, 0, -1):
        builder.commit(f"{NOW - timedelta(hours=hours):%Y%m%d%H%M%S}000", {"r0": ["f"]})
    builder.table().apply_policy('[keep]\neverything = "3h"\n')
    (result,) = builder.table().clean()
    (file,) = builder.table().explain(min(result.deleted_files)).files
    assert file.rule.endswith(f"; {who_runs_this()} ran it")
    other, result = cleaned(2)
    assert not result.metadata.extra_metadata
    (file,) = other.table().explain(min(result.deleted_files)).files
    assert "who ran it is not on record" in file.rule


def test_a_file_in_quarantine_can_come_back():
    """It says until when, and how."""
    builder, result = cleaned(2, **{"hoodie_py.clean.quarantine": True})
    (file,) = builder.table().explain(min(result.deleted_files)).files
    assert f"hudi-py undo TABLE {result.instant}" in file.also[0]


def archived(layout, **settings):
    """A partition r1 that is gone: one clean, archived since, deleted its files but the last, and another one that."""
    builder, first = cleaned(layout, **settings)
    cleans = [first]
    for day in range(6):
        builder.clock.move(timedelta(days=1))
        replaced = {"r1": ["g"]} if day == 4 else None
        builder.commit(f"{builder.clock.now():%Y%m%d%H%M%S}000", {"r0": ["f"]}, replaced=replaced)
        builder.clock.move(timedelta(hours=1))
        table = builder.table()
        table.settings = table.settings.merged(settings)
        cleans += table.clean(commits_retained=1)
    builder.table(clean_commits_retained=1).archive(keep_min_commits=2, keep_max_commits=3)
    builder.storage.delete_folder("r1")
    timeline = builder.table().timeline
    assert timeline.find(cleans[0].instant) is None
    assert timeline.find(cleans[-1].instant) is not None
    return builder, cleans


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("target", ["r1", "g"])
def test_a_partition_and_a_file_group_that_are_gone_are_told_as_a_whole(layout, target):
    """Also where several cleans deleted their files, and some of those are archived."""
    builder, cleans = archived(layout)
    gone = {path: each.instant for each in cleans for path in each.deleted_files if path.startswith("r1/g")}
    assert len(set(gone.values())) == 3
    assert {each.path: each.deleted_by.requested_time for each in builder.table().explain(target).files} == gone


@pytest.mark.parametrize("layout", [1, 2])
def test_no_undo_is_promised_of_a_clean_that_is_archived(layout, monkeypatch):
    """By Apache Hudi, which knows no quarantine; what explain says of the quarantine is what the undo says."""
    monkeypatch.setattr(gather, "may_hold", lambda storage: frozenset())
    builder, cleans = archived(layout, **{"hoodie_py.clean.quarantine": True, "hoodie_py.quarantine.grace": "90d"})
    gone = next(each for each in cleans[0].deleted_files if each.startswith("r1/"))
    (file,) = builder.table().explain(gone).files
    assert file.also[0].endswith(f"clean {cleans[0].instant} is archived and cannot be undone any more")
    with pytest.raises(RefusedError, match="cannot be undone: it is archived"):
        builder.table().undo(cleans[0].instant)


def test_what_never_was_is_still_wrong_usage():
    """The message says that no clean is known, either."""
    builder, _ = cleaned(2)
    with pytest.raises(ConfigError, match="no clean is known"):
        builder.table().explain("r0/never.parquet")


@pytest.mark.parametrize("is_archived", [False, True])
def test_who_approved_the_removal_is_named(is_archived):
    """Of a file that was in a list; as long as the clean is known."""
    builder = TableBuilder(2)
    for number in range(1, 5):
        builder.commit(at(number), {"r0": ["f"]})
    asked = builder.table().list_for_approval(commits_retained=1)
    builder.table().remove_approved(attrs.evolve(asked, approved_by="ann"))
    if is_archived:
        for day in range(2, 8):
            builder.clock.move(timedelta(days=1))
            builder.commit(f"2026060{day}000000000", {"r0": ["f"]})
            builder.clock.move(timedelta(hours=1))
            assert builder.table().clean(commits_retained=1)
        builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    (found,) = builder.table().explain(asked.files[0].path).files
    assert "; ann approved it" in found.rule


@pytest.mark.parametrize("layout", [1, 2])
def test_what_a_rollback_a_restore_or_a_search_for_orphans_took_is_told(layout):
    """A clean knows nothing of these files; they are told by what undid their write, or by why nobody knew them."""
    builder = TableBuilder(layout)
    for number in range(1, 5):
        builder.commit(at(number), {"r0": ["f"]})
    builder.table().create_savepoint(at(2))
    builder.clock.move(timedelta(seconds=1))
    builder.table().restore(at(2))
    times = [at(3), at(4), "20260601010000000"]
    builder.commit(times[2], {"r0": ["f"]})
    builder.clock.move(timedelta(hours=2))
    builder.table().rollback(times[2])
    last = [f"r0/{builder.base_name('f', time)}" for time in times]
    builder.clock.move(timedelta(seconds=1))
    stranger = f"r0/{builder.base_name('x', at(1)[:-7] + '1500000')}"
    builder.put(stranger)
    assert builder.table().orphans(older_than="0m", now=builder.clock.now() + timedelta(days=9000)).done == (stranger,)
    found = {path: builder.table().explain(path).files[0] for path in (*last, stranger)}
    assert [found[path].deleted_by.action.value for path in last] == ["restore", "restore", "rollback"]
    assert [found[path].rule.rpartition(", ")[2] for path in last] == [f"which undid {time}" for time in times]
    assert "no instant has its time" in found[stranger].rule
    assert found[stranger].also[0].endswith(f"hudi-py undo TABLE {found[stranger].quarantine}")
    assert all(each.is_gone for each in found.values())


@pytest.mark.parametrize("layout", [1, 2])
def test_what_a_rollback_took_is_told_from_the_archive_too(layout):
    """Archival keeps what it deleted."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["f"]})
    undone = []
    for day in range(8):
        builder.clock.move(timedelta(days=1))
        time = f"{builder.clock.now():%Y%m%d%H%M%S}000"
        builder.commit(time, {"r0": ["f"]})
        builder.clock.move(timedelta(hours=1))
        if day < 4:
            builder.table().rollback(time)
            undone.append(time)
    builder.table(clean_commits_retained=1).clean()
    (first, *_) = builder.table().timeline.completed("rollback")
    builder.table(clean_commits_retained=1).archive(keep_min_commits=2, keep_max_commits=3)
    assert builder.table().timeline.find(first.requested_time) is None
    path = f"r0/{builder.base_name('f', undone[0])}"
    (file,) = builder.table().explain(path).files
    assert (file.path, file.deleted_by.requested_time, file.is_gone) == (path, first.requested_time, True)
    assert file.rule.endswith(f"which undid {undone[0]}")
