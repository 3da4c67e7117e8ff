"""Ranges of commits on tables of three releases of Apache Hudi: the rows that each of them reads."""

from __future__ import annotations

import functools
import itertools

import pytest

from hudi_py.errors import RefusedError
from hudi_py.model.instant import Instant
from hudi_py.rows.read import plain_rows
from hudi_py.snapshot.deleted import DELETED
from hudi_py.table import open_table
from support.fixtures import expected_rows, fixture_names, row_fixture_names, row_hash, unpack, unpack_rows
from support.laws import of_one_release

BESIDE_SERVICES = [
    name
    for name in fixture_names()
    if name.endswith(("-0.15.0", "-1.1.1"))
    and any(word in name for word in ("pending", "clustered", "archived", "compacted", "overwrite", "rolled_back"))
]


def begin_of(name: str, begin: str) -> str:
    """The begin of a range as this project means it: the commit of that time is left out, which 1.0.2 takes in."""
    return str(int(begin) - 1) if name.endswith("-1.0.2") and begin.strip("0") else begin


CONSISTENT = [name for name in row_fixture_names("cow_") if not name.endswith("_keygen-0.15.0")]
"""Tables whose snapshots and ranges show the same values: 0.15.0 shows paths in snapshots, in the place of times."""


def rows_of(batches) -> list[dict[str, object]]:
    return [row for batch in batches for row in plain_rows(batch)]


@pytest.mark.parametrize("name", row_fixture_names())
def test_a_range_holds_the_rows_that_hudi_reads(name, tmp_path):
    """
    Each row once, in its state at the end of the range; ends of ranges as the release of the table means them.

    0.15.0 refuses every range while a completed commit is newer than a pending one; here those in which it lies.
    """
    table = open_table(unpack_rows(name, tmp_path))
    for each in expected_rows(name)["incremental"]:
        if "error" in each:
            pending = table.timeline.commits.pending()[0].requested_time
            assert name.startswith("mor_uncommitted_logs-0.15.0")
            if each["begin"] < pending and (each["end"] is None or each["end"] > pending):
                with pytest.raises(RefusedError, match=f"{pending} .* may still complete"):
                    table.changes(each["begin"], each["end"])
            continue
        rows = rows_of(table.changes(begin_of(name, each["begin"]), each["end"]))
        assert (row_hash(rows), len(rows)) == (each["hash"], each["rows"]), each


@pytest.mark.parametrize("name", of_one_release(CONSISTENT))
def test_ranges_of_one_commit_add_up_to_the_snapshot(name, tmp_path):
    """Whoever goes on where the last range ended has all rows that are not deleted, each in its latest state."""
    table = open_table(unpack_rows(name, tmp_path))
    ends = sorted(each.completion_time or each.requested_time for each in table.timeline.commits.completed())
    state: dict[tuple[object, ...], object] = {}
    for begin, end in zip(["0", *ends], [*ends, None], strict=True):
        state |= by_key(table.changes(begin, end, with_meta=True))
    latest = by_key(table.rows(with_meta=True))
    assert {key: state.get(key) for key in latest} == latest


@pytest.mark.parametrize("name", of_one_release(CONSISTENT))
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


@pytest.mark.parametrize(
    "name", of_one_release(name for name in row_fixture_names("mor_") if "uncommitted" not in name)
)
def test_deletes_of_merge_on_read_tables_are_what_snapshots_lack(name, tmp_path):
    """However log files say it: what was there before the range and is not there at its end."""
    table = open_table(unpack_rows(name, tmp_path))
    commits = sorted(table.timeline.commits.completed(), key=time_of)
    end = len(commits) - 1

    @functools.cache
    def keys(number):
        return by_key(
            (table if number == end else table.as_of(commits[number].requested_time)).rows(with_meta=True)
        ).keys()

    for first in range(min(2, end)):
        for last in {first + 1, end}:
            found = table.changes(time_of(commits[first]), time_of(commits[last]), with_deletes=True, with_meta=True)
            marked = [batch.filter(batch.column(DELETED)) for batch in found]
            assert by_key(marked).keys() == keys(first) - keys(last)


@pytest.mark.parametrize("name", row_fixture_names("mor_partial_update"))
def test_updates_of_some_columns_are_shown_as_whole_rows(name, tmp_path):
    """Where their other columns were written before the range, too; readers of Hudi crash there."""
    table = open_table(unpack_rows(name, tmp_path))
    commits = sorted(table.timeline.commits.completed(), key=time_of)
    for first, last in itertools.combinations(range(len(commits)), 2):
        changed = {each.requested_time for each in commits[first + 1 : last + 1]}
        at_end = by_key(table.as_of(commits[last].requested_time).rows(with_meta=True))
        found = by_key(table.changes(time_of(commits[first]), time_of(commits[last]), with_meta=True))
        assert found == {key: row for key, row in at_end.items() if row["_hoodie_commit_time"] in changed}


@pytest.mark.parametrize("name", BESIDE_SERVICES)
def test_ranges_tell_all_that_changed_beside_table_services(name, tmp_path):
    """Compactions, pending and completed, clusterings, archivals, rollbacks, overwritten partitions."""
    table = open_table(unpack(name, tmp_path))
    commits = [*table.archived_timeline().commits.completed(), *table.timeline.commits.completed()]
    times = {each.requested_time: time_of(each) for each in commits}
    latest = by_key(table.rows(with_meta=True))
    for begin in ("0", *sorted(times.values())):
        told = by_key(table.changes(begin, with_meta=True))
        changed = {key: row for key, row in latest.items() if begin == "0" or times[row["_hoodie_commit_time"]] > begin}
        assert told.keys() >= changed.keys(), begin
        if name.startswith("cow_"):
            assert told == changed, begin


def time_of(commit: Instant) -> str:
    return commit.completion_time or commit.requested_time


def by_key(batches) -> dict[tuple[object, ...], object]:
    """Rows by partition and record key, without the file that holds them, which may copy them later."""
    rows = rows_of(batches)
    return {
        (row["_hoodie_partition_path"], row["_hoodie_record_key"]): {**row, "_hoodie_file_name": None} for row in rows
    }
