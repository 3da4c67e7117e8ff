"""
Each operation on Spark, interrupted at calls that change something, by the driver or a task: not done, or done once.

``HUDI_PY_SPARK_CRASHES=1`` interrupts at every call in every mode, which takes hours; a number *n* at every *n*-th.
"""

import os
import shutil
from datetime import timedelta

import pyarrow as pa
import pytest
from pyspark import cloudpickle

import hudi_py
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.testing import Interruption
from hudi_py.write_service import WriteService
from support import shared_faults
from support.crash_points import EVERY, IS_SAMPLE
from support.shared_faults import MODES, sample
from support.trips import DRIVER_ROWS
from support.writes import SCHEMA, START, create_table, merged_rows_of, minutes, open_table

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SAMPLE = int(os.environ.get("HUDI_PY_SPARK_CRASHES", "40")) * EVERY
SETTINGS = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False, "hoodie.metadata.enable": True}
KEY = ("loader", 7)
ROW = "id string, region string, ts long"
TABLES = [(9, "COPY_ON_WRITE"), (6, "MERGE_ON_READ")] + (
    [] if IS_SAMPLE else [(6, "COPY_ON_WRITE"), (9, "MERGE_ON_READ")]
)
ROWS = [("eu", "a", 1), ("eu", "b", 1), ("us", "c", 1), ("us", "d", 1)]
CHANGED, NEW = ("eu", "a", 2), ("us", "n", 2)
OPERATIONS = {
    "upsert": ([CHANGED, NEW], [CHANGED, *ROWS[1:], NEW]),
    "insert": ([NEW], [*ROWS, NEW]),
    "bulk_insert": ([NEW, ROWS[0]], [*ROWS, NEW, ROWS[0]]),
    "delete": ([ROWS[0], ROWS[2]], [ROWS[1], ROWS[3]]),
    "insert_overwrite": ([NEW], [*ROWS[:2], NEW]),
    "insert_overwrite_table": ([NEW], [NEW]),
}


class Client(hudi_py.WriteClient):
    """A process of its own, a minute later, with a storage that may be interrupted."""

    def __init__(self, spark, storage, driver_rows):
        clock = FixedClock(START + timedelta(minutes=next(minutes)))
        super().__init__(spark, storage.root, SETTINGS | {DRIVER_ROWS: driver_rows}, clock=clock)
        self._storage = storage
        self._service = WriteService(storage, self._settings, clock, self._cleaning)


def arrow(*rows):
    return pa.Table.from_pylist([{"id": key, "region": region, "ts": ts} for region, key, ts in rows], SCHEMA)


def rows_of(storage):
    return [(row["region"], row["id"], row["ts"]) for row in merged_rows_of(storage)]


@pytest.fixture
def frame(spark):
    """``frame(rows)``: they are sent to tasks, and so are the doubles, whose module only the driver can import."""
    cloudpickle.register_pickle_by_value(shared_faults)
    yield lambda rows: spark.createDataFrame([(key, region, ts) for region, key, ts in rows], ROW)
    cloudpickle.unregister_pickle_by_value(shared_faults)


@pytest.fixture
def fresh(tmp_path):
    """``fresh(version, kind)``: makes the same table again and again, in a folder of its own."""

    def of(version, kind):
        original = LocalStorage(tmp_path / "original")
        create_table(version, original, **{"hoodie.datasource.write.table.type": kind})
        for rows in ([(region, key, 0) for region, key, _ in ROWS], ROWS):
            open_table(original, **SETTINGS).upsert(arrow(*rows))

        def copy():
            path = tmp_path / f"copy{next(minutes)}"
            shutil.copytree(original.root, path)
            return LocalStorage(path)

        return copy

    return of


@pytest.mark.parametrize(
    ("version", "kind", "name", "driver_rows"),
    [
        *((version, kind, name, 0) for version, kind in TABLES for name in OPERATIONS),
        # What the driver writes by itself is what a process without Spark writes, so two are enough.
        (9, "MERGE_ON_READ", "upsert", 1000),
        (6, "COPY_ON_WRITE", "insert_overwrite", 1000),
    ],
)
def test_interrupted_on_spark_each_operation_is_done_once(
    spark, frame, fresh, record_property, version, kind, name, driver_rows
):
    """Given again with its write key it is done exactly once, and what a dead task or driver left is taken back."""
    given, after = OPERATIONS[name]
    rows, before, after = frame(given), sorted(ROWS), sorted(after)
    copy = fresh(version, kind)

    def run(storage):
        return getattr(Client(spark, storage, driver_rows), name)(rows, write_key=KEY)

    whole = Interruption(MODES[0], 1_000_000, copy())
    assert not whole.run(run)
    assert rows_of(whole.storage) == after
    count, cases = 0, sample(whole.faulty.count, SAMPLE, f"{name} {version} {kind}")
    for mode, n in cases:
        case = Interruption(mode, n, copy())
        count += case.run(run)
        found = rows_of(case.storage)
        assert found in (before, after), case
        assert run(case.storage).is_repeated == (found == after), case
        assert rows_of(case.storage) == after, case
        open_table(case.storage, **SETTINGS).upsert(arrow(("ap", "z", 9)))
        assert rows_of(case.storage) == sorted([("ap", "z", 9), *after]), case
        table = open_table(case.storage)
        assert not table.timeline.pending(), case
        assert {finding.code for finding in table.check()} <= {"leftover-markers"}, case
        shutil.rmtree(case.storage.root)
    record_property("interruptions", count)
    assert count == len(cases)
    assert driver_rows or whole.faulty.processes > 1  # the calls of tasks are among them
