"""Record index and Bloom filters: both sides write, and each finds by the index what the other wrote."""

from __future__ import annotations

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.local.rows import ArrowRows
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.storage.local import LocalStorage
from support import writes
from support.indexes import assert_true

pytestmark = pytest.mark.oracle

SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64())])
WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
    "hoodie.metadata.record.index.enable": True,
    "hoodie.metadata.record.index.min.filegroup.count": 2,
    "hoodie.metadata.record.index.max.filegroup.count": 2,
    "hoodie.metadata.index.bloom.filter.enable": True,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.clean.automatic": False,
    "hoodie.parquet.small.file.limit": 0,
    "hoodie.compact.inline": False,
}
REGIONS = ("eu", "us")
ALLOWED = {name: value for name, value in WRITE.items() if "bloom.filter" not in name and "compact" not in name}


def rows(ts, names):
    """One row for each name; the name tells the region."""
    found = [{"id": each, "region": REGIONS[ord(each) % 2], "ts": ts} for each in names]
    return pa.Table.from_pylist(found, schema=SCHEMA)


class Turns:
    """A table that both sides write, beside a dictionary of what it must hold."""

    def __init__(self, peer, path, table_type):
        self.peer, self.path, self.expected = peer, path, {}
        self.storage = LocalStorage(str(path))
        self.wanted = {RECORD_INDEX, BLOOM_FILTERS}
        self.settings = WRITE | {
            "hoodie.datasource.write.table.type": table_type,
            "hoodie.write.table.version": peer.table_version,
        }

    def theirs(self, ts, names, operation="upsert", **more):
        """One write of Hudi's."""
        self.peer.write(self.path, rows(ts, names), operation, self.settings | more)
        self._note(ts, names, operation)

    def ours(self, ts, names, operation="upsert", **more):
        """One write of ours."""
        table = hudi_py.open_table(str(self.path), settings=more)
        writes.write(self.storage, ArrowRows(rows(ts, names)), table, operation.upper())
        self._note(ts, names, operation)

    def _note(self, ts, names, operation):
        for name in names:
            self.expected.pop(name, None)
            if operation != "delete":
                self.expected[name] = ts

    def agree(self):
        """Rows of Hudi are the dictionary's, each key once; the index has each of them; check finds nothing."""
        found = self.peer.read(self.path)
        assert self.expected == {row["id"]: row["ts"] for row in found}
        assert len(found) == len(self.expected)
        table = hudi_py.open_table(str(self.path))
        assert self.wanted <= set(table.config.metadata_partitions)
        assert_true(self.storage)
        assert [] == [each for each in table.check() if each.severity.name != "INFO"]


def test_real_hudi_goes_on_with_an_index_that_we_made(peer, tmp_path):
    """For a new table; it finds each key by it, and ours goes on after it."""
    turns = Turns(peer, tmp_path / "t", "COPY_ON_WRITE")
    hudi_py.write(
        str(turns.path), rows(1, "abcdef"), settings=ALLOWED | {"hoodie.write.table.version": peer.table_version}
    )
    turns.expected = dict.fromkeys("abcdef", 1)
    turns.wanted = {RECORD_INDEX}
    turns.agree()
    turns.theirs(2, "abg")
    turns.theirs(3, "c", "delete", **{"hoodie.metadata.compact.max.delta.commits": 1})
    turns.agree()
    turns.ours(4, "cgh", **{"hoodie.index.type": "RECORD_INDEX"})
    turns.theirs(5, "ch")
    turns.agree()


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_both_sides_find_by_the_index_what_the_other_wrote(table_type, peer, tmp_path):
    """Updates, new keys, deletes and keys that come back, before and after each side compacts the metadata table."""
    turns = Turns(peer, tmp_path / "t", table_type)
    turns.theirs(1, "abcdef")
    turns.agree()
    turns.ours(2, "ag")
    turns.ours(2, "b", "delete")
    turns.agree()
    turns.theirs(3, "abgh")
    turns.agree()
    turns.ours(4, "ci", **{"hoodie.metadata.compact.max.delta.commits": 1})
    turns.agree()
    turns.theirs(5, "cij")
    turns.theirs(5, "d", "delete", **{"hoodie.metadata.compact.max.delta.commits": 1})
    turns.ours(6, "dj")
    turns.theirs(7, "dgjk", **{"hoodie.metadata.compact.max.delta.commits": 1})
    turns.agree()
