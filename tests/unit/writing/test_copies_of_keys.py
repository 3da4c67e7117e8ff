"""
Keys that several rows have, because a bulk insert looks up none: a later write meets each of them.

So does real Hudi with the indexes SIMPLE and BLOOM: 1.1.1 left no row after the delete and two changed ones after the
upsert, on tables with a record index too.
"""

import itertools

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.storage.local import LocalStorage
from support.indexes import places

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.record.index.enable": True,
}
LARGE = {"hoodie.memory.merge.max.size": 4}
"""Nothing fits into memory, so the rows go through a temporary file."""
CASES = list(itertools.product(["COPY_ON_WRITE", "MERGE_ON_READ"], ["SIMPLE", "BLOOM"], [{}, LARGE]))


def rows(keys, ts):
    return pa.table({"id": keys, "region": ["eu"] * len(keys), "ts": pa.array([ts] * len(keys), pa.int64())})


def told(path):
    return sorted((row["id"], row["ts"]) for row in hudi_py.open_table(path).rows().to_arrow().to_pylist())


@pytest.mark.parametrize(("kind", "index", "more"), CASES)
def test_each_row_with_a_key_is_updated_and_deleted(kind, index, more, tmp_path):
    """Three file groups have the key; other keys keep their rows, and the record index knows what is left."""
    path = str(tmp_path / "t")
    settings = SETTINGS | {"hoodie.datasource.write.table.type": kind, "hoodie.index.type": index}
    for ts, keys in enumerate((["a", "b"], ["a", "c"], ["a", "d"]), 1):
        hudi_py.write(path, rows(keys, ts), operation="bulk_insert", settings=settings)
    done = hudi_py.write(path, rows(["a", "e"], 7), operation="upsert", settings=settings | more)
    others = [("b", 1), ("c", 2), ("d", 3), ("e", 7)]
    assert told(path) == [("a", 7)] * 3 + others
    assert (done.rows_updated, done.rows_inserted) == (3, 1)
    assert set(places(LocalStorage(path))) == set("abcde")
    done = hudi_py.write(path, rows(["a", "z"], 8), operation="delete", settings=settings | more)
    assert told(path) == others
    assert done.rows_deleted == 3
    assert set(places(LocalStorage(path))) == set("bcde")
    # Nothing of the deleted rows is met again.
    hudi_py.write(path, rows(["a"], 9), operation="upsert", settings=settings | more)
    assert told(path) == [("a", 9), *others]
