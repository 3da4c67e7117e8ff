"""Services beside writes: in other threads of the process, and called by what makes the rows of a write."""

import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import HudiError, RefusedError
from support.writes import SCHEMA

THREADS, STEPS = 4, 6
SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.memory.merge.max.size": 2000,  # so that the write has begun when its rows come
}
SERVICES = {
    "clean": lambda table: table.clean(),
    "cluster": lambda table: table.cluster(),
    "compact": lambda table: table.compact(),
    "recover": lambda table: table.recover(),
    "archive": lambda table: table.archive(),
    "rollback": lambda table: table.rollback_failed_writes(),
    "maintain": lambda table: table.maintain(),
}
CHANGES = {
    **SERVICES,
    "upsert": lambda table: table.upsert(rows("inner")),
    "delete": lambda table: table.delete(where="id = 'first'"),
    "drop": lambda table: table.drop_partitions(["eu"]),
}


MANY = [f"a{number:03}" for number in range(200)]


def rows(*keys):
    return pa.Table.from_pylist([{"id": key, "region": "eu", "ts": 1} for key in keys], SCHEMA)


def ids(path):
    return sorted(hudi_py.open_table(path).rows().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_every_acknowledged_row_is_there_once(tmp_path, kind, seed):
    """Whatever services run between: without turns recoveries and clusterings roll back the writes of other threads."""
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind}
    path, started = tmp_path / "t", threading.Barrier(THREADS)
    hudi_py.write(path, rows("first"), settings=settings)
    names = [name for name in SERVICES if name != ("compact" if kind == "COPY_ON_WRITE" else "cluster")]

    def work(thread):
        draw = Random(f"{seed} {thread}")
        started.wait()
        for number in range(STEPS):
            table = hudi_py.open_table(path, settings=settings)
            if draw.random() < 0.5:
                table.upsert(rows(f"{thread}-{number}"))
                acknowledged.append(f"{thread}-{number}")
            else:
                SERVICES[draw.choice(names)](table)

    acknowledged = ["first"]
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, thread) for thread in range(THREADS)]:
            done.result()
    assert ids(path) == sorted(acknowledged)
    table = hudi_py.open_table(path)
    assert not table.timeline.completed("rollback")
    assert not [each for each in table.check() if each.severity.value == "error"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert"])
def test_a_generator_does_not_change_the_table_that_its_rows_go_to(tmp_path, change, operation):
    """It hears what to do instead, nothing of the write is committed or left, and the table is as before."""
    path = tmp_path / "t"
    kind = "MERGE_ON_READ" if change == "compact" else "COPY_ON_WRITE"
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind}
    hudi_py.write(path, rows("first"), settings=settings)
    heard = []

    def batches():
        yield from rows(*MANY).to_batches()
        try:
            CHANGES[change](hudi_py.open_table(path, settings=settings))
        except HudiError as error:
            heard.append(error)
            raise
        yield from rows("b").to_batches()

    def write():
        reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
        return hudi_py.write(path, reader, operation=operation, settings=settings)

    if change == "maintain":  # its steps fail one by one, so it goes on, and so does the write
        write()
        assert ids(path) == [*MANY, "b", "first"]
        return
    with pytest.raises(RefusedError, match="make all of its rows first"):
        write()
    assert isinstance(heard[0], RefusedError)
    assert ids(path) == ["first"]
    hudi_py.open_table(path, settings=settings).upsert(rows("c"))  # nothing is in its way
    assert ids(path) == ["c", "first"]


def test_a_generator_that_goes_on_after_the_refusal_loses_nothing(tmp_path):
    """Its write is complete; other tables, and reads of the same one, are free."""
    path, other = tmp_path / "t", tmp_path / "other"
    hudi_py.write(path, rows("first"), settings=SETTINGS)

    def batches():
        yield from rows(*MANY).to_batches()
        with pytest.raises(RefusedError):
            hudi_py.write(path, rows("inner"), operation="upsert", settings=SETTINGS)
        assert ids(path) == ["first"]
        hudi_py.write(other, rows("x"), settings=SETTINGS)
        yield from rows("b").to_batches()

    reader = pa.RecordBatchReader.from_batches(SCHEMA, batches())
    hudi_py.write(path, reader, operation="upsert", settings=SETTINGS)
    assert (ids(path), ids(other)) == ([*MANY, "b", "first"], ["x"])
