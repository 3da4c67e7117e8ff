"""Clusterings are planned as real Apache Hudi planned them, and change no row."""

import functools
import json

import pytest

import hudi_py
from hudi_py.inspection.clustering_report import plan_report
from hudi_py.rows.read import plain_rows
from support.fixtures import FOLDER, HASHED_META, expected_rows, row_fixture_names, row_hash, unpack_rows

RELEASES = ("0.15.0", "1.0.2", "1.1.1")


def plain(rows):
    return [row for batch in rows for row in plain_rows(batch)]


@functools.cache
def trials(name):
    """The settings that were tried on a table, each with what Apache Hudi did."""
    text = (FOLDER / "rows" / f"{name}.expected.json").read_text(encoding="utf-8")
    return json.loads(text)["expected"].get("clustering") or ()


@pytest.mark.parametrize("name", [name for name in row_fixture_names("cow_") if trials(name)])
def test_plans_are_those_of_apache_hudi(name, tmp_path):
    """The same groups, the same files in the same order, the same number of new files, with all settings tried."""
    base = unpack_rows(name, tmp_path)
    planned = [trial for trial in trials(name) if "error" not in trial["result"]]
    for trial in planned:
        table = hudi_py.open_table(base, settings=trial["options"])
        service = table.services.clustering()
        found = service.plan()
        ours = plan_report(found, (), service.action, service.expected(found), ())["plan"]
        theirs = trial["result"]["plan"] or {"groups": [], "order": [], "action": ours["action"]}
        plain = [{key: value for key, value in group.items() if key != "bytes"} for group in ours["groups"]]
        assert (theirs["groups"], theirs["action"]) == (plain, ours["action"]), trial["options"]
        assert sorted(theirs["order"]) == sorted(ours["order"]), trial["options"]  # of partitions it has none


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("layout", ["linear", "z-order", "hilbert"])
def test_rows_are_the_same_afterwards(release, layout, tmp_path):
    """In every layout, hashes with commit times, keys and partitions are those that Apache Hudi read before."""
    name = f"cow_small_files-{release}"
    base = unpack_rows(name, tmp_path)
    table = hudi_py.open_table(base)
    before = expected_rows(name)["snapshot"]
    (done,) = table.cluster(sort_by=["ts", "amount"], layout=layout)
    rows = table.rows(with_meta=True).to_arrow().to_pylist()
    assert (done.rows, len(rows)) == (before["rows"], before["rows"])
    again = hudi_py.open_table(base)
    assert row_hash(plain(again.rows())) == before["hash"]
    assert row_hash(plain(again.rows(with_meta=True)), HASHED_META) == before["hash_with_meta"]
    assert not [finding for finding in again.check() if finding.severity.value != "info"]
