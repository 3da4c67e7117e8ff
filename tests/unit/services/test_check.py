"""`Table.check`: tables of real Hudi are found whole, and each kind of damage is found as what it is."""

from __future__ import annotations

import os
import shutil
from datetime import datetime, timezone
from pathlib import Path

import pytest

from hudi_py.formats.commit_codec import encode_commit
from hudi_py.mdt.changes import ListingChanges
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import write_delta_commit
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.check.findings import RULES, Severity
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from hudi_py.timeline.contents import Contents
from support import fixtures
from support.damages import newest_base_file, opened, shortened, timeline_folder
from support.metadata_tables import LATER, SYNC, begin, store_of, timeline_of

VERSIONS = ("0.15.0", "1.0.2", "1.1.1")
EVERY = pytest.mark.parametrize("version", VERSIONS)
MARKED_PENDING = {"instant-stale", "instant-pending"}


def codes(path, **settings):
    return {each.code for each in opened(path, **settings).check()}


def completed(path: Path, action: str) -> list[Path]:
    """Completed files of an action, oldest first."""
    return sorted(timeline_folder(path).glob(f"*.{action}"))


@pytest.mark.parametrize("name", fixtures.fixture_names())
def test_tables_of_real_hudi_are_whole(name, tmp_path):
    """
    Nothing is found but what is under way or not served, with the metadata table and without; nothing is written.

    Nor in the footers: copied rows of merges, clusterings and compactions carry the name of their new file.
    """
    path = fixtures.unpack(name, tmp_path)
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    pending = bool(opened(path).timeline.pending())
    for settings, contents in (({}, False), ({"hoodie.metadata.enable": "false"}, True)):
        found = {each.code for each in opened(path, **settings).check(contents=contents)} - {"property-unserved"}
        assert found <= MARKED_PENDING
        assert bool(found) == pending
    assert before == {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


def test_the_rules_say_what_to_do():
    """Every code has a meaning and a way out."""
    assert all(rule.meaning and rule.fix for rule in RULES.values())


# --- properties ---------------------------------------------------------------------------------------------------
@EVERY
def test_properties_that_are_unknown_or_not_served_are_named(version, tmp_path):
    """Each by its name and value: what changes the table is refused for them, and a check says so beforehand."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    with (path / ".hoodie" / "hoodie.properties").open("a") as file:
        file.write("hoodie.tabel.naem=x\nhoodie.table.partial.update.mode=KEEP_VALUES\n")
    found = {each.code: each for each in opened(path).check()}
    assert set(found) == {"property-unknown", "property-unserved"}
    assert "hoodie.tabel.naem=x" in found["property-unknown"].message
    unserved = "hoodie.table.partial.update.mode=KEEP_VALUES, which is not supported for writing"
    assert unserved in found["property-unserved"].message


@EVERY
def test_an_interrupted_rewrite_of_the_properties(version, tmp_path):
    """A whole file beside its backup is a leftover; a torn one is damage, which the backup heals."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    shutil.copy(properties, properties.with_suffix(".properties.backup"))
    assert codes(path) == {"properties-backup"}
    properties.write_bytes(properties.read_bytes()[:40])
    assert codes(path) == {"properties-backup", "properties-damaged"}


# --- instants -----------------------------------------------------------------------------------------------------
@EVERY
@pytest.mark.parametrize("action", ["commit", "clean"])
def test_a_torn_instant(version, action, tmp_path):
    """Half a file does not decode."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    shortened(completed(path, action)[-1])
    found = opened(path).check()
    assert [each.code for each in found if each.severity is Severity.ERROR][-1] == "instant-unreadable"


@EVERY
def test_an_empty_instant(version, tmp_path):
    """A completed commit without content."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    shortened(completed(path, "commit")[-1], part=10**9)
    assert codes(path) == {"instant-empty"}


@EVERY
@pytest.mark.parametrize(
    ("table", "word"), [("cow_clean_requested", "clean"), ("mor_pending_compaction", "compaction")]
)
def test_a_pending_action_without_plan(version, table, word, tmp_path):
    """Its requested file is empty: nobody can carry it out."""
    path = fixtures.unpack(f"{table}-{version}", tmp_path)
    (requested,) = [
        f for f in timeline_folder(path).glob(f"*.{word}.requested") if f.stem.split(".")[0] in pending(path)
    ]
    shortened(requested, part=10**9)
    assert "instant-plan-missing" in codes(path)


def pending(path):
    return {each.requested_time for each in opened(path).timeline.pending()}


@EVERY
def test_an_inflight_instant_without_request(version, tmp_path):
    """Only the second of three states is there."""
    path = fixtures.unpack(f"cow_failed_write-{version}", tmp_path)
    (time,) = pending(path)
    (timeline_folder(path) / f"{time}.commit.requested").unlink()
    assert codes(path) == {"instant-stale", "instant-request-missing"}


@EVERY
def test_a_pending_write_is_stale_after_a_while(version, tmp_path):
    """Just begun it is news, an hour later likely dead."""
    path = fixtures.unpack(f"cow_failed_write-{version}", tmp_path)
    (time,) = pending(path)
    moment = datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
    found = Table(LocalStorage(str(path)), clock=FixedClock(moment)).check()
    assert [(each.severity, each.code) for each in found] == [(Severity.INFO, "instant-pending")]
    assert codes(path) == {"instant-stale"}


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_an_instant_completed_twice(version, tmp_path):
    """Two executors of one clean (rule A-75)."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    last = completed(path, "clean")[-1]
    requested, _, _ = last.name.partition("_")
    shutil.copy(last, last.with_name(f"{requested}_{LATER}.clean"))
    assert codes(path) == {"instant-twice"}


@EVERY
def test_a_completed_instant_without_its_earlier_states(version, tmp_path):
    """An archival that was interrupted."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    time = opened(path).timeline.completed("commit")[0].requested_time
    for name in (f"{time}.commit.requested", f"{time}.inflight"):
        (timeline_folder(path) / name).unlink()
    assert codes(path) == {"instant-states-missing"}


@EVERY
def test_strange_files_and_markers_left_behind(version, tmp_path):
    """A temporary of a writer that died, and markers of a completed commit."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    last = completed(path, "commit")[-1]
    (timeline_folder(path) / f"{last.name}.7c1f").write_bytes(b"")
    assert codes(path) == {"timeline-unknown-file"}
    (timeline_folder(path) / f"{last.name}.7c1f").unlink()
    markers = path / ".hoodie" / ".temp" / last.name.partition(".")[0].partition("_")[0]
    markers.mkdir(parents=True)
    (markers / "a.parquet.marker.CREATE").write_bytes(b"")
    assert codes(path) == {"leftover-markers"}


@EVERY
def test_a_damaged_archive(version, tmp_path):
    """Found; and what only the archive could tell is not guessed."""
    path = fixtures.unpack(f"cow_archived-{version}", tmp_path)
    folder = path / ".hoodie" / ("archived" if version == "0.15.0" else "timeline/history")
    for file in folder.glob("*.parquet" if version != "0.15.0" else ".commits_.archive.*"):
        shortened(file)
    assert codes(path) == {"archive-unreadable"}


# --- files --------------------------------------------------------------------------------------------------------
@EVERY
@pytest.mark.parametrize("table", ["cow_cleaned", "cow_nonpartitioned", "mor_compacted"])
def test_a_lost_file(version, table, tmp_path):
    """Named by a commit, and nothing removed it; the metadata table still lists it."""
    path = fixtures.unpack(f"{table}-{version}", tmp_path)
    lost = newest_base_file(path) if table != "mor_compacted" else max(path.glob("*/*.parquet"))
    lost.unlink()
    wanted = {"file-missing", "mdt-ghost"} if opened(path).config.has_metadata_table else {"file-missing"}
    found = {(each.code, each.where) for each in opened(path).check()}
    assert found == {(code, lost.relative_to(path).as_posix()) for code in wanted}


@EVERY
def test_files_that_an_archived_clean_removed_are_not_lost(version, tmp_path):
    """Layout 1 archives cleans by their own count, before the commits whose files they removed."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    table = opened(path)
    table.archive(keep_min_commits=5, keep_max_commits=6)
    assert codes(path) == set()


@EVERY
def test_a_lost_log_file(version, tmp_path):
    """Log files count as much as base files."""
    path = fixtures.unpack(f"mor_logs-{version}", tmp_path)
    lost = max(file for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts and file.suffix != ".crc")
    lost.unlink()
    assert "file-missing" in codes(path)


@EVERY
def test_a_torn_file(version, tmp_path):
    """Neither the commit nor the metadata table knows it at that length."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    shortened(newest_base_file(path))
    assert codes(path) == {"file-size-differs", "mdt-size-differs"}


@EVERY
def test_a_file_that_its_commit_does_not_name(version, tmp_path):
    """A task that ran twice; the metadata table rightly does not list it."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    file = newest_base_file(path)
    file_id, _, time = file.name.split("_")
    shutil.copy(file, file.with_name(f"{file_id}_9-9-9_{time}"))
    assert codes(path) == {"file-unnamed"}


@EVERY
def test_a_file_of_no_instant(version, tmp_path):
    """Invisible when its time lies within the active timeline; taken for committed when it lies before."""
    path = fixtures.unpack(f"cow_archived-{version}", tmp_path)
    file = newest_base_file(path)
    file_id, token, _ = file.name.split("_")
    last = opened(path).timeline.completed("commit")[-1].requested_time
    stray = file.with_name(f"{file_id}_{token}_{int(last) + 1}.parquet")
    shutil.copy(file, stray)
    assert codes(path) == {"file-orphaned"}
    stray.unlink()
    archived = opened(path).archived_timeline().completed("commit")[-1].requested_time
    shutil.copy(file, file.with_name(f"{file_id}_{token}_{int(archived) + 1}.parquet"))
    assert "file-looks-committed" in codes(path)


@EVERY
def test_a_lost_file_of_a_savepoint(version, tmp_path):
    """Nothing explains away what a savepoint holds."""
    path = fixtures.unpack(f"cow_savepoints-{version}", tmp_path)
    table = opened(path)
    held = table.contents.savepoint(table.timeline.completed("savepoint")[0]).files
    partition, names = next(iter(held.items()))
    (path / partition / names[0]).unlink()
    assert "savepoint-file-missing" in codes(path)


@EVERY
def test_a_partition_without_its_metafile(version, tmp_path):
    """Listings would pass over it."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    metafile = newest_base_file(path).with_name(".hoodie_partition_metadata")
    shortened(metafile)
    assert codes(path) == {"partition-metafile-damaged"}
    metafile.unlink()
    assert codes(path) == {"partition-metafile-missing"}


@EVERY
@pytest.mark.parametrize("table", ["cow_partitioned", "cow_mixed", "mor_logs", "mor_compacted", "mor_failed_write"])
def test_what_rollback_and_restore_took_back_is_not_missed(version, table, tmp_path):
    """Neither files of what was undone, nor its records in the metadata table, nor a savepoint's later log files."""
    path = fixtures.unpack(f"{table}-{version}", tmp_path)
    commits = opened(path).timeline.commits.completed()
    opened(path).create_savepoint(commits[-3].requested_time)
    opened(path).restore(commits[-3].requested_time)
    assert codes(path) <= MARKED_PENDING


# --- the metadata table -------------------------------------------------------------------------------------------
def test_log_files_that_hudi_took_back_have_no_length(tmp_path):
    """Layout 1: its metadata table lists them with one byte; what a delta commit wrote is held against its length."""
    path = fixtures.unpack_more("multi_failed-0.15.0", tmp_path)
    logs = {
        entry.name: entry.size_bytes
        for _, entries in opened(path).listing.walk(details=True)
        for entry in entries
        if ".log." in entry.name
    }
    assert 1 in logs.values()
    assert codes(path) <= MARKED_PENDING
    committed = next(file for file in path.rglob(".*.log.1_*") if file.suffix != ".crc")
    shortened(committed)
    assert "mdt-size-differs" in codes(path)


@EVERY
def test_a_metadata_table_that_is_not_there(version, tmp_path):
    """The property without the folder; the folder without the property."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    shutil.rmtree(path / ".hoodie" / "metadata")
    assert codes(path) == {"mdt-folder-missing"}
    other = fixtures.unpack(f"cow_nomdt-{version}", tmp_path)
    (other / ".hoodie" / "metadata" / "files").mkdir(parents=True)
    (other / ".hoodie" / "metadata" / "files" / "a").write_bytes(b"")
    assert codes(other) == {"mdt-leftover"}


@EVERY
def test_a_damaged_metadata_table(version, tmp_path):
    """A torn base file, a torn properties file: the files themselves are still checked."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    newest_base_file(path).unlink()
    for file in (path / ".hoodie" / "metadata" / "files").glob("*.hfile"):
        shortened(file)
    assert codes(path) == {"mdt-unreadable", "file-missing"}
    (path / ".hoodie" / "metadata" / ".hoodie" / "hoodie.properties").write_bytes(b"")
    assert codes(path) == {"mdt-unreadable", "file-missing"}


@EVERY
def test_a_commit_that_bypassed_the_metadata_table(version, tmp_path):
    """The delta commit of the last commit is not there: its files are invisible through the metadata table."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    time = opened(path).timeline.completed("commit")[-1].requested_time
    table = MetadataTable(LocalStorage(str(path)))
    instant = table.store.load().find(time, Action.DELTA_COMMIT)
    written = [
        stat.path for stats in Contents(table.store).commit(instant).partition_to_write_stats.values() for stat in stats
    ]
    for each in table.store.files_of(instant):
        table.store.remove(each)
    for file in written:
        table.storage.delete(file)
    assert codes(path) == {"mdt-instant-missing", "mdt-file-missing"}


@EVERY
def test_a_clean_that_bypassed_the_metadata_table(version, tmp_path):
    """Ghosts: older files that are gone (rules/data-files 10.2)."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    properties = path / ".hoodie" / "hoodie.properties"
    whole = properties.read_bytes()
    lines = [line for line in whole.splitlines() if not line.startswith(b"hoodie.table.metadata.partitions")]
    properties.write_bytes(b"\n".join(lines) + b"\n")
    assert opened(path).clean(file_versions_retained=1)
    properties.write_bytes(whole)
    properties.with_name(".hoodie.properties.crc").unlink(missing_ok=True)
    assert codes(path) == {"mdt-ghost-outdated", "mdt-instant-missing"}


@EVERY
def test_records_of_an_instant_that_the_table_does_not_know(version, tmp_path):
    """A rollback that bypassed the metadata table leaves its records behind, and ghosts with them."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    storage = LocalStorage(str(path))
    partition = opened(path).partitions()[0]
    changes = ListingChanges(added={partition: {f"f-0_1-1-1_{LATER}.parquet": 9}}, written_partitions=(partition,))
    write_delta_commit(MetadataTable(storage), timeline_of(storage), LATER, changes)
    assert codes(path) == {"mdt-instant-unknown", "mdt-ghost"}


@EVERY
def test_a_damaged_instant_of_the_metadata_table(version, tmp_path):
    """Its timeline is read to the last one too."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    shortened(completed(path / ".hoodie" / "metadata", "deltacommit")[-1])
    assert "mdt-instant-damaged" in codes(path)


@EVERY
def test_a_partition_listed_without_files(version, tmp_path):
    """Apache Hudi leaves those behind where it removes a partition that base file and log files list."""
    path = fixtures.unpack(f"cow_cleaned-{version}", tmp_path)
    storage = LocalStorage(str(path))
    begin(storage, Action.COMMIT, LATER)
    changes = ListingChanges(written_partitions=("gone",))
    write_delta_commit(MetadataTable(storage), timeline_of(storage), LATER, changes)
    content = encode_commit(CommitMetadata(operation_type="UPSERT"), as_json=version == "0.15.0", sync=SYNC)
    store_of(storage).complete(Instant(LATER, Action.COMMIT, State.INFLIGHT), content)
    assert codes(path) == {"mdt-partition-empty"}


def test_a_table_that_changes_while_it_is_looked_at(tmp_path):
    """Said, because what was found may be over."""
    path = fixtures.unpack("cow_cleaned-1.1.1", tmp_path)

    class Moving(DelegatingStorage):
        """Another writer begins a commit whenever the table's folder is listed."""

        number = 0

        def _around(self, verb, paths, call):
            if verb == "list" and paths == ("",):
                self.number += 1
                time = int(LATER) + self.number
                self.inner.create_new(f".hoodie/timeline/{time}.commit.requested", b"")
            return call()

    newest_base_file(path).unlink()
    found = {each.code for each in Table(Moving(LocalStorage(str(path)))).check()}
    assert {"table-changing", "file-missing"} <= found


@pytest.mark.parametrize("left", [0, 52, 104])
def test_a_rollback_block_that_is_cut_off(left, tmp_path):
    """In layout 1 it alone says that the blocks before it do not count; its size stands in the rollback."""
    path = fixtures.unpack("mor_rolled_back-0.15.0", tmp_path)
    table = opened(path)
    [rollback] = table.timeline.completed("rollback")
    done = table.contents.rollback(rollback).partitions
    [log, *_] = sorted(name for each in done.values() for name in each.rollback_log_files)
    file = next(path.rglob(log.rpartition("/")[2]))
    os.truncate(file, left)
    found = {each.code: each for each in opened(path, **{"hoodie.metadata.enable": "false"}).check()}
    assert f"rollback {rollback.requested_time} wrote 105" in found["file-size-differs"].message
