"""Threads that race for one lock."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from hudi_py.txn.table_lock import TableLock


def race(locks: Sequence[TableLock], turns: int) -> tuple[int, int]:
    """
    Take each lock *turns* times, all locks at once, and count under it.

    Returns:
        The most holders at a time, and the count: one for each turn unless two held the lock at once.
    """
    inside, most, count = 0, 0, 0
    start = threading.Barrier(len(locks))

    def work(lock: TableLock) -> None:
        nonlocal inside, most, count
        start.wait()
        for _ in range(turns):
            with lock.held("turn"):
                inside += 1
                most, before = max(most, inside), count
                lock.check()
                count = before + 1
                inside -= 1

    threads = [threading.Thread(target=work, args=(lock,)) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return most, count
