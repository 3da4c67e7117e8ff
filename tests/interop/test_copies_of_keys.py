"""Keys that bulk inserts wrote several times, met by global indexes: no old row stays that Hudi would change."""

import shutil

import pyarrow as pa
import pytest

import hudi_py

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.clean.automatic": False,
    "hoodie.compact.inline": False,
}
INDEXES = ("GLOBAL_SIMPLE", "GLOBAL_BLOOM", "RECORD_INDEX")


def rows(*values):
    keys, regions, times = zip(*(each.split("/") for each in values), strict=True)
    return pa.table({"id": keys, "region": regions, "ts": pa.array(map(int, times), pa.int64())})


def shown(peer, path):
    """Rows without repetitions: of a key that moves, Hudi makes as many rows as it found, we make one."""
    return {(row["_hoodie_record_key"], row["_hoodie_partition_path"], row["ts"]) for row in peer.read(path, meta=True)}


@pytest.mark.parametrize("moves", [False, True], ids=["staying", "moving"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_each_index_meets_the_rows_that_hudi_meets(kind, moves, peer, tmp_path):
    """Of two tables that Hudi made, each side changes one in the same way: the same rows are left."""
    for index in INDEXES:
        theirs, ours = tmp_path / f"{index}-theirs", tmp_path / f"{index}-ours"
        settings = SETTINGS | {"hoodie.index.type": index, "hoodie.datasource.write.table.type": kind}
        settings |= {"hoodie.write.table.version": peer.table_version}
        settings |= {f"hoodie.{each}.index.update.partition.path": moves for each in ("simple", "bloom", "record")}
        kept = index == "RECORD_INDEX"
        settings |= {"hoodie.metadata.enable": kept, "hoodie.metadata.record.index.enable": kept}
        for each in (["a/eu/1", "m/eu/1", "d/eu/1", "z/eu/1"], ["a/eu/2", "d/eu/2"], ["a/us/3", "m/us/3", "d/us/3"]):
            peer.write(theirs, rows(*each), "bulk_insert", settings)
        shutil.copytree(theirs, ours)
        for operation, given in (("upsert", ["a/eu/9", "n/ap/9"]), ("delete", ["d/eu/9"]), ("upsert", ["m/ap/9"])):
            peer.write(theirs, rows(*given), operation, settings)
            hudi_py.write(str(ours), rows(*given), operation=operation, settings=settings)
            found, keys = shown(peer, ours), {each.partition("/")[0] for each in given}
            if index == "RECORD_INDEX" or not moves:
                assert found == shown(peer, theirs), (index, operation, given)
            else:  # 1.1.1 leaves an old row of a key that moves to a partition where it has one
                assert found <= shown(peer, theirs), (index, operation, given)
                assert {ts for key, _, ts in found if key in keys} <= {9}, (index, operation, given)
