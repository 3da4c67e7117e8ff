"""Writers of Apache Hudi that do not block each other (merge-on-read, bucket index): what ours does beside them."""

import os
from pathlib import Path

import pytest
from real_hudi import canonical_rows

import hudi_py
from hudi_py.errors import ConfigError
from support.interop_model import PARTITIONED, Model, numbers
from support.interop_sample import releases

pytestmark = pytest.mark.oracle
MODE = {
    "hoodie.write.concurrency.mode": "NON_BLOCKING_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
}
THEIRS = MODE | {
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": 2,
    "hoodie.metadata.enable": False,
    "hoodie.clean.automatic": False,
    "hoodie.compact.inline": False,
}
OURS = MODE | {"hoodie.compact.inline.max.delta.commits": 1}


@pytest.mark.parametrize("peer", releases(8, 9), indirect=True)
def test_a_running_write_stays_beside_reads_and_services(peer, tmp_path):
    """Its log files lie in the same file groups as those of a later write that completed first; ours hides neither."""
    table, model = tmp_path / "t", Model(PARTITIONED)
    create = PARTITIONED.create(peer.table_version) | THEIRS
    for version in range(1, 4):
        peer.write(table, model.upsert(PARTITIONED.batch(range(9), version)), "upsert", create)
    running = peer.fail_write(table, PARTITIONED.batch(numbers(1, 9, 4), 9), "upsert", THEIRS)
    files = {path for path in table.rglob(f"*{running}*.log.*") if not path.name.endswith(".crc")}
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(2, 9, 4), 10)), "upsert", THEIRS)

    def rows():
        return canonical_rows(hudi_py.open_table(str(table)).rows().to_arrow().to_pylist())

    opened = hudi_py.open_table(str(table), settings=OURS)
    assert rows() == model.rows() == peer.read(table)
    with pytest.raises(ConfigError, match="NON_BLOCKING_CONCURRENCY_CONTROL"):
        opened.upsert(PARTITIONED.batch(range(2), 11))
    assert opened.compact()
    opened.refresh().clean(commits_retained=1)
    assert [each.requested_time for each in opened.refresh().timeline.writes.pending()] == [running]
    assert files
    assert all(path.exists() for path in files)
    assert rows() == model.rows() == peer.read(table)
    peer.write(table, model.upsert(PARTITIONED.batch(numbers(3, 9, 4), 12)), "upsert", THEIRS)
    assert rows() == model.rows() == peer.read(table)
    os.utime(Path(table, ".hoodie", ".heartbeat", running), (0, 0))
    opened.refresh().rollback_failed_writes()
    assert not opened.refresh().timeline.writes.pending()
    assert rows() == model.rows() == peer.read(table)
    assert not [each for each in opened.refresh().check() if each.severity.name == "ERROR"]
