"""Merge-on-read tables that both sides write: the same rows for both readers, across compactions and cleans of Hudi."""

import pytest

import hudi_py
from support.interop_model import DEEP, PARTITIONED, Model, numbers

pytestmark = pytest.mark.oracle

MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
THEIRS = MOR | {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
ONCE = {"hoodie.compact.inline.max.delta.commits": "1"}


@pytest.mark.parametrize("variant", [PARTITIONED, DEEP], ids=lambda variant: variant.name)
def test_both_sides_see_the_same_rows_of_our_log_files(variant, peer, ours, tmp_path):
    """
    We create, upsert and delete; Hudi reads, upserts, compacts and cleans, and we go on, on pending compactions too.

    With a metadata table, whose listing has to be that of the folders; rows of all types in Avro and Parquet blocks.
    """
    table, model, deleted = tmp_path / "t", Model(variant), {0, 3, 4, 5}

    def some(*wanted):
        """Hudi 1.0.2 reads no slice, not of its own tables either, in which a row stands behind a delete by key."""
        return [number for number in wanted if peer.table_version != 8 or number not in deleted]

    with_metadata = {"hoodie.metadata.enable": "true"}
    small = {"hoodie.parquet.small.file.limit": "0"}  # new keys go to new groups, so that updates go to log files
    we = ours(table, variant.create(peer.table_version) | MOR | with_metadata | small)
    we.write(model.upsert(variant.batch(range(12), 1)))
    we.write(model.upsert(variant.batch(numbers(1, 12, 5), 2)))
    we.write(model.delete(variant.batch([0, 3], 3)), "delete")
    we.write(model.upsert(variant.batch(some(0, 1, 2, 20), 4)), **{"hoodie.logfile.data.block.format": "parquet"})
    assert model.rows() == we.read() == peer.read(table)
    assert model.rows() == peer.read(table, metadata=True)

    options = THEIRS | with_metadata
    peer.write(table, model.upsert(variant.batch(some(*numbers(2, 20, 6)), 5)), "upsert", options)
    we.write(model.delete(variant.batch([4, 5], 6)), "delete")
    schedule = ONCE | {"hoodie.compact.schedule.inline": "true"}
    peer.write(table, model.upsert(variant.batch(some(*numbers(3, 20, 4)), 7)), "upsert", options | schedule)
    assert hudi_py.open_table(str(table)).timeline.pending("compaction")
    we.write(model.upsert(variant.batch(some(*numbers(4, 20, 4)), 8)))
    assert model.rows() == we.read() == peer.read(table)

    run = ONCE | {"hoodie.compact.inline": "true"}
    peer.write(table, model.upsert(variant.batch(some(*numbers(5, 20, 4)), 9)), "upsert", options | run)
    peer.clean(table, {"hoodie.cleaner.commits.retained": 1})
    we.write(model.upsert(variant.batch(some(*numbers(6, 20, 4)), 10)))
    we.clean(commits_retained=1)
    assert model.rows() == we.read() == peer.read(table, metadata=True)
    assert peer.file_slices(table) == peer.file_slices(table, use_metadata=True)
    assert not [str(each) for each in hudi_py.open_table(str(table)).check() if each.severity.name != "INFO"]


def test_real_hudi_rolls_back_our_failed_delta_commit(peer, ours, tmp_path):
    """Its next write finds our log files by their markers, and the rows of the failed write stay out of sight."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    we = ours(table, PARTITIONED.create(peer.table_version) | MOR | {"hoodie.metadata.enable": "false"})
    we.write(model.upsert(PARTITIONED.batch(range(9), 1)))
    we.write(model.upsert(PARTITIONED.batch(range(3), 2)))
    markers = table / ".hoodie" / ".temp"
    kept = {path: path.read_bytes() for path in table.rglob("*") if path.is_file() and ".temp" not in path.parts}
    we.write(PARTITIONED.batch(range(6), 3))
    last = hudi_py.open_table(str(table)).timeline.completed("deltacommit")[-1]
    for path in table.rglob("*"):
        if path.is_file() and path not in kept and ".log." in path.name:
            kind = "APPEND" if peer.table_version == 6 else "CREATE"
            marker = markers / last.requested_time / path.relative_to(table)
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.with_name(f"{path.name}.marker.{kind}").touch()
    for path in table.rglob(f"{last.requested_time}*.deltacommit"):
        path.unlink()
    assert model.rows() == we.read() == peer.read(table)

    options = THEIRS | {"hoodie.metadata.enable": "false"}
    peer.write(table, model.upsert(PARTITIONED.batch([7, 8, 9], 4)), "upsert", options)
    assert not hudi_py.open_table(str(table)).timeline.pending()
    assert model.rows() == we.read()  # 0.15 shows what stands behind its rollback block after the next commit only
    we.write(model.upsert(PARTITIONED.batch(range(4), 5)))
    assert model.rows() == we.read() == peer.read(table)
