"""Tables created by us: real Hudi of each table version reads, upserts and cleans them, and so do we afterwards."""

from datetime import datetime, timezone

import pytest

import hudi_py
from hudi_py.runtime.clock import FixedClock
from support.interop_model import DEEP, PARTITIONED, VARIANTS, Model, numbers

pytestmark = pytest.mark.oracle

WITHOUT_METADATA_TABLE = {"hoodie.metadata.enable": False, "hoodie.clean.automatic": False}
RETAINED = 3


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_both_sides_see_the_same_rows_all_along(variant, peer, ours, tmp_path):
    """Upserts and cleans of both sides in turn leave the rows of the model, for both readers, at any retained time."""
    table, model = tmp_path / "t", Model(variant)
    we = ours(table, variant.create(peer.table_version) | {"hoodie.clean.commits.retained": RETAINED})
    history = _our_upserts(we, variant, model)

    assert model.rows() == peer.read(table)
    assert model.rows() == we.read()
    time, then = history[-RETAINED]
    assert then == peer.read(table, as_of=time)
    assert then == we.read(as_of=time)
    _same_files(peer, table)

    known, version = len(model), variant.upserts + 1
    peer.write(table, model.upsert(variant.batch(numbers(1, known, 4), version)), "upsert", WITHOUT_METADATA_TABLE)
    peer.clean(table, {"hoodie.cleaner.commits.retained": 2})
    assert model.rows() == peer.read(table)
    assert model.rows() == we.read()

    we.write(model.delete(variant.batch([0, 3], version + 1)), "delete")
    we.write(model.upsert(variant.batch(numbers(2, known, 4), version + 2)))
    we.clean(commits_retained=1)
    assert model.rows() == we.read()
    assert model.rows() == peer.read(table)
    _same_files(peer, table)

    if variant is PARTITIONED:  # and with its defaults, which bring a metadata table
        with_defaults = {"hoodie.metadata.enable": True}
        peer.write(table, model.upsert(variant.batch(numbers(3, known, 4), version + 3)), "upsert", with_defaults)
        assert model.rows() == peer.read(table, metadata=True)
        assert peer.file_slices(table) == peer.file_slices(table, use_metadata=True)


def test_real_hudi_carries_out_a_plan_with_a_calendar_ladder(peer, ours, tmp_path):
    """Two commits a day; our plan keeps the last of each of three days, real Hudi deletes the rest, rows are right."""
    table, model, history = tmp_path / "t", Model(PARTITIONED), {}
    we = ours(table, PARTITIONED.create(peer.table_version) | WITHOUT_METADATA_TABLE)
    for version in range(1, 11):
        we.clock = FixedClock(datetime(2026, 1, 1 + (version + 1) // 2, 8 + version, tzinfo=timezone.utc))
        we.write(model.upsert(PARTITIONED.batch(range(8), version)))
        history[we.commit_times()[-1]] = model.rows()
    opened = hudi_py.open_table(str(table))
    config = opened.services.clean_config(commits_retained=1, keep_daily=4)
    requested = opened.services.clean(config).schedule()

    peer.clean(table, {"hoodie.cleaner.commits.retained": 1})
    opened = hudi_py.open_table(str(table))
    assert [i.requested_time for i in opened.timeline.completed("clean")] == [requested.requested_time]
    assert model.rows() == peer.read(table) == we.read()
    times = sorted(history)
    for kept in (times[3], times[5], times[7], times[9]):
        assert history[kept] == peer.read(table, as_of=kept) == we.read(as_of=kept)
    with pytest.raises(hudi_py.RefusedError, match="single snapshots"):
        opened.base_files(times[4])

    peer.write(table, model.upsert(PARTITIONED.batch(range(4), 11)), "upsert", WITHOUT_METADATA_TABLE)
    plan = hudi_py.open_table(str(table)).plan_clean(commits_retained=1)  # the ladder given up: nothing is left behind
    full = {"hoodie.clean.incremental.enabled": False}
    everything = hudi_py.open_table(str(table), settings=full).plan_clean(commits_retained=1)
    assert not plan.scope.everything
    assert plan.files == everything.files
    peer.clean(table, {"hoodie.cleaner.commits.retained": 1})
    assert model.rows() == peer.read(table) == we.read()


def _our_upserts(we, variant, model):
    """As many upserts as the variant wants, each cleaning up behind itself; the rows at the time of each."""
    history = []
    for version in range(1, variant.upserts + 1):
        wanted = range(8) if version == 1 else numbers(version, len(model), 4)
        we.write(model.upsert(variant.batch(wanted, version)))
        history.append((we.commit_times()[-1], model.rows()))
    return history


def _same_files(peer, table):
    """What real Hudi takes for the table's base files is what lies on the disk, byte for byte of the names."""
    partitions = peer.file_slices(table)["partitions"].values()
    seen = {s["base_file"] for p in partitions for group in p["file_groups"] for s in group["slices"]}
    on_disk = {path.name for path in table.rglob("*.parquet") if ".hoodie" not in path.parts}
    assert on_disk == seen


def test_bloom_index_finds_every_key_in_our_files(peer, ours, tmp_path):
    """
    Real Hudi with the bloom index updates each of our keys instead of inserting it again.

    Without the small-file limit, a key that the filter hides would be routed to the same file and found by the merge.
    """
    table, model = tmp_path / "t", Model(PARTITIONED)
    we = ours(table, PARTITIONED.create(peer.table_version))
    we.write(model.upsert(PARTITIONED.batch(range(60), 1)))
    we.write(model.upsert(PARTITIONED.batch(range(40, 75), 2)), "upsert")

    bloom = {"hoodie.index.type": "BLOOM", "hoodie.parquet.small.file.limit": 0, **WITHOUT_METADATA_TABLE}
    peer.write(table, model.upsert(PARTITIONED.batch(range(75), 3)), "upsert", bloom)

    rows = peer.read(table, meta=True)
    keys = [(row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in rows]
    assert len(keys) == len(set(keys)), "the filter hid keys: they were inserted a second time"
    assert model.rows() == peer.read(table)


def test_same_batches_give_the_same_rows_and_keys(peer, ours, tmp_path):
    """
    Batches with late, equal and repeated records end in the same rows and record keys, whoever applies them.

    This compares with real Hudi instead of a model, because the winner depends on the table version.
    """
    create = DEEP.create(peer.table_version) | WITHOUT_METADATA_TABLE
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    we = ours(mine, create)
    late, equal, again = DEEP.batch(range(4), 1), DEEP.batch(range(4, 8), 5), DEEP.batch(range(3), 6)
    repeated = again.slice(0, 1)
    import pyarrow as pa

    newest_last = pa.concat_tables([DEEP.batch([0], 3), again, DEEP.batch([9], 2)])
    for batch, operation in (
        (DEEP.batch(range(8), 5), "insert"),
        (late, "upsert"),
        (equal, "upsert"),
        (newest_last, "upsert"),
        (repeated, "delete"),
    ):
        peer.write(theirs, batch, operation, create if operation == "insert" else WITHOUT_METADATA_TABLE)
        we.write(batch, operation)
        assert _keyed(peer.read(theirs, meta=True)) == _keyed(peer.read(mine, meta=True)), operation


def _keyed(rows):
    """Rows with their keys and partition paths, without what differs from commit to commit."""
    dropped = {"_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name"}
    return [{name: value for name, value in row.items() if name not in dropped} for row in _ordered(rows)]


def _ordered(rows):
    return sorted(rows, key=lambda row: (row["_hoodie_partition_path"], row["_hoodie_record_key"]))
