"""Smallest and largest values that delta commits of Apache Hudi keep of their log files: `erased` finds them."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.services.erasure.facts import ErasureHolds, ErasurePlace

pytestmark = pytest.mark.oracle

SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.metadata.enable": True,
    "hoodie.metadata.index.column.stats.enable": True,
    "hoodie.clean.automatic": False,
    "hoodie.compact.inline": False,
}


def rows(ts, *names):
    """One row for each name, all in one partition."""
    return pa.table({"id": list(names), "region": ["eu"] * len(names), "ts": [ts] * len(names)})


def test_values_in_delta_commits_are_found_after_their_log_files_are_gone(peer, tmp_path):
    """They stay until the commit is archived, although no file has the rows any more."""
    table = tmp_path / "t"
    if peer.table_version != 6:
        pytest.skip("only commits of table version 6 keep them")
    peer.write(table, rows(1, "a", "b", "c"), "upsert", SETTINGS | {"hoodie.write.table.version": 6})
    peer.write(table, rows(2, "a", "b"), "upsert", SETTINGS)
    commit = hudi_py.open_table(table).timeline.completed("deltacommit")[-1]
    path = f".hoodie/{commit.requested_time}.deltacommit"
    (stat,) = json.loads((table / path).read_bytes())["partitionToWriteStats"]["eu"]
    bounds = stat["recordsStats"]["val"]["_hoodie_record_key"]
    assert (bounds["minValue"], bounds["maxValue"]) == ("a", "b")
    peer.write(table, rows(3, "a"), "delete", SETTINGS)
    ours = hudi_py.open_table(table, settings=SETTINGS | {"hoodie.compact.inline.max.delta.commits": 1})
    ours.compact()
    ours.clean(file_versions_retained=1)
    found = {each.path: each for each in ours.erased(keys=["a"]).held}
    assert (found[path].place, found[path].trace.holds) == (ErasurePlace.TIMELINE, ErasureHolds.VALUES)
    assert found[path].trace.keys == ("a",)
    assert not [each for each in found.values() if each.place is ErasurePlace.TABLE]
