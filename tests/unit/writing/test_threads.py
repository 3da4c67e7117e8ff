"""Threads of one process that write one table, each on its own account and without a lock, as programs do."""

import asyncio
import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import RefusedError
from hudi_py.txn.turns import after_turn, taking_turns
from support.writes import SCHEMA

THREADS, WRITES = 8, 2
SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
}


def rows(*given):
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], SCHEMA)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("opened", ["alone", "together", "not at all"])
def test_every_write_of_every_thread_is_there_once(tmp_path, kind, opened):
    """
    They change the same row and add rows of their own; with a table each, with one for all, and when none exists yet.

    Without turns each write rolls the pending ones of the others back, and most of them are told that they failed.
    """
    settings = {**SETTINGS, "hoodie.datasource.write.table.type": kind}
    path, started = tmp_path / "t", threading.Barrier(THREADS)
    if opened != "not at all":
        hudi_py.write(path, rows(("same", "eu", 0)), settings=settings)
    shared = hudi_py.open_table(path, settings=settings) if opened == "together" else None

    def write(thread):
        started.wait()
        for number in range(WRITES):
            given = rows(("same", "eu", 1 + thread), (f"{thread}-{number}", "eu", 1))
            if opened == "not at all":
                hudi_py.write(path, given, operation="upsert", settings=settings)
            else:
                (shared or hudi_py.open_table(path, settings=settings)).upsert(given)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(write, thread) for thread in range(THREADS)]:
            done.result()
    table = hudi_py.open_table(path)
    found = table.rows(columns=["id", "ts"]).to_arrow().to_pylist()
    own = {f"{thread}-{number}": 1 for thread in range(THREADS) for number in range(WRITES)}
    assert sorted((row["id"], row["ts"]) for row in found) == sorted([*own.items(), ("same", THREADS)])
    assert len(table.timeline.commits.completed()) == THREADS * WRITES + (opened != "not at all")
    assert not table.timeline.completed("rollback")
    assert not table.timeline.pending()


@pytest.mark.parametrize(
    ("one", "other"), [("{}/t", "{}/link"), ("s3://lake/t", "s3a://lake/t/"), ("s3://lake/t", "S3://lake/t")]
)
def test_another_name_of_the_table_is_the_table(tmp_path, one, other):
    """Else two threads that came to it by two names would not wait for each other; who waits says so in the log."""
    (tmp_path / "t").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "t")
    order, waiting = [], threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: waiting.set() if "write.waiting" in record.getMessage() else None
    logger = logging.getLogger("hudi_py")
    level = logger.level

    def second():
        with taking_turns(other.format(tmp_path)):
            order.append("second")

    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with taking_turns(one.format(tmp_path)):
            thread = threading.Thread(target=second)
            thread.start()
            assert waiting.wait(60)
            order.append("first")
        thread.join()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert order == ["first", "second"]


def test_a_task_of_the_generator_changes_the_table_once_the_write_is_over(tmp_path):
    """A program with an event loop plans a task while it makes rows; it runs later, with a copy of that moment."""
    loop = asyncio.new_event_loop()
    settings = SETTINGS | {"hoodie.memory.merge.max.size": 2000}  # so that the write has begun when its rows come
    hudi_py.write(tmp_path / "t", rows(("a", "eu", 1)), settings=settings)
    table, tasks = hudi_py.open_table(tmp_path / "t", settings=settings), []

    async def change():
        table.upsert(rows(("later", "eu", 1)))

    def batches():
        yield from rows(*((f"k{number:03}", "eu", 1) for number in range(200))).to_batches()
        with pytest.raises(RefusedError):  # still under way
            table.clean()
        tasks.append(loop.create_task(change()))
        yield from rows(("b", "eu", 1)).to_batches()

    async def write():
        table.upsert(pa.RecordBatchReader.from_batches(SCHEMA, batches()))
        await tasks[0]

    loop.run_until_complete(write())
    loop.close()
    assert table.rows().to_arrow().num_rows == 203


def test_a_forked_process_does_not_wait_for_threads_that_it_has_not(tmp_path):
    """They stayed behind in the process that it comes from, in the middle of their writes."""
    held, over = threading.Event(), threading.Event()

    def hold():
        with taking_turns(str(tmp_path)):
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        with taking_turns(str(tmp_path)):
            os._exit(7)
    over.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_two_writes_that_would_wait_for_each_other_are_told(tmp_path):
    """The rows of each write come from a generator that writes the table of the other one: the later one is refused."""
    tables, inside, told = [tmp_path / "a", tmp_path / "b"], threading.Barrier(2), []
    settings = {**SETTINGS, "hoodie.memory.merge.max.size": 2000}  # so that the writes have begun when their rows come
    for path in tables:
        hudi_py.write(path, rows(("first", "eu", 0)), settings=settings)

    def write(here, there):
        def batches():
            yield from rows(*((f"{number:03}", "eu", 1) for number in range(200))).to_batches()
            inside.wait(60)
            hudi_py.open_table(there, settings=settings).upsert(rows((here.name, "eu", 1)))

        try:
            hudi_py.write(here, pa.RecordBatchReader.from_batches(SCHEMA, batches()), "upsert", settings=settings)
        except RefusedError as error:
            told.append((here, str(error)))

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, here, there) for here, there in (tables, tables[::-1])]:
            done.result()
    ((loser, why),) = told
    assert "both would wait for ever" in why
    (winner,) = set(tables) - {loser}
    counted = {path: hudi_py.open_table(path).rows().to_arrow().num_rows for path in tables}
    assert counted == {winner: 201, loser: 2}


def test_a_new_process_has_no_turn(tmp_path):
    """It stands alone, whatever the thread that made it was doing: its hooks are called, and nothing waits."""
    read, write = os.pipe()
    with taking_turns(str(tmp_path)):
        child = os.fork()
        if child == 0:
            with taking_turns(str(tmp_path)):
                after_turn(str(tmp_path), lambda: os.write(write, b"called"))
            os._exit(0)
        os.waitpid(child, 0)
    os.close(write)
    assert os.read(read, 10) == b"called"
    os.close(read)
