"""Files of no instant: found by every path that leads to one, and removed only when nothing speaks for them."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_py
from hudi_py.errors import RefusedError
from hudi_py.fsview import build
from hudi_py.fsview.origin import Origins
from hudi_py.model.files import BaseFile, format_base_file, parse_data_file
from hudi_py.model.instant import State
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.orphans.facts import OrphanFate
from hudi_py.services.orphans.judge import Suspicion
from hudi_py.storage import _entries
from hudi_py.storage.base import Entry, StorageFailure
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.table import Table
from hudi_py.timeline import contents, quarantine
from hudi_py.timeline.timeline import Timeline
from support.crash_points import interruptions
from support.laws import examples
from support.tables import NOW, TableBuilder, at, data_files
from support.together import LOCKED, Together

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
OLD_MS = int((NOW - timedelta(days=30)).timestamp() * 1000)
STRANGER = at(2)[:-7] + "1500000"  # between two commits


def history(layout=2, clock_ms=lambda: OLD_MS, **options):
    """Three commits, and files that were all written 30 days ago."""
    builder = TableBuilder(layout, **options)
    builder.storage = MemoryStorage.from_files(builder.storage.files(), "/lake/trips")
    builder.storage._clock_ms = clock_ms
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def verdicts(report):
    return {each.file.path: each.fate for each in report.verdicts}


def orphan(builder, time=STRANGER, partition="r0", file_id="x"):
    path = f"{partition}/{builder.base_name(file_id, time)}"
    builder.put(path)
    return path


@LAYOUTS
def test_a_file_of_no_instant_goes_into_quarantine_and_nothing_else_changes(layout):
    """One file is moved, with its bytes; all others stay, and check reports nothing any more."""
    builder = history(layout)
    path = orphan(builder)
    before = builder.storage.files()
    report = builder.table().orphans()
    after = builder.storage.files()
    assert report.done == (path,)
    moved = f"{report.quarantine}/files/{path}"
    assert after[moved] == before[path]
    assert {p: b for p, b in after.items() if not p.startswith(quarantine.FOLDER)} == {
        p: b for p, b in before.items() if p != path
    }
    assert [each.code for each in builder.table().check()] == []


@LAYOUTS
def test_the_check_and_the_search_name_the_same_files(layout):
    """One judge: what check calls orphaned is what the search finds."""
    builder = history(layout)
    paths = {orphan(builder), orphan(builder, partition="r1", file_id="y"), orphan(builder, at(4))}
    found = {each.where for each in builder.table().check() if each.code == "file-orphaned"}
    assert found == paths == set(verdicts(builder.table().orphans(dry_run=True)))


def test_a_dry_run_writes_nothing():
    """Not a byte: every changing call of the storage would raise."""
    builder = history()
    path = orphan(builder)
    table = Table(ReadOnlyStorage(builder.storage), clock=builder.clock)
    report = table.orphans(dry_run=True)
    assert verdicts(report) == {path: OrphanFate.REMOVE}
    assert report.done == ()


def test_a_table_without_orphans_takes_no_lock_and_writes_nothing():
    """A search that finds nothing may run anywhere."""
    builder = history()
    table = Table(ReadOnlyStorage(builder.storage), clock=builder.clock)
    assert table.orphans().verdicts == ()


@pytest.mark.parametrize("age", ["30d", "31d", "1000000d", "999999999999d"])
def test_a_young_file_stays(age):
    """A file is removed only if it is older than asked for; by default three days."""
    builder = history()
    path = orphan(builder)
    assert verdicts(builder.table().orphans(older_than=age)) == {path: OrphanFate.YOUNG}
    assert builder.storage.size(path) is not None
    fresh = history(clock_ms=lambda: int(NOW.timestamp() * 1000) - 1000)
    path = orphan(fresh)
    assert verdicts(fresh.table().orphans()) == {path: OrphanFate.YOUNG}


def test_nothing_younger_than_the_oldest_pending_write_is_removed():
    """A running write may have begun before the age asked for."""
    builder = history()
    builder.commit(at(2)[:-7] + "1000000", {"r0": ["h"]}, state=State.INFLIGHT)
    path = orphan(builder)
    assert verdicts(builder.table().orphans(older_than="0m")) == {path: OrphanFate.YOUNG}


@LAYOUTS
def test_a_file_with_a_live_heartbeat_stays(layout):
    """Its writer may have been rolled back by mistake, and is running."""
    builder = history(layout, clock_ms=lambda: OLD_MS)
    path = orphan(builder)
    builder.storage._clock_ms = lambda: int(NOW.timestamp() * 1000)
    builder.put(f".hoodie/.heartbeat/{STRANGER}", b"")
    assert verdicts(builder.table().orphans()) == {path: OrphanFate.KEEP}


def test_a_file_of_a_write_with_markers_stays():
    """Its markers say that the write may not be over."""
    builder = history()
    path = orphan(builder)
    builder.put(f".hoodie/.temp/{STRANGER}/{path}.marker.CREATE", b"")
    assert verdicts(builder.table().orphans()) == {path: OrphanFate.KEEP}


def test_a_second_attempt_of_a_task_is_removed_and_the_named_one_stays():
    """Of two files with one file id and time, the commit names one."""
    builder = history()
    named = f"r0/{builder.base_name('f', at(3))}"
    other = named.replace("_0-1-0_", "_7-7-7_")
    assert other != named
    builder.put(other)
    report = builder.table().orphans()
    assert report.done == (other,)
    assert builder.storage.size(named) is not None


def test_a_file_that_its_commit_does_not_name_and_readers_show_stays():
    """Without another file of the same group it holds rows that readers see: a person decides."""
    builder = history()
    path = orphan(builder, at(3))
    report = builder.table().orphans(dry_run=True)
    assert path not in {each.file.path for each in report.to_remove}


@LAYOUTS
def test_doubt_about_one_instant_keeps_every_file(layout):
    """A completed commit that does not decode: it is unknown what it wrote."""
    builder = history(layout)
    path = orphan(builder)
    builder.instant(at(5), "commit", State.COMPLETED, b"{torn")
    with pytest.raises(RefusedError, match="no file was removed"):
        builder.table().orphans()
    assert builder.storage.size(path) is not None
    assert builder.table().orphans(dry_run=True).doubts


def test_a_table_whose_files_are_all_unknown_is_left_alone():
    """A timeline of another table must not make every file an orphan."""
    builder = TableBuilder()
    builder.storage._clock_ms = lambda: OLD_MS
    for number in range(3):
        orphan(builder, at(number))
    builder.instant(at(9), "commit", State.REQUESTED)
    with pytest.raises(RefusedError, match="knows any of the table's files"):
        builder.table().orphans()


def test_the_breaker_trips_on_a_large_share():
    """More than half of the files: the setting has to say that it is meant."""
    builder = history()
    paths = {orphan(builder, file_id=f"x{number}") for number in range(12)}
    with pytest.raises(RefusedError, match=r"orphans\.max\.share"):
        builder.table().orphans()
    settings = {"hoodie_py.orphans.max.share": 1.0}
    done = Table(builder.storage, settings=settings, clock=builder.clock).orphans().done
    assert set(done) == paths


def test_a_limit_leaves_the_rest_for_the_next_run():
    """The oldest first; runs go on until nothing is left."""
    builder = history()
    paths = [orphan(builder, file_id=f"x{number}") for number in range(3)]
    first = builder.table().orphans(max_deletes=2)
    assert (len(first.done), first.left) == (2, 1)
    second = builder.table().orphans(max_deletes=2)
    assert {*first.done, *second.done} == set(paths)


def test_other_tables_below_are_not_looked_into():
    """A folder with a .hoodie of its own is another table, and so is all that lies in it."""
    builder = history()
    builder.put("inner/.hoodie/hoodie.properties", b"")
    builder.put(f"inner/p/{builder.base_name('x', STRANGER)}")
    report = builder.table().orphans()
    assert report.verdicts == ()
    assert report.other_tables == ("inner",)


def test_files_that_are_not_hudis_are_never_touched():
    """Whatever their name and age."""
    builder = history()
    for name in ("notes.txt", "data.parquet", "_SUCCESS", "x_1_2.parquet"):
        builder.put(f"r0/{name}")
    assert builder.table().orphans().verdicts == ()


def test_what_a_clean_could_not_delete_is_found():
    """Apache Hudi forgets it: the clean names the file, no plan looks there again."""
    builder = history()
    doomed = f"r0/{builder.base_name('f', at(1))}"
    builder.table().clean(commits_retained=1)
    assert builder.storage.size(doomed) is None
    builder.put(doomed)  # as a deletion leaves it that the store refused
    report = builder.table().orphans()
    assert report.done == (doomed,)
    assert "clean" in report.verdicts[0].reason


def test_a_crash_at_each_call_loses_no_file():
    """After it each file is at its place or in quarantine, and the next run ends in the same table."""

    def fresh():
        builder = history()
        for number in range(3):
            orphan(builder, file_id=f"x{number}")
        return builder.storage

    whole = fresh().files()
    doomed = {path for path in whole if path.rpartition("/")[2].startswith("x")}
    for case in interruptions(fresh):
        clock = FixedClock(NOW)
        case.run(lambda storage, clock=clock: Table(storage, clock=clock).orphans())
        there = case.storage.files()
        for path in doomed:
            copies = [data for where, data in there.items() if where.endswith(path)]
            assert copies
            assert set(copies) == {whole[path]}
        clock.move(timedelta(seconds=5))
        Table(case.storage, clock=clock).orphans()
        assert set(data_files(case.storage)) == {p for p in data_files(fresh()) if p not in doomed}


class KeepingOne(MemoryStorage):
    """One file cannot be deleted; remembers which files went, in their order."""

    kept = ""

    def delete_many(self, paths):
        wanted = list(paths)
        self.went = [*getattr(self, "went", []), wanted]
        done = super().delete_many([path for path in wanted if path != self.kept])
        return {path: done.get(path, StorageFailure("it is held", retryable=False)) for path in wanted}


@pytest.mark.parametrize("kept", ["", "first"])
def test_a_log_file_that_undoes_blocks_goes_after_those_that_it_undoes(kept):
    """Or stays with them: without it their rows would count as committed one day."""
    builder = history(1)
    first, second = (f"r0/.x_{STRANGER}.log.{number}_1-0-1" for number in (1, 2))
    for path in (second, first):
        builder.put(path)
    builder.storage.__class__ = KeepingOne
    builder.storage.kept = {"": "", "first": first}[kept]
    report = builder.table().orphans(delete=True)
    if kept:
        assert set(report.failed) == {first, second}
        assert first in report.failed[second]
        assert {first, second} <= builder.storage.files().keys()
    else:
        assert builder.storage.went.index([first]) < builder.storage.went.index([second])
        assert set(report.done) == {first, second}


def test_a_limit_takes_the_log_file_that_undoes_blocks_last():
    """A run with a limit of one removes the first log file, although it is the younger one on the disk."""
    builder = history(1)
    first, second = (f"r0/.x_{STRANGER}.log.{number}_1-0-1" for number in (1, 2))
    builder.put(first)
    builder.storage._clock_ms = lambda: OLD_MS - 1000
    builder.put(second)
    for path in (first, second):
        assert builder.table().orphans(delete=True, max_deletes=1).done == (path,)


@LAYOUTS
def test_the_first_look_and_the_one_before_a_removal_agree(layout):
    """The first one decodes only commits that may name a file in question: what a task that was retried left, too."""
    builder = history(layout, table_type="MERGE_ON_READ")
    builder.log_files(at(4), [("r0", "f", at(3))])
    orphan(builder)
    again = f"r0/{builder.base_name('f', at(3)).replace('_0-1-0_', '_0-2-0_')}"
    builder.put(again)
    builder.put(f"r1/.g_{STRANGER}.log.1_0-1-0")
    shown = builder.table().orphans(dry_run=True)
    assert verdicts(shown)[again] is OrphanFate.REMOVE
    done = builder.table().orphans()
    assert shown.verdicts == done.verdicts
    assert set(done.done) == {path for path, fate in verdicts(shown).items() if fate is OrphanFate.REMOVE}


def test_a_damaged_commit_that_names_none_of_them_stops_the_removal():
    """The look before the removal decodes every commit."""
    builder = history(1)
    orphan(builder)
    (path,) = [each for each in builder.storage.files() if each.endswith(f"{at(2)}.commit")]
    builder.put(path, builder.storage.read(path).replace(b'"numWrites"', b'"numWrites" "'))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match=r"commit .*cannot be read"):
        builder.table().orphans()
    assert builder.storage.files() == before


@LAYOUTS
@pytest.mark.parametrize("is_changed", [False, True])
def test_under_the_lock_only_commits_since_the_search_are_decoded(layout, is_changed, monkeypatch):
    """Each has to decode before a file is removed, and other writers wait meanwhile."""
    builder = history(layout)
    path = orphan(builder)
    calls, decode = [], contents.decode_commit_in

    def decoded(data, source, partitions):
        calls.append(source)
        return decode(data, source, partitions)

    monkeypatch.setattr(contents, "decode_commit_in", decoded)

    class Watched(MemoryStorage):
        def create_new(self, path, data, before=None, *, lasts=True):
            super().create_new(path, data, before, lasts=lasts)
            if path.endswith("lock"):
                calls.append("LOCK")
                if is_changed:
                    builder.commit(at(5), {"r1": ["h"]})

    builder.storage = Watched.from_files(builder.storage.files(), "/lake/trips")
    report = builder.table(
        write_concurrency_mode="optimistic_concurrency_control",
        write_lock_provider="org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
        clean_failed_writes_policy="LAZY",
    ).orphans(now=NOW + timedelta(days=9000))
    assert (path,) == report.done, report
    under_lock = calls[calls.index("LOCK") + 1 :]
    assert ({at(5)[:14]} if is_changed else set()) == {each.rpartition("/")[2][:14] for each in under_lock}


def test_of_folders_with_orphans_only_those_are_looked_at_more_closely(tmp_path, monkeypatch):
    """
    A search in a folder of many files costs no more for one orphan in it than that one's size, time and file group.

    Beside it are the files of 40 other groups.
    """
    builder = TableBuilder()
    for number in (1, 2):
        builder.commit(at(number), {"r0": [f"f{group}" for group in range(40)]})
    paths = {orphan(builder), orphan(builder, file_id="f7")}
    for path, content in builder.storage.files().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(content)
    asked, parsed = [], []
    monkeypatch.setattr(
        _entries, "detailed", lambda item, root, old=_entries.detailed: asked.append(item.name) or old(item, root)
    )
    monkeypatch.setattr(
        build, "parse_base_file", lambda *given, old=build.parse_base_file: parsed.append(given[0]) or old(*given)
    )
    report = hudi_py.open_table(str(tmp_path), clock=builder.clock).orphans(dry_run=True)
    assert set(verdicts(report)) == paths
    assert sorted(asked) == sorted(path.rpartition("/")[2] for path in paths)
    assert {parse_data_file(name).file_id for name in parsed} == {"x", "f7"}


NAMES = [
    *(format_base_file(f"f{group}", token, at(number)) for group in (1, 2) for token in "ab" for number in (1, 2, 3)),
    format_base_file("c", "a", at(3)),  # of a clustering, which names it
    format_base_file("d", "a", at(3)),  # of a late task of it
    format_base_file("x", "a", STRANGER),
    f".f1_{STRANGER}.log.1_0-1-2",
    f".f1_{at(2)}.log.1_0-1-2",
    ".hoodie_partition_metadata",
    ".hidden",
    "notes.txt",
    "f_1.parquet",
]


ORIGINS = Origins(history().table().timeline, Timeline(()))


@given(st.lists(st.sampled_from(NAMES)), st.booleans())
@examples(40)
def test_folders_in_order_are_passed_over_and_no_others(names, is_cleaned):
    """Law: what is seen of all names of a folder at once is what its names one by one say."""
    named = {at(3): frozenset([format_base_file("c", "a", at(3))])}
    cleaned = {format_base_file("f1", "a", at(1)): at(4)} if is_cleaned else {}
    suspicion = Suspicion(ORIGINS, {}, {"r0": cleaned}, named)
    found = suspicion.of("r0", [Entry(name, False) for name in dict.fromkeys(names)])
    files = [file for file in map(parse_data_file, dict.fromkeys(names)) if file is not None]
    attempts = Counter((file.file_id, file.instant_time) for file in files if isinstance(file, BaseFile))
    assert {each.name for each in found} == {
        file.name
        for file in files
        if file.instant_time == STRANGER
        or file.name in cleaned
        or (file.instant_time == at(3) and file.name not in named[at(3)])
        or (isinstance(file, BaseFile) and attempts[file.file_id, file.instant_time] > 1)
    }
    assert suspicion.files_seen == len(files)


@LAYOUTS
def test_folders_in_an_object_store_are_listed_at_once_while_writers_wait(layout):
    """Each is a round trip there, and the last look at them is under the lock."""
    builder = history(layout)
    strangers = {orphan(builder, partition=partition) for partition in ("r0", "r1")}
    storage = Together(builder.storage.files(), OLD_MS)
    report = Table(storage, settings=LOCKED, clock=builder.clock).orphans(older_than="1d")
    assert set(report.done) == strangers
    assert storage.is_locked
