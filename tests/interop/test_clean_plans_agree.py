"""
Clean plans of both sides over random histories.

``HUDI_INTEROP_HISTORIES`` tables per release (default 1; hundreds for a long run) of ``HUDI_INTEROP_STEPS`` operations
each (default 10, in the sample 6), with seeds from ``HUDI_INTEROP_SEED`` on, other ones for each release. The
story is printed.
"""

import os
import shutil

import pytest
from real_hudi import RealHudiError

from support.interop_history import PLAIN, History
from support.interop_ours import hudi_py_json
from support.interop_sample import seed_of, sized

pytestmark = pytest.mark.oracle

COUNT = int(os.environ.get("HUDI_INTEROP_HISTORIES", "1"))
STEPS = int(os.environ.get("HUDI_INTEROP_STEPS", sized(10, 4)))
SEED = int(os.environ.get("HUDI_INTEROP_SEED", "20260101"))
PLANS_PER_STEP = 2
HOURS = (1, 3, 12, 48)
FIRST_HOUR = "20240301{:02d}0000000"
_STORED_ONLY = ("policy", "version", "earliest_instant_to_retain", "last_completed_commit_timestamp")


@pytest.mark.parametrize("number", range(COUNT))
def test_clean_plans_agree_after_every_step(number, peer, ours, tmp_path):
    """Both planners want the same files gone, for the same reason, at every point of a random history."""
    history = History(seed_of(peer.version, SEED) + number, peer, tmp_path / "t")
    for _ in range(STEPS):
        history.step()
        for _ in range(PLANS_PER_STEP):
            _plans_agree(peer, history, history.policy())
    print(history)  # noqa: T201  (pytest shows it on failure, or with -s)
    _executions_agree(peer, ours, history, tmp_path)


def test_hour_plans_agree(peer, tmp_path):
    """KEEP_LATEST_BY_HOURS against a clock that both sides are given, with commits hours apart."""
    if not peer.has_clock:
        pytest.skip("the clock of real Hudi cannot be moved here: no C compiler, or not Linux")
    hours = iter((0, 1, 4, 5, 9, 14, 20, 23))
    peer.set_clock(FIRST_HOUR.format(next(hours)))
    history = History(SEED, peer, tmp_path / "t", PLAIN)
    for hour in hours:
        peer.set_clock(FIRST_HOUR.format(hour))
        history.step()
    for day, hour in ((1, 23), (2, 7)):
        now = f"202403{day:02d}{hour:02d}3000000"
        for hours_retained in HOURS:
            peer.set_clock(now)
            _plans_agree(peer, history, {"policy": "KEEP_LATEST_BY_HOURS", "hours_retained": hours_retained}, now)


def _plans_agree(peer, history, arguments, now=None):
    """Both plans want the same; returns the partitions that only real Hudi empties, with files of savepoints."""
    theirs = peer.plan_clean(history.table, **arguments)
    options = [f"--{key.replace('_', '-')}={value}" for key, value in arguments.items()]
    options += [f"--now={now}"] if now else []
    before = _names(history.table)
    mine = hudi_py_json("clean", str(history.table), *options, "--dry-run")
    theirs, mine = _comparable(theirs), _comparable(mine)
    if peer.version == "1.2.0" and not theirs["would_schedule"]:  # it fills in the rest of a plan that it never stores
        for key in (*_STORED_ONLY, "extra_metadata"):
            del theirs[key], mine[key]
    emptied = set(theirs["partitions_to_delete"]) - set(mine["partitions_to_delete"])
    for partition in emptied:
        # real Hudi empties the folder with everything in it, files of savepoints too; ours never asks for that
        assert _left(history.table, partition, mine), f"{partition}: {arguments} after {history}"
        theirs["partitions_to_delete"].remove(partition)
    assert theirs == mine, f"{arguments} after {history}"
    assert before == _names(history.table), f"a dry run wrote something, after {history}"
    return emptied


def _executions_agree(peer, ours, history, tmp_path):
    """A clean by each side, on a copy each, leaves the same files and the same rows."""
    emptied = _plans_agree(peer, history, {"policy": "KEEP_LATEST_COMMITS", "commits_retained": 1})
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    shutil.copytree(history.table, theirs)
    shutil.copytree(history.table, mine)
    peer.clean(theirs, {"hoodie.cleaner.policy": "KEEP_LATEST_COMMITS", "hoodie.cleaner.commits.retained": 1})
    ours(mine).clean(commits_retained=1)
    assert _data_files(theirs, emptied) == _data_files(mine, emptied), f"after {history}"
    assert _rows(peer, history.table) == _rows(peer, mine), f"after {history}"


def _rows(peer, table):
    """The rows, or how real Hudi fails on a table that is all its own, as 1.0.2 does after some deletes."""
    try:
        return peer.read(table)
    except RealHudiError as error:
        return error.kind


def _comparable(answer):
    """The parts of a dry run that mean something; a partition with nothing to delete is no partition."""
    plan = answer["plan"]
    files = {partition: sorted(map(_path, paths)) for partition, paths in plan["files_to_delete"].items() if paths}
    savepoints = plan["extra_metadata"].get("savepointed_timestamps", "")  # a set, in no order that means anything
    return {
        "needs_cleaning": answer["needs_cleaning"],
        "would_schedule": answer["would_schedule"],
        **{key: plan[key] for key in _STORED_ONLY},
        "extra_metadata": {**plan["extra_metadata"], "savepointed_timestamps": sorted(savepoints.split(","))},
        "partitions_to_delete": sorted(plan["partitions_to_delete"]),
        "files_to_delete": files,
    }


def _left(table, partition, plan):
    """Data files that stay in a partition."""
    planned = set(plan["files_to_delete"].get(partition, ()))
    found = {f"{partition}/{path.name}" for path in (table / partition).glob("*.parquet")}
    found |= {f"{partition}/{path.name}" for path in (table / partition).glob(".*.log.*") if path.suffix != ".crc"}
    return found - planned


def _path(entry):
    """A path, or an object with a path (ours carries sizes and reasons)."""
    return entry if isinstance(entry, str) else entry["path"]


def _names(table):
    return sorted(str(path.relative_to(table)) for path in table.rglob("*"))


def _data_files(table, left_out):
    outside = {".hoodie", *left_out}
    return [name for name in _names(table) if name.split("/")[0] not in outside and not name.endswith(".crc")]
