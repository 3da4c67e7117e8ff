"""Proof that bytes are gone: nothing that holds them is left out, and a moment is given only if it is known."""

from __future__ import annotations

import io
import json
import random
from datetime import timedelta

import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, RefusedError, UnsupportedTable
from hudi_py.formats.hfile_writer import encode_hfile
from hudi_py.model.files import parse_data_file
from hudi_py.model.instant_time import instant_epoch_ms, iso_utc
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.erasure.facts import ErasureHolds, ErasurePlace, ErasureVerdict
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.testing import interruptions
from hudi_py.timeline import quarantine
from support import writes
from support.erasures import PLAIN, cleaned, delete, erased, made
from support.indexes import loaded
from support.tables import TableBuilder, at
from support.writes import open_table, upsert

VERSIONS = pytest.mark.parametrize("version", [6, 9])
QUARANTINED = {"hoodie_py.clean.quarantine": True}
BY_INSTANT = ("clean", "rollback", "restore")


def completion(storage, instant):
    """ISO time at which an instant of the active timeline was completed; in layout 1 at which its work was done."""
    table = open_table(storage)
    found = table.timeline.find(instant)
    return iso_utc(instant_epoch_ms(found.completion_time or found.requested_time, table.zone))


@VERSIONS
def test_a_dropped_partition_is_held_until_the_clean_and_gone_since_it(version):
    """While an older version is kept the file is named with its rule; afterwards the clean and its completion."""
    storage = made(version)
    open_table(storage, **PLAIN).drop_partitions(["us"])
    report = erased(storage, partition="us", file_versions_retained=1)
    (held,) = report.held
    assert (report.verdict, held.place, held.trace.holds) == (
        ErasureVerdict.HELD,
        ErasurePlace.TABLE,
        ErasureHolds.ROWS,
    )
    assert held.until == ()  # the next clean takes it
    (later,) = erased(storage, partition="us", commits_retained=10).held
    assert "more completed commits" in later.until[0]
    (result,) = cleaned(storage)
    report = erased(storage, partition="us")
    assert (report.verdict, report.held) == (ErasureVerdict.GONE, ())
    assert report.last_removal.by == f"clean {result.instant}"
    assert report.last_removal.at >= completion(storage, result.instant)
    assert erased(storage, partition="eu").verdict is ErasureVerdict.HELD


@VERSIONS
def test_a_deleted_key_is_in_the_older_version_alone(version):
    """The rewritten file no longer has it; other keys stay held."""
    storage = made(version)
    delete(storage, writes.OLD[0])
    report = erased(storage, keys="a")
    (held,) = report.held
    assert held.trace.keys == ("a",)
    (result,) = cleaned(storage)
    assert held.path in result.deleted_files
    assert erased(storage, keys=["a"]).verdict is ErasureVerdict.GONE
    assert erased(storage, keys=["a"]).last_removal.by == f"clean {result.instant}"
    assert [each.trace.keys for each in erased(storage, keys=["a", "d", "b"]).held] == [("d",), ("b",)]
    assert erased(storage, keys="a", partition="us").verdict is ErasureVerdict.GONE
    assert erased(storage, keys="b", partition="eu").verdict is ErasureVerdict.GONE


def test_savepoints_and_leases_that_keep_it_are_named():
    """With what has to happen first."""
    storage = made()
    table = open_table(storage, **PLAIN)
    first = table.timeline.commits.completed()[0].requested_time
    table.create_savepoint(first)
    lease = open_table(storage, **PLAIN).take_lease(ttl="3h", at=first)
    delete(storage, writes.OLD[0])
    cleaned(storage)
    (held,) = erased(storage, keys="a", file_versions_retained=1).held
    assert f"when savepoint {first} is deleted" in held.until
    assert any(lease.id in each for each in held.until)


@VERSIONS
def test_what_lies_in_quarantine_is_held_until_that_is_emptied(version):
    """Then it is gone since the emptying, not since the clean; with deletion forbidden that is said, too."""
    storage = made(version)
    delete(storage, writes.OLD[0])
    (result,) = cleaned(storage, **QUARANTINED)
    for asked in ({"keys": "a"}, {"partition": "eu", "keys": "a"}):
        (held,) = erased(storage, **asked).held
        assert held.place is ErasurePlace.QUARANTINE
        assert result.instant in held.why_kept[0]
        assert "when the quarantine is emptied" in held.until[0]
    assert {each.place for each in erased(storage, partition="eu").held} == {
        ErasurePlace.TABLE,
        ErasurePlace.QUARANTINE,
    }
    assert erased(storage, partition="us", keys="a").verdict is ErasureVerdict.GONE
    clock = FixedClock(writes.START + timedelta(days=30))
    Table(storage, settings=PLAIN, clock=clock).empty_quarantine()
    report = erased(storage, keys="a")
    assert report.verdict is ErasureVerdict.GONE
    assert report.last_removal.at == iso_utc(int(clock.moment.timestamp() * 1000))


def test_an_interrupted_emptying_gives_no_moment():
    """Gone it is, but since when is unknown until the next emptying with files of the partition ends."""
    storage = made()
    delete(storage, writes.OLD[0])
    cleaned(storage, **QUARANTINED)
    clock = FixedClock(writes.START + timedelta(days=30))
    moment = iso_utc(int(clock.moment.timestamp() * 1000))
    unknown = 0
    for case in interruptions(lambda: MemoryStorage.from_files(storage.files())):
        case.run(lambda interrupted: Table(interrupted, settings=PLAIN, clock=clock).empty_quarantine())
        report = erased(case.storage, keys="a")
        if report.verdict is ErasureVerdict.GONE:
            assert report.last_removal.at in (None, moment)
            unknown += report.last_removal.at is None
    assert unknown


@VERSIONS
def test_log_files_hold_rows_and_deletes_hold_keys(version):
    """Until a compaction and a clean; the delete itself has the key."""
    storage = made(version, merge_on_read=True)
    upsert(storage, [{"id": "a", "region": "eu", "ts": 5}], **PLAIN)
    delete(storage, {"id": "a", "region": "eu", "ts": 9})
    report = erased(storage, keys="a")
    assert sorted(each.trace.holds.value for each in report.held) == ["record keys", "rows", "rows"]
    open_table(storage, **{**PLAIN, "hoodie.compact.inline.max.delta.commits": 1}).compact()
    assert {parse_data_file(each.path.rpartition("/")[2]).file_id for each in erased(storage, keys="a").held}
    cleaned(storage)
    assert erased(storage, keys="a").verdict is ErasureVerdict.GONE


def test_files_of_a_write_that_died_are_held():
    """No instant of the timeline counts them, and they have the rows; a rollback ends it and gives the moment."""
    storage = made()
    path = next(each for each in storage.files() if each.startswith("us/") and each.endswith(".parquet"))
    builder_time = "20260101005000000"
    name = parse_data_file(path.rpartition("/")[2])
    orphan = f"us/{name.file_id}_9-9-9_{builder_time}.parquet"
    storage.replace(orphan, storage.read(path))
    assert orphan in {each.path for each in erased(storage, keys="b").held}


def test_a_file_that_cannot_be_read_is_never_taken_for_empty():
    """Of a partition it holds bytes; of a key it may."""
    storage = made()
    delete(storage, writes.OLD[0])
    cleaned(storage)
    path = next(each for each in storage.files() if each.startswith("us/") and each.endswith(".parquet"))
    for damage in (b"PAR1", b"", storage.read(path)[:-9]):
        copy = MemoryStorage.from_files({**storage.files(), path: damage})
        report = erased(copy, keys="a")
        assert report.verdict is (ErasureVerdict.UNPROVEN if damage else ErasureVerdict.GONE)
        assert report.last_removal is None or not damage
        assert erased(copy, partition="us").verdict is (ErasureVerdict.HELD if damage else ErasureVerdict.GONE)


@pytest.mark.parametrize("path", ["us/notes.txt", "stray/part.parquet", "us/_temporary/0/x"])
def test_files_that_are_no_data_files_may_hold_keys(path):
    """Nobody knows what is in them; empty ones hold nothing."""
    storage = made()
    delete(storage, writes.OLD[0])
    cleaned(storage)
    storage.replace(path, b"")
    assert erased(storage, keys="a").verdict is ErasureVerdict.GONE
    storage.replace(path, b"something")
    report = erased(storage, keys="a")
    assert [each.path for each in report.held] == [path]
    assert report.verdict is ErasureVerdict.UNPROVEN


def test_a_half_written_file_counts():
    """The temporary file of a writer that died lies beside the data, hidden from listings."""
    storage = made()
    open_table(storage, **PLAIN).drop_partitions(["us"])
    cleaned(storage)
    path = "us/x.parquet.01234567-89ab-4cde-8f01-23456789abcd"
    storage.replace(path, b"rows")
    assert [each.path for each in erased(storage, partition="us").held] == [path]


def test_a_file_that_went_without_a_record_gives_no_moment():
    """It may have gone a minute ago."""
    storage = made()
    open_table(storage, **PLAIN).drop_partitions(["us"])
    path = next(each for each in storage.files() if each.startswith("us/") and each.endswith(".parquet"))
    storage.delete(path)
    report = erased(storage, partition="us")
    assert report.verdict is ErasureVerdict.GONE
    assert report.last_removal.at is None
    assert path in report.last_removal.by


@pytest.mark.parametrize("damage", [{"eu": 7}, {"eu": [7]}, {"eu": [{"path": 7}]}, 7, ["eu"]])
def test_a_commit_that_holds_other_values_gives_no_answer(damage):
    """The instant is named; it may have written the files that are asked for."""
    storage = made(6)
    commit = open_table(storage).timeline.commits.completed()[0]
    path = f".hoodie/{commit.requested_time}.commit"
    content = json.loads(storage.read(path))
    storage.replace(path, json.dumps({**content, "partitionToWriteStats": damage}).encode())
    with pytest.raises(CorruptMetadata, match=commit.requested_time):
        erased(storage, partition="us")


def test_the_moment_outlives_archival():
    """The archived clean tells it as the active one did."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"r0": ["f"], "r1": ["g"]})
    builder.commit(at(2), {}, replaced={"r0": ["f"]}, operation="DELETE_PARTITION")
    for number in range(3, 5):
        builder.commit(at(number), {"r1": ["g"]})
    (result,) = builder.table().clean(commits_retained=1)
    builder.clock.move(timedelta(seconds=1))
    expected = builder.table().erased(partition="r0").last_removal
    assert expected.by == f"clean {result.instant}"
    for day in range(2, 8):  # each day a commit and a clean
        builder.clock.move(timedelta(days=1))
        builder.commit(f"2026060{day}000000000", {"r1": ["g"]})
        builder.clock.move(timedelta(hours=1))
        assert builder.table().clean(commits_retained=1)
    builder.clock.move(timedelta(hours=1))
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    assert builder.table().timeline.find(result.instant) is None
    assert builder.table().erased(partition="r0").last_removal == expected


def test_wrong_questions_are_refused():
    """A slip in the path must not look like a proof."""
    storage = made()
    for asked in ({}, {"partition": "en"}, {"partition": "../us"}, {"keys": [""]}):
        with pytest.raises(ConfigError):
            erased(storage, **asked)
    properties = storage.read(".hoodie/hoodie.properties")
    storage.replace(".hoodie/hoodie.properties", properties + b"hoodie.populate.meta.fields=false\n")
    with pytest.raises(UnsupportedTable, match="no record keys"):
        erased(storage, keys="a")


def test_a_bootstrapped_table_is_never_proven():
    """Its source files have the rows, and lie elsewhere."""
    storage = made()
    delete(storage, writes.OLD[0])
    cleaned(storage)
    properties = storage.read(".hoodie/hoodie.properties")
    storage.replace(".hoodie/hoodie.properties", properties + b"hoodie.bootstrap.base.path=/lake/source\n")
    report = erased(storage, keys="a")
    assert (report.verdict, report.held) == (ErasureVerdict.UNPROVEN, ())
    assert "/lake/source" in report.doubts[0]


def test_a_table_that_changes_all_the_time_gives_no_answer():
    """What moved meanwhile may have been missed."""
    storage = made()

    class Busy(MemoryStorage):
        def list(self, folder, *, details=False):
            if folder == "us":
                copy = MemoryStorage.from_files(self.files())
                upsert(copy, [writes.OLD[1]], **PLAIN)
                for path in copy.files().keys() - self.files().keys():
                    self.replace(path, copy.read(path))
            return super().list(folder, details=details)

    with pytest.raises(ConflictError, match="while it was looked at"):
        erased(Busy.from_files(storage.files()), keys="b")


# --- the metadata table -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["cow_record_index-1.1.1", "mor_record_index-1.0.2", "mor_record_index-0.15.0"])
def test_the_record_index_of_hudi_holds_keys(name, tmp_path):
    """Of every row one file of the index holds the key, of keys and of partitions; of others none."""
    storage = loaded(name, tmp_path)
    rows = open_table(storage).rows(with_meta=True).to_arrow()
    keys = rows.column("_hoodie_record_key").to_pylist()
    partition = rows.column("_hoodie_partition_path")[0].as_py()
    held = open_table(storage).erased(keys=keys).held
    indexed = {key for each in held if "/record_index/" in each.path for key in each.trace.keys}
    assert indexed == set(keys)
    assert any("/record_index/" in each.path for each in open_table(storage).erased(partition=partition).held)
    assert open_table(storage).erased(keys="no such key").verdict is ErasureVerdict.GONE


@pytest.mark.slow
@VERSIONS
def test_an_index_is_gone_with_its_own_cleans(version):
    """The metadata table keeps older slices for longer than the table; the moment is that of the later removal."""
    indexed = {
        "hoodie.metadata.enable": True,
        "hoodie.metadata.record.index.enable": True,
        "hoodie.metadata.compact.max.delta.commits": 1,
    }
    storage = writes.create_table(version)
    upsert(storage, [{"id": "key0", "region": "eu", "ts": 999}, *writes.OLD], **indexed)
    upsert(storage, [{"id": "key0", "region": "eu", "ts": 1000}], operation="DELETE", **indexed)
    verdicts = []
    for number in range(12):
        upsert(storage, [{"id": "a", "region": "eu", "ts": 2000 + number}], **indexed)
        open_table(storage, **indexed).clean(file_versions_retained=1)
        open_table(storage, **indexed).services.run_upkeep()
        report = open_table(storage, **indexed).erased(keys="key0")
        verdicts.append(report.verdict)
        if report.verdict is ErasureVerdict.GONE:
            break
        assert {each.place for each in report.held} == {ErasurePlace.METADATA_TABLE}
    assert verdicts[0] is ErasureVerdict.HELD
    assert report.last_removal.by.startswith("the metadata table's clean")


@pytest.mark.parametrize("name", ["cow_all_indexes-1.1.1"])
def test_statistics_of_files_that_are_gone_may_hold_values(name, tmp_path):
    """Those of files that are there hold what the files hold."""
    storage = loaded(name, tmp_path)
    table = open_table(storage)
    row = table.rows(with_meta=True).to_arrow().slice(0, 1).to_pylist()[0]
    key, partition = row["_hoodie_record_key"], row["_hoodie_partition_path"]
    stats = [e for e in table.erased(partition=partition).held if "/column_stats/" in e.path]
    assert stats
    assert all(each.trace.holds is ErasureHolds.VALUES and each.is_certain for each in stats)
    table.drop_partitions([partition])
    open_table(storage).clean(file_versions_retained=1)
    report = open_table(storage).erased(keys=key)
    assert not [each for each in report.held if each.place is ErasurePlace.TABLE]
    assert "/column_stats/" in " ".join(each.path for each in report.held)


SECONDARY = ".hoodie/metadata/secondary_index_idx_name/secondary-index-idx-name-0000-0_0-1-0_20260101000000000.hfile"


@pytest.mark.parametrize(("stored", "key"), [
    ("Ann$a", "a"),
    (r"Ann$a\$b", "a$b"),
    (r"A\$\\$a\\b", "a\\b"),
    ("Ann$a\\\0", "a\0"),
    ("\0$a", "a"),
])  # fmt: skip
def test_a_secondary_index_holds_keys_as_releases_write_them(stored, key):
    """A dollar sign, backslash or null character has a backslash before it (`SecondaryIndexKeyUtils` of 1.0.1)."""
    assert verdict_of_secondary_index(stored, key) == (ErasureVerdict.HELD, (key,))


def test_a_secondary_index_that_does_not_tell_where_its_keys_begin_proves_nothing():
    """1.0.0 writes no backslash: the key may be the one asked for, or the end of another one."""
    for key in ("a", "x$a"):
        assert verdict_of_secondary_index("Ann$x$a", key) == (ErasureVerdict.UNPROVEN, ())
    assert verdict_of_secondary_index("Ann$ba", "a") == (ErasureVerdict.GONE, ())


def verdict_of_secondary_index(stored, key):
    storage = writes.create_table(9)
    upsert(storage, [{"id": "other", "region": "eu", "ts": 1}])
    storage.replace(SECONDARY, encode_hfile([(stored.encode(), b"")], info={"schema": b'"string"'}))
    report = open_table(storage).erased(keys=key)
    return report.verdict, next((each.trace.keys for each in report.held if each.path == SECONDARY), ())


# --- the timeline -----------------------------------------------------------------------------------------------------
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_what_is_held_is_what_a_plain_reader_of_all_bytes_finds(seed):
    """After every step of a random history, in every folder; and gone is said of nothing that is found."""
    chance = random.Random(seed)
    storage = made(chance.choice([6, 9]), merge_on_read=chance.random() < 0.5)
    ids = [f"key{number}" for number in range(6)]
    for number in range(14):
        step(storage, chance, ids, number)
        for key in ids:
            report = erased(storage, keys=key)
            assert {each.path for each in report.held} == with_key(storage, key), (seed, number, key)
        for partition in ("eu", "us"):
            there = {p for p in storage.files() if holds_rows(storage, p) and f"/{partition}/" in f"/{p}"}
            held = {each.path for each in erased(storage, partition=partition).held}
            assert there <= held, (seed, number)
            assert {path for path in held - there if path.endswith(".parquet")} == set()


def step(storage, chance, ids, number):
    row = {"id": chance.choice(ids), "region": chance.choice(["eu", "us"]), "ts": number + 2}
    done = chance.choice(["upsert", "upsert", "delete", "drop", "clean", "quarantine", "compact", "undo", "rollback"])
    table = open_table(storage, **{**PLAIN, "hoodie.compact.inline.max.delta.commits": 1})
    try:
        if done in ("upsert", "delete"):
            upsert(storage, [row], operation=done.upper(), **PLAIN)
        elif done == "drop":
            table.drop_partitions([row["region"]])
        elif done == "compact":
            table.compact()
        elif done == "undo":
            table.undo(chance.choice(quarantine.removals(storage)))
        elif done == "rollback":
            table.rollback(table.timeline.writes.completed()[-1].requested_time)
        else:
            cleaned(storage, **(QUARANTINED if done == "quarantine" else {}))
    except (RefusedError, ConfigError, UnsupportedTable, IndexError, CorruptMetadata):
        pass


def with_key(storage, key):
    """Paths of all files in which the text of the key is: in Parquet as a value, in log files as bytes."""
    found = set()
    for path, data in storage.files().items():
        if path.endswith(".parquet") and not path.startswith(".hoodie/timeline"):
            if key in pq.read_table(io.BytesIO(data)).column("_hoodie_record_key").to_pylist():
                found.add(path)
        elif ".log." in path and key.encode() in data:
            found.add(path)
    return found


def holds_rows(storage, path):
    data = storage.files()[path]
    if path.endswith(".parquet") and not path.startswith(".hoodie/timeline"):
        return pq.read_table(io.BytesIO(data)).num_rows > 0
    return ".log." in path and b"key" in data
