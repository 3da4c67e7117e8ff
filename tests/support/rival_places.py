"""Where processes meet: the storages and locks under which they may change one table at the same time."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.s3_running import running_s3
from support.zookeeper import zookeeper_server

PACKAGE = "org.apache.hudi.client.transaction.lock."
FILE_LOCK = {
    "hoodie.write.lock.provider": PACKAGE + "FileSystemBasedLockProvider",
    "hoodie.write.lock.client.wait_time_ms_between_retry": 50,
    "hoodie.write.lock.wait_time_ms": 0,
    "hoodie.write.lock.client.num_retries": 2000,
}
PATIENT = {
    "hoodie.write.lock.wait_time_ms": 1000,
    "hoodie.write.lock.client.num_retries": 100,
    "hoodie.write.lock.client.wait_time_ms_between_retry": 100,
}


class Place(NamedTuple):
    """
    A storage and a lock.

    Args:
        lock: Settings of the lock; a dead holder's is free after a few seconds at most.
        where: Arguments of `support.rival_worker.Arena`.
        stopped_s: Longer than heartbeats last, and than leases of the lock do.
    """

    lock: dict[str, Any]
    where: dict[str, Any]
    stopped_s: float = 4.0


@contextmanager
def file_place(_: Path) -> Iterator[Place]:
    """A local disk, and a file in the table."""
    yield Place(FILE_LOCK, {})


@contextmanager
def zookeeper_place(folder: Path) -> Iterator[Place]:
    """A local disk and a real ZooKeeper."""
    with zookeeper_server(folder) as address:
        lock = {
            "hoodie.write.lock.provider": PACKAGE + "ZookeeperBasedLockProvider",
            "hoodie.write.lock.zookeeper.url": address,
            "hoodie.write.lock.zookeeper.base_path": "/hudi",
            "hoodie.write.lock.zookeeper.lock_key": "t",
            "hoodie.write.lock.zookeeper.session_timeout_ms": 3000,
            **PATIENT,
        }
        yield Place(lock, {})


@contextmanager
def s3_place(_: Path) -> Iterator[Place]:
    """A server that speaks S3, and a lease in the table."""
    with running_s3() as options:
        lock = {
            "hoodie.write.lock.provider": PACKAGE + "StorageBasedLockProvider",
            "hoodie.write.lock.storage.validity.timeout.secs": 10,
            "hoodie.write.lock.storage.renew.interval.secs": 1,
            **PATIENT,
        }
        where = {"location": f"s3://contract/{uuid.uuid4()}", "storage_options": options}
        yield Place(lock, where, 12.0)


@contextmanager
def dynamodb_place(_: Path) -> Iterator[Place]:
    """A local disk, and a server that speaks DynamoDB."""
    with running_s3() as options:
        os.environ.update(AWS_ACCESS_KEY_ID=options["key"], AWS_SECRET_ACCESS_KEY=options["secret"])
        lock = {
            "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
            "hoodie.write.lock.dynamodb.endpoint_url": options["endpoint_url"],
            "hoodie.write.lock.dynamodb.table": "locks",
            "hoodie.write.lock.dynamodb.partition_key": str(uuid.uuid4()),
            **PATIENT,
            "hoodie.write.lock.wait_time_ms": 3000,
        }
        yield Place(lock, {})


PLACES = {"file": file_place, "zookeeper": zookeeper_place, "s3": s3_place, "dynamodb": dynamodb_place}
