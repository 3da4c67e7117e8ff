"""Random histories with compactions of both kinds: writes, cleans, rollbacks, restores and archivals in any order."""

import random
from contextlib import suppress

import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.testing import Crash, StopBefore
from support.laws import SHARE
from support.writes import create_table, merged_rows_of, open_table, upsert

REGIONS = {"a": "eu", "b": "us", "c": "eu", "d": "us"}
SETTINGS = {
    "hoodie.index.bloom.num_entries": 100,
    "hoodie.compact.inline.max.delta.commits": 1,
    "hoodie.log.compaction.blocks.threshold": 2,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.clean.commits.retained": 1,
    "hoodie.metadata.compact.max.delta.commits": 3,
}
STEPS = ("write", "write", "delete", "plan", "compact", "compact", "clean", "archive", "savepoint", "restore")
STEPS += ("roll back the last write", "roll back the last compaction", "recover")
STEPS += ("plan logs", "compact logs", "compact logs", "roll back the last log compaction", "die")


class History:
    """A merge-on-read table and the rows that it has to hold: key to the number of its write."""

    def __init__(self, chance):
        self.chance = chance
        with_metadata = {"hoodie.metadata.enable": True} if chance.random() < 0.5 else {}
        self.settings = SETTINGS | with_metadata
        self.storage = create_table(chance.choice([6, 8, 9]), **{"hoodie.table.type": "MERGE_ON_READ"})
        self.rows, self.before, self.savepoint, self.number = {}, {}, None, 0

    def table(self):
        return open_table(self.storage, **self.settings)

    def write(self, rows, operation="UPSERT"):
        known = dict(self.rows)
        upsert(self.storage, rows, operation=operation, **self.settings)
        self.before[self.table().timeline.completed("deltacommit")[-1].requested_time] = known

    def step(self, name):
        """One step; what is refused changes nothing."""
        table = self.table()
        deltas, compactions = (table.timeline.completed(action) for action in ("deltacommit", "commit"))
        if name == "write":
            self.number += 1
            keys = self.chance.sample(sorted(REGIONS), 2)
            self.write([{"id": key, "region": REGIONS[key], "ts": self.number} for key in keys])
            self.rows |= dict.fromkeys(keys, self.number)
        elif name == "delete" and self.rows:
            key = self.chance.choice(sorted(self.rows))
            self.write([{"id": key, "region": REGIONS[key], "ts": 0}], "DELETE")
            del self.rows[key]
        elif name == "savepoint" and self.savepoint is None:
            self.savepoint = table.create_savepoint().requested_time, dict(self.rows)
        elif name == "restore" and self.savepoint is not None:
            table.restore(self.savepoint[0])
            self.rows = dict(self.savepoint[1])
        elif name == "roll back the last log compaction" and deltas and self.is_merged(deltas[-1]):
            table.rollback(deltas[-1].requested_time)
        elif name == "die":
            self.die()
        elif name == "roll back the last write" and deltas and deltas[-1].requested_time in self.before:
            table.rollback(deltas[-1].requested_time)
            self.rows = dict(self.before[deltas[-1].requested_time])
        elif name == "roll back the last compaction" and compactions:
            table.rollback(compactions[-1].requested_time)
        else:
            plain = {"plan": table.schedule_compaction, "compact": table.compact, "clean": table.clean}
            plain |= {"archive": table.archive, "recover": table.recover}
            plain |= {"plan logs": table.schedule_log_compaction, "compact logs": table.compact_logs}
            plain.get(name, list)()

    def is_merged(self, instant):
        """Whether it is a log compaction."""
        return self.table().contents.commit(instant).operation_type == "LOG_COMPACT"

    def die(self):
        """A log compaction whose process ends at a random mutation."""
        with suppress(Crash):
            failing = StopBefore(self.storage, self.chance.randrange(1, 16))
            open_table(failing, **self.settings).compact_logs()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 40, SHARE))
def test_no_order_of_services_loses_a_row(seed):
    """After each step the rows are the model's, and the table is intact."""
    history = History(random.Random(seed))
    played = []
    for number in range(12):
        name = "write" if number < 2 else history.chance.choice(STEPS)
        played.append(name)
        try:
            history.step(name)
        except (RefusedError, ConfigError) as refusal:
            played[-1] += f" ({type(refusal).__name__})"
        is_empty = not history.table().schema.names  # every write is rolled back: no commit tells the columns
        rows = {} if is_empty else {row["id"]: row["ts"] for row in merged_rows_of(history.storage)}
        assert rows == history.rows, played
        serious = [str(each) for each in history.table().check() if each.severity.name != "INFO"]
        assert not serious, played
