"""Bulk inserts of keys that are there already, between other writes: each row with a key is met, none is lost."""

import random
from collections import Counter

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, RefusedError, WriteError
from support import writes
from support.laws import SHARE

SETTINGS = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.commits.archival.batch": 1,
    # With it every bulk insert of a merge-on-read table stays a base file of its own, and so does each copy.
    "hoodie.parquet.small.file.limit": 0,
}
REGIONS = ("eu", "us")
STEPS, SEEDS = 12, range(4 if SHARE == 1 else 1)


class Copies:
    """Rows as ``(region, key, ts)``, any number of each."""

    def __init__(self, table, seed):
        self.table, self.chance, self.rows, self.time = table, random.Random(seed), Counter(), 0

    def some(self):
        self.time += 1
        return sorted({(self.chance.choice(REGIONS), str(self.chance.randrange(4))) for _ in range(3)})

    def arrow(self, keys):
        flat = [{"id": key, "region": region, "ts": self.time} for region, key in keys]
        return pa.Table.from_pylist(flat, schema=writes.SCHEMA)

    def add(self, keys):
        self.rows.update((*key, self.time) for key in keys)

    def of(self, keys):
        """The number of rows of each of these keys."""
        found = Counter()
        for row, count in self.rows.items():
            if row[:2] in keys:
                found[row[:2]] += count
        return found

    def drop(self, is_gone):
        self.rows = Counter({row: count for row, count in self.rows.items() if not is_gone(row)})

    def bulk_insert(self):
        keys = self.some()
        done = self.table.bulk_insert(self.arrow(keys))
        assert done.rows_inserted == len(keys)
        self.add(keys)

    def upsert(self):
        keys = self.some()
        self.table.upsert(self.arrow(keys))
        found = self.of(keys)
        self.drop(lambda row: row[:2] in found)
        for key in keys:
            self.rows[(*key, self.time)] += max(1, found[key])

    def delete(self):
        keys = self.some()
        self.table.delete(self.arrow(keys))
        self.drop(lambda row: row[:2] in keys)

    def delete_where(self):
        """Of rows with one key either all meet the condition, or the statement may be refused: then nothing changes."""
        bound = self.chance.randrange(self.time + 1)
        split = {row[:2] for row in self.rows if row[2] <= bound} & {row[:2] for row in self.rows if row[2] > bound}
        try:
            self.table.delete(where=f"ts <= {bound}")
        except RefusedError as error:
            assert split, error
            return
        self.drop(lambda row: row[2] <= bound)

    def update(self):
        region = self.chance.choice(REGIONS)
        self.time += 1
        several = any(count > 1 for key, count in self.of({row[:2] for row in self.rows}).items() if key[0] == region)
        try:
            self.table.update({"ts": self.time}, where=("region", "=", region))
        except WriteError as error:
            assert several, error
            return
        changed = sum(count for row, count in self.rows.items() if row[0] == region)
        keys = self.of({row[:2] for row in self.rows if row[0] == region})
        self.drop(lambda row: row[0] == region)
        for key, count in keys.items():
            self.rows[(*key, self.time)] += count
        assert sum(keys.values()) == changed

    def overwrite(self):
        keys = self.some()
        regions = {region for region, _ in keys}
        self.table.insert_overwrite(self.arrow(keys))
        self.drop(lambda row: row[0] in regions)
        self.add(keys)

    def drop_partition(self):
        region = self.chance.choice(REGIONS)
        try:
            self.table.drop_partitions([region])
        except ConfigError:
            assert not any(row[0] == region for row in self.rows)
        self.drop(lambda row: row[0] == region)

    def step(self):
        names = ("bulk_insert", "bulk_insert", "upsert", "upsert", "delete", "delete_where", "update")
        name = self.chance.choice((*names, "overwrite", "drop_partition"))
        getattr(self, name)()
        shown = self.table.refresh().rows().to_arrow().to_pylist()
        assert Counter((row["region"], row["id"], row["ts"]) for row in shown) == +self.rows, name


@pytest.mark.slow
@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_any_sequence_with_copies_of_keys_equals_a_bag_of_rows(version, kind, index):
    """With cleans and archivals after each write; what cannot tell copies apart is refused and changes nothing."""
    for seed in SEEDS:
        storage = writes.create_table(version, **{"hoodie.datasource.write.table.type": kind})
        settings = {**SETTINGS, "hoodie.index.type": index, "hoodie.metadata.enable": bool(seed % 2)}
        model = Copies(writes.open_table(storage, **settings), f"{version} {kind} {index} {seed}")
        model.bulk_insert()
        for _ in range(STEPS):
            model.step()
        assert not model.table.check()
