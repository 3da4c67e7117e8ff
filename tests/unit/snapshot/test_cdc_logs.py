"""Base files of a snapshot beside log files of change data capture, and ranges whose change logs are archived."""

import pytest

import hudi_py
from hudi_py.errors import RefusedError, UnsupportedTable
from hudi_py.model.files import FileSlice, parse_base_file, parse_log_file
from hudi_py.snapshot.select import base_files
from support import fixtures

TIME = "20260101000000000"
BASE = parse_base_file(f"g-0_0-1-2_{TIME}.parquet")
CHANGES = parse_log_file(f".g-0_{TIME}.log.1_0-1-2.cdc")
ROWS = parse_log_file(f".g-0_{TIME}.log.1_0-1-2")


def slice_of(*logs):
    return FileSlice("p", "g-0", TIME, BASE, logs)


def test_change_files_are_not_merged():
    """They tell what changed, and the base file beside them holds the rows already."""
    assert base_files((slice_of(CHANGES),), "t") == (("p", BASE),)


def test_files_of_rows_are_not_passed_over():
    """Beside change files either."""
    with pytest.raises(UnsupportedTable, match="log files"):
        base_files((slice_of(CHANGES, ROWS),), "t")


@pytest.mark.parametrize("name", ["cow_cdc-0.15.0", "cow_cdc-1.1.1"])
def test_a_range_with_archived_commits_is_refused(name, tmp_path):
    """Wherever among them it begins; it is told from the last of them on."""
    root = fixtures.unpack_rows(name, tmp_path)
    before = hudi_py.open_table(root, settings={"hoodie.clean.commits.retained": 1})
    times = [each.completion_time or each.requested_time for each in before.timeline.writes.completed()]
    before.archive(keep_min_commits=2, keep_max_commits=3)
    after = hudi_py.open_table(root)
    archived = times[: -len(after.timeline.writes.completed())]
    assert len(archived) > 1
    for start in ("0", *archived[:-1]):
        with pytest.raises(RefusedError, match=f"archived; the earliest begin that is possible is {archived[-1]}"):
            after.change_log(start)
    assert after.change_log(archived[-1]).to_arrow().num_rows
