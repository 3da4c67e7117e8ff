"""
Cleans on executors, interrupted in the driver and in the tasks.

The table is one of real Hudi on a local disk, at the same place in every round, so that whole states can be compared.
"""

import os
import shutil
import sys

import pytest
from pyspark import cloudpickle

from hudi_py.errors import HudiError, StorageError
from hudi_py.spark.engine import SparkEngine
from hudi_py.storage.base import StorageFailure
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.testing import interruptions
from support.crash_states import canonical, check, data_files, open_real, real_table, visible_files

COMMITS = {"commits_retained": 1}
pytestmark = [pytest.mark.spark, pytest.mark.slow]
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # executors do not find the tests
TASKS = 2
WORDS = {
    "storage error": "the storage is away",
    "error of others": "'clean: delete files' did not finish, run it again: ValueError: a bug of others",
    "worker dies": "'clean: delete files' did not finish, run it again",
    "all refused": "files could be deleted",
}
FAILURES = [
    (way, tasks)
    for way in ("storage error", "error of others", "worker dies")
    for tasks in ((0,), (TASKS - 1,), tuple(range(TASKS)))
] + [("all refused", tuple(range(TASKS)))]


class Struck(DelegatingStorage):
    """On an executor: deletes some of its files, then its task fails."""

    def __init__(self, inner, way):
        super().__init__(inner)
        self.way = way

    def delete_many(self, paths):
        wanted = list(paths)
        if self.way == "all refused":
            return dict.fromkeys(wanted, StorageFailure("access denied", False))
        self.inner.delete_many(wanted[: (len(wanted) + 1) // 2])
        if self.way == "worker dies":
            os._exit(9)
        if self.way == "storage error":
            raise StorageError("the storage is away", retryable=True)
        raise ValueError("a bug of others")


class Executors(SparkEngine):
    """Executors get the disk itself, whatever stands around it in the driver; *struck* tasks get one that fails."""

    def __init__(self, spark, storage, struck, way):
        super().__init__(spark, files_min=1)
        self.storage, self.struck, self.way, self.tasks = storage, struck, way, 0
        self.slots = TASKS

    def map(self, function, items, **named):
        disks = [Struck(self.storage, self.way) if n in self.struck else self.storage for n in range(len(items))]
        self.tasks = max(self.tasks, len(items))
        return super().map(
            function, [item._replace(storage=disk) for item, disk in zip(items, disks, strict=True)], **named
        )


class OnDisk:
    """
    A fixture on a local disk.

    Attributes:
        before: What it was, in memory.
        allowed: What a clean may delete.
    """

    def __init__(self, name, path, spark):
        self.name, self.path, self.spark = name, path, spark
        self.before = MemoryStorage.from_files(real_table(name).files(), str(path))
        plan = open_real(name, self.before).plan_clean(**COMMITS)
        self.allowed = {file.path for files in plan.files.values() for file in files}

    def fresh(self):
        """The disk as it was before."""
        shutil.rmtree(self.path, ignore_errors=True)
        for path, data in self.before.files().items():
            target = self.path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return LocalStorage(self.path)

    @property
    def storage(self):
        """What is on the disk now, in memory."""
        files = {str(path.relative_to(self.path)): path.read_bytes() for path in self.path.rglob("*") if path.is_file()}
        return MemoryStorage.from_files(files, str(self.path))

    def clean(self, storage=None, struck=(), way=""):
        """The same entry point for the first time and to recover; returns the number of tasks."""
        disk = LocalStorage(self.path)
        engine = Executors(self.spark, disk, struck, way)
        open_real(self.name, storage or disk).clean(engine=engine, **COMMITS)
        return engine.tasks


@pytest.mark.parametrize("name", ["cow_mixed-0.15.0", "cow_mixed-1.1.1"])
def test_clean_on_executors_interrupted_anywhere_ends_in_the_same_table(spark, tmp_path, record_property, name):
    """Each call of the driver that changes something, and tasks that fail in each way; recovered twice (A.7, A.8)."""
    table = OnDisk(name, tmp_path / "t", spark)
    shown = visible_files(open_real(name, table.before))
    assert table.clean(table.fresh()) == TASKS
    for _ in range(2):
        table.clean()
    expected = canonical(table.storage, table.before)
    assert data_files(table.before) - data_files(table.storage) == table.allowed

    def recover(case):
        check(name, case, table.before, table.allowed, shown)
        for _ in range(2):
            table.clean()
            check(name, case, table.before, table.allowed, shown)
        assert canonical(table.storage, table.before) == expected, case

    count = 0
    for case in interruptions(table.fresh):
        count += case.run(table.clean)
        recover(Seen(table, case))
    assert count >= 6 * 4, "requested, inflight, completed and our own bookkeeping, in six ways"
    for way, struck in FAILURES:
        table.fresh()
        with pytest.raises(HudiError, match=WORDS[way]) as caught:
            table.clean(struck=struck, way=way)
        assert "\n" not in str(caught.value)
        assert open_real(name, table.storage).timeline.pending("clean"), "it is finished by the next one"
        recover(Seen(table, f"{way}, tasks {struck}"))
        count += 1
    record_property("interruptions", count)


class Seen:
    """What `check` asks of a case: the state of the disk, and its name."""

    def __init__(self, table, case):
        self.storage, self.case = table.storage, case

    def __repr__(self):
        return repr(self.case)
