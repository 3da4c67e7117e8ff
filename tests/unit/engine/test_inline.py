"""Threads where something has to be waited for, and only there."""

import threading
from itertools import count

import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.storage.memory import MemoryStorage

DISK, OBJECT_STORE = "/tables/trips", "s3://lake/trips"


def clock(busy):
    """Of tasks that take a second each, of which they work for the share *busy*."""
    seconds = count()
    return lambda: (float(moment := next(seconds)), moment * busy)


def mapped(engine, root, function, items=range(8)):
    prepared = engine.prepared(MemoryStorage(root), len(items))
    return list(prepared.map(function, items, parallelism=4, description="test"))


def thread_of(_):
    return threading.get_ident()


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("busy", [0.1, 1.0])
@pytest.mark.parametrize("root", [DISK, OBJECT_STORE])
def test_results_come_in_the_order_of_the_items(threads, busy, root):
    """However they were spread."""
    assert mapped(LocalEngine(threads, moment=clock(busy)), root, str) == [str(number) for number in range(8)]


def test_a_disk_that_answers_at_once_is_worked_on_by_one_thread():
    """Threads would only take turns at the interpreter."""
    assert set(mapped(LocalEngine(4, moment=clock(0.9)), DISK, thread_of)) == {threading.get_ident()}


def test_a_disk_that_keeps_one_waiting_gets_all_threads_from_the_second_task_on():
    """A barrier lets three tasks pass only together."""
    together = threading.Barrier(3)

    def task(number):
        if number:
            together.wait(timeout=30)
        return threading.get_ident()

    first, *others = mapped(LocalEngine(3, moment=clock(0.1)), DISK, task, range(4))
    assert first == threading.get_ident()
    assert len(set(others)) == 3


def test_an_object_store_gets_all_threads_at_once():
    """Each request is waited for, so nothing has to be tried out."""
    together = threading.Barrier(4)
    threads = mapped(LocalEngine(4, moment=clock(1.0)), OBJECT_STORE, lambda _: together.wait(timeout=30), range(4))
    assert sorted(threads) == [0, 1, 2, 3]


@pytest.mark.parametrize("busy", [0.1, 1.0])
def test_the_first_error_ends_the_run_and_is_raised(busy):
    """By one thread and by several."""

    def task(number):
        if number >= 2:
            raise ValueError(number)

    with pytest.raises(ValueError, match="2"):
        mapped(LocalEngine(4, moment=clock(busy)), DISK, task)
