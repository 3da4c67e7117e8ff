"""Metadata tables that only we have written to: real Hudi reads them, writes on, recovers what we left half done."""

from __future__ import annotations

import itertools
import shutil

import pytest

import hudi_py
from crash.test_write import upsert
from hudi_py.mdt.table import MetadataTable
from hudi_py.services.check.findings import Severity
from hudi_py.storage.local import LocalStorage
from hudi_py.testing import Crash, StopBefore

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
ROUNDS = 60
EVERY_NTH_CALL = 6


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


def test_real_hudi_recovers_what_we_left_half_done(peer, tmp_path):
    """A commit of ours stopped at every sixth call; real Hudi's next upsert rolls it back or builds upon it."""
    original = tmp_path / "t"
    peer.write(original, rows(1), "upsert", CREATE | {"hoodie.write.table.version": peer.table_version})
    upsert(LocalStorage(str(original)), rows(2))
    for n in itertools.count(1, EVERY_NTH_CALL):
        path = tmp_path / f"stopped-{n}"
        shutil.copytree(original, path)
        storage = StopBefore(LocalStorage(str(path)), n)
        try:
            upsert(storage, rows(3))
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
