"""Base files of a snapshot beside log files of change data capture."""

import pytest

from hudi_py.errors import UnsupportedTable
from hudi_py.model.files import FileSlice, parse_base_file, parse_log_file
from hudi_py.snapshot.select import base_files

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
