"""One side dies between inflight and completion; the other side's next write rolls that back."""

import sys

import pyarrow.parquet as pq
import pytest

from support.interop_crash import kill_between_inflight_and_completion
from support.interop_model import PARTITIONED, Model, numbers

pytestmark = pytest.mark.oracle

PLAIN = {"hoodie.metadata.enable": "false", "hoodie.clean.automatic": "false"}


def _states(peer, table):
    return {(i["requested_time"], i["action"]): i["state"] for i in peer.timeline(table)["instants"]}


def _files_of(table, instant):
    return [path for path in table.rglob(f"*_{instant}.parquet") if ".hoodie" not in path.parts]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the processes to kill in /proc")
def test_real_hudi_rolls_back_what_we_left_behind(peer, ours, tmp_path):
    """After kill -9 of our writer, the rows are those of before, and real Hudi's next upsert removes our files."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    settings = PARTITIONED.create(peer.table_version) | PLAIN
    we = ours(table, settings)
    we.write(model.upsert(PARTITIONED.batch(range(9), 1)))
    rows = tmp_path / "lost.parquet"
    pq.write_table(PARTITIONED.batch(range(12), 2), rows)
    lost = kill_between_inflight_and_completion(table, rows, settings)

    assert model.rows() == peer.read(table)
    assert model.rows() == we.read()
    assert _files_of(table, lost)
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(3, 9, 4), 3)), "upsert", PLAIN)
    assert not _files_of(table, lost), "real Hudi did not find our files: markers are missing or wrong"
    assert (lost, "commit") not in _states(peer, table)
    assert model.rows() == peer.read(table)
    we.write(model.upsert(PARTITIONED.batch(numbers(4, 9, 4), 4)))
    assert model.rows() == peer.read(table)


def test_we_roll_back_what_real_hudi_left_behind(peer, ours, tmp_path):
    """A write of real Hudi that failed before its completion is rolled back by our next upsert."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    peer.write(
        table, model.upsert(PARTITIONED.batch(range(9), 1)), "upsert", PARTITIONED.create(peer.table_version) | PLAIN
    )
    lost = peer.fail_write(table, PARTITIONED.batch(range(12), 2), "upsert", PLAIN)
    assert _files_of(table, lost)
    we = ours(table, PLAIN)
    assert model.rows() == we.read()

    we.write(model.upsert(PARTITIONED.batch(numbers(3, 9, 4), 3)))
    assert not _files_of(table, lost)
    states = _states(peer, table)
    assert (lost, "commit") not in states
    assert ["COMPLETED"] == [state for (_, action), state in states.items() if action == "rollback"]
    assert model.rows() == we.read()
    assert model.rows() == peer.read(table)
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(4, 9, 4), 4)), "upsert", PLAIN)
    assert model.rows() == peer.read(table)
