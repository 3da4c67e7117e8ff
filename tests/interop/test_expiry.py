"""Expiry of partitions: real Hudi would drop the same ones, and reads the table that ours were dropped from."""

import shutil
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.runtime.clock import FixedClock
from support.interop_sample import releases

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "false",
}
KEYS = {"old": "a", "changed": "b", "new": "c"}
AT_ITS_AGE = {"KEEP_BY_TIME": {"old"}, "KEEP_BY_CREATION_TIME": {"old", "changed"}}


def arrow(*rows):
    return pa.Table.from_pylist([{"id": key, "region": region, "ts": ts} for key, region, ts in rows])


def ids(rows):
    return sorted(row["id"] for row in rows)


@pytest.mark.parametrize("strategy", AT_ITS_AGE)
@pytest.mark.parametrize("peer", releases(8, 9), indirect=True)
def test_the_same_partitions_expire(peer, tmp_path, strategy):
    """Of old, changed and new ones; a table that forbids deletion still does so after a commit of Apache Hudi."""
    path = tmp_path / "t"
    settings = SETTINGS | {"hoodie.write.table.version": peer.table_version}
    now = datetime.now(timezone.utc)
    rows = arrow(("a", "old", 1), ("b", "changed", 1))
    hudi_py.write(path, rows, settings=settings, clock=FixedClock(now - timedelta(days=100)))
    hudi_py.write(path, arrow(("b", "changed", 2), ("c", "new", 2)), settings=settings)
    hudi_py.open_table(path).forbid_deletion()
    expiry = {
        "hoodie.partition.ttl.strategy.days.retain": "20",  # it counts wrong from 25 on (docs/expiry.md)
        "hoodie.partition.ttl.management.strategy.type": strategy,
    }
    table = hudi_py.open_table(path, settings=expiry | {"hoodie.clean.automatic": "false"})
    expired = peer.expired_partitions(path, SETTINGS | expiry)
    assert set(table.expire_partitions().plan.expired) == set(expired) == AT_ITS_AGE[strategy]
    peer.write(path, arrow(("d", "new", 3)), "upsert", SETTINGS)
    left = sorted({"a", "b", "c", "d"} - {KEYS[region] for region in expired})
    assert left == ids(peer.read(path)) == ids(peer.read(path, metadata=True))
    assert left == ids(table.refresh().rows().to_arrow().to_pylist())
    assert table.deletion_forbidden
    assert not table.check()


@pytest.mark.parametrize("strategy", AT_ITS_AGE)
@pytest.mark.parametrize("peer", releases(8, 9), indirect=True)
def test_a_commit_of_either_side_drops_the_same_partitions(peer, tmp_path, strategy):
    """With ``hoodie.partition.ttl.inline``, on two copies of one table; each side reads what the other has left."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    settings = SETTINGS | {"hoodie.write.table.version": peer.table_version}
    now = datetime.now(timezone.utc)
    rows = arrow(("a", "old", 1), ("b", "changed", 1))
    hudi_py.write(ours, rows, settings=settings, clock=FixedClock(now - timedelta(days=20, hours=1)))
    hudi_py.write(ours, arrow(("b", "changed", 2), ("c", "new", 2)), settings=settings)
    shutil.copytree(ours, theirs)
    inline = SETTINGS | {
        "hoodie.partition.ttl.inline": "true",
        "hoodie.partition.ttl.strategy.days.retain": "20",
        "hoodie.partition.ttl.management.strategy.type": strategy,
    }
    peer.write(theirs, arrow(("d", "new", 3)), "upsert", inline)
    result = hudi_py.write(ours, arrow(("d", "new", 3)), settings=inline)
    assert set(result.expired_partitions) == AT_ITS_AGE[strategy]
    left = sorted({"a", "b", "c", "d"} - {KEYS[region] for region in AT_ITS_AGE[strategy]})
    for path in (ours, theirs):
        table = hudi_py.open_table(path)
        assert left == ids(peer.read(path)) == ids(table.rows().to_arrow().to_pylist()), path
        assert not table.check()
    kinds = [[i.action.value for i in hudi_py.open_table(path).timeline.writes.completed()] for path in (ours, theirs)]
    assert kinds[0] == kinds[1]
