"""What must be there is found in the bytes of the commits as decoding finds it, however much of them is passed over."""

from __future__ import annotations

import threading
from itertools import combinations

import pytest

from hudi_py.errors import ConflictError, CorruptMetadata, NotFound
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.fsview import group_files, needed
from hudi_py.fsview.expected import expected_slices
from hudi_py.fsview.group_files import GroupFiles, archived_replacements
from hudi_py.fsview.needed import NeededFiles
from hudi_py.model.instant import State
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.storage.base import Entry
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.versions.format import LogNaming
from support.fixtures import fixture_names, metadata_files
from support.tables import SYNC, TableBuilder, at, done

REMOTE = "s3://lake/trips"


def decoded(files: NeededFiles, naming: LogNaming) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for each in expected_slices(files.metadata, naming).values():
        for file in each.files:
            found.setdefault(file.partition_path, {})[file.name] = file.size_bytes
    return found


@pytest.fixture
def looked_through(monkeypatch):
    """Times of the commits whose names are looked for."""
    times = []
    real = needed.named_files

    def named_files(data, time, **more):
        times.append(time)
        return real(data, time, **more)

    monkeypatch.setattr(needed, "named_files", named_files)
    return times


@pytest.mark.slow  # decodes every commit of some forty tables, time and again
@pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])
def test_needed_files_are_those_that_decoding_gives(version, looked_through):
    """Of each table of Hudi, at each of its commits: names and sizes, on local disk and in an object store."""
    for name in [each for each in fixture_names() if each.endswith(version)]:
        for root in ("/lake/trips", REMOTE):
            table = Table(MemoryStorage.from_files(metadata_files(name), root), settings={})
            times = [each.requested_time for each in table.timeline.writes.completed()]
            for until in times[-3:]:
                files = NeededFiles(table.contents, table.timeline, until)
                wanted = decoded(files, table.config.format.log_naming)
                assert wanted == files.sizes, name
                names = NeededFiles(table.contents, table.timeline, until).by_partition
                assert {path: frozenset(sizes) for path, sizes in wanted.items()} == names, name
    assert looked_through


def rewritten(layout: int) -> TableBuilder:
    """Each commit but the last one rewrites every group; stats name what they replace, as those of Hudi."""
    builder = TableBuilder(layout)
    groups = {"eu": ["a", "b"], "us/ny": ["c"]}
    for number in (1, 2, 3):
        builder.commit(at(number), groups, previous=at(number - 1) if number > 1 else None)
    builder.commit(at(4), {"eu": ["a"]}, previous=at(3))
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_commits_whose_files_were_all_replaced_are_not_looked_through(layout, looked_through):
    """That they were shows in their number; what is left of the others is found as ever."""
    table = rewritten(layout).table()
    files = NeededFiles(table.contents, table.timeline)
    wanted = {"eu": {f"a_0-1-0_{at(4)}.parquet", f"b_0-1-0_{at(3)}.parquet"}, "us/ny": {f"c_0-1-0_{at(3)}.parquet"}}
    assert wanted == files.by_partition
    assert [at(4), at(3)] == looked_through


@pytest.mark.parametrize("layout", [1, 2])
def test_the_copy_of_a_retried_task_does_not_stand_for_a_missing_file(layout):
    """On a table that was never cleaned too, where the files of each commit are as many as it named."""
    for lost, kept in (("b", "a"), ("c", "b")):
        builder = rewritten(layout)
        partition, other = ("us/ny" if each == "c" else "eu" for each in (lost, kept))
        builder.put(f"{other}/{kept}_7-9-9_{at(3)}.parquet")
        builder.table().plan_clean(commits_retained=1)
        builder.storage.delete(f"{partition}/{lost}_0-1-0_{at(3)}.parquet")
        with pytest.raises(CorruptMetadata, match=f"{lost}_0-1-0_{at(3)}.parquet is missing"):
            builder.table().plan_clean(commits_retained=1)


class Together(MemoryStorage):
    """Two commits are read at the same time, or none is."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.both = threading.Barrier(2)

    def read(self, path: str) -> bytes:
        if path.endswith(".commit"):
            self.both.wait(timeout=10)
        return super().read(path)


@pytest.mark.parametrize("layout", [1, 2])
def test_commits_in_an_object_store_are_read_at_the_same_time(layout):
    """Each is a round trip there; one after the other a long timeline takes seconds. On tables never cleaned too."""
    storage = Together(REMOTE)
    for path, content in rewritten(layout).storage.files().items():
        storage.replace(path, content)
    assert ["eu", "us/ny"] == sorted(path for path, _ in Table(storage).listing.walk())


def with_logs(layout: int) -> TableBuilder:
    """The newest commit names base files only; an older one names a log file, which only decoding understands."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a", "b"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    builder.commit(at(3), {"eu": ["b"], "us/ny": ["c"]}, action="deltacommit")
    return builder


def with_replaced(layout: int) -> TableBuilder:
    """A group was replaced, and another one written again since."""
    builder = rewritten(layout)
    builder.commit(at(5), {"eu": ["n"]}, replaced={"eu": ["a"]})
    builder.commit(at(6), {"us/ny": ["c"]})
    return builder


def with_both(layout: int) -> TableBuilder:
    """Log files, and a group that was replaced."""
    builder = with_logs(layout)
    builder.commit(at(4), {"eu": ["n"]}, replaced={"eu": ["b"]})
    return builder


def with_logs_beside_replaced(layout: int) -> TableBuilder:
    """A delta commit wrote a base file, which a newer one replaced, and a log file, which is needed still."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["b"]}, action="deltacommit")
    builder.commit(at(2), {"eu": ["c"]}, action="deltacommit")
    (instant,) = builder.table().timeline.writes.completed()[1:]
    stats = builder.table().contents.commit(instant).partition_to_write_stats["eu"]
    builder.log_files(at(2), [("eu", "b", at(1))])
    stats += builder.table().contents.commit(instant).partition_to_write_stats["eu"]
    both = encode_commit(CommitMetadata(partition_to_write_stats={"eu": stats}), as_json=layout == 1, sync=SYNC)
    builder.instant(at(2), "deltacommit", State.COMPLETED, both)
    builder.commit(at(3), {"eu": ["c"]}, action="deltacommit", previous=at(2))
    return builder


def with_replaced_written(layout: int) -> TableBuilder:
    """The newest commit wrote to a group that a clustering of an earlier time had replaced when it completed."""
    builder = rewritten(layout)
    builder.commit(at(5), {"eu": ["n"]}, replaced={"eu": ["a"]}, completed_at=done(at(7)))
    builder.commit(at(6), {"eu": ["a", "b"]})
    return builder


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize(
    "story",
    [TableBuilder, rewritten, with_logs, with_replaced, with_both, with_replaced_written, with_logs_beside_replaced],
)
def test_sizes_of_some_groups_are_those_of_all(story, layout):
    """Whichever groups are asked for, and whether the bytes of the commits tell or only decoding does."""
    table = story(layout).table()
    files = NeededFiles(table.contents, table.timeline)
    wanted = decoded(files, table.config.format.log_naming)
    assert wanted == files.sizes
    for each in (files, NeededFiles(table.contents, table.timeline)):
        assert {path: frozenset(sizes) for path, sizes in wanted.items()} == each.by_partition
    groups = [("eu", "a"), ("eu", "b"), ("eu", "n"), ("us/ny", "c"), ("us/ny", "x")]
    for count in range(len(groups) + 1):
        for some in combinations(groups, count):
            asked: dict[str, list[str]] = {}
            for path, group in some:
                asked.setdefault(path, []).append(group)
            sizes = GroupFiles(table.contents, table.timeline).sizes_of(asked)
            found = {(path, *item) for path, each in sizes.items() for item in each.items()}
            assert found == {
                (path, name, size)
                for path, each in wanted.items()
                for name, size in each.items()
                if (path, name.removeprefix(".").partition("_")[0]) in some
            }


@pytest.mark.parametrize("layout", [1, 2])
def test_a_log_file_is_missed_although_base_files_of_its_commit_are_replaced(layout):
    """Without it rows of before its commit would be shown as current ones."""
    builder = with_logs_beside_replaced(layout)
    (path,) = [each for each in builder.storage.files() if ".log." in each]
    assert builder.table().file_slices("eu")
    builder.storage.delete(path)
    with pytest.raises(CorruptMetadata, match=path.rpartition("/")[2]):
        builder.table().file_slices("eu")


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("gone", [1, 2, 3, 4])
@pytest.mark.parametrize("root", ["/lake/trips", REMOTE])
def test_nothing_is_told_of_a_commit_that_is_gone_by_then(root, gone, layout):
    """Archived or rolled back since: a write starts again, views ask later, and asking again tells no more."""
    storage = MemoryStorage.from_files(rewritten(layout).storage.files(), root)
    table = Table(storage)
    timeline = table.timeline
    storage.delete(table.contents.store.path(timeline.find(at(gone))))
    names = {f"a_0-1-0_{at(4)}.parquet", f"b_0-1-0_{at(3)}.parquet"}
    for _ in range(2):
        files = NeededFiles(table.contents, timeline)
        assert not files.are_newest("eu", {*names, f"d_0-1-0_{at(1)}.parquet"}, ())
        for _ in range(2):
            with pytest.raises(ConflictError, match="another process archived or undid it meanwhile; try again"):
                files.required()
        assert (files.by_partition, files.sizes) == ({}, {})


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("is_torn", [False, True])
def test_of_some_groups_newer_commits_tell_what_they_can(layout, is_torn):
    """Behind a commit that is gone or damaged nothing is known: an older file would pass for the newest."""
    builder = rewritten(layout)
    table = builder.table()
    timeline, path = table.timeline, table.contents.store.path(table.timeline.find(at(3)))
    if is_torn:
        builder.put(path, b"torn")
    else:
        builder.storage.delete(path)
    files, asked = GroupFiles(table.contents, timeline), {"eu": ["a", "b"], "us/ny": ["c"]}
    assert files.newest_of(asked).keys() == {("eu", "a")}
    assert files.sizes_of(asked).keys() == {"eu"}
    assert files.sizes_of(asked)["eu"].keys() == {f"a_0-1-0_{at(4)}.parquet"}


@pytest.mark.parametrize("error", [CorruptMetadata("torn"), NotFound("deleted")])
def test_an_archive_that_cannot_be_read_tells_of_no_replacement(error, monkeypatch):
    """Then the files of the group are missed, rather than taken for replaced."""
    table = rewritten(2).table()
    since = {("eu", "a"): at(4)}
    replaced = {("eu", "a"): at(5), ("eu", "b"): at(5)}
    monkeypatch.setattr(group_files, "load_archived_replaced", lambda *_: replaced)
    assert archived_replacements(table.contents, since) == {("eu", "a")}
    assert archived_replacements(table.contents, {("eu", "a"): at(5)}) == set()

    def unreadable(*_: object) -> None:
        raise error

    monkeypatch.setattr(group_files, "load_archived_replaced", unreadable)
    assert archived_replacements(table.contents, since) == set()


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("story", [rewritten, with_logs, with_replaced, with_both])
def test_newest_files_of_a_partition_are_all_that_are_known_or_not_the_newest(story, layout):
    """One that is left out is of a group without files, or with an older one: its rows would be missed."""
    table = story(layout).table()
    wanted = decoded(NeededFiles(table.contents, table.timeline), table.config.format.log_naming)
    for path, sizes in wanted.items():
        files = NeededFiles(table.contents, table.timeline)
        there = {name: Entry(name, False) for name in sizes}
        bases = frozenset(name for name in sizes if name[0] != ".")
        assert not files.are_newest(path, {*bases, f"z_0-1-0_{at(1)}.parquet"}, there.values())
        assert files.are_newest(path, bases, there.values())
        for name in sizes:
            left = [each for each in there.values() if each.name != name]
            assert not files.are_newest(path, bases - {name}, left)


@pytest.mark.parametrize("layout", [1, 2])
def test_the_commit_of_the_time_asked_for_counts(layout):
    """Files of a snapshot are those of its own commit and of the ones before, as the commits were made here."""
    table = rewritten(layout).table()
    for number in (1, 2, 3, 4):
        eu = {f"a_0-1-0_{at(number)}.parquet", f"b_0-1-0_{at(min(number, 3))}.parquet"}
        wanted = {"eu": eu, "us/ny": {f"c_0-1-0_{at(min(number, 3))}.parquet"}}
        assert wanted == NeededFiles(table.contents, table.timeline, at(number)).by_partition


@pytest.mark.parametrize("layout", [1, 2])
def test_the_newest_files_of_some_groups_are_those_of_all_commits(layout):
    """A log file that grew with several commits is that of the last one, which messages name."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a", "b"]}, action="deltacommit")
    for number in (2, 3):
        stat = WriteStat(file_id="a", path=f"eu/.a_{at(1)}.log.1_0-1-0", partition_path="eu", file_size_in_bytes=number)
        metadata = CommitMetadata(partition_to_write_stats={"eu": (stat,)})
        content = encode_commit(metadata, as_json=layout == 1, sync=SYNC)
        builder.instant(at(number), "deltacommit", State.COMPLETED, content)
    table = builder.table()
    files = NeededFiles(table.contents, table.timeline)
    expected = expected_slices(files.metadata, table.config.format.log_naming)
    found = GroupFiles(table.contents, table.timeline).newest_of({"eu": ["a"]})
    assert {("eu", "a"): expected["eu", "a"]} == found
    assert [at(3)] == [log.commit.requested_time for log in found["eu", "a"].logs]
