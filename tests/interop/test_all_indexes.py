"""Merge-on-read tables with every index that is kept: Hudi's listing, skipping and look-ups after what hudi_py did."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.local.rows import ArrowRows
from hudi_py.storage.local import LocalStorage
from support import fixtures, writes
from support.indexes import assert_true

pytestmark = pytest.mark.oracle

FIXTURES = {6: "mor_indexes-0.15.0", 8: "mor_indexes-1.0.2", 9: "mor_indexes-1.1.1"}
"""Table version to a table of Hudi with statistics, Bloom filters and a record index."""
WRITE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.metadata.index.bloom.filter.enable": True,
    "hoodie.metadata.record.index.enable": True,
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.clean.automatic": False,
    "hoodie.compact.inline": False,
}


def rows(table, ts, names):
    """Rows of the table with other values; new names take those of the first row of their region."""
    everything = table.rows().to_arrow().to_pylist()
    by_id = {row["id"]: row for row in everything}
    regions = ("eu", "us")
    found = []
    for name in names:
        region = regions[(ord(name) - ord("a")) % 2]
        like = by_id.get(name) or next(row for row in everything if row["region"] == region)
        found.append({**like, "id": name, "ts": ts, "day": dt.date(2024, 1, 1) + dt.timedelta(ts)})
    schema = table.rows().to_arrow().schema
    return pa.Table.from_pylist(found, schema=schema)


def agree(peer, path, expected):
    """Rows by skipping beside all rows, each key once; the listings; the indexes."""
    found = peer.read(path)
    assert expected == {row["id"]: row["ts"] for row in found}
    assert len(found) == len(expected)
    for ts in sorted(set(expected.values())):
        for where in (f"ts = {ts}", f"day = date'{dt.date(2024, 1, 1) + dt.timedelta(ts)}'"):
            ids = {row["id"] for row in peer.find(path, where)["rows"]}
            assert ids == {name for name, value in expected.items() if value == ts}, where
    assert [] == peer.validate_listing(path)
    assert_true(LocalStorage(str(path)))
    assert [] == [each for each in hudi_py.open_table(str(path)).check() if each.severity.name != "INFO"]


def test_hudi_skips_files_by_statistics_of_log_files_that_we_wrote(peer, tmp_path):
    """Updates, new keys, deletes, a compaction and a clean of ours; Hudi writes by its index; then ours again."""
    path = fixtures.unpack_more(FIXTURES[peer.table_version], tmp_path)
    storage = LocalStorage(str(path))

    def table(**settings):
        return hudi_py.open_table(str(path), settings=settings)

    expected = {row["id"]: row["ts"] for row in table().rows().to_arrow().to_pylist()}
    had = set(table().config.metadata_partitions)

    def ours(ts, names, operation="UPSERT"):
        writes.write(storage, ArrowRows(rows(table(), ts, names)), table(), operation)
        note(ts, names, operation)

    def note(ts, names, operation="UPSERT"):
        for each in names:
            expected.pop(each, None)
            if operation != "DELETE":
                expected[each] = ts

    ours(20, "bek")
    ours(21, "f", "DELETE")
    agree(peer, path, expected)
    assert table(**{"hoodie.compact.inline.max.delta.commits": 1}).compact()
    ours(22, "ek")
    table().clean(file_versions_retained=1)
    agree(peer, path, expected)
    peer.write(path, rows(table(), 23, "bkl"), "upsert", WRITE)
    note(23, "bkl")
    ours(24, "l")
    agree(peer, path, expected)
    assert had == set(table().config.metadata_partitions)
