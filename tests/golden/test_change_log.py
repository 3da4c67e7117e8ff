"""Single changes on tables of three releases of Apache Hudi, in the three logging modes: what each of them reads."""

from __future__ import annotations

import pytest

from hudi_py.errors import RefusedError
from hudi_py.rows.read import plain_rows
from hudi_py.table import open_table
from support.change_logs import changes_that_hudi_reads
from support.fixtures import row_fixture_names, unpack_rows

NAMES = row_fixture_names("cow_cdc")
ALL = (*NAMES, *row_fixture_names("mor_cdc"))
# The groups that were overwritten hold up the archival of the other.
ARCHIVED = [name for name in ALL if not name.startswith("mor_cdc_overwritten")]


def changes_of(table, begin, end, columns=None):
    return [row for batch in table.change_log(begin, end, columns=columns) for row in plain_rows(batch)]


def archived(path):
    """The table after an archival; no clean was there before it, so all files are."""
    before = open_table(path, settings={"hoodie.clean.commits.retained": 1})
    count = len(before.timeline.writes.completed())
    before.archive(keep_min_commits=2, keep_max_commits=3)
    after = open_table(path)
    assert len(after.timeline.writes.completed()) < count
    return after


@pytest.mark.parametrize(
    ("name", "where"), [*((name, "active") for name in ALL), *((name, "archived") for name in ARCHIVED)]
)
def test_each_change_is_told_that_hudi_reads(name, where, tmp_path):
    """
    Inserts, updates, deletes, overwritten and dropped partitions, in every range; also after commits were archived.

    Of a replaced file group 0.15.0 and 1.0.2 read its last row as often as it has rows; the number is right.
    """
    path = unpack_rows(name, tmp_path)
    answers = list(changes_that_hudi_reads(name, open_table(path)))
    table = archived(path) if where == "archived" else open_table(path)
    for begin, end, columns, counted, theirs in answers:
        assert counted(changes_of(table, begin, end, columns)) == theirs, (begin, end)


@pytest.mark.parametrize("name", ALL)
def test_changes_one_after_the_other_make_the_snapshot(name, tmp_path):
    """All columns and types; every row before is the row that the changes so far had made."""
    table = open_table(unpack_rows(name, tmp_path))
    state: dict[str, object] = {}
    for change in changes_of(table, "0", None):
        before, after = change["before"], change["after"]
        key = (before or after)["id"]
        assert state.pop(key, None) == before, change
        assert change["op"] == {(False, True): "i", (True, True): "u", (True, False): "d"}[bool(before), bool(after)]
        if after:
            state[key] = after
    assert sorted(state.values(), key=lambda row: row["id"]) == sorted(
        (row for batch in table.rows() for row in plain_rows(batch)), key=lambda row: row["id"]
    )


@pytest.mark.parametrize("name", ALL)
def test_what_is_asked_for_of_a_row_decides_nothing(name, tmp_path):
    """A change of other columns is a change, too."""
    table = open_table(unpack_rows(name, tmp_path))

    def keys(change):
        return [(row or {}).get("id") for row in (change["before"], change["after"])]

    whole = [(change["op"], change["ts"], *keys(change)) for change in changes_of(table, "0", None)]
    assert [(c["op"], c["ts"], *keys(c)) for c in changes_of(table, "0", None, ["id"])] == whole


@pytest.mark.parametrize("name", ALL)
def test_ranges_one_after_the_other_tell_each_change_once(name, tmp_path):
    """In the same order as one range over all of them, wherever it is cut."""
    table = open_table(unpack_rows(name, tmp_path))
    ends = sorted(each.completion_time or each.requested_time for each in table.timeline.commits.completed())
    whole = changes_of(table, "0", None)
    for end in ends:
        assert changes_of(table, "0", end) + changes_of(table, end, None) == whole


@pytest.mark.parametrize("name", NAMES)
def test_a_clean_leaves_the_earliest_begin_that_is_possible(name, tmp_path):
    """It is named, and it is the earliest: from there on all changes are told, and before it none."""
    path = unpack_rows(name, tmp_path)
    whole = open_table(path)
    ends = sorted(each.completion_time or each.requested_time for each in whole.timeline.commits.completed())
    later = {begin: changes_of(whole, begin, None) for begin in ends}
    assert whole.clean(commits_retained=2)
    cleaned = open_table(path)
    with pytest.raises(RefusedError, match="the earliest begin that is possible is") as refused:
        cleaned.change_log("0")
    earliest = str(refused.value).rpartition(" ")[2]
    assert ends[0] <= earliest < ends[-1]
    for begin in ends:
        if begin < earliest:
            with pytest.raises(RefusedError, match=earliest):
                cleaned.change_log(begin)
        else:
            assert changes_of(cleaned, begin, None) == later[begin]


@pytest.mark.parametrize("name", ARCHIVED)
def test_archived_changes_are_told_like_active_ones(name, tmp_path):
    """In every range and in the same order, whichever of its ends lies in the archive."""
    path = unpack_rows(name, tmp_path)
    whole = open_table(path)
    ends = [None, *sorted(each.completion_time or each.requested_time for each in whole.timeline.commits.completed())]
    ranges = [(a, b) for a in ends for b in ends if a is None or b is None or a <= b]
    told = {each: changes_of(whole, *each) for each in ranges}
    after = archived(path)
    assert {each: changes_of(after, *each) for each in ranges} == told


@pytest.mark.parametrize("name", NAMES)
def test_archived_changes_whose_files_a_clean_deleted_are_refused(name, tmp_path):
    """Rather than telling the later ones as if they were all; from the begin that is named on, each is told."""
    path = unpack_rows(name, tmp_path)
    whole = open_table(path)
    ends = sorted(each.completion_time or each.requested_time for each in whole.timeline.commits.completed())
    later = {begin: changes_of(whole, begin, None) for begin in ends}
    whole.clean(commits_retained=1)
    after = archived(path)
    with pytest.raises(RefusedError, match="the earliest begin that is possible is") as refused:
        after.change_log("0")
    earliest = str(refused.value).rpartition(" ")[2]
    for begin in ends:
        if begin < earliest:
            with pytest.raises(RefusedError, match=earliest):
                after.change_log(begin)
        else:
            assert changes_of(after, begin, None) == later[begin]
