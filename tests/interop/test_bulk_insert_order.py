"""Bulk inserts on Spark beside those of real Hudi: the same files with the same rows in the same order."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.bulkinsert.shuffle.parallelism": "2",
}
BY_REGION = {"hoodie.datasource.write.partitionpath.field": "region"}
ALONE = {"hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator"}
MODES = ["NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION", "PARTITION_PATH_REPARTITION_AND_SORT"]
BY_COLUMNS = {
    "hoodie.bulkinsert.user.defined.partitioner.class": (
        "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner"
    ),
    "hoodie.bulkinsert.user.defined.partitioner.sort.columns": "v",
}


@pytest.fixture
def source(tmp_path):
    """Four files of rows, which Spark reads in two tasks."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(4):
        rows = [
            {"id": f"k{at * 7 % 25:02d}", "region": ("eu", "us", "ap")[at % 3], "ts": 1, "v": at * 5 % 13}
            for at in range(6 * number + 1, 6 * number + 7)
        ]
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{number}.parquet")
    return str(folder)


def files(table):
    """The keys of each base file in their order, by folder."""
    found = [path for path in table.glob("**/*.parquet") if ".hoodie" not in path.parts]
    return sorted((path.parent.name, pq.ParquetFile(path).read(["id"]).column(0).to_pylist()) for path in found)


@pytest.mark.parametrize("partitions", [BY_REGION, ALONE], ids=["partitions", "none"])
def test_modes_make_the_files_of_real_hudi(peer, ours, plain_spark, tmp_path, source, partitions):
    """Each mode, and sorting by columns; then real Hudi reads the rows and goes on."""
    cases = [{"hoodie.bulkinsert.sort.mode": mode} for mode in MODES] + [BY_COLUMNS]
    for number, case in enumerate(cases):
        settings = {**SETTINGS, **partitions, **case}
        theirs, mine = tmp_path / f"theirs{number}" / "t", tmp_path / f"ours{number}" / "t"
        peer.write(theirs, source, "bulk_insert", settings)
        version = {"hoodie.write.table.version": peer.table_version}
        ours(mine, settings | version).client().bulk_insert(plain_spark.read.parquet(source))
        assert files(mine) == files(theirs), case
    peer.write(mine, [{"id": "k01", "region": "eu", "ts": 2, "v": 99}], "upsert")
    assert sum(row["v"] == 99 for row in peer.read(mine)) == 1
    assert len(peer.read(mine)) == 24
