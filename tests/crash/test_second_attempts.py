"""Two processes that do the same, of which the first is taken for dead and lives; and what an undone index leaves."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_py
import hudi_py.write_service as service
from hudi_py.errors import ConflictError
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support import writes
from support.meanwhile import Meanwhile, ending

KEYS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "k",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.index.bloom.num_entries": "100",
}
INDEXED = {**KEYS, "hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
INDEXED["hoodie.index.type"] = "RECORD_INDEX"


def compacting(storage):
    return Table(storage, settings={"hoodie.compact.inline.max.delta.commits": 1})


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_compaction_that_was_taken_for_dead_leaves_no_file(version):
    """A second base file of the same group and time would be read in the place of the first."""
    storage: MemoryStorage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    for number in (1, 2):
        writes.upsert(storage, [{"id": "a", "region": "eu", "ts": number}])
    with pytest.raises(ConflictError):
        compacting(Meanwhile(storage, lambda: compacting(storage).compact(), before=ending("parquet"))).compact()
    assert [] == [each for each in Table(storage).check() if each.severity.value != "info"]
    assert [{"id": "a", "region": "eu", "ts": 2}] == writes.merged_rows_of(storage)


@pytest.mark.parametrize("index", ["RECORD_INDEX", "GLOBAL_SIMPLE"])
def test_with_a_global_index_two_writers_never_add_a_key_twice(index, tmp_path, monkeypatch):
    """Keys are looked up in all partitions, so a write to another partition may have added the same one."""
    settings = {
        **(INDEXED if index == "RECORD_INDEX" else KEYS),
        "hoodie.index.type": index,
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
    }
    path, check, has_run = str(tmp_path / "t"), service.check_replaced, []

    def put(key, partition, value):
        return hudi_py.write(path, pa.table({"k": [key], "p": [partition], "v": [value]}), settings=settings)

    def with_a_rival(*arguments):
        if not has_run:
            has_run.append(True)
            put("n", "p1", 1)
        return check(*arguments)

    put("a", "p1", 1)
    put("b", "p2", 1)
    monkeypatch.setattr(service, "check_replaced", with_a_rival)
    assert 1 == put("n", "p2", 2).retries
    rows = hudi_py.open_table(path).rows(where="k = 'n'").to_arrow().to_pylist()
    assert [2] == [row["v"] for row in rows]


@pytest.mark.parametrize(
    ("version", "creates"), [(6, "BULK_INSERT_PREPPED"), (9, "BULK_INSERT_PREPPED"), (9, "BULK_INSERT")]
)
def test_an_index_that_is_made_again_is_believed(version, creates, tmp_path, monkeypatch):
    """
    Rollbacks past a compaction of the metadata table drop the record index; the next write makes it, and goes on.

    Hudi 1.0.2 gives the commit that makes it another name than other releases and hudi_py.
    """
    for module in ("create", "create_index"):
        monkeypatch.setattr(f"hudi_py.mdt.{module}.CREATES", creates)
    path = str(tmp_path / "t")
    settings = {**INDEXED, "hoodie.metadata.compact.max.delta.commits": "2", "hoodie.write.table.version": version}

    def put(key, value):
        return hudi_py.write(path, pa.table({"k": [key], "p": ["p1"], "v": [value]}), settings=settings)

    for number in range(4):
        put("a", number)
    for _ in range(2):
        table = hudi_py.open_table(path, settings=settings)
        table.rollback(table.timeline.commits.completed()[-1].requested_time)
    for number in range(3):
        put("z", number)
    table = hudi_py.open_table(path, settings=settings)
    assert {"a": 1, "z": 2} == {row["k"]: row["v"] for row in table.rows().to_arrow().to_pylist()}
    assert [] == [each for each in table.check() if each.severity.value == "error"]
