"""Ranges of commits on tables of three releases of Apache Hudi: the rows that each of them reads."""

from __future__ import annotations

import pytest

from fixtures import expected_rows, row_fixture_names, row_hash, unpack_rows
from hudi_py.rows.read import plain_rows
from hudi_py.snapshot.deleted import DELETED
from hudi_py.table import open_table


def begin_of(name: str, begin: str) -> str:
    """The begin of a range as this project means it: the commit of that time is left out, which 1.0.2 takes in."""
    return str(int(begin) - 1) if name.endswith("-1.0.2") and begin.strip("0") else begin


def rows_of(batches) -> list[dict[str, object]]:
    return [row for batch in batches for row in plain_rows(batch)]


@pytest.mark.parametrize("name", row_fixture_names("cow_"))
def test_a_range_holds_the_rows_that_hudi_reads(name, tmp_path):
    """Each row once, in its state at the end of the range; ends of ranges as the release of the table means them."""
    table = open_table(unpack_rows(name, tmp_path))
    for each in expected_rows(name)["incremental"]:
        rows = rows_of(table.changes(begin_of(name, each["begin"]), each["end"]))
        assert (row_hash(rows), len(rows)) == (each["hash"], each["rows"]), each


@pytest.mark.parametrize("name", row_fixture_names("cow_"))
def test_ranges_of_one_commit_add_up_to_the_snapshot(name, tmp_path):
    """Whoever goes on where the last range ended has all rows that are not deleted, each in its latest state."""
    table = open_table(unpack_rows(name, tmp_path))
    ends = sorted(each.completion_time or each.requested_time for each in table.timeline.commits.completed())
    state: dict[tuple[object, ...], object] = {}
    for begin, end in zip(["0", *ends], [*ends, None], strict=True):
        state |= by_key(table.changes(begin, end, with_meta=True))
    latest = by_key(table.rows(with_meta=True))
    assert {key: state.get(key) for key in latest} == latest


@pytest.mark.parametrize("name", row_fixture_names("cow_"))
def test_ranges_with_deletes_make_the_snapshot(name, tmp_path):
    """Whoever takes out what is marked and puts in the rest has the snapshot; overwritten rows are deletes, too."""
    table = open_table(unpack_rows(name, tmp_path))
    ends = sorted(each.completion_time or each.requested_time for each in table.timeline.commits.completed())
    for cuts in (ends, ends[::2], ends[:1]):
        state: dict[tuple[object, ...], object] = {}
        for begin, end in zip(["0", *cuts], [*cuts, None], strict=True):
            before, is_done = dict(state), False
            for change in rows_of(table.changes(begin, end, with_deletes=True, with_meta=True)):
                key = (change["_hoodie_partition_path"], change["_hoodie_record_key"])
                row = {name: value for name, value in change.items() if name not in ("_hoodie_file_name", DELETED)}
                assert not (change[DELETED] and is_done), "deletes come first"
                if change[DELETED]:
                    assert state.pop(key) == before[key] == row
                else:
                    state[key], is_done = row, True
        latest = by_key(table.rows(with_meta=True))
        assert {key: {**row, "_hoodie_file_name": None} for key, row in state.items()} == latest


def by_key(batches) -> dict[tuple[object, ...], object]:
    """Rows by partition and record key, without the file that holds them, which may copy them later."""
    rows = rows_of(batches)
    return {
        (row["_hoodie_partition_path"], row["_hoodie_record_key"]): {**row, "_hoodie_file_name": None} for row in rows
    }
