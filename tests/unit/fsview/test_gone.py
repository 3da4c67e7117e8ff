"""Whether what held the rows of a time is still there, judged by names alone."""

from __future__ import annotations

from datetime import timedelta, timezone
from itertools import product

import pytest

from hudi_py.errors import RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.gone import Left, first_gone, gone_at
from hudi_py.model.files import FileSlice, LogFile, parse_base_file, parse_data_file, parse_log_file
from hudi_py.model.instant import Action, State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.records import CleanMetadata, CleanPartitionMetadata
from hudi_py.versions.format import LogNaming
from support.tables import SYNC, TableBuilder, at

NAME = TableBuilder.base_name
LOG = ".a_{}.log.1_0-1-0"
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
            found = Left.of_names({"r0": [NAME("a", at(n)) for n in left[-1:]]})
            deleted = [("r0", parse_data_file(NAME("a", at(n)))) for n in WRITES if where[n] != "there"]
            told = gone_at(context(committed, replaced_at), at(time), found, deleted)
            assert (told is not None) is is_missed, (where, committed)
            if told is not None:
                assert told in {f"r0/{NAME('a', at(n))}" for n in seen if where[n] != "there"}


def test_other_groups_and_partitions_do_not_stand_for_a_file():
    """Nor do log files of writes that are not completed."""
    found = Left.of_names({"r1": [NAME("a", at(2))], "r0": [NAME("b", at(2))]})
    names = [("r0", LOG.format(at(3))), ("r0", NAME("a", at(1))), ("r1", NAME("a", at(1)))]
    log, base, other = ((path, parse_data_file(name)) for path, name in names)
    everything = context((1, 2), None)
    assert gone_at(everything, at(2), found, [log, base, other]) == f"r0/{NAME('a', at(1))}"
    assert gone_at(everything, at(2), found, [other]) is None
    assert gone_at(everything, at(2), found, [log]) is None


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


def clean(builder: TableBuilder, number: int, **how: object) -> None:
    """A clean of that time, which deletes something."""
    builder.clock.moment = parse_instant_time(at(number), timezone.utc) + timedelta(minutes=1)
    assert builder.table(clean_incremental_enabled=False).clean(**how)


def ask(builder: TableBuilder, number: int, of=lambda _path, _base: True) -> str | None:
    """What is gone of the rows of a time, of the table as it is now."""
    table = builder.table()
    left = [path.rpartition("/") for path in builder.storage.files() if path.startswith("r")]
    parsed = [(path, base) for path, _, name in left if (base := parse_base_file(name))]
    then = [(path, base) for path, base in parsed if base.instant_time <= at(number) and of(path, base)]
    newest = {(path, base.file_id): (path, base) for path, base in sorted(then, key=lambda each: each[1].instant_time)}
    found = Left([*newest.values()], {key: base.instant_time for key, (_, base) in newest.items()})
    return first_gone(table.contents, table.timeline, table.view_context, at(number), found, with_pending=True, of=of)


def test_cleans_archived_by_their_number_are_asked_about_active_times_too():
    """Layout 1 archives many cleans behind few commits (D-12): they came after times of the active timeline."""
    builder = TableBuilder(1)
    for number in (1, 2):
        builder.commit(at(number), {f"r{n}": ["a"] for n in range(5)})
    for number in range(3, 8):
        clean(builder, number, file_versions_retained=1, max_partitions=1)
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    table = builder.table()
    assert not table.timeline.is_before_start(at(1))
    assert len(table.timeline.completed("clean")) == 2
    for partition in (f"r{n}" for n in range(5)):
        assert ask(builder, 1, lambda path, _, here=partition: path == here) == f"{partition}/{NAME('a', at(1))}"
        assert ask(builder, 2, lambda path, _, here=partition: path == here) is None


def replaced_behind_archival(layout: int) -> TableBuilder:
    """Group a is replaced and that archived; its file, and one of b, go with a clean after time 6, not the first."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["c"], "r1": ["a", "b"]})
    builder.commit(at(2), {"r1": ["n"]}, replaced={"r1": ["a"]})
    builder.commit(at(3), {"r0": ["c"]})
    clean(builder, 4, file_versions_retained=1, max_partitions=1)
    for number in (5, 6, 7):
        builder.commit(at(number), {"r1": ["b" if number == 7 else "m"]})
    clean(builder, 8, file_versions_retained=1)
    builder.table().archive(keep_min_commits=4, keep_max_commits=4 + 1)
    return builder


@pytest.mark.parametrize("layout", [1, 2])
def test_what_the_archive_tells_of_replaced_groups_counts_where_no_clean_is_archived(layout):
    """Of a the rows are not missed, of b they are."""
    builder = replaced_behind_archival(layout)
    table = builder.table()
    assert table.timeline.find(at(2)) is None
    assert table.timeline.completed("clean")[0].requested_time < at(6)
    assert ask(builder, 6, lambda _path, base: base.file_id == "a") is None
    assert ask(builder, 6) == f"r1/{NAME('b', at(1))}"


@pytest.mark.parametrize("layout", [1, 2])
def test_a_file_of_a_time_tells_of_a_lost_archive(layout):
    """Where no commit names what it built on, and no metafile tells who created the partition."""
    builder = TableBuilder(layout)
    for number in range(1, 5):
        builder.commit(at(number), {"r0": ["a"]})
    builder.put("r0/.hoodie_partition_metadata", b"partitionDepth=1\n")
    builder.table().archive(keep_min_commits=1, keep_max_commits=2)
    folder = builder.table().config.history_folder
    for path in [path for path in builder.storage.files() if path.startswith(folder)]:
        builder.storage.delete(path)
    with pytest.raises(RefusedError, match=f"missing .r0/{NAME('a', at(1))} is there"):
        ask(builder, 1)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_damaged_metafile_tells_nothing(layout):
    """Of a table that was never archived there is nothing to tell."""
    builder = TableBuilder(layout)
    builder.commit(at(2), {"r0": ["a"]})
    builder.put("r0/.hoodie_partition_metadata", b"\xff\xfe = \\uzzzz")
    assert ask(builder, 1) is None


@pytest.mark.parametrize("written", [1, 2, 3])
@pytest.mark.parametrize("replaced_at", [None, 1, 2, 3])
def test_a_log_file_that_is_gone_is_missed_at_times_that_had_it(written, replaced_at):
    """If its commit is completed, nothing so new of its group is left, and the group was not replaced by then."""
    builder = TableBuilder(2, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"r1": ["z"]})
    for suffix in ("", ".cdc"):
        name = LOG.format(at(written)) + suffix
        result = CleanPartitionMetadata(partition_path="r0", policy="X", delete_path_patterns=("x", name))
        done = CleanMetadata(
            start_clean_time=at(8),
            time_taken_ms=1,
            total_files_deleted=1,
            last_completed_commit_timestamp=at(7),
            partitions={"r0": result},
        )
        builder.instant(at(8), "clean", State.COMPLETED, codec.encode_clean_metadata(done, sync=SYNC))
        table = builder.table()
        for time, committed, group, newest in product((1, 2, 3), ((1, 2, 3), (3,), ()), ("a", "b"), (0, 1, 2, 3)):
            seen = context(committed, replaced_at)
            log = parse_log_file(f".{group}_{at(newest)}.log.2_0-1-0")
            left = FileSlice("r0", group, at(newest)), FileSlice("r0", group, at(0), None, (log,))
            is_missed = (
                not suffix
                and written <= time
                and written in committed
                and not (group == "a" and newest >= written)
                and not (replaced_at is not None and replaced_at <= time)
            )
            for each in left:
                asked = (table.contents, table.timeline, seen, at(time))
                told = first_gone(*asked, Left.of_slices([each]), with_pending=False)
                assert told == (f"r0/{name}" if is_missed else None), (suffix, time, committed, each)
            others = {"of": lambda _path, log: log.instant_time != at(written)}
            assert first_gone(*asked, Left((), {}), with_pending=False, **others) is None
    assert ask(builder, 4, lambda _path, base: base.file_id == "a") is None  # no base file among them


def test_a_log_file_that_an_archived_clean_took_is_missed_too():
    """Nothing else tells of a slice without a base file."""
    builder = TableBuilder(2, table_type="MERGE_ON_READ")
    builder.log_files(at(1), [("r0", "a", at(1))])
    for number in (2, 4, 5, 6):
        builder.commit(at(number), {"r0": ["a"]}, operation="COMPACT")
        if number == 2:
            clean(builder, 3, file_versions_retained=1)
    builder.table(compact_inline_trigger_strategy="TIME_ELAPSED").archive(keep_min_commits=1, keep_max_commits=2)
    table = builder.table()
    assert not table.timeline.of([Action.CLEAN])
    asked = (table.contents, table.timeline, context((1, 2), None), at(1), Left((), {}))
    assert ".log." in first_gone(*asked, with_pending=False, of=lambda _path, file: isinstance(file, LogFile))
