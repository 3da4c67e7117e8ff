"""Log files behind a pending compaction are shown wherever a reader's slices are, on both table layouts."""

import itertools

import pytest
from click.testing import CliRunner

from hudi_py.inspection.cli import main
from hudi_py.model.instant import State
from support.tables import TableBuilder, at, on_disk

FATES = ("none", "requested", "inflight", "of a late plan")


def history(layout, has_base, before, compaction, behind, is_last_pending):
    """A group of log files; returns the table's builder and the names of the files that a reader needs."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a", "z"] if has_base else ["z"]}, action="deltacommit")
    base = at(1) if has_base else at(2)
    for number in range(before):
        builder.log_files(at(2 + number), [("eu", "a", base)])
    first = at(2 + before)
    if compaction != "none":
        builder.compaction(first, [("eu", "a", base, [])])
    if compaction == "inflight":
        builder.instant(first, "compaction", State.INFLIGHT)
        builder.put(f"eu/{builder.base_name('a', first)}")
    if compaction == "of a late plan":
        builder.compaction(at(3 + before), [("eu", "a", base, [])])
    # In layout 1 a log file is named by its slice, which is the one that the newest plan opened.
    opened = {"none": base, "of a late plan": at(3 + before)}.get(compaction, first)
    for number in range(behind):
        is_pending = is_last_pending and number == behind - 1
        time = at(10 + number)
        builder.log_files(time, [("eu", "a", opened)], state=State.INFLIGHT if is_pending else State.COMPLETED)
    names = {name.partition("/")[2] for name in builder.storage.files() if name.startswith("eu/")}
    # In layout 2 the last log file has the name of the write that is pending.
    unseen = {".hoodie_partition_metadata", builder.base_name("a", first), f".a_{at(9 + behind)}.log.1_0-1-0"}
    if not (behind and is_last_pending and layout == 2):
        unseen.discard(f".a_{at(9 + behind)}.log.1_0-1-0")
    return builder, names - unseen


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("compaction", FATES)
def test_slices_of_a_table_are_those_that_its_reader_opens(layout, compaction):
    """Of all combinations of base file, log files before the plan, and log files behind it."""
    for has_base, before, behind, is_last_pending in itertools.product((True, False), (0, 1), (0, 2), (True, False)):
        case = has_base, before, compaction, behind, is_last_pending
        if not (has_base or before) or (is_last_pending and not behind):  # no slice to compact; no last one
            continue
        builder, needed = history(layout, *case)
        table = builder.table()
        slices = table.file_slices("eu")
        assert {name for each in slices for name in each.file_names} == needed, case
        assert slices == table.snapshot().sized_slices(), case
        last = table.as_of(table.timeline.completed("deltacommit")[-1].requested_time)
        if not is_last_pending:  # a time behind which a write is pending is not served
            assert last.file_slices("eu") == last.sized_slices() == slices, case
        files = table.overview().files
        assert (files.latest.files, files.older.files) == (len(needed), 0), case


@pytest.mark.parametrize("layout", [1, 2])
def test_files_counts_log_files_behind_a_pending_compaction(layout, tmp_path):
    """A person sees the slice that is read; the document stays Apache Hudi's view, which has none of them."""
    builder, needed = history(layout, True, 1, "requested", 2, False)
    on_disk(builder, tmp_path / "trips")
    result = CliRunner().invoke(main, ["files", str(tmp_path / "trips")])
    row = next(line.split() for line in result.stdout.splitlines() if line.split()[1:2] == ["a"])
    assert row[:4] == ["eu", "a", at(1), "3"] and row[-1] == "latest", row
    assert sum(name.startswith(".a_") for name in needed) == 3
