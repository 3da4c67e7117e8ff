"""Ranges of commits on tables that we write, against snapshots; with cleans, archivals and rollbacks between."""

import pickle
import random

import attrs
import pytest

from hudi_py.errors import ConfigError, CorruptMetadata, RefusedError
from hudi_py.model.instant import Action, State
from hudi_py.snapshot.deleted import DELETED
from support import writes

VERSIONS = pytest.mark.parametrize("version", [6, 8, 9])


def ends(table):
    """What ranges compare: completion times, in layout 1 requested times; oldest first."""
    return [each.completion_time or each.requested_time for each in table.timeline.commits.completed()]


def rows(batches):
    return sorted((row for batch in batches for row in batch.to_pylist()), key=lambda row: row["id"])


def row(key, ts, region="eu"):
    return {"id": key, "region": region, "ts": ts}


@pytest.fixture
def table(request):
    """Three commits: a and b; a changed and c new; d new in another partition."""
    storage = writes.create_table(request.param)
    for changed in ([row("a", 1), row("b", 1)], [row("a", 2), row("c", 2)], [row("d", 3, "us")]):
        writes.upsert(storage, changed)
    return writes.open_table(storage)


ALL = pytest.mark.parametrize("table", [6, 8, 9], indirect=True, ids=["6", "8", "9"])


@ALL
def test_the_begin_is_left_out_and_the_end_is_in(table):
    """So that ranges follow each other without a gap, and no row comes twice."""
    first, second, third = ends(table)
    assert rows(table.changes(first, second)) == [row("a", 2), row("c", 2)]
    assert rows(table.changes(None, first)) == [row("a", 1), row("b", 1)]
    assert rows(table.changes(second)) == rows(table.changes(second, third)) == [row("d", 3, "us")]
    assert rows(table.changes(third)) == rows(table.changes(first, first)) == []
    assert rows(table.changes("0")) == rows(table.changes("000")) == rows(table.changes()) == rows(table.rows())


@pytest.mark.parametrize("bound", ["", " "])
def test_an_empty_text_is_no_bound_of_a_range(bound):
    """It comes from a variable that was never set; as a begin, it would ask for the whole table."""
    table = writes.open_table(writes.create_table(9, **{"hoodie.table.cdc.enabled": "true"}))
    for ask in (table.changes, table.change_log):
        with pytest.raises(ConfigError, match="is not a time"):
            ask(bound)
        with pytest.raises(ConfigError, match="is not a time"):
            ask(None, bound)


@pytest.mark.parametrize("version", [8, 9])
def test_a_lost_file_of_before_the_range_is_an_error(version):
    """
    Also where the range begins while a commit runs: that one was requested before, and its file does not stand for it.
    """
    storage = writes.create_table(version)
    for ts in (1, 2, 3):
        writes.upsert(storage, [row("a", ts), row("b", ts)], **{"hoodie.metadata.enable": False})
    writes.upsert(storage, [row("b", 4)], operation="DELETE")
    table = writes.open_table(storage)
    second, third = [each.requested_time for each in table.timeline.commits.completed()[1:3]]
    deleted = {**row("b", 2), DELETED: True}
    assert deleted in rows(table.changes(third, with_deletes=True))
    (lost,) = [path for path in storage.files() if path.endswith(f"_{second}.parquet")]
    storage.delete(lost)
    with pytest.raises(CorruptMetadata, match=f"{second}.parquet is missing"):
        writes.open_table(storage).changes(third, with_deletes=True)


@ALL
def test_conditions_and_columns_are_those_of_rows(table):
    """The commit time that decides is read beside the columns asked for, and not shown."""
    first = ends(table)[0]
    found = table.changes(first, where="ts > 2", columns=["id"])
    assert (found.schema.names, rows(found)) == (["id"], [{"id": "d"}])
    assert table.changes(first, columns=["id"], with_meta=True).schema.names[-1] == "id"


@ALL
def test_only_files_that_the_range_wrote_are_opened(table):
    """Partitions that it did not write to are not listed."""
    found = table.range(ends(table)[1])
    assert [each.partition_path for each in found.slices] == ["us"]
    assert len(found.rows().to_arrow()) == 1


@ALL
def test_a_range_stays_what_it_was_when_it_was_opened(table):
    """Later commits do not show in it, wherever it was sent."""
    first = ends(table)[0]
    found = table.range(first)
    packed = pickle.dumps(found)
    writes.upsert(table.storage, [row("a", 9)])
    for each in (found, pickle.loads(packed)):
        assert rows(each.rows()) == [row("a", 2), row("c", 2), row("d", 3, "us")]


@ALL
def test_a_range_that_ends_before_it_begins_is_refused(table):
    """Its times were mixed up, and an empty answer would hide it."""
    first, second, _ = ends(table)
    with pytest.raises(ConfigError, match=f"ends at {first}, before it begins at {second}"):
        table.changes(second, first)
    with pytest.raises(ConfigError, match="is not a time"):
        table.changes("yesterday")


@ALL
def test_a_range_whose_files_a_clean_deleted_names_the_ends_that_are_possible(table):
    """Fewer rows are no answer; what ends later can still be read, and so can what needs none of those files."""
    first, second, third = ends(table)
    writes.upsert(table.storage, [row("a", 4)])
    writes.open_table(table.storage).clean(commits_retained=1)
    cleaned = writes.open_table(table.storage)
    with pytest.raises(
        RefusedError, match=r"clean .*deleted eu/.*end it at \d+ or later, or leave its end open"
    ) as refused:
        cleaned.changes(None, first)
    # A newer clean whose plan is torn names nothing, and is no error of the range.
    table.storage.create_new(f"{cleaned.config.timeline_folder}/20990101000000000.clean.requested", b"")
    with pytest.raises(RefusedError, match=r"clean .*deleted eu/"):
        writes.open_table(table.storage).changes(None, first)
    way_out = str(refused.value).partition("end it at ")[2].split()[0]
    assert rows(cleaned.changes(first, way_out))
    assert rows(cleaned.changes(second, third)) == [row("d", 3, "us")]
    assert rows(cleaned.changes(first)) == [row("a", 4), row("c", 2), row("d", 3, "us")]


@VERSIONS
def test_archived_commits_count_like_active_ones(version):
    """In every range, whichever of its ends lies in the archive."""
    storage = writes.create_table(version)
    for number in range(4):
        writes.upsert(storage, [row(f"k{number}", number), row("all", number)])
    before = writes.open_table(storage)
    times = ends(before)
    ranges = [(a, b) for a in [None, *times] for b in [*times, None] if a is None or b is None or a <= b]
    expected = {each: rows(before.changes(*each)) for each in ranges}
    before.archive(keep_min_commits=1, keep_max_commits=2)
    after = writes.open_table(storage)
    assert len(ends(after)) < len(times)
    assert {each: rows(after.changes(*each)) for each in ranges} == expected


@VERSIONS
def test_what_archived_commits_replaced_is_never_passed_over(version):
    """A clean took the files before archival passed, so no range tells of their rows, wherever it begins."""
    storage = writes.create_table(version)
    for number in range(2):
        writes.upsert(storage, [row(f"k{number}", number)])
    writes.upsert(storage, [row("k2", 2)], operation="INSERT_OVERWRITE")
    for number in (3, 4, 5):
        writes.upsert(storage, [row(f"k{number}", number, "us")])
    before = writes.open_table(storage)
    times = ends(before)
    assert [each["id"] for each in rows(before.changes(times[1], with_deletes=True)) if each[DELETED]] == ["k0", "k1"]
    before.clean(commits_retained=1)
    writes.open_table(storage).archive(keep_min_commits=2, keep_max_commits=3)
    after = writes.open_table(storage)
    assert times[2] not in ends(after)
    for begin in times[:2]:
        with pytest.raises(RefusedError, match=r"clean.* deleted eu/"):
            after.changes(begin, with_deletes=True)
    assert [each["id"] for each in rows(after.changes(times[2], with_deletes=True))] == ["k3", "k4", "k5"]


@VERSIONS
def test_a_pending_write_is_no_part_of_a_range(version):
    """In layout 1 whoever goes on behind it would miss it, so such a range is refused; an earlier end is named."""
    storage = writes.create_table(version)
    writes.upsert(storage, [row("a", 1)])
    opened = writes.open_table(storage)
    pending = opened._store.request(Action.COMMIT, opened._store.new_time())
    opened._store.transition(pending)
    (first,) = ends(writes.open_table(storage))
    assert rows(writes.open_table(storage).changes("0")) == [row("a", 1)]
    later = writes.open_table(storage)
    later._store.transition(
        later._store.transition(later._store.request(Action.COMMIT, later._store.new_time())),
        completion_time=None if version == 6 else later._store.new_time(),
    )
    table = writes.open_table(storage)
    assert table.timeline.pending()[0].state is State.INFLIGHT
    if version == 6:
        with pytest.raises(RefusedError, match=f"may still complete; end the range at {first}"):
            table.changes("0")
        assert rows(table.changes("0", first)) == [row("a", 1)]
    else:
        assert rows(table.changes("0")) == [row("a", 1)]
    assert rows(table.changes(ends(table)[-1])) == []


@VERSIONS
@pytest.mark.parametrize("seed", range(4))
def test_consecutive_ranges_add_up_to_the_snapshot(version, seed):
    """Beside deletes, rollbacks, cleans and archivals, after every step, for whoever reads now and then."""
    dice = random.Random(seed)
    storage = writes.create_table(version)
    state, read_until = {}, "0"
    for step in range(7):
        changed = [row(f"k{n}", step, dice.choice(["eu", "us"])) for n in dice.sample(range(6), 3)]
        changed = [{**each, "region": "eu" if int(each["id"][1:]) % 2 else "us"} for each in changed]
        writes.upsert(storage, changed)
        opened = writes.open_table(storage)
        what = dice.choice(["nothing", "rollback", "clean", "archive"])
        if what == "rollback" and len(ends(opened)) > 1 and ends(opened)[-1] > read_until:
            opened.rollback(opened.timeline.commits.completed()[-1].requested_time)
        elif what == "clean":
            opened.clean(commits_retained=1)
        elif what == "archive":
            opened.archive(keep_min_commits=2, keep_max_commits=3)
        if dice.random() < 0.5:
            continue
        table = writes.open_table(storage)
        last = ends(table)[-1]
        state |= {each["id"]: each for each in rows(table.changes(read_until, last))}
        read_until = last
        assert sorted(state.values(), key=lambda each: each["id"]) == rows(table.rows()), (seed, step, what)


@ALL
def test_deleted_rows_come_first_and_marked(table):
    """As they were before the range, with the columns and the conditions asked for; what changed is not marked."""
    before = ends(table)[-1]
    writes.upsert(table.storage, [row("c", 2), row("d", 3, "us")], operation="DELETE")
    writes.upsert(table.storage, [row("a", 5), row("e", 5)])
    opened = writes.open_table(table.storage)
    deleted = [{**each, DELETED: True} for each in (row("c", 2), row("d", 3, "us"))]
    changed = [{**each, DELETED: False} for each in (row("a", 5), row("e", 5))]
    found = [each for batch in opened.changes(before, with_deletes=True) for each in batch.to_pylist()]
    assert [each[DELETED] for each in found] == [True, True, False, False]
    assert sorted(found, key=lambda each: each["id"]) == sorted(deleted + changed, key=lambda each: each["id"])
    chosen = opened.changes(before, with_deletes=True, where="ts > 2", columns=["id"])
    assert chosen.schema.names == ["id", DELETED]
    assert rows(chosen) == [{"id": key, DELETED: key == "d"} for key in "ade"]
    assert all(not each[DELETED] for each in rows(opened.changes(None, with_deletes=True)))
    last = ends(opened)[-1]
    assert rows(opened.changes(last, with_deletes=True)) == []


@ALL
def test_what_came_and_went_within_the_range_was_never_there(table):
    """Nobody who read before and reads after the range has seen it."""
    before = ends(table)[-1]
    writes.upsert(table.storage, [row("z", 5)])
    writes.upsert(table.storage, [row("z", 5)], operation="DELETE")
    assert rows(writes.open_table(table.storage).changes(before, with_deletes=True)) == []


@ALL
def test_deletes_need_the_files_from_before_the_range(table):
    """Where a clean took them, the earliest begin is named; what changed is told without them."""
    first, second, _ = ends(table)
    writes.upsert(table.storage, [row("c", 2)], operation="DELETE")
    last = ends(writes.open_table(table.storage))[-1]
    writes.open_table(table.storage).clean(commits_retained=1)
    cleaned = writes.open_table(table.storage)
    assert rows(cleaned.changes(first)) == [row("a", 2), row("d", 3, "us")]
    with pytest.raises(RefusedError, match=r"the rows deleted after .* clean .*deleted eu/.*; begin it at") as refused:
        cleaned.changes(first, with_deletes=True)
    earliest = str(refused.value).rpartition(" ")[2]
    assert rows(cleaned.changes(earliest, last, with_deletes=True)) is not None
    assert rows(cleaned.changes(second, with_deletes=True))[-1] == {**row("d", 3, "us"), DELETED: False}


@VERSIONS
@pytest.mark.parametrize("with_metadata", [False, True])
def test_deletes_beside_a_clean_that_was_interrupted(version, with_metadata):
    """It has deleted files and not recorded which: the clean is named, or the answer is the same."""
    storage = writes.create_table(version, **{"hoodie.metadata.enable": with_metadata})
    writes.upsert(storage, [row("a", 1), row("b", 1)])
    writes.upsert(storage, [row("a", 2)], operation="DELETE")
    for number in (3, 4):
        writes.upsert(storage, [row("c", number)])
    before = writes.open_table(
        storage, **{"hoodie.clean.policy": "KEEP_LATEST_FILE_VERSIONS", "hoodie.clean.fileversions.retained": 1}
    )
    expected = {begin: rows(before.changes(begin, with_deletes=True)) for begin in ends(before)}
    clean = before.services.clean(before.services.clean_config()).schedule()
    store = before.contents.store
    storage.create_new(store.path(attrs.evolve(clean, state=State.INFLIGHT)), b"")
    for path, files in before.contents.clean_plan(clean).files_to_delete.items():
        for file in files:
            storage.delete(f"{path}/{file.name}")
    refused = 0
    for begin, answer in expected.items():
        try:
            assert answer == rows(writes.open_table(storage).changes(begin, with_deletes=True))
        except RefusedError as error:
            assert clean.requested_time in str(error)
            refused += 1
    assert refused


@VERSIONS
def test_a_range_has_its_columns_when_only_a_compaction_is_left(version):
    """Hudi passes compactions over when it looks for a schema; a range without files has no other witness."""
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    for number in range(1, 6):
        writes.upsert(storage, [row("a", number)])
    table = writes.open_table(storage)
    before = table.schema
    assert table.compact()
    writes.open_table(storage).archive(keep_min_commits=1, keep_max_commits=2)
    table = writes.open_table(storage)
    assert [Action.COMMIT] == [each.action for each in table.timeline.writes.completed()]
    for with_deletes in (False, True):
        columns = table.changes(ends(table)[-1], with_deletes=with_deletes).schema  # nothing has changed since
        assert before.names == [name for name in columns.names if name != DELETED]


@pytest.mark.parametrize("version", [8, 9])
def test_a_range_that_ends_while_a_compaction_runs(version):
    """Planned before its end and completed later: what a clean deletes of the older slices stands in the new ones."""
    storage = writes.create_table(version, **{"hoodie.table.type": "MERGE_ON_READ"})
    for number in (1, 2):
        writes.upsert(storage, [row("a", number), row("b", number)])
    assert writes.open_table(storage, **{"hoodie.compact.inline.max.delta.commits": 1}).schedule_compaction()
    writes.upsert(storage, [row("a", 3)])
    table = writes.open_table(storage)
    begins, end = [None, *ends(table)[:-1]], ends(table)[-1]
    expected = [rows(table.changes(begin, end)) for begin in begins]
    assert table.compact()
    writes.upsert(storage, [row("a", 4)])
    assert expected == [rows(writes.open_table(storage).changes(begin, end)) for begin in begins]
    writes.open_table(storage).clean(commits_retained=2)
    assert expected == [rows(writes.open_table(storage).changes(begin, end)) for begin in begins]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_range_that_ends_while_a_clustering_runs(version, kind):
    """Planned before its end and completed later: a clean deletes what it replaced, and no row of the range is lost."""
    storage = writes.create_table(version, **{"hoodie.table.type": kind})
    for key in ("a", "b"):
        writes.upsert(storage, [row(key, 1)], operation="INSERT", **NEW_FILES)
    planned = writes.open_table(storage).services.clustering().schedule()
    writes.upsert(storage, [row("c", 2)], operation="INSERT", **NEW_FILES)
    end = ends(writes.open_table(storage))[-1]
    writes.open_table(storage).services.clustering().execute(planned.requested_time)
    writes.upsert(storage, [row("d", 3)], operation="INSERT", **NEW_FILES)
    writes.open_table(storage).clean(commits_retained=2)
    assert [each["id"] for each in rows(writes.open_table(storage).changes(None, end))] == ["a", "b", "c"]


NEW_FILES = {"hoodie.parquet.small.file.limit": 0}
