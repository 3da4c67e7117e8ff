"""What a small commit may cost: calls to the storage, and waits for the disk, with all that follows the commit."""

import os
import statistics
from collections import Counter

import pyarrow as pa
import pytest

from hudi_py.config.settings import Settings
from hudi_py.engine.inline import LocalEngine
from hudi_py.local.rows import ArrowRows
from hudi_py.runtime.clock import SystemClock
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.write_service import WriteService
from support import writes

SETTINGS = {
    "hoodie.metadata.enable": True,
    "hoodie.clean.commits.retained": 2,
    "hoodie.keep.min.commits": 3,
    "hoodie.keep.max.commits": 4,
}
TIMELINE, METADATA_TIMELINE = ".hoodie/timeline", ".hoodie/metadata/.hoodie/timeline"


@pytest.mark.parametrize(
    ("kind", "most"),
    [
        ("COPY_ON_WRITE", {"timelines": 13, "metadata timelines": 8, "lists": 51, "changes": 32, "fsyncs": 31}),
        ("MERGE_ON_READ", {"timelines": 10, "metadata timelines": 6, "lists": 37, "changes": 19, "fsyncs": 20}),
    ],
)
def test_a_small_commit_does_not_look_or_write_more_often_than_this(tmp_path, monkeypatch, kind, most):
    """
    Metadata table, clean and archival are on. A look or a wait more than these needs a reason; one less is a new bound.
    """
    storage = RecordingStorage(LocalStorage(tmp_path / "t"))
    writes.create_table(9, storage, **{"hoodie.table.type": kind})
    service = WriteService(storage, Settings(SETTINGS), SystemClock(), LocalEngine)
    waits = Counter()
    monkeypatch.setattr(os, "fsync", lambda descriptor: waits.update(["fsyncs"]))
    costs = []
    for ts in range(16):
        rows = pa.Table.from_pylist([{"id": str(key), "region": "eu", "ts": ts} for key in range(100)], writes.SCHEMA)
        storage.clear()
        waits.clear()
        service.write(ArrowRows(rows), "UPSERT")
        lists = [path for verb, path in storage.calls if verb == "list"]
        costs.append({
            "timelines": lists.count(TIMELINE),
            "metadata timelines": lists.count(METADATA_TIMELINE),
            "lists": len(lists),
            "changes": len(storage.mutations),
            "fsyncs": waits["fsyncs"],
        })  # fmt: skip
    # Every so often one archives, or compacts the metadata table, and does more.
    assert {name: statistics.mode(cost[name] for cost in costs[4:]) for name in most} == most
