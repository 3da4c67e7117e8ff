"""A clean into quarantine and its undo, between writes and cleans of real Hudi."""

from __future__ import annotations

import pytest

import hudi_py
from support.interop_model import PARTITIONED, Model
from support.interop_ours import hudi_py_json

pytestmark = pytest.mark.oracle

OPTIONS = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "true"}
COMPACTS = OPTIONS | {"hoodie.metadata.compact.max.delta.commits": "2"}
ONE_COMMIT = {"hoodie.clean.commits.retained": "1", "hoodie.cleaner.commits.retained": "1"}


class Written:
    """A table that real Hudi writes, and what it has to show."""

    def __init__(self, peer, path, options=OPTIONS):
        self.peer, self.path, self.options, self.model = peer, path, options, Model(PARTITIONED)

    def write(self, version):
        """All rows in another version."""
        batch = PARTITIONED.batch(range(9), version)
        self.model.upsert(batch)
        created = PARTITIONED.create(self.peer.table_version) if version == 1 else {}
        self.peer.write(self.path, batch, "upsert", created | self.options)

    def slices(self):
        """The slices, which folders and metadata table show alike; so they do the rows."""
        assert self.peer.read(self.path) == self.peer.read(self.path, metadata=True) == self.model.rows()
        found = self.peer.file_slices(self.path)
        assert found == self.peer.file_slices(self.path, use_metadata=True)
        return found

    def assert_sound(self):
        """Nothing is wrong with it."""
        assert [each for each in hudi_py_json("check", str(self.path)) if each["severity"] != "info"] == []


def test_real_hudi_sees_a_clean_and_then_none(peer, tmp_path):
    """Rows and slices, with the metadata table and without: after the clean, after its undo, and as both go on."""
    path = tmp_path / "t"
    written = Written(peer, path)
    write, slices = written.write, written.slices
    for version in (1, 2, 3):
        write(version)
    before = slices()
    table = hudi_py.open_table(str(path), settings={"hoodie_py.clean.quarantine": True})
    (done,) = table.clean(commits_retained=1)
    assert done.deleted_files
    assert slices() != before
    hudi_py.open_table(str(path)).undo(done.instant)
    assert slices() == before
    written.options = COMPACTS  # Hudi compacts the metadata table over our records
    for version in (4, 5, 6):
        write(version)
        slices()
    peer.clean(path, ONE_COMMIT)
    slices()
    assert not any((path / each).exists() for each in done.deleted_files)
    written.assert_sound()


def test_real_hudi_goes_on_behind_a_clean_that_archival_left(peer, tmp_path):
    """Commits behind it are archived; Hudi reads, writes, cleans and archives, and the clean is undone before that."""
    path = tmp_path / "t"
    written = Written(peer, path)
    write, model = written.write, written.model
    ours = {"hoodie_py.clean.quarantine": True, "hoodie.clean.commits.retained": 1}
    for version in (1, 2, 3):
        write(version)
    (done,) = hudi_py.open_table(str(path), settings=ours).clean(commits_retained=1)
    for version in range(4, 12):
        write(version)
    hudi_py.open_table(str(path), settings=ours).archive(keep_min_commits=2, keep_max_commits=3)
    timeline = hudi_py.open_table(str(path)).timeline
    assert timeline.instants[0].requested_time == done.instant
    assert timeline.commits.is_before_start(done.instant)
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    write(12)
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    hudi_py.open_table(str(path)).undo(done.instant)
    assert all((path / each).exists() for each in done.deleted_files)
    for version in (13, 14, 15):
        write(version)
    peer.clean(path, ONE_COMMIT)
    peer.archive(path, ONE_COMMIT | {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"})
    assert peer.read(path) == peer.read(path, metadata=True) == model.rows()
    written.assert_sound()


def test_real_hudi_lists_what_an_undo_brought_back_although_it_had_compacted_the_metadata_table(peer, tmp_path):
    """Its base file knows the files, and log files that they were deleted; the next clean removes them for good."""
    path = tmp_path / "t"
    written = Written(peer, path, COMPACTS)

    def slices():
        written.assert_sound()
        return written.slices()

    for version in range(1, 7):
        written.write(version)
    before = slices()
    settings = {"hoodie_py.clean.quarantine": True}
    (done,) = hudi_py.open_table(str(path), settings=settings).clean(commits_retained=1)
    assert len(done.deleted_files) > 2
    hudi_py.open_table(str(path)).undo(done.instant)
    assert slices() == before
    peer.clean(path, ONE_COMMIT)
    assert slices() != before
    assert not any((path / each).exists() for each in done.deleted_files)
