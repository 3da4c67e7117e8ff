"""Real Hudi and we take turns at a table with a metadata table: rows and listings stay right with it and without."""

from __future__ import annotations

import pytest

from support.interop_metadata import OurTable, Stop

pytestmark = pytest.mark.oracle

CREATE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.metadata.enable": "true",
}
COMPACT = {"hoodie.metadata.compact.max.delta.commits": "2", "hoodie.clean.automatic": "false"}
KEEP = {"hoodie.clean.automatic": "false"}


def rows(ids, ts, mark):
    return [{"id": i, "region": f"r{i % 3}", "val": f"{mark}{i}", "ts": ts} for i in ids]


class Turns:
    """One table, its model, and the check after every step."""

    def __init__(self, peer, path, partition_field):
        self.peer, self.path, self.model = peer, path, {}
        self.ours = OurTable(path)
        self.ts = 0
        self.theirs(
            range(12), "a", CREATE | KEEP | {"hoodie.datasource.write.partitionpath.field": partition_field}
            | ({} if partition_field else {"hoodie.datasource.write.keygenerator.class":
                "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}),
        )  # fmt: skip

    def theirs(self, ids, mark, options=None):
        self.ts += 1
        batch = rows(ids, self.ts, mark)
        self.peer.write(self.path, batch, "upsert", options or KEEP)
        self.model |= {row["id"]: row["val"] for row in batch}
        self.check()

    def our_commit(self, mark, **arguments):
        self.ts += 1

        def change(row):
            return row | {"val": f"{mark}{row['id']}", "ts": self.ts}

        self.ours.commit(change, **arguments)
        self.model = {key: f"{mark}{key}" for key in self.model}
        self.check()

    def our_commit_without(self, mark):
        """A commit into the table while it has no metadata table."""
        self.ts += 1
        self.ours.commit(lambda row: row | {"val": f"{mark}{row['id']}", "ts": self.ts}, record=False)
        self.model = {key: f"{mark}{key}" for key in self.model}

    def check(self):
        """Rows with and without the metadata table, its listing beside the disk, in both implementations."""
        expected = sorted(self.model.items())
        for metadata in (True, False):
            read = self.peer.read(self.path, metadata=metadata)
            assert expected == sorted((row["id"], row["val"]) for row in read), f"metadata={metadata}"
        assert self.ours.on_disk() == self.ours.listed()
        assert self.peer.file_slices(self.path) == self.peer.file_slices(self.path, use_metadata=True)


@pytest.mark.parametrize("partition_field", ["region", ""])
def test_commits_and_cleans_of_both_sides_keep_the_metadata_table_true(peer, tmp_path, partition_field):
    """Our commits and cleans, theirs, and their compaction of the metadata table over our log blocks."""
    turns = Turns(peer, tmp_path / "t", partition_field)
    turns.theirs(range(0, 12, 2), "b")
    turns.our_commit("c")
    turns.theirs(range(6, 15), "d")
    assert turns.ours.clean() > 0
    turns.check()
    turns.our_commit("e")
    turns.our_commit("f")
    turns.theirs(range(3), "g", COMPACT)  # compacts ours
    turns.our_commit("h")
    assert turns.ours.clean() > 0
    turns.check()
    peer.clean(
        turns.path, {"hoodie.cleaner.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.cleaner.fileversions.retained": 1}
    )
    turns.check()
    turns.theirs(range(4, 20), "i", COMPACT)
    turns.our_commit("j")
    turns.theirs(range(2), "k")
    assert any("hfile" in name for name in names(turns.path))


def names(path):
    return {file.name for file in (path / ".hoodie/metadata/files").iterdir()}


def test_a_commit_of_ours_that_dies_after_the_metadata_table_is_rolled_back_by_them(peer, tmp_path):
    """Completed in the metadata table, pending in the table: nobody sees it, and real Hudi removes it."""
    turns = Turns(peer, tmp_path / "t", "region")
    turns.our_commit("b")
    with pytest.raises(Stop):
        turns.ours.commit(lambda row: row | {"val": "lost"}, stop_after_metadata=True)
    turns.check()
    turns.theirs(range(5), "c")
    turns.our_commit("d")
    turns.theirs(range(5, 8), "e", COMPACT)


def test_a_commit_of_ours_that_dies_after_the_metadata_table_is_rolled_back_by_us(peer, tmp_path):
    """The same, and our own rollback removes it from the metadata table, before and after their next writes."""
    turns = Turns(peer, tmp_path / "t", "region")
    turns.theirs(range(4), "b")
    with pytest.raises(Stop):
        turns.ours.commit(lambda row: row | {"val": "lost"}, stop_after_metadata=True)
    turns.ours.rollback()
    turns.check()
    turns.theirs(range(5), "c")
    turns.our_commit("d")
    turns.theirs(range(5, 8), "e", COMPACT)


@pytest.mark.parametrize("partition_field", ["region", ""])
def test_a_metadata_table_made_and_compacted_by_us_serves_them(peer, tmp_path, partition_field):
    """Created from a listing, filled and compacted by us, then written and compacted by real Hudi, twice over."""
    turns = Turns(peer, tmp_path / "t", partition_field)
    turns.theirs(range(4), "b")
    turns.ours.drop_metadata_table()
    turns.our_commit_without("c")
    turns.ours.create_metadata_table()
    turns.check()
    for mark in ("d", "e", "f"):
        for _ in range(2):
            turns.our_commit(mark)
        assert turns.ours.clean() > 0
        turns.check()
        assert turns.ours.compact() is not None
        turns.check()
        turns.our_commit(mark + "x")
        turns.theirs(range(3, 9), mark + "y", COMPACT if mark == "e" else KEEP)
    assert turns.ours.metadata_partitions()


def test_a_write_of_theirs_that_failed_is_rolled_back_by_us(peer, tmp_path):
    """Real Hudi leaves a pending commit; we roll it back; the metadata table stays true."""
    turns = Turns(peer, tmp_path / "t", "region")
    turns.our_commit("b")
    peer.fail_write(turns.path, rows(range(6), 99, "x"), "upsert", KEEP)
    turns.check()
    turns.ours.rollback()
    turns.check()
    turns.theirs(range(5), "c", COMPACT)
    turns.our_commit("d")
    turns.theirs(range(5, 8), "e")
