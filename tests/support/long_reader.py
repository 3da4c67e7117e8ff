"""
Processes of the three-hour reader: ``long_reader.py read|read-leased|serve TABLE``. Only time is simulated.

read: opens the latest snapshot, reads one partition, prints ``begun`` and waits for a line on standard input; then it
reads all of the same snapshot, and prints its rows or the error. serve: for each line with a number of minutes on
standard input it cleans once in each of them, writes in every sixth, and prints ``done``.
"""

import json
import sys
from contextlib import nullcontext
from datetime import timedelta

from hudi_py.errors import HudiError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.writes import START, upsert

SETTINGS = {"hoodie.clean.commits.retained": 1, "hoodie.metadata.enable": False}
REGIONS = ("ap", "eu", "us")
BEGIN = START + timedelta(hours=1)
MINUTES_BETWEEN_WRITES = 6


def say(text):
    """A line for the test that started this process."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def opened(path, clock):
    """The table at a moment of the simulated time."""
    return Table(LocalStorage(path), settings=SETTINGS, clock=clock)


def rows(number):
    """What is written in one minute: a row of each region, over the one before."""
    return [{"id": region, "region": region, "ts": number} for region in REGIONS]


def read(path, *, leased):
    """The reader."""
    table = opened(path, FixedClock(BEGIN))
    snapshot = table.snapshot()
    with table.lease(ttl="4h", holder="the long reader") if leased else nullcontext(snapshot) as snapshot:
        first = snapshot.rows(where="region = 'ap'").to_arrow().column("ts").to_pylist()
        say("begun")
        sys.stdin.readline()
        try:
            say(json.dumps({"first": first, "rows": snapshot.rows().to_arrow().column("ts").to_pylist()}))
        except HudiError as error:
            say(json.dumps({"error": str(error)}))


def serve(path):
    """The writer and the cleaner."""
    clock, number = FixedClock(BEGIN), 0
    for line in iter(sys.stdin.readline, ""):
        for _ in range(int(line)):
            number += 1
            clock.move(timedelta(seconds=30))
            if number % MINUTES_BETWEEN_WRITES == 0:
                upsert(LocalStorage(path), rows(number), opened(path, clock))
            clock.move(timedelta(seconds=30))
            for each in opened(path, clock).clean():
                say(f"clean {each.instant}")
        say("done")


if __name__ == "__main__":
    what, where = sys.argv[1:]
    if what == "serve":
        serve(where)
    else:
        read(where, leased=what == "read-leased")
