"""Any sequence of writes without Spark leaves the rows that a dictionary would hold."""

import os
import random

import pyarrow as pa
import pytest

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, WriteError
from hudi_py.rows.precedence import merge_rules_of
from support import writes

SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("v", pa.int64())])
SETTINGS = {
    "hoodie.clean.commits.retained": 1,
    "hoodie.keep.min.commits": 2,
    "hoodie.keep.max.commits": 3,
    "hoodie.commits.archival.batch": 1,
}
REGIONS = ("eu", "us", "ap")
STEPS = int(os.environ.get("HUDI_WRITTEN_STEPS", "10"))


class Model:
    """Rows by key and partition, changed as the documentation says."""

    def __init__(self, table, seed):
        self.table, self.chance, self.rows, self.time = table, random.Random(seed), {}, 0
        self.is_ordered = bool(merge_rules_of(table.config.properties).stored_fields)
        self.has_logs = table.config.table_type is TableType.MERGE_ON_READ

    def some(self, count=3):
        self.time += 1
        keys = {(str(self.chance.randrange(8)), self.chance.choice(REGIONS)) for _ in range(count)}
        # Log files forget a delete where a row follows, and an older one then brings the base file's row back.
        late = 1 if self.has_logs else 3
        times = {key: self.time - self.chance.randrange(late) for key in sorted(keys)}
        return {key: (times[key], self.chance.randrange(100)) for key in sorted(keys)}

    def arrow(self, rows):
        flat = [{"id": i, "region": r, "ts": ts, "v": v} for (i, r), (ts, v) in rows.items()]
        return pa.Table.from_pylist(flat, schema=SCHEMA)

    def is_older(self, key, row):
        return self.is_ordered and key in self.rows and row[0] < self.rows[key][0]

    def upsert(self):
        rows = self.some()
        self.table.upsert(self.arrow(rows))
        self.rows |= {key: row for key, row in rows.items() if not self.is_older(key, row)}

    def insert(self):
        rows = {key: row for key, row in self.some().items() if key not in self.rows}
        getattr(self.table, self.chance.choice(["insert", "bulk_insert"]))(self.arrow(rows))
        self.rows |= rows

    def delete(self):
        gone = self.some()
        done = self.table.delete(self.arrow(gone))
        met = len(gone.keys() & self.rows.keys())
        # A base file keeps keys that a log file deletes, and deletes them again: nothing says that they are gone.
        assert met <= done.rows_deleted <= (len(gone) if self.has_logs else met)
        self.rows = {key: row for key, row in self.rows.items() if key not in gone}

    def delete_where(self):
        bound = self.chance.randrange(100)
        kept = {key: row for key, row in self.rows.items() if not (row[1] > bound or key[1] == "ap")}
        done = self.table.delete(where=f"v > {bound} or region = 'ap'")
        assert done.rows_deleted == len(self.rows) - len(kept)
        self.rows = kept

    def update(self):
        region, lowers = self.chance.choice(REGIONS), self.chance.random() < 0.5
        rows = {key: row for key, row in self.rows.items() if key[1] == region}
        changed = {key: (0 if lowers else ts, v * 2 % 101) for key, (ts, v) in rows.items()}
        values = {"v": "v * 2 % 101", "ts": 0 if lowers else "ts"}
        try:
            done = self.table.update(values, where=("region", "=", region))
        except WriteError as error:  # in log files the stored rows would win
            assert lowers and self.has_logs and "would not be seen" in str(error)
            return
        assert not (lowers and self.has_logs and self.is_ordered and any(ts for ts, _ in rows.values()))
        assert done.rows_updated == len(changed)
        self.rows |= changed

    def merge(self):
        rows, deletes = self.some(), self.chance.random() < 0.5
        statement = self.table.merge(self.arrow(rows), on=["id", "region"]).when_not_matched_insert()
        met = rows.keys() & self.rows.keys()
        done = (statement.when_matched_delete() if deletes else statement.when_matched_update()).execute()
        assert done.rows_inserted + done.rows_updated + done.rows_deleted == len(rows)
        if not self.has_logs:  # there a key that was deleted is updated: the base file keeps it
            assert (done.rows_deleted if deletes else done.rows_updated) == len(met)
        self.rows = {key: row for key, row in (self.rows | rows).items() if not (deletes and key in met)}

    def overwrite(self):
        rows = self.some()
        regions = {region for _, region in rows}
        if self.chance.random() < 0.5:
            regions = set(REGIONS)
            self.table.insert_overwrite_table(self.arrow(rows))
        else:
            self.table.insert_overwrite(self.arrow(rows))
        self.rows = {key: row for key, row in self.rows.items() if key[1] not in regions} | rows

    def drop(self):
        region = self.chance.choice(REGIONS)
        try:
            self.table.drop_partitions([region])
        except ConfigError:
            assert not any(key[1] == region for key in self.rows)
        self.rows = {key: row for key, row in self.rows.items() if key[1] != region}

    def step(self):
        names = ("upsert", "upsert", "insert", "delete", "delete_where", "update", "merge", "overwrite", "drop")
        name = self.chance.choice(names)
        getattr(self, name)()
        shown = self.table.refresh().rows().to_arrow().to_pylist()
        assert {(r["id"], r["region"]): (r["ts"], r["v"]) for r in shown} == self.rows, name
        assert len(shown) == len(self.rows), name


@pytest.mark.slow
@pytest.mark.parametrize("has_metadata_table", [True, False])
@pytest.mark.parametrize("version", [6, 9])
def test_any_sequence_of_writes_equals_a_dictionary(version, has_metadata_table):
    """With cleans and archivals after each, in both layouts, and nothing is left to find fault with."""
    play(writes.create_table(version), seed=version + has_metadata_table, has_metadata_table=has_metadata_table)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("version", "payload"), [(6, "OverwriteWithLatestAvro"), (6, "DefaultHoodieRecord"), (8, ""), (9, "")]
)
def test_any_sequence_of_writes_to_a_merge_on_read_table_equals_a_dictionary(version, payload):
    """Statements change rows of log files as they change those of base files, or are refused."""
    more = {"hoodie.datasource.write.payload.class": f"{payload}Payload"} if payload else {}
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"}, **more)
    play(storage, seed=version, has_metadata_table=version != 8)


def play(storage, seed, *, has_metadata_table):
    table = writes.open_table(storage, **SETTINGS, **{"hoodie.metadata.enable": has_metadata_table})
    table.upsert(pa.Table.from_pylist([{"id": "0", "region": "eu", "ts": 0, "v": 0}], schema=SCHEMA))
    model = Model(table, seed)
    model.rows = {("0", "eu"): (0, 0)}
    for _ in range(STEPS):
        model.step()
    assert not table.check()
