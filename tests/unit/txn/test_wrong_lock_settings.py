"""Settings of a lock that cannot be: one refusal that names the setting, before anything is created."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError, StorageError

LOCK = "hoodie.write.lock."
PACKAGE = "org.apache.hudi.client.transaction.lock."
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    LOCK + "client.num_retries": 0,
}
ZOOKEEPER = {
    "provider": PACKAGE + "ZookeeperBasedLockProvider",
    "zookeeper.url": "127.0.0.1:1",
    "zookeeper.base_path": "/hudi",
    "zookeeper.connection_timeout_ms": 100,
}
DYNAMODB = {
    "provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
    "dynamodb.table": "locks",
    "dynamodb.endpoint_url": "http://127.0.0.1:1",
}
FILE = {"provider": PACKAGE + "FileSystemBasedLockProvider"}
NO_SERVERS = ("127.0.0.1:abc", "127.0.0.1:65536", "zk://127.0.0.1:2181", "127.0.0.1:1,", ",", "a b:1", "[::1")
NO_NODES = ("hudi", "/", "//", "/a//b", "/a/../b", "/.")
NO_URLS = ("localhost:8000", "localhost", "http://", "http://h:0", "http://h:65536", "http://h:x", "ftp://h")


def written(folder, lock):
    given = {LOCK + name: value for name, value in lock.items()}
    hudi_py.write(folder, pa.table({"id": ["a"]}), settings={**TABLE, **given})


@pytest.mark.parametrize(
    ("lock", "name", "value"),
    [
        *((ZOOKEEPER, "zookeeper.url", value) for value in NO_SERVERS),
        *((ZOOKEEPER, "zookeeper.base_path", value) for value in NO_NODES),
        *((ZOOKEEPER, "zookeeper.lock_key", value) for value in ("/t", "a//b", "..")),
        *((DYNAMODB, "dynamodb.endpoint_url", value) for value in NO_URLS),
        (FILE, "filesystem.path", "relative/folder"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_created(tmp_path, monkeypatch, lock, name, value):
    """Not by an error of a client's library, and with the value that is wrong."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"(?i)nothing was changed") as refused:
        written(tmp_path / "t", {**lock, name: value})
    assert value in str(refused.value)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["127.0.0.1:1, 127.0.0.1:2", "[::1]:1/chroot", "no-such-host.invalid"])
def test_a_service_that_does_not_answer_leaves_no_empty_table(tmp_path, value):
    """It is asked before the table is created."""
    pytest.importorskip("kazoo")
    with pytest.raises(StorageError, match=r"not taken; check hoodie\.write.lock\.zookeeper\.url"):
        written(tmp_path / "t", {**ZOOKEEPER, "zookeeper.url": value})
    assert not (tmp_path / "t").exists()


def test_a_folder_in_which_nothing_can_be_created_is_named(tmp_path):
    """It is a setting, and not a folder of the table, and no empty table is left."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"hoodie\.write\.lock\.filesystem\.path=.*/file has to be a folder"):
        written(tmp_path / "t", {**FILE, "filesystem.path": str(tmp_path / "file")})
    assert not (tmp_path / "t").exists()
    written(tmp_path / "t", {**FILE, "filesystem.path": str(tmp_path / "folder")})
    assert hudi_py.open_table(tmp_path / "t").rows().to_arrow().num_rows == 1
