"""The write client and the clean after each commit."""

import os
import sys

import pytest
from pyspark import cloudpickle

import hudi_py
from hudi_py.errors import ConfigError, ServiceFailed, StorageError
from hudi_py.services.clean.service import CleanService
from hudi_py.spark.engine import SparkEngine
from support.trips import PARTITIONED, trip

pytestmark = pytest.mark.spark
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not find the tests
ONE = PARTITIONED | {"hoodie.clean.commits.retained": "1"}


def cleans(table):
    return hudi_py.open_table(table.path).timeline.completed("clean")


def test_a5_a74_the_clean_follows_the_commit_and_cannot_undo_it(trips, monkeypatch):
    """G-6, G-7: switched off nothing is cleaned; on, it follows the commit; where it fails, the rows stay."""
    table = trips(ONE | {"hoodie.clean.automatic": "false"})
    for ts in range(3):
        table.upsert([trip(1, ts)])
    assert cleans(table) == ()
    seen = []
    [result] = table.client.clean(on_progress=seen.append)
    assert [(each.phase, each.is_finished) for each in seen][-1] == ("delete", True)
    assert seen[-1].done == seen[-1].total == len(result.deleted_files) == 1

    automatic = hudi_py.WriteClient(table.spark, table.path, {**table.settings, "hoodie.clean.automatic": "true"})
    assert len(automatic.upsert(table.frame([trip(1, 7)])).cleans) == 1

    def fail(*_):
        raise StorageError("the storage is away")

    monkeypatch.setattr(CleanService, "run", fail)
    with pytest.raises(ServiceFailed, match=r"do not write them again.*the storage is away") as raised:
        automatic.upsert(table.frame([trip(1, 9)]))
    assert [row[2] for row in table.stored()] == [9]
    assert raised.value.instant == hudi_py.open_table(table.path).timeline.completed("commit")[-1].requested_time


def test_several_writers_are_refused_before_a_table_is_made(spark, tmp_path):
    """F: no lock keeps two writers apart yet; nothing is written, not even an empty table."""
    settings = PARTITIONED | {"hoodie.write.concurrency.mode": "optimistic_concurrency_control"}
    client = hudi_py.WriteClient(spark, str(tmp_path / "t"), settings)
    for write in (client.upsert, client.insert, client.bulk_insert, client.delete):
        with pytest.raises(ConfigError, match="one writer at a time"):
            write(None)
    assert not (tmp_path / "t").exists()


def test_rows_that_are_no_data_frame_are_refused_before_a_table_is_made(spark, tmp_path):
    """Rather than with what Python says of an attribute that a list lacks."""
    client = hudi_py.WriteClient(spark, str(tmp_path / "t"), PARTITIONED)
    with pytest.raises(ConfigError, match="rows are given as a Spark DataFrame, not as list"):
        client.upsert([trip(1, 1)])
    assert not (tmp_path / "t").exists()


def process(_):
    return os.getpid()


def test_a64_executors_do_what_is_worth_a_job(spark):
    """Several tasks go to executors, a single one is done in the driver."""
    engine = SparkEngine(spark)
    ran = [set(engine.map(process, range(count), parallelism=2, description="test")) for count in (0, 1, 2)]
    assert ran[:2] == [set(), {os.getpid()}]
    assert os.getpid() not in ran[2]
