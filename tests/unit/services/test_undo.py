"""A clean in quarantine: to others it is a clean, and undone it is as if it had never run."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, HudiError, RefusedError
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.base import MUTATING_VERBS, READING_VERBS
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopAfter, interruptions
from hudi_py.timeline import quarantine
from support import writes
from support.meanwhile import Meanwhile
from support.tables import NOW, TableBuilder, at, data_files

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
SETTINGS = {"hoodie_py.clean.quarantine": True}


def history(layout=2, commits=3):
    builder = TableBuilder(layout)
    for number in range(1, commits + 1):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    return builder


def opened(storage, clock=None, settings=SETTINGS):
    return Table(storage, settings=settings, clock=clock or FixedClock(NOW))


def cleaned(layout=2, **options):
    builder = history(layout)
    (result,) = opened(builder.storage, builder.clock).clean(commits_retained=1, **options)
    builder.clock.move(timedelta(seconds=1))
    return builder, result


def outside_quarantine(storage):
    return {path: data for path, data in storage.files().items() if not path.startswith(quarantine.FOLDER)}


@LAYOUTS
def test_to_others_a_clean_into_quarantine_is_a_clean(layout):
    """Same files, same instants as one that deletes; what it removed lies in quarantine, byte by byte."""
    plain = history(layout)
    (usual,) = plain.table().clean(commits_retained=1)
    before = history(layout).storage.files()
    builder, result = cleaned(layout)
    assert result.deleted_files == usual.deleted_files
    assert outside_quarantine(builder.storage).keys() == plain.storage.files().keys()
    for path in result.deleted_files:
        assert builder.storage.read(f"{quarantine.files_folder(result.instant)}/{path}") == before[path]


@LAYOUTS
def test_undone_the_table_is_as_if_the_clean_had_never_run(layout):
    """All data files, the same slices, no clean on the timeline; the next clean plans the same files."""
    builder, result = cleaned(layout)
    report = opened(builder.storage, builder.clock).undo(result.instant)
    untouched = history(layout)
    assert set(report.files) == set(result.deleted_files)
    assert data_files(builder.storage) == data_files(untouched.storage)
    table = opened(builder.storage, builder.clock)
    assert not table.timeline.of([]).instants
    assert [i.action.value for i in table.timeline] == ["commit"] * 3 + ["rollback"]
    for path in ("r0", "r1"):
        assert table.file_slices(path) == untouched.table().file_slices(path)
        ours, theirs = (each.partition(path).groups for each in (table, untouched.table()))
        assert ours == theirs
    assert not [p for p in builder.storage.files() if p.startswith(quarantine.FOLDER)]
    assert [each.code for each in table.check()] == []
    builder.clock.move(timedelta(seconds=1))
    (again,) = opened(builder.storage, builder.clock).clean(commits_retained=1)
    assert again.deleted_files == result.deleted_files


def test_a_dry_run_of_an_undo_writes_nothing():
    """It names the same files."""
    builder, result = cleaned()
    report = opened(ReadOnlyStorage(builder.storage), builder.clock).undo(result.instant, dry_run=True)
    assert set(report.files) == set(result.deleted_files)


def test_a_clean_that_deleted_cannot_be_undone():
    """The message says that its files were deleted for good; a clean that never was is wrong usage."""
    builder = history()
    (result,) = builder.table().clean(commits_retained=1)
    with pytest.raises(RefusedError, match="deleted for good"):
        builder.table().undo(result.instant)
    for name in ("20200101000000000", "../../etc", "orphans-1"):
        with pytest.raises(ConfigError, match="has no clean"):
            builder.table().undo(name)


def test_a_file_lost_from_quarantine_refuses_the_undo():
    """Half a slice is worse than none; nothing is changed."""
    builder, result = cleaned()
    builder.storage.delete(f"{quarantine.files_folder(result.instant)}/{result.deleted_files[0]}")
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="in no place any more"):
        opened(builder.storage, builder.clock).undo(result.instant)
    assert builder.storage.files() == before


def test_a_later_clean_has_to_be_undone_first():
    """Between what the two deleted an earlier time would silently show rows that are too old."""
    builder, first = cleaned()
    builder.commit(at(30), {"r0": ["f"], "r1": ["g"]})
    (second,) = opened(builder.storage, builder.clock).clean(commits_retained=1)
    builder.clock.move(timedelta(seconds=1))
    with pytest.raises(RefusedError, match="undo that one first"):
        opened(builder.storage, builder.clock).undo(first.instant)
    for each in (second, first):
        opened(builder.storage, builder.clock).undo(each.instant)
        builder.clock.move(timedelta(seconds=1))
    assert len(data_files(builder.storage)) == 8


def test_files_of_replaced_groups_come_back_replaced_or_not_at_all():
    """Once the replacecommit is archived, readers would take them for current rows."""
    builder = TableBuilder()
    builder.commit(at(1), {"r0": ["f"]})
    builder.commit(at(2), {"r0": ["g"]}, replaced={"r0": ["f"]}, operation="INSERT_OVERWRITE")
    for number in range(3, 9):
        builder.commit(at(number), {"r0": ["g"]})
    (result,) = opened(builder.storage, builder.clock).clean(commits_retained=1)
    builder.clock.move(timedelta(seconds=1))
    assert any("/f_" in path for path in result.deleted_files)
    opened(builder.storage, builder.clock).archive(keep_min_commits=2, keep_max_commits=3)
    builder.clock.move(timedelta(seconds=1))
    table = opened(builder.storage, builder.clock)
    assert not table.timeline.completed("replacecommit")
    with pytest.raises(RefusedError, match=r"newest rows|not on the timeline|archived"):
        table.undo(result.instant)


def test_quarantine_is_emptied_when_its_time_is_over():
    """The next clean deletes what nobody asked back; not before."""
    builder, result = cleaned()
    builder.clock.move(timedelta(days=6))
    opened(builder.storage, builder.clock).clean(commits_retained=1)
    assert quarantine.removals(builder.storage) == (result.instant,)
    builder.clock.move(timedelta(days=2))
    opened(builder.storage, builder.clock).clean(commits_retained=1)
    assert quarantine.removals(builder.storage) == ()


def test_orphans_are_put_back():
    """The same word undoes a search for orphans."""
    builder = history()
    path = f"r0/{builder.base_name('x', at(2)[:-7] + '1500000')}"
    builder.storage._clock_ms = lambda: int((NOW - timedelta(days=30)).timestamp() * 1000)
    builder.put(path, b"bytes")
    report = opened(builder.storage, builder.clock).orphans()
    name = report.quarantine.rpartition("/")[2]
    assert builder.storage.size(path) is None
    assert opened(builder.storage, builder.clock).undo(name).restored == (path,)
    assert builder.storage.read(path) == b"bytes"
    assert quarantine.removals(builder.storage) == ()


@pytest.mark.slow
@LAYOUTS
def test_a_crash_at_each_call_of_a_clean_into_quarantine_loses_nothing(layout):
    """Every file is at one of its two places at every moment, and the next clean finishes it."""
    whole = history(layout).storage.files()
    for case in interruptions(lambda: history(layout).storage, every=3):
        clock = FixedClock(NOW)
        case.run(lambda storage, clock=clock: opened(storage, clock).clean(commits_retained=1))
        assert_whole(case.storage, whole)
        clock.move(timedelta(seconds=5))
        opened(case.storage, clock).clean(commits_retained=1)
        assert_whole(case.storage, whole)


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "recovers"), [(1, False), (2, True)])
def test_a_crash_at_each_call_of_an_undo_ends_in_the_same_table(layout, recovers):
    """The undo, or recover, goes on where it was interrupted; at every moment no file is lost."""
    whole = history(layout).storage.files()
    instant = cleaned(layout)[1].instant
    for case in interruptions(lambda: cleaned(layout)[0].storage, every=3):
        clock = FixedClock(NOW + timedelta(seconds=1))
        case.run(lambda storage, clock=clock: opened(storage, clock).undo(instant))
        assert_whole(case.storage, whole)
        clock.move(timedelta(seconds=5))
        if recovers:
            opened(case.storage, clock).recover()
        finish(case.storage, clock, instant)
        assert set(data_files(case.storage)) == {path for path in whole if path in data_files(history(layout).storage)}
        timeline = opened(case.storage, clock).timeline
        assert [i.action.value for i in timeline] == ["commit"] * 3 + ["rollback"], repr(case)
        assert not timeline.pending()


def finish(storage, clock, instant):
    """Undo again, unless the undo was complete."""
    if not opened(storage, clock).timeline.completed("rollback"):
        opened(storage, clock).undo(instant)


def assert_whole(storage, whole):
    there = storage.files()
    for path, data in whole.items():
        if not path.startswith(".hoodie"):
            copies = [content for where, content in there.items() if where.endswith(path)]
            assert copies, path
            assert set(copies) == {data}, path


def begun(layout, verb, path_end=""):
    """An undo that ended right after the first call of this verb on such a path; the table, and the clean's time."""
    for number in range(40):
        builder, result = cleaned(layout)
        faulty = StopAfter(builder.storage, number)
        with suppress(Crash):
            opened(faulty, builder.clock).undo(result.instant)
        builder.clock.move(timedelta(seconds=5))
        if (faulty.fired or "").startswith(verb) and (faulty.fired or "").endswith(path_end):
            return builder, result.instant
    raise AssertionError(f"an undo never calls {verb} {path_end}")


@LAYOUTS
@pytest.mark.parametrize("after", [("move_many", ""), ("delete", ".clean")], ids=["put back", "left the timeline"])
def test_nothing_counts_on_the_files_of_a_half_done_undo(layout, after):
    """Clean, rollback, restore, search for orphans refuse and archival waits; recover finishes it and all go on."""
    builder, _ = begun(layout, *after)
    before = builder.storage.files()

    def table():
        return opened(builder.storage, builder.clock)

    with suppress(RefusedError):  # with the clean still on the timeline there is nothing to plan
        assert table().clean(commits_retained=1) == []
    with pytest.raises(RefusedError, match="undo of clean"):
        table().rollback(at(3))
    with suppress(RefusedError):
        assert not table().orphans(older_than="0m", now=builder.clock.now() + timedelta(days=400)).done
    assert table().archive(keep_min_commits=1, keep_max_commits=2).instants == ()
    assert data_files(builder.storage) == data_files(MemoryStorage.from_files(before, builder.storage.root))
    table().recover()
    assert not table().timeline.pending()
    assert data_files(builder.storage) == data_files(history(layout).storage)
    builder.clock.move(timedelta(seconds=5))
    assert len(table().clean(commits_retained=1)[0].deleted_files) == 2


@pytest.mark.parametrize("version", [6, 9])
def test_no_earlier_time_loses_rows_at_any_call_of_an_undo(version):
    """With a metadata table, which shows the files again only when the undo is completed."""
    settings = SETTINGS | writes.ALONE | {"hoodie.metadata.enable": True}

    def quarantined():
        storage, clock = MemoryStorage("/lake/t", clock_ms=lambda: 0), FixedClock(NOW)
        writes.create_table(version, storage, clock)
        for ts in (1, 2, 3):
            rows = [{"id": each, "region": "eu", "ts": ts} for each in ("a", "b")]
            opened(storage, clock, settings).upsert(pa.Table.from_pylist(rows, schema=writes.SCHEMA))
            clock.move(timedelta(minutes=1))
        (result,) = opened(storage, clock, settings).clean(commits_retained=1)
        assert result.deleted_files
        clock.move(timedelta(minutes=1))
        return storage, clock, result.instant

    read = refused = number = 0
    while True:
        storage, clock, clean = quarantined()
        first = opened(storage, clock).timeline.writes.completed()[0].requested_time
        faulty = StopAfter(storage, number)
        with suppress(Crash):
            opened(faulty, clock, settings).undo(clean)
        try:
            found = opened(storage, clock, settings).rows(as_of=first).to_arrow().to_pylist()
        except RefusedError:
            refused += 1
        else:
            assert sorted((row["id"], row["ts"]) for row in found) == [("a", 1), ("b", 1)], faulty.fired
            read += 1
        # Its way out, to build the metadata table again, is not the way on: the undo is to be finished.
        assert "mdt-file-missing" not in {each.code for each in opened(storage, clock, settings).check()}
        if faulty.fired is None:
            break
        number += 1
    assert refused
    assert read > 1


def test_a_restore_waits_for_the_undo_that_is_pending():
    """Files that are half back are no ground for what the restored state needs."""
    builder = history()
    builder.table().create_savepoint(at(3))
    builder.clock.move(timedelta(seconds=1))
    builder.commit(at(4), {"r0": ["f"], "r1": ["g"]})
    (result,) = opened(builder.storage, builder.clock).clean(commits_retained=1)
    builder.clock.move(timedelta(seconds=1))
    with suppress(Crash):
        opened(StopAfter(builder.storage, 0, verbs=["move_many"]), builder.clock).undo(result.instant)
    builder.clock.move(timedelta(seconds=1))
    with pytest.raises(RefusedError, match="undo of clean"):
        opened(builder.storage, builder.clock).restore(at(3))
    opened(builder.storage, builder.clock).undo(result.instant)
    builder.clock.move(timedelta(seconds=1))
    opened(builder.storage, builder.clock).restore(at(3))


@LAYOUTS
def test_quarantine_is_not_emptied_under_an_undo(layout):
    """The undo was begun in time, and can be finished whenever that is."""
    builder, time = begun(layout, "create_new", "rollback.inflight")
    builder.clock.move(timedelta(days=30))
    with suppress(RefusedError):
        opened(builder.storage, builder.clock).clean(commits_retained=1)
    assert quarantine.removals(builder.storage) == (time,)
    opened(builder.storage, builder.clock).undo(time)
    assert data_files(builder.storage) == data_files(history(layout).storage)


@LAYOUTS
@pytest.mark.slow
def test_an_undo_whose_quarantine_is_lost_can_be_ended(layout):
    """At each call of the undo: recover withdraws or completes it, and cleans go on."""
    instant = cleaned(layout)[1].instant
    for case in interruptions(lambda: cleaned(layout)[0].storage, every=3):
        clock = FixedClock(NOW + timedelta(seconds=1))
        case.run(lambda storage, clock=clock: opened(storage, clock).undo(instant))
        case.storage.delete_folder(quarantine.FOLDER)
        clock.move(timedelta(seconds=5))
        assert [each.error for each in opened(case.storage, clock).recover() if each.error] == [], repr(case)
        assert not opened(case.storage, clock).timeline.pending(), repr(case)
        opened(case.storage, clock).clean(commits_retained=1)


@LAYOUTS
def test_orphans_do_not_come_back_as_rows(layout):
    """Once archival has passed the time of a failed write, readers would take its files for committed."""
    builder, name, path = with_orphan(layout)
    for number in range(4, 9):
        builder.commit(at(number), {"r0": ["f"], "r1": ["g"]})
    opened(builder.storage, builder.clock, {}).clean(commits_retained=1)
    builder.clock.move(timedelta(seconds=1))
    assert opened(builder.storage, builder.clock).archive(keep_min_commits=2, keep_max_commits=3).instants
    with pytest.raises(RefusedError, match="newest rows"):
        opened(builder.storage, builder.clock).undo(name)
    assert builder.storage.size(path) is None


def test_an_undo_replaces_no_file_that_was_written_since():
    """A file of the same name with other bytes stays, and so does the one in quarantine."""
    builder, name, path = with_orphan(2)
    builder.put(path, b"of another writer")
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="exists again"):
        opened(builder.storage, builder.clock).undo(name)
    assert builder.storage.files() == before


def with_orphan(layout):
    """A table whose only orphan is in quarantine: the table, the name of the removal, the path of the file."""
    builder = history(layout)
    path = f"r0/{builder.base_name('x', at(2)[:-7] + '1500000')}"
    builder.storage._clock_ms = lambda: int((NOW - timedelta(days=30)).timestamp() * 1000)
    builder.put(path, b"bytes")
    return builder, opened(builder.storage, builder.clock).orphans().quarantine.rpartition("/")[2], path


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_later_clean_is_listed_as_if_the_first_had_never_run(version):
    """What a base file of the metadata table knows is neither lost by the undo nor listed after the next clean."""
    storage, settings = writes.create_table(version), {**SETTINGS, "hoodie.metadata.enable": True}
    for number in range(4):  # the last one creates the metadata table, whose base file lists all files so far
        row = {"id": "a", "region": "eu", "ts": number, "note": ""}
        given = {**settings, "hoodie.metadata.enable": number == 3}
        writes.upsert(storage, [row], Table(storage, settings=given))
    (result,) = Table(storage, settings=settings).clean(commits_retained=1)
    Table(storage, settings=settings).undo(result.instant)
    assert [each.code for each in Table(storage, settings=settings).check()] == []
    (again,) = Table(storage, settings=settings).clean(commits_retained=1)
    assert again.deleted_files == result.deleted_files
    assert [each.code for each in Table(storage, settings=settings).check()] == []


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_restore_forgets_no_file_that_an_undo_brought_back(version):
    """The rollback that undid the clean stays, for the metadata table's records of the clean stay, too."""
    storage, settings = writes.create_table(version), {**SETTINGS, "hoodie.metadata.enable": True}

    def table():
        return Table(storage, settings=settings)

    for number in range(3):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": number, "note": ""}], table())
    first, _, third = (each.requested_time for each in table().timeline.commits.completed())
    table().create_savepoint(third)
    writes.upsert(storage, [{"id": "a", "region": "eu", "ts": 3, "note": ""}], table())
    (result,) = table().clean(commits_retained=1)
    undone = table().undo(result.instant)
    table().restore(third)
    assert set(undone.files) <= storage.files().keys()
    assert [row["ts"] for row in table().as_of(first).rows().to_arrow().to_pylist()] == [0]
    assert [each.code for each in table().check()] == []
    (again,) = table().clean(file_versions_retained=1)
    assert set(again.deleted_files) == set(result.deleted_files)
    assert [each.code for each in table().check()] == []


def versions_above_a_window(layout):
    """A clean by file versions, under which a commit before the window of the clean before it can be read."""
    builder = TableBuilder(layout)
    for number, groups in ((1, ["f"]), (2, ["f"]), (3, ["f"]), (4, ["f", "g"])):
        builder.commit(at(number), {"r0": groups})
    opened(builder.storage, builder.clock).clean(commits_retained=1, min_file_versions=2)
    builder.clock.move(timedelta(seconds=1))
    for number in (5, 6):
        builder.commit(at(number), {"r0": ["g"]})
    (result,) = opened(builder.storage, builder.clock).clean(file_versions_retained=2)
    builder.clock.move(timedelta(seconds=1))
    return builder, result


@LAYOUTS
def test_undo_waits_for_a_lease_that_the_clean_before_would_not_let_read(layout):
    """Once undone, the window of the clean before it counts again, and the lease is on an earlier time."""
    builder, result = versions_above_a_window(layout)
    lease = opened(builder.storage, builder.clock).take_lease(ttl="1h", at=at(3), holder="a reader")
    before = builder.storage.files()
    for dry_run in (True, False):
        with pytest.raises(RefusedError, match=f"nothing was put back: lease {lease.id} of a reader at {at(3)}"):
            opened(builder.storage, builder.clock).undo(result.instant, dry_run=dry_run)
    assert builder.storage.files() == before
    assert opened(builder.storage, builder.clock).as_of(at(3)).base_files()
    opened(builder.storage, builder.clock).release_lease(lease.id)
    assert opened(builder.storage, builder.clock).undo(result.instant).restored


@LAYOUTS
def test_undo_goes_on_in_spite_of_leases_where_the_window_holds_them(layout):
    """The commit of the lease is one that the clean before it promises, too."""
    builder, result = versions_above_a_window(layout)
    opened(builder.storage, builder.clock).take_lease(ttl="1h", at=at(5), holder="a reader")
    assert opened(builder.storage, builder.clock).undo(result.instant).restored


@LAYOUTS
def test_lease_and_undo_see_each_other_in_every_order(layout):
    """A lease that was granted can be read when both have ended, or the undo did not happen."""
    builder, result = versions_above_a_window(layout)
    start = builder.storage.files()
    endings = set()

    def undo(storage):
        opened(storage, builder.clock).undo(result.instant)

    def lease(storage):
        opened(storage, builder.clock).take_lease(ttl="1h", at=at(3), holder="a reader")

    def or_refused(action, storage):
        with suppress(HudiError):
            action(storage)

    for first, second in ((undo, lease), (lease, undo)):
        n, fired = 0, True
        while fired:
            storage = MemoryStorage()
            for path, data in start.items():
                storage.replace(path, data)
            beside = Meanwhile(
                storage, partial(or_refused, second, storage), n=n, verbs=(*MUTATING_VERBS, *READING_VERBS)
            )
            or_refused(first, beside)
            n, fired = n + 1, beside.fired is not None
            table = opened(storage, builder.clock)
            leases = table.leases()
            assert all(table.as_of(each.instant).base_files() for each in leases)
            endings.add((table.timeline.find(result.instant, Action.CLEAN) is None, bool(leases)))
    assert {(True, False), (False, True)} <= endings <= {(True, False), (False, True), (False, False)}


@LAYOUTS
def test_a_second_undo_says_that_it_is_done(layout):
    """Stopped before its last step it is finished by the same call; the one after that names the rollback."""
    builder, clean = begun(layout, "delete_folder")
    first = opened(builder.storage, builder.clock).undo(clean)
    assert first.rollback is not None
    assert quarantine.removals(builder.storage) == ()
    before = builder.storage.files()
    with pytest.raises(ConfigError, match=rf"is undone already, by rollback {first.rollback} .*raise the retention"):
        opened(builder.storage, builder.clock).undo(clean)
    assert builder.storage.files() == before
    assert data_files(builder.storage) == data_files(history(layout).storage)
