"""Locks of services whose client is not installed: what to install, instead of an ImportError from the depth."""

from __future__ import annotations

import sys

import pytest

from hudi_py.errors import ConfigError
from hudi_py.table import Table
from support.tables import TableBuilder, at

PROVIDERS = {
    "zookeeper": {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider",
        "hoodie.write.lock.zookeeper.url": "127.0.0.1:1",
        "hoodie.write.lock.zookeeper.base_path": "/locks",
        "hoodie.write.lock.zookeeper.lock_key": "t",
    },
    "dynamodb": {
        "hoodie.write.lock.provider": "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "hoodie.write.lock.dynamodb.table": "locks",
        "hoodie.write.lock.dynamodb.partition_key": "t",
    },
}
CLIENTS = ("kazoo", "boto3", "botocore")


@pytest.mark.parametrize("extra", PROVIDERS)
def test_a_lock_names_the_extra_that_it_needs(extra, monkeypatch):
    """As an error whose advice is to install it; the table is as it was."""
    for package in CLIENTS:
        monkeypatch.setitem(sys.modules, package, None)  # what Python takes for not installed
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    before = builder.storage.files()
    with pytest.raises(ConfigError) as refused:
        Table(builder.storage, settings=PROVIDERS[extra], clock=builder.clock).create_savepoint(at(1))
    assert refused.value.fix == f"pip install 'hudi_py[{extra}]'"
    assert "nothing was changed" in str(refused.value)
    assert builder.storage.files() == before
