"""
One process of a race: ``racer.py WHAT TABLE [arguments]``. Waits for a line on standard input, so that all start
at once.

mint: prints times from a clock that jumps; clean, rollback: run the service and say how it ended.
"""

import json
import random
import sys
from datetime import datetime, timedelta, timezone

from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from hudi_py.testing import SlowStorage

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


def _dawdle(chance):
    for _ in range(chance.randint(0, 20_000)):
        pass


if __name__ == "__main__":
    if sys.argv[1] == "mint":
        mint(*sys.argv[2:])
    else:
        service(*sys.argv[1:])
