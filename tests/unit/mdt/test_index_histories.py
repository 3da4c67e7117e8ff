"""Random sequences of all actions on tables with every index that is kept: after each, all of them are true."""

import random

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.local.rows import ArrowRows
from hudi_py.storage.memory import MemoryStorage
from support import writes
from support.indexes import assert_true
from support.laws import SHARE
from support.statistics import LOGS, assert_statistics_true, loaded

TABLES = (*LOGS.values(), *(f"rows/cow_all_indexes-{release}" for release in ("0.15.0", "1.0.2", "1.1.1")))
"""Both kinds of table, versions 6, 8 and 9."""
STEPS = 8
ACTIONS = (
    *("upsert",) * 5, *("insert",) * 3, *("delete",) * 2, *("compact",) * 2,
    "overwrite", "drop", "cluster", "clean", "rollback", "savepoint", "restore",
)  # fmt: skip


class History:
    """One table and the actions on it, all chosen by *seed*."""

    def __init__(self, seed, storage):
        self.random, self.storage = random.Random(seed), storage
        self.first = self.rows()
        self.saved = None
        self.number = 0
        self.settings = {}

    def table(self, **more):
        return writes.open_table(self.storage, **self.settings, **more)

    def rows(self):
        rows = writes.open_table(self.storage).rows().to_arrow()
        return rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])

    def step(self):
        """Act, unless the action is refused; returns what was asked for."""
        self.number += 1
        action = self.random.choice(ACTIONS)
        due = self.random.choice([1, 2, 5, 10, 10, 10])
        limit = self.random.choice([0, 104857600])
        self.settings = {
            "hoodie.index.bloom.num_entries": 10,
            "hoodie.clean.automatic": False,
            "hoodie.metadata.compact.max.delta.commits": due,
            "hoodie.parquet.small.file.limit": limit,
        }
        try:
            getattr(self, f"do_{action}")()
        except (ConfigError, RefusedError):
            return f"{action} (refused)"
        return action

    def write(self, rows, operation):
        if rows.num_rows:
            writes.write(self.storage, ArrowRows(rows), self.table(), operation)

    def some(self, rows, count):
        return rows.take([self.random.randrange(rows.num_rows) for _ in range(count)]) if rows.num_rows else rows

    def do_upsert(self):
        rows = self.rows()
        rows = rows.take(self.random.sample(range(rows.num_rows), min(3, rows.num_rows)))
        values = [1000 * self.number + self.random.randint(-2000, 900) for _ in range(rows.num_rows)]
        self.write(with_column(rows, "ts", values), "UPSERT")

    def do_insert(self):
        rows = with_column(self.some(self.first, 2), "id", [f"new{self.number}{at}" for at in range(2)])
        self.write(rows, self.random.choice(["INSERT", "UPSERT", "BULK_INSERT"]))

    def do_delete(self):
        self.write(self.some(self.rows(), 2), "DELETE")

    def do_overwrite(self):
        self.write(self.some(self.rows(), 1), "INSERT_OVERWRITE")

    def do_drop(self):
        partitions = self.table().partitions()
        if len(partitions) > 1:
            self.table().drop_partitions([self.random.choice(partitions)])

    def do_compact(self):
        self.table(**{"hoodie.compact.inline.max.delta.commits": 1}).compact()

    def do_cluster(self):
        self.table().cluster(sort_by=["ts"])

    def do_clean(self):
        self.table().clean(file_versions_retained=self.random.choice([1, 2]))

    def do_rollback(self):
        self.table().rollback(self.table().timeline.writes.completed()[-1].requested_time)

    def do_savepoint(self):
        if self.saved is None:
            self.saved = self.table().timeline.commits.completed()[-1].requested_time
            self.table().create_savepoint(self.saved)

    def do_restore(self):
        if self.saved is not None:
            self.table().restore(self.saved)


def with_column(rows, name, values):
    at = rows.column_names.index(name)
    return rows.set_column(at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type))


def findings(table):
    return [each for each in table.check() if each.severity.name != "INFO"]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """``fresh(name)``: a table with indexes, in memory."""
    kept = {}

    def of(name):
        if name not in kept:
            kept[name] = loaded(name, tmp_path_factory.mktemp("t")).files()
        return MemoryStorage.from_files(kept[name])

    return of


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(max(12 // SHARE, 2)))
def test_every_action_keeps_all_indexes_true(seed, fresh):
    """Statistics, filters and record index equal what the files say, and conditions find every row."""
    history = History(seed, fresh(TABLES[5 * seed % len(TABLES)]))
    done = []
    for _ in range(STEPS):
        done.append(history.step())
        if "column_stats" in history.table().config.metadata_partitions:
            assert_statistics_true(history.storage, done)
        assert_true(history.storage, done)
        rows = history.rows()
        if rows.num_rows:
            wanted = history.random.choice(rows.column("ts").to_pylist())
            found = history.table().rows(where=f"ts = {wanted}").to_arrow()
            expected = sum(each == wanted for each in rows.column("ts").to_pylist())
            assert found.num_rows == expected, done
    assert [] == findings(history.table()), done
