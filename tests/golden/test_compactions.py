"""Compactions as real Hudi plans and carries them out, under every trigger and strategy that was recorded."""

import json
from datetime import datetime

import pytest

import hudi_py
from hudi_py.rows.read import plain_rows
from support import fixtures
from support.laws import of_one_release

NAMES = fixtures.row_fixture_names("mor_")


def trials(name):
    """What Hudi did with the table at one time, under several settings; and that time."""
    told = json.loads((fixtures.FOLDER / "rows" / f"{name}.expected.json").read_text(encoding="utf-8"))
    return told["expected"].get("compaction", []), told.get("inputs", {}).get("now")


def opened(path, trial, now):
    table = hudi_py.open_table(path, settings=trial["options"])
    return table, datetime.strptime(now, "%Y%m%d%H%M%S%f").replace(tzinfo=table.zone)


def entry(operation):
    return {
        "partition": operation.partition_path,
        "file_id": operation.file_id,
        "base_instant": operation.base_instant_time,
        "base_file": operation.data_file_path,
        "log_files": list(operation.delta_file_paths),
        "metrics": dict(operation.metrics),
    }


@pytest.mark.parametrize("name", NAMES)
def test_plans_are_those_of_hudi(name, tmp_path):
    """Triggers, strategies and limits choose the slices that the same release of Hudi chooses."""
    path = fixtures.unpack_rows(name, tmp_path)
    settings, now = trials(name)
    for trial in settings:
        if "error" in trial["result"]:  # a strategy that Hudi 1.x cannot carry out
            continue
        table, at = opened(path, trial, now)
        outlook = table.services.compaction(now=at).plan()
        plan = trial["result"]["plan"]
        if trial["options"].get("hoodie.compaction.target.io") == "0":  # 0.15 takes one, the first that it listed
            assert len(outlook.plan.operations) == len(plan["operations"] if plan else [])
            continue
        ours = sorted(map(entry, outlook.plan.operations), key=lambda each: (each["partition"], each["file_id"]))
        assert ours == (plan["operations"] if plan else []), trial["options"]
        assert outlook.would_schedule == bool(plan)


@pytest.mark.parametrize("name", of_one_release(NAMES))
def test_rows_stay_as_they_are(name, tmp_path):
    """New base files hold what Hudi writes into them, row for row with times and keys; the table is intact."""
    settings, now = trials(name)
    for trial in settings:
        after = trial["result"].get("snapshot_after")
        if after is None:
            continue
        table, at = opened(fixtures.unpack_rows(name, tmp_path), trial, now)
        known = [finding.code for finding in table.check()]  # failed writes that some of the tables have
        results = table.compact(now=at)
        rows = [row for batch in table.rows(with_meta=True) for row in plain_rows(batch)]
        assert fixtures.row_hash(rows) == after["hash"]
        assert fixtures.row_hash(rows, keep=fixtures.HASHED_META) == after["hash_with_meta"]
        written = [
            [stat.partition_path, stat.file_id, stat.num_writes]
            for result in results
            for stats in result.metadata.partition_to_write_stats.values()
            for stat in stats
        ]
        assert sorted(written) == sorted(trial["result"]["new_base_files"])
        assert [finding.code for finding in table.check()] == known
        break
