"""Which instants are archived, rule by rule and by the traces of real Hudi (rules/table-services D, J.9)."""

from __future__ import annotations

from contextlib import suppress

import pytest

from hudi_py.config.archive import ArchiveConfig, archive_config
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, ConflictError
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.services.archive.plan import (
    ArchiveFacts,
    Bound,
    NewestClean,
    bound_of_one,
    data_timeline_start,
    newest_writes_since,
    plan_archive,
)
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import ArchiveForm
from support.tables import TableBuilder, at, done

COW, MOR = TableType.COPY_ON_WRITE, TableType.MERGE_ON_READ


def line(*instants: tuple[int, str] | tuple[int, str, State]) -> Timeline:
    made = []
    for number, word, *state in instants:
        action = Action(word)
        made.append(Instant(at(number), action, state[0] if state else State.COMPLETED, done(at(number))))
    return Timeline(tuple(sorted(made, key=lambda i: (i.requested_time, i.comparable_action.value))))


def commits(*numbers: int) -> list[tuple[int, str]]:
    return [(number, "commit") for number in numbers]


def plan(timeline: Timeline, *, low: int = 2, high: int = 3, layout: int = 2, config: dict | None = None, **facts):
    facts.setdefault("table_type", COW)
    given = ArchiveFacts(form=ArchiveForm.LOGS if layout == 1 else ArchiveForm.HISTORY, **facts)
    return plan_archive(timeline, given, ArchiveConfig(keep_min=low, keep_max=high, **(config or {})))


def numbers(found, action: str = "commit") -> list[int]:
    return [n for n in range(40) for i in found.instants if i.requested_time == at(n) and i.action.value == action]


def test_nothing_up_to_the_maximum():
    """D-2: the maximum may be reached."""
    assert plan(line(*commits(1, 2, 3))).instants == ()
    assert plan(line(*commits(1, 2, 3))).bound is Bound.COUNT


def test_shrinks_to_the_minimum():
    """D-2, D-11: one above the maximum, and only the minimum stays: the oldest go, without a hole."""
    assert numbers(plan(line(*commits(1, 2, 3, 4)))) == [1, 2]


def test_commits_that_are_not_cleaned_stay():
    """D-3: the minimum grows to the commits after the earliest to retain, plus two, and the maximum with it."""
    found = plan(line(*commits(*range(1, 9))), earliest_to_retain=at(3))
    assert (found.keep_min, found.keep_max) == (7, 8)
    assert found.instants == ()
    assert numbers(plan(line(*commits(*range(1, 10))), earliest_to_retain=at(4))) == [1, 2]


def test_only_before_the_last_commit_before_a_pending_write():
    """D-4: the commit that a pending write may build on stays too."""
    found = plan(line(*commits(1, 2, 3, 5, 6), (4, "commit", State.INFLIGHT)))
    assert numbers(found) == [1, 2]
    assert found.bound is Bound.PENDING_WRITE
    assert plan(line((1, "commit", State.REQUESTED), *commits(2, 3, 4, 5))).instants == ()


def test_delta_commits_that_compaction_counts_stay():
    """D-5: as many delta commits as the trigger counts, or all since the last compaction."""
    deltas = [(n, "deltacommit") for n in range(1, 8)]
    config = {"delta_commits_kept": 5}
    found = plan(line(*deltas), table_type=MOR, config=config)
    assert numbers(found, "deltacommit") == [1, 2]
    compacted = line(*deltas[:3], (4, "commit"), *deltas[4:])
    assert numbers(plan(compacted, table_type=MOR, config=config), "deltacommit") == [1, 2, 3]
    assert numbers(plan(line(*deltas), table_type=MOR, config={"delta_commits_kept": None}), "deltacommit")[-1] == 5


def test_nothing_before_the_metadata_table_was_compacted():
    """D-6: without a compaction nothing goes, not even cleans of layout 1."""
    cleans = [(10 + n, "clean") for n in range(9)]
    for layout in (1, 2):
        found = plan(line(*commits(1, 2, 3, 4, 5), *cleans), layout=layout, has_metadata_table=True)
        assert found.instants == ()
        assert found.bound is Bound.METADATA_TABLE


def test_metadata_compaction_bounds():
    """D-6: layout 1 by requested time, layout 2 by the first commit that completed after it."""
    timeline = line(*commits(1, 2, 3, 4, 5))
    first = plan(timeline, layout=1, has_metadata_table=True, metadata_compaction=at(3) + "001")
    assert numbers(first) == [1, 2, 3]
    assert numbers(plan(timeline, layout=1, has_metadata_table=True, metadata_compaction=at(3))) == [1, 2]
    second = plan(timeline, has_metadata_table=True, metadata_compaction=done(at(2)))
    assert numbers(second) == [1, 2]


def test_metadata_table_keeps_what_its_table_has_active():
    """D-8: before the first commit of the data timeline, and before whatever is under way there."""
    deltas = line(*[(number, "deltacommit") for number in range(1, 9)])
    started = data_timeline_start(line((3, "clean"), *commits(4, 5, 6)))
    assert numbers(plan(deltas, table_type=MOR, data_timeline_start=started), "deltacommit") == [1, 2, 3]
    under_way = data_timeline_start(line((2, "clean", State.INFLIGHT), *commits(4, 5, 6)))
    found = plan(deltas, table_type=MOR, data_timeline_start=under_way)
    assert numbers(found, "deltacommit") == [1]
    assert found.bound is Bound.DATA_TIMELINE
    assert data_timeline_start(line((3, "clean"))) is None


def test_savepoint_stops_and_beyond_it_leaves_a_hole():
    """D-7: only before the first savepoint; or all but the savepointed commits, which keep counting."""
    timeline = line(*commits(1, 2, 3, 4), (2, "savepoint"))
    assert numbers(plan(timeline)) == [1]
    assert plan(timeline).bound is Bound.SAVEPOINT
    assert numbers(plan(timeline, config={"beyond_savepoint": True})) == [1, 3]


def write(*names: str, replaced: str | None = None) -> CommitMetadata:
    """Of files named by group and kind: ``a`` is a base file of group a, ``a.log`` a log file."""
    stats = []
    for name in names:
        file_id, _, log = name.partition(".")
        path = f"eu/.{file_id}_{at(1)}.log.1_0-1-0" if log else f"eu/{TableBuilder.base_name(file_id, at(1))}"
        stats.append(WriteStat(file_id=file_id, path=path, partition_path="eu", num_writes=1))
    gone = None if replaced is None else {"eu": (replaced,)}
    return CommitMetadata(partition_to_write_stats={"eu": tuple(stats)}, partition_to_replace_file_ids=gone)


@pytest.mark.parametrize(
    ("history", "needed"),
    [
        ([], None),
        ([write("a"), write("a"), write("a")], 3),
        ([write("a", "b"), write("a"), write("a")], 1),
        ([write("a"), write("b"), write("a")], 2),
        ([write("b"), write("a", replaced="b"), write("a")], 3),
        ([write("a.log"), write("a.log"), write("b")], 1),
        ([write("a.log"), write("a"), write("a.log")], 2),
        ([write("a"), None, write("a")], 1),
        ([write("a"), write("a", replaced="a"), None], 2),
    ],
)
def test_newest_rows_behind_a_savepoint(history, needed):
    """The oldest commit that wrote a group's newest base file or a log file on top; on doubt it is needed."""
    assert newest_writes_since((at(n), each) for n, each in enumerate(history, 1)) == (needed and at(needed))


@pytest.mark.parametrize("layout", [1, 2])
def test_rows_behind_a_savepoint_stay_in_sight(layout):
    """D-7: archival goes beyond the savepoint up to the first commit whose rows are the newest of their group."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.table().create_savepoint(at(1))
    for number in (2, 3):
        builder.commit(at(number), {"us": ["b"]})
    builder.commit(at(4), {"eu": ["a"]})
    for number in range(5, 10):
        builder.commit(at(number), {"us": ["b"]})
    result = builder.table().archive(keep_min_commits=2, keep_max_commits=3, archive_beyond_savepoint=True)
    assert numbers(result) == [2, 3]
    assert result.bound is Bound.BEHIND_SAVEPOINT
    assert [s.base_instant_time for s in builder.table().file_slices("eu")] == [at(4)]


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("partition", ["eu", ""])
@pytest.mark.parametrize("retention", [{"file_versions_retained": 1}, {"commits_retained": 1}], ids=str)
@pytest.mark.parametrize("beyond", [False, True])
def test_what_was_replaced_never_looks_live_again(layout, partition, retention, beyond):
    """K-6, K-27: a savepoint held replaced files through the last clean; gone or passed, the replacecommit stays."""
    builder = TableBuilder(layout, partitioned=bool(partition))
    builder.commit(at(1), {partition: ["a"]})
    builder.table().create_savepoint(at(1))
    builder.commit(at(2), {partition: ["n"]}, replaced={partition: ["a"]})
    for number in range(3, 7):
        builder.commit(at(number), {partition: ["n"]})
    builder.table().clean(**retention)
    if not beyond:
        builder.table().delete_savepoint(at(1))
    settings = {"keep_min_commits": 2, "keep_max_commits": 3, "archive_beyond_savepoint": beyond}
    builder.table().archive(**settings)
    assert [s.file_id for s in builder.table().file_slices(partition)] == ["n"]
    if beyond:
        return
    builder.commit(at(7), {partition: ["n"]})
    builder.table().clean(**retention)
    assert at(2) in {i.requested_time for i in builder.table().archive(**settings).instants}
    assert [s.file_id for s in builder.table().file_slices(partition)] == ["n"]


def test_replaced_files_that_are_there_bound():
    """D-9, K-27, by the folders: only commits strictly before the replacecommit go."""
    found = plan(line(*commits(1, 2, 4, 5)), replaced_files_of=at(2))
    assert numbers(found) == [1]
    assert found.bound is Bound.REPLACED_FILES


def test_replacecommit_stays_until_a_clean_has_passed_it():
    """D-9: without a clean the first one bounds, after one the first at or after its earliest commit."""
    timeline = line(*commits(1, 2, 4, 5), (3, "replacecommit"))
    assert numbers(plan(timeline)) == [1, 2]
    assert plan(timeline).bound is Bound.REPLACEMENT
    passed = NewestClean(requested_time=at(6), earliest_to_retain=at(4))
    assert numbers(plan(timeline, last_clean=passed), "replacecommit") == [3]
    reached = NewestClean(requested_time=at(6), earliest_to_retain=at(3))
    assert numbers(plan(timeline, last_clean=reached), "replacecommit") == []
    versions = NewestClean(requested_time=at(6))
    assert numbers(plan(timeline, last_clean=versions), "replacecommit") == [3]
    early = NewestClean(requested_time=at(2))
    assert numbers(plan(timeline, last_clean=early), "replacecommit") == []


@pytest.mark.parametrize("layout", [1, 2])
def test_replacecommit_of_a_removed_savepoint_stays_until_the_next_clean(layout):
    """D-10, K-6: the clean spared its replaced files for a savepoint that is gone now."""
    timeline = line(*commits(1, 2, 4, 5, 6), (3, "replacecommit"))
    spared = NewestClean(requested_time=at(7), earliest_to_retain=at(5), savepoints=frozenset({at(2)}))
    found = plan(timeline, layout=layout, last_clean=spared)
    assert numbers(found) == [1, 2]
    assert found.bound is Bound.REMOVED_SAVEPOINT


def test_layout_1_counts_cleans_and_rollbacks_by_themselves():
    """D-12: per action, whether or not commits go."""
    cleans = [(10 + n, "clean") for n in range(4)]
    rollbacks = [(20 + n, "rollback") for n in range(3)]
    found = plan(line(*commits(1, 2), *cleans, *rollbacks), layout=1)
    assert [i.requested_time for i in found.instants] == [at(10), at(11)]


def test_layout_1_orders_by_action():
    """D-16: cleans, then rollbacks, then commits, each ascending."""
    services = [(10 + n, "clean") for n in range(4)] + [(20 + n, "rollback") for n in range(4)]
    timeline = line(*commits(*range(1, 9)), *services)
    words = [i.action.value for i in plan(timeline, layout=1).instants]
    assert words == ["clean"] * 2 + ["rollback"] * 2 + ["commit"] * 6


def test_layout_2_takes_cleans_and_rollbacks_along():
    """D-13: those before the last archived commit, ascending over all actions; none without a commit."""
    timeline = line(*commits(1, 3, 5, 7), (2, "clean"), (4, "rollback"), (6, "clean"))
    assert [i.requested_time for i in plan(timeline).instants] == [at(1), at(2), at(3)]
    assert plan(line(*commits(1, 2), *[(n, "clean") for n in range(10, 20)])).instants == ()


def test_savepoints_restores_and_indexings_are_never_archived():
    """D-14."""
    timeline = line(*commits(2, 3, 4, 5), (1, "restore"), (1, "indexing"))
    assert {i.action for i in plan(timeline).instants} == {Action.COMMIT}


def test_nothing_while_a_restore_is_pending():
    """A restore needs the whole timeline behind its savepoint."""
    found = plan(line(*commits(1, 2, 3, 4), (6, "restore", State.INFLIGHT)))
    assert found.instants == ()
    assert found.bound is Bound.RESTORE


def test_bounds_must_differ():
    """A-2: a maximum that is no larger than the minimum is an error."""
    with pytest.raises(ConfigError):
        archive_config(Settings({"hoodie.keep.min.commits": 5, "hoodie.keep.max.commits": 5}))


# --- where exactly each bound lies -----------------------------------------------------------------------------------
SETTINGS_AT_ONE = {"low": 1, "high": 2}


def test_the_first_pending_write_bounds():
    """D-4: the first of several; and nobody says so where it held nothing back."""
    pending = [(5, "commit", State.INFLIGHT), (8, "commit", State.REQUESTED)]
    assert numbers(plan(line(*commits(1, 2, 3, 4, 6, 7, 9), *pending))) == [1, 2, 3]
    far = plan(line(*commits(1, 2, 3, 4, 5, 6), (7, "commit", State.INFLIGHT)))
    assert numbers(far) == [1, 2, 3, 4]
    assert far.bound is None


def test_a_bound_is_named_only_where_it_held_something_back():
    """As many as the settings want may go, and not one more: then nothing held anything back."""
    for pending in range(4, 8):
        found = plan(line(*commits(*{1, 2, 3, 4, 5, 6, 7} - {pending}), (pending, "commit", State.INFLIGHT)))
        assert numbers(found) == list(range(1, min(pending - 1, 5)))
        assert (found.bound is None) == (len(found.instants) == 4)


@pytest.mark.parametrize("kept", range(1, 9))
@pytest.mark.parametrize("compactions", [(), (1,), (2,), (2, 4), (3,), (7,)])
def test_the_next_compaction_finds_what_it_counts(kept, compactions):
    """D-5, for each count: fewer deltas since the last compaction, then it stays, else as many deltas as it counts."""
    times = range(1, 8)
    timeline = line(*[(n, "commit" if n in compactions else "deltacommit") for n in times])
    found = plan(timeline, table_type=MOR, config={"delta_commits_kept": kept}, **SETTINGS_AT_ONE)
    since = [n for n in times if n > max(compactions, default=0)]
    bound = max(compactions, default=1) if len(since) < kept else since[-kept]
    assert [i.requested_time for i in found.instants] == [at(n) for n in times if n < bound and n < 7]
    stays = [i for i in timeline if i not in found.instants and i.action is Action.DELTA_COMMIT]
    assert len([i for i in stays if i.requested_time > at(max(compactions, default=0))]) >= min(kept, len(since))


def test_the_first_savepoint_bounds():
    """D-7: the first of several."""
    timeline = line(*commits(1, 2, 3, 4, 5, 6), (2, "savepoint"), (4, "savepoint"))
    assert numbers(plan(timeline)) == [1]


@pytest.mark.parametrize("clean", [None, *range(2, 9)])
def test_the_first_replacecommit_that_no_clean_has_dealt_with_bounds(clean):
    """D-9: the first at or after the clean's earliest commit, by both policies; without a clean the first of all."""
    replacing = (3, 5, 7)
    timeline = line(*commits(1, 2, 4, 6, 8), *[(n, "replacecommit") for n in replacing])
    bound = next((n for n in replacing if clean is None or n >= clean), 9)
    expected = [at(n) for n in range(1, 8) if n < bound]
    by_commits = clean and NewestClean(requested_time=at(9), earliest_to_retain=at(clean))
    by_versions = clean and NewestClean(requested_time=at(clean))
    for last_clean in (by_commits, by_versions):
        found = plan(timeline, last_clean=last_clean, **SETTINGS_AT_ONE)
        assert [i.requested_time for i in found.instants] == expected


@pytest.mark.parametrize("savepoint", range(1, 8))
@pytest.mark.parametrize("earliest", range(1, 9))
@pytest.mark.parametrize("replacing", [(3,), (3, 5)], ids=str)
def test_what_a_removed_savepoint_held_bounds(savepoint, earliest, replacing):
    """D-9 and D-10, for each order of savepoint, replacecommits and earliest commit; the ends belong to the range."""
    timeline = line(*[(n, "replacecommit" if n in replacing else "commit") for n in range(1, 9)])
    held = NewestClean(requested_time=at(9), earliest_to_retain=at(earliest), savepoints={at(savepoint), at(7)})
    found = plan(timeline, last_clean=held, **SETTINGS_AT_ONE)
    bounds = [n for n in replacing if n >= earliest]
    if earliest > savepoint and any(savepoint <= n <= earliest for n in replacing):
        bounds += [n for n in replacing if n >= savepoint]
    bound = min(bounds, default=9)
    assert [i.requested_time for i in found.instants] == [at(n) for n in range(1, 8) if n < bound]


@pytest.mark.parametrize("compacted", range(1, 8))
def test_what_only_log_files_of_the_metadata_table_hold_stays(compacted):
    """D-6: layout 1 before the compaction's time, layout 2 before the first commit that was completed after it."""
    timeline = line(*commits(1, 2, 3, 4, 5, 6, 7), *[(10 + n, "clean") for n in range(4)])
    for layout, time in ((1, at(compacted)), (2, done(at(compacted)))):
        found = plan(timeline, layout=layout, has_metadata_table=True, metadata_compaction=time, **SETTINGS_AT_ONE)
        assert numbers(found) == list(range(1, min(7, compacted + layout - 1)))
        assert not numbers(found, "clean")


@pytest.mark.parametrize("size", range(6))
def test_layout_1_keeps_the_minimum_of_cleans_and_of_rollbacks(size):
    """D-12: nothing up to the maximum of each, then down to the minimum; only before the last metadata compaction."""
    services = [*((10 + n, "clean") for n in range(size)), *((20 + n, "rollback") for n in range(size))]
    for word, start in (("clean", 10), ("rollback", 20)):
        wanted = list(range(start, start + (size - 2 if size > 3 else 0)))
        assert numbers(plan(line(*services), layout=1), word) == wanted
        for compacted in range(start, start + 4):
            found = plan(line(*services), layout=1, has_metadata_table=True, metadata_compaction=at(compacted))
            assert numbers(found, word) == [n for n in wanted if n < compacted]


def test_layout_2_takes_along_what_came_before_the_last_commit_that_goes():
    """D-13: strictly before it, whether or not its time is shared."""
    timeline = line(*commits(1, 3, 5, 7), (3, "clean"), (2, "rollback"))
    assert [(i.requested_time, i.action) for i in plan(timeline).instants] == [
        (at(1), Action.COMMIT), (at(2), Action.ROLLBACK), (at(3), Action.COMMIT),
    ]  # fmt: skip


def test_start_of_the_data_timeline_is_the_first_of_both():
    """D-8: commits completed or not, and whatever is pending."""
    busy = [(4, "clean", State.INFLIGHT), (2, "clean", State.REQUESTED)]
    assert data_timeline_start(line(*commits(5, 6), (3, "commit", State.INFLIGHT), *busy)) == at(2)
    assert data_timeline_start(line(*commits(5, 6), (1, "clean"))) == at(5)
    assert data_timeline_start(line(*commits(1, 6), *busy)) == at(1)


def test_what_keeps_one_commit_behind_a_deleted_savepoint():
    """Each bound holds a commit at it and after it, none before it; how many there are does not matter."""
    timeline = line(*commits(2, 4, 6, 8), (4, "savepoint"), (6, "savepoint"))

    def bound(number: int, timeline: Timeline = timeline, **facts) -> Bound | None:
        (instant,) = (i for i in timeline.completed("commit") if i.requested_time == at(number))
        return bound_of_one(timeline, ArchiveFacts(table_type=COW, form=ArchiveForm.HISTORY, **facts), instant)

    assert [bound(n) for n in (2, 4, 6, 8)] == [None, None, Bound.BEHIND_SAVEPOINT, Bound.BEHIND_SAVEPOINT]
    assert bound(2, replaced_files_of=at(4)) is None
    assert bound(4, replaced_files_of=at(4)) is Bound.REPLACED_FILES
    assert bound(4, line(*commits(2, 4), (4, "savepoint"), (9, "restore", State.INFLIGHT))) is Bound.RESTORE
    for pending, expected in ((5, Bound.PENDING_WRITE), (7, None)):
        busy = line(*commits(2, 4, 6, 8), (4, "savepoint"), (pending, "commit", State.INFLIGHT))
        assert bound(4, busy) is expected
        assert bound(2, busy) is None
    assert bound(4, has_metadata_table=True) is Bound.METADATA_TABLE
    assert bound(4, has_metadata_table=True, metadata_compaction=done(at(2))) is Bound.METADATA_TABLE
    assert bound(4, has_metadata_table=True, metadata_compaction=done(at(4))) is None
    assert bound(2, has_metadata_table=True, metadata_compaction=done(at(2))) is None


# --- J.9: traces of real Hudi ----------------------------------------------------------------------------------------
def trace(builder: TableBuilder, steps: int, *, first: int = 1, **settings) -> list[int]:
    """Active completed commits after each commit, its clean and its archival."""
    counts = []
    for number in range(first, first + steps):
        builder.commit(at(2 * number), {"eu": ["a"]})
        table = builder.table(**settings)
        table.clean()
        table.archive()
        counts.append(len(builder.table().timeline.commits.completed()))
    return counts


@pytest.fixture(params=[1, 2])
def builder(request) -> TableBuilder:
    return TableBuilder(request.param)


def test_trace_plain(builder):
    """Grows to the maximum of 5; the next commit takes three away."""
    counts = trace(builder, 10, clean_commits_retained=1, keep_min_commits=3, keep_max_commits=5)
    assert counts == [1, 2, 3, 4, 5, 3, 4, 5, 3, 4]


def test_trace_archival_tighter_than_cleaning(builder):
    """K = 6, min 2, max 3: every fourth commit archives, and the table is never cleaned (K-17)."""
    counts = trace(builder, 7, clean_commits_retained=6, keep_min_commits=2, keep_max_commits=3)
    assert counts == [1, 2, 3, 2, 3, 2, 3]
    assert not builder.table().timeline.completed("clean")


def test_trace_archival_adapts_to_cleaning(builder):
    """K = 6, min 2, max 8: grows to 13, then down to 7."""
    counts = trace(builder, 16, clean_commits_retained=6, keep_min_commits=2, keep_max_commits=8)
    assert counts == [*range(1, 14), 7, 8, 9]


def test_trace_insert_overwrite_blocks_until_cleaned(builder):
    """c3 = insert_overwrite, no clean: c1 and c2 go, then it grows; after a clean down to 2."""
    settings = {"keep_min_commits": 2, "keep_max_commits": 3, "clean_commits_retained": 1}
    counts = []
    for number in range(1, 8):
        if number == 3:
            builder.commit(at(6), {"eu": ["n"]}, replaced={"eu": ["a"]})
        else:
            builder.commit(at(2 * number), {"eu": ["a" if number < 3 else "n"]})
        if number == 7:
            builder.table(**settings).clean()
        builder.table(**settings).archive()
        counts.append(len(builder.table().timeline.commits.completed()))
    assert counts == [1, 2, 3, 2, 3, 4, 2]


def test_trace_savepoint(builder):
    """A savepoint holds archival; once it is deleted, the commits behind it go (min 3, max 5)."""
    settings = {"clean_commits_retained": 1, "keep_min_commits": 3, "keep_max_commits": 5}
    first = trace(builder, 5, **settings)
    builder.table().create_savepoint(at(10))
    held = trace(builder, 5, first=6, **settings)
    assert first == [1, 2, 3, 4, 5]
    assert held == [3, 4, 5, 5, 6]
    assert builder.table().timeline.find(at(10), Action.COMMIT) is not None
    builder.table().delete_savepoint(at(10))
    assert trace(builder, 2, first=11, **settings) == [3, 4]
    assert builder.table().timeline.find(at(10), Action.COMMIT) is None


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("verb", ["create_new", "replace", "open_write"])
def test_a_savepoint_created_while_the_archive_is_written_keeps_its_commit_active(layout, verb):
    """With or without a lock: archival looks again right before it deletes, and stops at the savepoint."""
    builder = TableBuilder(layout)
    for number in range(1, 9):
        builder.commit(at(number), {"eu": ["a"]})
    plain, created = getattr(builder.storage, verb), []

    def first_a_savepoint(path, *rest):
        if not created and ("archived/" in path or "history/" in path):
            with suppress(ConflictError):  # where the commit stands in the archive already
                created.append(builder.table().create_savepoint(at(4)))
        return plain(path, *rest)

    setattr(builder.storage, verb, first_a_savepoint)
    done = builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    times = [each.requested_time for each in builder.table().timeline.commits.completed()]
    if created:
        assert times == [at(number) for number in range(4, 9)]
        assert done.bound is Bound.SAVEPOINT
        assert [each.requested_time for each in done.instants if each.action is Action.COMMIT] == [at(1), at(2), at(3)]
        builder.table().delete_savepoint(at(4))
    builder.table().archive(keep_min_commits=2, keep_max_commits=3)
    assert [each.requested_time for each in builder.table().timeline.commits.completed()] == [at(7), at(8)]
    assert "instant-stale" not in {each.code for each in builder.table().check()}
