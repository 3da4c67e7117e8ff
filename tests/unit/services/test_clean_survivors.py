"""A clean deletes nothing of a group whose newest file, which has to hold the rows from then on, is not as written."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hudi_py.errors import ConflictError, CorruptMetadata
from hudi_py.fsview import group_files
from hudi_py.fsview.survivors import lost_survivors
from hudi_py.model.files import format_base_file
from hudi_py.model.instant import Action, State
from hudi_py.services.clean.executing.outlook import outlook
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support.fixtures import unpack
from support.tables import TableBuilder, at, data_files

NAME = TableBuilder.base_name
RETENTIONS = pytest.mark.parametrize(
    "retention", [{"commits_retained": 1}, {"file_versions_retained": 1}], ids=["commits", "versions"]
)


def versions(layout: int = 2, commits: int = 4) -> TableBuilder:
    """Groups ``a`` of r0 and ``b`` of r1, both written by every commit, with their sizes recorded."""
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["a"], "r1": ["b"]})
    return builder


def path_of(builder: TableBuilder, group: str, number: int) -> str:
    return f"{'r0' if group == 'a' else 'r1'}/{NAME(group, at(number))}"


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


def emptied(file: Path) -> None:
    os.truncate(file, 0)


def pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def absent(file: Path) -> None:
    file.unlink()


def newest_of_several(path: Path) -> Path:
    """The newest base file of a group that has more than one."""
    files = [path / partition / base.name for partition, base in Table(LocalStorage(str(path))).base_files()]
    return next(file for file in files if len(list(file.parent.glob(f"{file.name.split('_')[0]}*"))) > 1)


@pytest.mark.parametrize(
    ("damage", "listing", "retention"),
    [
        (cut, "metadata table", {"commits_retained": 1}),
        (cut, "folders", {"file_versions_retained": 1}),
        (emptied, "folders", {"commits_retained": 1}),
        (pipe, "metadata table", {"file_versions_retained": 1}),
        (pipe, "folders", {"commits_retained": 1}),
        (folder, "metadata table", {"commits_retained": 1}),
        (folder, "folders", {"file_versions_retained": 1}),
        (absent, "metadata table", {"file_versions_retained": 1}),
    ],
)
def test_nothing_goes_where_the_newest_file_is_damaged(damage, listing, retention, tmp_path):
    """By real tables of Hudi, with and without their metadata table: the dry run and the clean name the file."""
    path = unpack("cow_partitioned-1.0.2", tmp_path)
    settings = {"hoodie.metadata.enable": "true" if listing == "metadata table" else "false"}
    victim = newest_of_several(path)
    damage(victim)
    before = sorted(path.rglob("*.parquet"))
    for run in ("dry run", "clean"):
        table = Table(LocalStorage(str(path)), settings=settings)
        service = table.services.clean(table.services.clean_config(**retention))
        with pytest.raises(CorruptMetadata, match=rf"{victim.name} .*completed commit .*hudi-py check"):
            service.plan(sizes=True) if run == "dry run" else table.clean(**retention)
    assert sorted(path.rglob("*.parquet")) == before
    assert Table(LocalStorage(str(path))).timeline.pending("clean") == ()


@RETENTIONS
@pytest.mark.parametrize("layout", [1, 2])
def test_a_stored_plan_is_withdrawn_where_the_newest_file_was_damaged_since(layout, retention):
    """Left on the timeline, Apache Hudi would carry it out; planning anew names the file."""
    builder = versions(layout)
    table = builder.table()
    instant = table.services.clean(table.services.clean_config(**retention)).schedule()
    damaged = path_of(builder, "a", 4)
    builder.put(damaged, b"P")
    before = data_files(builder.storage)
    told = outlook(table.contents, instant)
    assert told.is_withdrawn
    assert f"{damaged} has 1 bytes, and the completed commit {at(4)} wrote 4" in told.why_spared
    (result,) = builder.table().services.clean(table.services.clean_config(**retention)).execute_pending()
    assert result.withdrawn
    assert set(result.spared_files) == {path for path in before if path.startswith("r0/a_") and path < damaged} - set(
        () if "file_versions_retained" in retention else (path_of(builder, "a", 3),)
    )
    with pytest.raises(CorruptMetadata, match=f"{damaged} has 1 bytes"):
        builder.table().clean(**retention)
    assert data_files(builder.storage) == before
    assert builder.table().timeline.pending() == ()


@RETENTIONS
@pytest.mark.parametrize("layout", [1, 2])
def test_an_inflight_clean_is_settled_without_the_group(layout, retention):
    """It cannot be taken back: the rest goes, what is left of the damaged group stays, and the table is free again."""
    builder = versions(layout)
    table = builder.table()
    service = table.services.clean(table.services.clean_config(**retention))
    instant = service.schedule()
    store = table.contents.store
    store.transition(instant, store.read_plan(instant))
    builder.storage.delete(path_of(builder, "b", 4))
    (result,) = builder.table().services.clean(table.services.clean_config(**retention)).execute_pending()
    assert result.is_finished and not result.withdrawn
    assert f"{path_of(builder, 'b', 4)} is missing" in result.why_spared
    assert {path for path in data_files(builder.storage) if path.startswith("r1/b_")} == {
        path_of(builder, "b", number) for number in (1, 2, 3)
    }
    assert path_of(builder, "a", 1) not in data_files(builder.storage)
    assert builder.table().timeline.completed(Action.CLEAN)[-1].requested_time == instant.requested_time


def test_only_groups_that_lose_files_are_asked_about():
    """A damaged file elsewhere is no reason to keep garbage; the check and every read tell of it."""
    builder = versions()
    builder.put("r0/" + NAME("c", at(4)), b"")
    table = builder.table()
    losing = {"r1": (NAME("b", at(1)),)}
    builder.put(path_of(builder, "a", 4), b"P")
    assert lost_survivors(table.contents, table.timeline, losing) == {}
    assert set(lost_survivors(table.contents, table.timeline, {"r0": (NAME("a", at(1)),)})) == {("r0", "a")}
    for only in (["r1"], ["r0", "r1"]):
        lost = lost_survivors(table.contents, table.timeline, {"r0": (NAME("a", at(1)),)}, only=only)
        assert set(lost) == ({("r0", "a")} if "r0" in only else set())
    assert lost_survivors(table.contents, table.timeline, {"r0": (NAME("a", at(1)),)}, compared=["r0"]) == {}


def test_replaced_groups_need_no_newest_file():
    """All their files may go, the newest one first."""
    builder = versions()
    builder.commit(at(5), {"r0": ["n"]}, replaced={"r0": ["a"]})
    builder.storage.delete(path_of(builder, "a", 4))
    table = builder.table()
    assert lost_survivors(table.contents, table.timeline, {"r0": (NAME("a", at(1)),)}) == {}


@pytest.mark.parametrize("replaced_at", [at(1), at(3)])
def test_groups_that_an_archived_commit_replaced_need_no_newest_file(replaced_at, monkeypatch):
    """Archival went beyond a savepoint: only the archive tells any more that a group was replaced after it."""
    builder = versions(commits=2)
    builder.storage.delete(path_of(builder, "a", 2))
    monkeypatch.setattr(group_files, "load_archived_replaced", lambda *_: {("r0", "a"): replaced_at})
    table = builder.table()
    lost = lost_survivors(table.contents, table.timeline, {"r0": (NAME("a", at(1)),)})
    assert set(lost) == (set() if replaced_at > at(2) else {("r0", "a")})


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("with_base", [False, True])
def test_log_files_go_only_where_the_newest_file_of_their_group_is_whole(layout, with_base):
    """A plan may name logs and no base file of a group, beside base files of others."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a", "b"]}, action="deltacommit")
    builder.log_files(at(2), [("r0", "a", at(1))])
    builder.commit(at(3), {"r0": ["a", "b"]})
    (log,) = (path.removeprefix("r0/") for path in data_files(builder.storage) if ".log." in path)
    losing = {"r0": (log, *((NAME("b", at(1)),) if with_base else ()))}
    table = builder.table()
    assert lost_survivors(table.contents, table.timeline, losing) == {}
    builder.put(path_of(builder, "a", 3), b"P")
    assert set(lost_survivors(table.contents, table.timeline, losing)) == {("r0", "a")}


@pytest.mark.parametrize("layout", [1, 2])
def test_log_files_may_be_longer_and_not_shorter_than_recorded(layout):
    """Of merge-on-read slices that stay the logs are needed too; rollbacks append to them in layout 1."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r0": ["a"]}, action="deltacommit")
    builder.commit(at(2), {"r0": ["a"]})
    builder.log_files(at(3), [("r0", "a", at(2))])
    (log,) = (path for path in data_files(builder.storage) if ".log." in path)
    losing = {"r0": (NAME("a", at(1)),)}
    whole = builder.storage.read(log)
    for content, is_lost in ((whole, False), (whole + b"more", False), (whole[:-1], True), (b"", True)):
        builder.put(log, content)
        table = builder.table()
        assert bool(lost_survivors(table.contents, table.timeline, losing)) is is_lost
    builder.storage.delete(log)
    assert "is missing" in lost_survivors(table.contents, table.timeline, losing)["r0", "a"]


def test_of_archived_commits_only_what_is_certain_is_told():
    """No size is known: another one passes; an empty file, or what is no regular file, is none that holds rows."""
    builder = versions()
    archived = path_of(builder, "a", 0)
    builder.put(f"r0/{NAME('old', at(0))}", b"any size")
    losing = {"r0": (NAME("old", "20251231000000000"),)}
    table = builder.table()
    assert archived not in data_files(builder.storage)
    assert lost_survivors(table.contents, table.timeline, losing) == {}
    builder.put(f"r0/{NAME('old', at(0))}", b"")
    assert "is empty" in lost_survivors(table.contents, table.timeline, losing)["r0", "old"]
    builder.put(f"r0/{NAME('old', at(9))}", b"")  # of no write that is known
    builder.put(f"r0/{NAME('old', at(0))}", b"any size")
    assert lost_survivors(table.contents, table.timeline, losing) == {}


@pytest.mark.parametrize("empty", [(), (1,), (2,), (1, 2)])
@pytest.mark.parametrize("tokens", [("0-1-0", "0-2-0"), ("0-2-0", "0-1-0")], ids=["listed last", "listed first"])
def test_of_archived_files_the_newest_that_stays_counts(tokens, empty):
    """However they are listed: empty older files harm nobody, nor do the planned ones and those of other groups."""
    builder = versions()
    times = ("20251231000000001", "20251231000000002")
    for number, (token, time) in enumerate(zip(tokens, times, strict=True), 1):
        builder.put(f"r0/{format_base_file('old', token, time)}", b"" if number in empty else b"rows")
    builder.put(f"r0/{NAME('other', times[0])}", b"")
    builder.put(f"r0/{NAME('old', at(1))}", b"")  # left by a retried task: no commit names it
    planned = NAME("old", "20251231000000003")
    builder.put(f"r0/{planned}", b"")
    table = builder.table()
    lost = lost_survivors(table.contents, table.timeline, {"r0": (planned,)})
    assert set(lost) == ({("r0", "old")} if 2 in empty else set())
    assert all(times[1] in why for why in lost.values())


def test_without_commits_nothing_is_known_of_any_file():
    """Nothing says which files hold the rows."""
    builder = TableBuilder()
    builder.put(f"r0/{NAME('old', at(0))}", b"")
    builder.instant(at(0), "commit", State.REQUESTED)
    table = builder.table()
    assert lost_survivors(table.contents, table.timeline, {"r0": (NAME("old", at(1)),)}) == {}


@pytest.mark.parametrize("partitions", [1, 3])
def test_partitions_in_an_object_store_are_asked_at_the_same_time(partitions):
    """Each is a round trip there; what is found is what one after the other would find."""
    builder = TableBuilder()
    paths = [f"r{number}" for number in range(partitions)]
    for number in (1, 2):
        builder.commit(at(number), {path: ["a"] for path in paths})
    builder.put(f"r0/{NAME('a', at(2))}", b"P")
    threads: set[str] = set()
    for root in ("/lake/trips", "s3://lake/trips"):
        storage = Threads(MemoryStorage.from_files(builder.storage.files(), root))
        table = Table(storage, clock=builder.clock)
        lost = lost_survivors(table.contents, table.timeline, dict.fromkeys(paths, (NAME("a", at(1)),)))
        assert set(lost) == {("r0", "a")}
        threads = storage.threads
    assert ("MainThread" in threads) is (partitions == 1)


def test_a_table_that_changes_meanwhile_is_looked_at_again():
    """Another process rolled the newest commit back: its file is missing by right."""
    builder = versions()
    contents, seen = builder.table().contents, builder.table().timeline
    for instant in seen.commits:
        contents.store.read(instant)
    losing = {"r0": (NAME("a", at(1)),)}
    builder.commit(at(5), {"r1": ["b"]})
    assert lost_survivors(contents, seen, losing) == {}  # whole as it was seen, whatever came after
    builder.storage.delete(path_of(builder, "a", 4))
    for instant in contents.store.files_of(seen.find(at(4))):
        builder.storage.delete(contents.store.path(instant))
    with pytest.raises(ConflictError, match="try again"):
        lost_survivors(contents, seen, losing)
    table = builder.table()
    assert lost_survivors(table.contents, table.timeline, losing) == {}


class Threads(DelegatingStorage):
    """Remembers which threads asked for sizes."""

    def __init__(self, inner):
        super().__init__(inner)
        self.threads = set()

    def _around(self, verb, paths, call):
        if verb == "sizes":
            self.threads.add(threading.current_thread().name)
        return call()


class Counting(DelegatingStorage):
    """Counts how often sizes were asked for."""

    asked = 0

    def _around(self, verb, paths, call):
        self.asked += verb == "sizes"
        return call()


def test_one_run_asks_once_for_each_partition():
    """The plan was held against the files right before it is carried out; one that was stored earlier is again."""
    builder = versions()
    storage = Counting(builder.storage)
    table = Table(storage, clock=builder.clock)
    table.clean(file_versions_retained=1)
    assert storage.asked == 2
    for number in (5, 6):
        builder.commit(at(number), {"r0": ["a"], "r1": ["b"]})
    table = Table(storage, clock=builder.clock)
    table.services.clean(table.services.clean_config(file_versions_retained=1)).schedule()
    assert storage.asked == 4
    table.clean(file_versions_retained=1)
    assert storage.asked == 6


@pytest.mark.parametrize("size", [3, 5])
def test_a_newest_base_file_of_another_size_is_not_as_written(size):
    """Longer is as wrong as shorter: only log files grow after their commit."""
    builder = versions()
    builder.put(path_of(builder, "a", 4), b"P" * size)
    table = builder.table()
    assert set(lost_survivors(table.contents, table.timeline, {"r0": (NAME("a", at(1)),)})) == {("r0", "a")}


@pytest.mark.parametrize("damage", [emptied, pipe, folder])
def test_of_archived_files_the_newest_has_to_be_a_regular_file(damage, tmp_path):
    """No active commit names it, so neither its size is known nor that it is one of several."""
    builder = versions()
    old, newest = ("r0/" + NAME("c", time) for time in ("20200101000000000", "20200102000000000"))
    for path, data in {**builder.storage.files(), old: b"PAR1", newest: b"PAR1"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    table, losing = Table(LocalStorage(str(tmp_path))), {"r0": (old.removeprefix("r0/"),)}
    assert lost_survivors(table.contents, table.timeline, losing) == {}
    damage(tmp_path / newest)
    assert set(lost_survivors(table.contents, table.timeline, losing)) == {("r0", "c")}
