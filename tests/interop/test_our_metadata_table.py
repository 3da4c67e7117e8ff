"""Metadata tables that only we have written to: real Hudi reads them, writes on, recovers what we left half done."""

from __future__ import annotations

import itertools
import shutil
from unittest import mock

import pytest

import hudi_py
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.instant import Action
from hudi_py.services.check.findings import Severity
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.testing import Crash, StopBefore
from support.interop_sample import sized
from support.writes import upsert

pytestmark = pytest.mark.oracle

CREATE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
    "hoodie.clean.automatic": False,
}
THEIRS = {"hoodie.metadata.enable": True, "hoodie.clean.automatic": False}
COMPACT = THEIRS | {"hoodie.metadata.compact.max.delta.commits": 1}
ROUNDS = sized(60, 40)
EVERY_NTH_CALL = sized(6, 15)


def rows(ts, names="abcdef"):
    return [{"id": name, "region": ("eu", "us")[ord(name) % 2], "ts": ts} for name in names]


def agree(peer, path, expected):
    """Rows with the metadata table and without, its listing beside the folders, for both sides."""
    wanted = sorted((row["id"], row["ts"]) for row in expected)
    for metadata in (True, False):
        assert wanted == sorted((row["id"], row["ts"]) for row in peer.read(path, metadata=metadata))
    assert peer.file_slices(path) == peer.file_slices(path, use_metadata=True)
    found = hudi_py.open_table(str(path)).check()
    assert [] == [each for each in found if each.severity is Severity.ERROR or each.code.startswith("mdt")]


def test_after_many_commits_of_ours_real_hudi_goes_on(peer, tmp_path):
    """Our commits, cleans, archivals, and the metadata table's own; then theirs, and ours again."""
    path = tmp_path / "t"
    peer.write(path, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    storage = LocalStorage(str(path))
    archival = {"keep_min_commits": 4, "keep_max_commits": 6}
    compaction = {"hoodie.metadata.compact.max.delta.commits": 4}
    for ts in range(2, ROUNDS):
        upsert(storage, rows(ts), **compaction)
        hudi_py.open_table(str(path)).clean(commits_retained=2)
        hudi_py.open_table(str(path), settings=compaction).archive(**archival)
    metadata = MetadataTable(storage)
    assert metadata.store.load().completed("clean"), "the metadata table was never cleaned"
    assert len(metadata.storage.list("files")) < ROUNDS
    agree(peer, path, rows(ROUNDS - 1))
    for ts in range(ROUNDS, ROUNDS + 3):
        peer.write(path, rows(ts), "upsert", COMPACT)
        peer.clean(path, {"hoodie.cleaner.commits.retained": 1})
        agree(peer, path, rows(ts))
    upsert(storage, rows(ROUNDS + 3))
    agree(peer, path, rows(ROUNDS + 3))


@pytest.mark.parametrize("settings", [{}, COMPACT], ids=["recorded", "compacted"])
def test_real_hudi_recovers_what_we_left_half_done(peer, tmp_path, settings):
    """A commit of ours stopped at every few calls; real Hudi's next upsert rolls it back or builds upon it."""
    original = tmp_path / "t"
    peer.write(original, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    upsert(LocalStorage(str(original)), rows(2))
    for n in itertools.count(1, EVERY_NTH_CALL):
        path = tmp_path / f"stopped-{n}"
        shutil.copytree(original, path)
        storage = StopBefore(LocalStorage(str(path)), n)
        try:
            upsert(storage, rows(3), **settings)
        except Crash:
            pass
        else:
            break
        peer.write(path, rows(4, "abc"), "upsert", THEIRS)
        read = {row["id"]: row["ts"] for row in peer.read(path)}
        assert {read[name] for name in "abc"} == {4}
        assert {read[name] for name in "def"} in ({2}, {3}), f"half of a commit is visible: {read}"
        agree(peer, path, [{"id": name, "ts": ts} for name, ts in read.items()])
    assert n > EVERY_NTH_CALL


def test_real_hudi_finishes_the_clean_that_we_left_half_done(peer, tmp_path):
    """A clean of ours, the compaction that follows it included, stopped at every few calls; Hudi writes and cleans."""
    original = tmp_path / "t"
    peer.write(original, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    for ts in range(2, 6):
        upsert(LocalStorage(str(original)), rows(ts))
    by_step = COMPACT | {"hoodie_py.clean.max.files": 1, "hoodie_py.clean.breakers": False}
    for _ in range(2):
        assert hudi_py.open_table(str(original), settings=by_step).clean(commits_retained=1)
    for n in itertools.count(1, EVERY_NTH_CALL):
        path = tmp_path / f"stopped-{n}"
        shutil.copytree(original, path)
        table = Table(StopBefore(LocalStorage(str(path)), n), settings=by_step)
        try:
            table.clean(commits_retained=1)
        except Crash:
            pass
        else:
            break
        peer.write(path, rows(6, "abc"), "upsert", THEIRS)
        peer.clean(path, {"hoodie.cleaner.commits.retained": 1})
        agree(peer, path, [*rows(6, "abc"), *rows(5, "def")])
        assert not hudi_py.open_table(str(path)).timeline.pending()
    assert n > EVERY_NTH_CALL


def test_real_hudi_rolls_back_a_commit_that_the_metadata_table_knows(peer, tmp_path):
    """We die between the metadata table and the table, a compaction being due: it must be older than the commit."""
    path = tmp_path / "t"
    peer.write(path, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    storage = LocalStorage(str(path))
    upsert(storage, rows(2))
    record = MetadataTableKeeper.record_commit

    def die(*arguments, **words):
        record(*arguments, **words)
        raise Crash

    with mock.patch.object(MetadataTableKeeper, "record_commit", die), pytest.raises(Crash):
        upsert(storage, rows(3), **COMPACT)
    assert MetadataTable(storage).store.load().completed(Action.COMMIT)
    peer.write(path, rows(4, "abc"), "upsert", THEIRS)
    agree(peer, path, [*rows(4, "abc"), *rows(2, "def")])


def test_real_hudi_goes_on_after_cleans_of_ours_alone(peer, tmp_path):
    """Each takes a file; they compact the metadata table. Then their upsert, their clean, and ours again."""
    path = tmp_path / "t"
    peer.write(path, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    storage = LocalStorage(str(path))
    for ts in range(2, 8):
        upsert(storage, rows(ts))
    settings = COMPACT | {"hoodie_py.clean.max.files": 1, "hoodie_py.clean.breakers": False}
    compactions = []
    while hudi_py.open_table(str(path), settings=settings).clean(commits_retained=1):
        compactions.append(len(MetadataTable(storage).store.load().completed(Action.COMMIT)))
    assert len(compactions) > 4
    assert compactions[-1] > compactions[0]
    agree(peer, path, rows(7))
    peer.write(path, rows(8), "upsert", COMPACT)
    peer.clean(path, {"hoodie.cleaner.commits.retained": 1})
    agree(peer, path, rows(8))
    upsert(storage, rows(9))
    agree(peer, path, rows(9))


def test_a_partition_that_our_clean_removes_is_listed_nowhere(peer, tmp_path):
    """Known to the base file and to log files of the metadata table: real Hudi must see neither, and write on."""
    path = tmp_path / "t"
    peer.write(path, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    storage = LocalStorage(str(path))
    for ts in (2, 3):
        upsert(storage, rows(ts), **{"hoodie.metadata.compact.max.delta.commits": 1})
    drop = THEIRS | {"hoodie.datasource.write.partitions.to.delete": "us"}
    peer.write(path, rows(4), "delete_partition", drop)
    kept = [row for row in rows(5) if row["region"] == "eu"]
    for _ in range(2):
        upsert(storage, kept)
    (done,) = hudi_py.open_table(str(path)).clean(file_versions_retained=1)
    assert done.metadata.partitions["us"].is_partition_deleted
    assert hudi_py.open_table(str(path)).partitions() == ("eu",)
    assert set(peer.file_slices(path, use_metadata=True)["partitions"]) == {"eu"}
    agree(peer, path, kept)
    peer.write(path, rows(6), "upsert", COMPACT)
    agree(peer, path, rows(6))
    assert hudi_py.open_table(str(path)).partitions() == ("eu", "us")


def test_a_partition_that_their_clean_removes_is_listed_nowhere(peer, tmp_path):
    """Hudi 1.1 deletes its record by a delete block; the partition may come back, and we may compact in between."""
    path = tmp_path / "t"
    peer.write(path, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    drop = THEIRS | {"hoodie.datasource.write.partitions.to.delete": "us"}
    peer.write(path, rows(2), "delete_partition", drop)
    kept = [row for row in rows(3) if row["region"] == "eu"]
    for _ in range(2):
        peer.write(path, kept, "upsert", THEIRS)
    once = {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": 1}
    peer.clean(path, THEIRS | once)
    for each in (hudi_py.open_table(str(path)), hudi_py.open_table(str(path), settings=FOLDERS)):
        assert [name for name, files in each.listing.walk() if files] == ["eu"]
    assert hudi_py.open_table(str(path)).partitions() == ("eu",)
    agree(peer, path, kept)
    storage = LocalStorage(str(path))
    for ts in (4, 5):
        upsert(storage, rows(ts), **{"hoodie.metadata.compact.max.delta.commits": 1})
        assert hudi_py.open_table(str(path)).partitions() == ("eu", "us")
        agree(peer, path, rows(ts))


FOLDERS = {"hoodie.metadata.enable": "false"}
