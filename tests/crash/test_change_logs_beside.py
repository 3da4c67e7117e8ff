"""Tables with change data capture and random writes in the middle of others: the changes lead to each snapshot."""

from __future__ import annotations

import logging
import os
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from hudi_py.errors import HudiError
from hudi_py.rows.read import plain_rows
from hudi_py.storage.memory import MemoryStorage
from support import writes
from support.drawn_writes import INDEXES, Write, overlap
from support.laws import SHARE
from support.many_writers import SEVERAL, contents

CASES = 12
LEVELS = ("SERIALIZABLE", "WRITE_SERIALIZABLE", "SNAPSHOT")
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}
KINDS = {**INDEXES, "BLOOM": {"hoodie.index.type": "BLOOM"}, "BUCKET": BUCKETS}
SERVICES = {
    "compact": lambda table: table.compact(),
    "plan a compaction": lambda table: table.schedule_compaction(),
    "compact logs": lambda table: table.compact_logs(),
    "cluster": lambda table: table.cluster(),
    "plan a clustering": lambda table: table.services.clustering().schedule(),
    "roll back": lambda table: table.rollback(table.timeline.commits.completed()[-1].requested_time),
}
OFTEN = {"hoodie.compact.inline.max.delta.commits": 1, "hoodie.log.compaction.blocks.threshold": 2}


@pytest.fixture(autouse=True)
def _quiet():
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    yield
    logging.getLogger("hudi_py").setLevel(logging.NOTSET)


class Told:
    """A table, and its rows when each commit was the newest; layout 1 tells those of any commit later."""

    def __init__(self, version: int, kind: str, mode: str, settings: Mapping[str, Any]) -> None:
        logged = {"hoodie.table.cdc.enabled": True, "hoodie.table.cdc.supplemental.logging.mode": mode}
        own = settings if settings.get("hoodie.index.type") == "BUCKET" else {}
        self.storage: MemoryStorage = writes.create_table(version, **{"hoodie.table.type": kind, **logged, **own})
        self.by_completion, self.is_v6_with_logs = version != 6, version == 6 and kind == "MERGE_ON_READ"
        self.settings, self.seen = settings, dict[str, Counter[Any]]()
        for each in ([*writes.OLD, {"id": "d", "region": "eu", "ts": 3}], [{"id": "d", "region": "eu", "ts": 4}]):
            writes.upsert(self.storage, each, **settings)
            self.look()

    def look(self) -> None:
        """Note the rows if there is a new commit."""
        for each in writes.open_table(self.storage).timeline.writes.completed():
            if each.requested_time not in self.seen:
                self.seen[each.requested_time] = Counter(contents(self.storage))

    def serve(self, name: str) -> None:
        """Another process does something for the table; a rollback changes what was seen."""
        table = writes.open_table(self.storage, **{**SEVERAL, **OFTEN, **self.settings})
        # Even one that was refused may have completed something.
        with suppress(HudiError):
            SERVICES[name](table)
        if name == "roll back":
            self.seen = {time: Counter({"unknown": 1}) for time in self.seen}
        self.look()

    def check(self) -> None:
        """Each change has the row that was there, and the changes of each commit lead to the rows behind it."""
        table = writes.open_table(self.storage)
        gone, come = dict[str, Counter[Any]](), dict[str, Counter[Any]]()
        for change in (change for batch in table.change_log() for change in plain_rows(batch)):
            for side, found in (("before", gone), ("after", come)):
                row = change[side]
                found.setdefault(change["ts"], Counter()).update([(row["region"], row["id"], row["ts"])] if row else ())
        commits = list(table.timeline.writes.completed())
        if self.by_completion:
            commits.sort(key=lambda each: each.completion_time)
        rows = Counter[Any]()
        for time in (each.requested_time for each in commits):
            here = gone.get(time, Counter())
            assert here <= rows, (time, here, rows)
            rows = rows - here + come.get(time, Counter())
            if self.by_completion and "unknown" not in self.seen[time]:
                assert rows == self.seen[time], time
        # A compaction of version 6 takes all rows of a key for the first one, and tells no change (merge-on-read.md).
        if not self.is_v6_with_logs or max(Counter(key for _, key, _ in rows.elements()).values(), default=1) == 1:
            assert rows == Counter(contents(self.storage))


def work(told: Told, chance: random.Random, all_writes: list[Write], number: int, others: Any = None) -> None:
    """Do a write, with others in its middle, and services before and behind them now and then."""

    def serve() -> None:
        if chance.random() < 0.25:
            told.serve(chance.choice(list(SERVICES)))

    def meanwhile() -> None:
        if others is not None:
            others()
        serve()

    serve()
    with suppress(HudiError):
        all_writes[number].do(told.storage, meanwhile)
    told.look()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("mode", ["OP_KEY_ONLY", "DATA_BEFORE", "DATA_BEFORE_AFTER"])
def test_changes_of_writes_that_overlap_lead_from_each_snapshot_to_the_next(mode, kind):
    """Also of a write that was put onto a newer state, or done again, at each level of isolation."""
    chance = random.Random(f"{mode} {kind} {os.environ.get('HUDI_TEST_DAY', '')}")
    for _ in range(-(-CASES // SHARE)):
        level, index = chance.choice(LEVELS), chance.choice(list(KINDS))
        small = chance.choice((0, 100_000_000))
        settings = {**KINDS[index], "hoodie_py.write.isolation": level, "hoodie.parquet.small.file.limit": small}
        told = Told(chance.choice((6, 8, 9)), kind, mode, settings)
        for _ in range(chance.choice((1, 2, 3))):
            all_writes = [Write(chance, settings, deletes_keys=True) for _ in range(chance.choice((2, 3, 3)))]
            overlap(all_writes, partial(work, told, chance, all_writes), is_nested=chance.random() < 0.5)
            told.check()
