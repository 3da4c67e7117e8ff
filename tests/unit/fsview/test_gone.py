"""Whether what held the rows of a time is still there, judged by names alone."""

from __future__ import annotations

from itertools import product

import pytest

from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.gone import gone_at
from hudi_py.model.files import parse_base_file
from hudi_py.versions.format import LogNaming
from support.tables import TableBuilder, at

NAME = TableBuilder.base_name
WRITES = (1, 2, 3)
PLACES = ("there", "deleted", "about to go")


def context(committed: tuple[int, ...], replaced_at: int | None) -> ViewContext:
    return ViewContext(
        log_naming=LogNaming.BY_WRITE,
        visible_times=frozenset(map(at, committed)),
        first_time=at(1),
        last_time=at(9),
        completed_times=frozenset(map(at, committed)),
        replaced={} if replaced_at is None else {("r0", "a"): at(replaced_at)},
    )


@pytest.mark.parametrize("time", [1, 2, 3, 4])
@pytest.mark.parametrize("replaced_at", [None, 2, 3])
def test_rows_are_missed_where_the_newest_file_of_their_time_was_deleted(time, replaced_at):
    """Of each way to delete some of three files: older and failed ones do not count, nor those of replaced groups."""
    for places in product(PLACES, repeat=len(WRITES)):
        where = dict(zip(WRITES, places, strict=True))
        for committed in ((1, 2, 3), (1, 2), (1, 3)):
            seen = [n for n in committed if n <= time and not (replaced_at is not None and replaced_at <= time)]
            is_missed = bool(seen) and where[max(seen)] != "there"
            left = [n for n in committed if n <= time and where[n] != "deleted"]
            found = [("r0", base) for n in left[-1:] if (base := parse_base_file(NAME("a", at(n))))]
            deleted = {"r0": [NAME("a", at(n)) for n in WRITES if where[n] != "there"]}
            told = gone_at(context(committed, replaced_at), at(time), found, deleted)
            assert (told is not None) is is_missed, (where, committed)
            if told is not None:
                assert told in {f"r0/{NAME('a', at(n))}" for n in seen if where[n] != "there"}


def test_other_groups_and_partitions_do_not_stand_for_a_file():
    """Nor do names that are no base files."""
    found = [(path, base) for path, each in (("r1", "a"), ("r0", "b")) if (base := parse_base_file(NAME(each, at(2))))]
    deleted = {"r0": ["x", ".a_1.log.1_0-1-0", NAME("a", at(1))], "r1": [NAME("a", at(1))]}
    everything = context((1, 2), None)
    assert gone_at(everything, at(2), found, deleted) == f"r0/{NAME('a', at(1))}"
    assert gone_at(everything, at(2), found, {"r1": deleted["r1"]}) is None
    assert gone_at(everything, at(2), found, {"r0": deleted["r0"][:2]}) is None


@pytest.mark.parametrize("layout", [1, 2])
def test_groups_that_an_archived_commit_replaced_are_not_missed(layout):
    """Only the archive tells that the files which the clean deleted held no rows of that time any more."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a", "b"]})
    builder.commit(at(2), {"r0": ["n"]}, replaced={"r0": ["a"]})
    for number in range(3, 8):
        builder.commit(at(number), {"r1": [f"c{number}"]})
    builder.table().clean(file_versions_retained=1)
    builder.table().archive(keep_min_commits=5, keep_max_commits=6)
    table = builder.table()
    assert table.timeline.find(at(2)) is None
    assert f"r0/{NAME('a', at(1))}" not in builder.storage.files()
    assert {base.file_id for _, base in table.as_of(at(4)).base_files()} == {"b", "n", "c3", "c4"}
