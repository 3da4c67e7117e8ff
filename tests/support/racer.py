"""
One process of a race: ``racer.py WHAT TABLE [arguments]``. Waits for a line on standard input, so that all start
at once.

mint: prints times from a clock that jumps; clean, rollback: run the service and say how it ended; turns: counts in a
file, under the table's lock; hold: keeps that lock.
"""

import json
import os
import random
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock, SystemClock
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.testing import SlowStorage
from hudi_py.txn.table_lock import TableLock

NOW = datetime(2026, 10, 25, tzinfo=timezone.utc)


def say(line):
    """Tell the test, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def mint(table, seed, count):
    """Mint *count* times from a clock that goes forth and back by hours."""
    chance = random.Random(int(seed))
    clock = FixedClock(NOW)
    store = Table(LocalStorage(table), clock=clock).contents.store
    sys.stdin.readline()
    for _ in range(int(count)):
        clock.moment = NOW + timedelta(seconds=chance.randint(-7200, 7200))
        say(store.new_time())


def service(what, table, seed):
    """Run one service on a storage that dawdles now and then, and report."""
    chance = random.Random(int(seed))
    storage = SlowStorage(LocalStorage(table), 0, sleep=lambda _: _dawdle(chance))
    opened = Table(storage, settings={"hoodie.metadata.enable": "false"})
    sys.stdin.readline()
    try:
        if what == "rollback":
            say(json.dumps({"rolled_back": len(opened.rollback_failed_writes())}))
            return
        results = opened.clean(commits_retained=1)
        say(json.dumps({"superseded": [each.superseded for each in results]}))
    except ConflictError as error:
        say(json.dumps({"conflict": str(error)}))


def turns(table, seed, count):
    """Add one to a counter *count* times; say how often somebody else was there."""
    chance = random.Random(int(seed))
    settings = {
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider",
        "hoodie.write.lock.filesystem.expire": 1,
        "hoodie.write.lock.client.num_retries": 1_000_000,
        "hoodie.write.lock.client.wait_time_ms_between_retry": 1,
    }
    storage = SlowStorage(LocalStorage(table), 0, sleep=lambda _: _dawdle(chance))
    lock = TableLock(storage, Settings(settings), SystemClock())
    counter, inside, met = Path(table, "counter"), Path(table, "inside"), 0
    sys.stdin.readline()
    for _ in range(int(count)):
        with lock.held("turn"):
            try:
                os.close(os.open(inside, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                met += 1
                continue
            number = int(counter.read_text())
            _dawdle(chance)
            counter.write_text(str(number + 1))
            lock.check()
            inside.unlink()
    say(str(met))


def hold(table):
    """Take the lock, say so, and never give it back."""
    settings = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"}
    lock = TableLock(LocalStorage(table), Settings(settings), SystemClock())
    with lock.held("hold"):
        say("held")
        sys.stdin.readline()


def _dawdle(chance):
    for _ in range(chance.randint(0, 20_000)):
        pass


if __name__ == "__main__":
    if sys.argv[1] == "mint":
        mint(*sys.argv[2:])
    elif sys.argv[1] == "hold":
        hold(*sys.argv[2:])
    elif sys.argv[1] == "turns":
        turns(*sys.argv[2:])
    else:
        service(*sys.argv[1:])
