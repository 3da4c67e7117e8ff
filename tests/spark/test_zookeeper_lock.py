"""The lock of ZooKeeper beside Curator's mutex, which Apache Hudi uses, in the JVM of Spark."""

from datetime import datetime, timezone

import pytest

from hudi_py.config.lock import LockKind
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.txn.table_lock import TableLock
from support.zookeeper import SESSION_MS, zookeeper_server

pytestmark = pytest.mark.spark
NAME = "hoodie.write.lock."


def test_curator_and_we_keep_each_other_out(spark, tmp_path):
    """Whoever holds it, the other one gets it only afterwards; ours is seen in its place among Curator's nodes."""
    apache = spark._jvm.org.apache.curator
    at_once = spark._jvm.java.util.concurrent.TimeUnit.MILLISECONDS
    with zookeeper_server(tmp_path) as address:
        settings = {
            "provider": LockKind.ZOOKEEPER.value,
            "zookeeper.url": address,
            "zookeeper.base_path": "/hudi",
            "zookeeper.lock_key": "t",
            "zookeeper.session_timeout_ms": SESSION_MS,
            "client.num_retries": 1,
            "wait_time_ms": 100,
        }
        ours = TableLock(
            MemoryStorage(),
            Settings({NAME + key: value for key, value in settings.items()}),
            FixedClock(datetime.now(timezone.utc)),
            sleep=lambda _: None,
        )
        client = apache.framework.CuratorFrameworkFactory.newClient(address, apache.retry.RetryOneTime(100))
        client.start()
        try:
            theirs = apache.framework.recipes.locks.InterProcessMutex(client, "/hudi/t")
            for _ in range(3):
                assert theirs.acquire(5000, at_once)
                with pytest.raises(ConflictError, match="another writer"), ours.held("clean"):
                    pytest.fail("two holders")
                theirs.release()
                with ours.held("clean"):
                    assert not theirs.acquire(200, at_once)
                    ours.check()
        finally:
            client.close()
