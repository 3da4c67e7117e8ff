"""Compactions that one side plans and the other carries out: the same rows for both, cleans and writes afterwards."""

import pytest

import hudi_py
from support.interop_model import PARTITIONED, Model, numbers

pytestmark = pytest.mark.oracle

MOR = {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
QUIET = {"hoodie.clean.automatic": "false", "hoodie.compact.inline": "false"}
ONCE = {"hoodie.compact.inline.max.delta.commits": "1"}
SMALL = {"hoodie.parquet.small.file.limit": "0"}  # new keys go to new groups, so that updates go to log files


def opened(table):
    return hudi_py.open_table(str(table), settings=ONCE | {"hoodie.metadata.enable": "true"})


def pending(table):
    return opened(table).timeline.pending("compaction")


def test_each_side_carries_out_the_plans_of_the_other(peer, ours, tmp_path):
    """With a metadata table, log files that come while a plan is pending, and a clean by Hudi behind both."""
    table, model, variant = tmp_path / "t", Model(PARTITIONED), PARTITIONED
    with_metadata = {"hoodie.metadata.enable": "true"}
    theirs = MOR | QUIET | with_metadata
    we = ours(table, variant.create(peer.table_version) | MOR | with_metadata | SMALL)
    we.write(model.upsert(variant.batch(range(12), 1)))
    we.write(model.upsert(variant.batch(numbers(1, 12, 6), 2)))
    # ours, with a write of Hudi between plan and execution
    time = opened(table).schedule_compaction()
    assert model.rows() == peer.read(table)
    peer.write(table, model.upsert(variant.batch(numbers(2, 12, 4), 3)), "upsert", theirs)
    if pending(table):
        opened(table).compact(instant=time)
    assert model.rows() == we.read() == peer.read(table, metadata=True)
    # planned by Hudi, cancelled by us; then planned by Hudi, carried out by us
    plan = theirs | ONCE | {"hoodie.compact.schedule.inline": "true"}
    peer.write(table, model.upsert(variant.batch(numbers(3, 12, 4), 4)), "upsert", plan)
    (cancelled,) = pending(table)
    opened(table).cancel_compaction(cancelled.requested_time)
    assert model.rows() == we.read() == peer.read(table, metadata=True)
    peer.write(table, model.upsert(variant.batch(numbers(3, 12, 4), 5)), "upsert", plan)
    assert pending(table)
    assert opened(table).compact()
    assert not pending(table)
    assert model.rows() == we.read() == peer.read(table, metadata=True)
    # planned by us, carried out by Hudi
    we.write(model.upsert(variant.batch(numbers(4, 12, 4), 6)))
    time = opened(table).schedule_compaction()
    run = theirs | ONCE | {"hoodie.compact.inline": "true"}
    peer.write(table, model.upsert(variant.batch(numbers(5, 12, 4), 7)), "upsert", run)
    assert time in {each.requested_time for each in opened(table).timeline.completed("commit")}
    assert model.rows() == we.read() == peer.read(table, metadata=True)
    peer.clean(table, {"hoodie.cleaner.commits.retained": 1})
    we.write(model.upsert(variant.batch(numbers(6, 12, 4), 8)))
    opened(table).compact()
    assert model.rows() == we.read() == peer.read(table, metadata=True)
    assert peer.file_slices(table) == peer.file_slices(table, use_metadata=True)
    assert not [str(each) for each in opened(table).check() if each.severity.name != "INFO"]
