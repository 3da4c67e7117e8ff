"""Which pending writes were completed once, and which archived ones there were, by what other instants tell."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from hudi_py.errors import CorruptMetadata
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    CleanerPlan,
    CleanMetadata,
    CleanPartitionMetadata,
    CommitMetadata,
    InstantInfo,
    RestoreMetadata,
    RestorePlan,
    RollbackMetadata,
    RollbackPlan,
    WriteStat,
)
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.table import Table
from hudi_py.timeline.before_start import Before
from hudi_py.timeline.completions import (
    contents_of,
    lost_completions,
    refuse_lost_completions,
    undone_by,
    undone_writes,
)
from hudi_py.timeline.timeline import Timeline
from support.tables import SYNC, TableBuilder, at

NAME = TableBuilder.base_name
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


def completed(number: int, action: Action = Action.COMMIT) -> Instant:
    return Instant(at(number), action, State.COMPLETED)


def pending(number: int, state: State = State.INFLIGHT) -> Instant:
    return Instant(at(number), Action.COMMIT, state)


def built_on(number: int, name: str = "a_0-1-0_5.parquet") -> CommitMetadata:
    """Of a commit that merged into what the other one wrote."""
    return CommitMetadata(
        partition_to_write_stats={"r0": (WriteStat(file_id="a", path=f"r0/{name}", prev_commit=at(number)),)}
    )


def clean_of(number: int, *deleted: str) -> CleanMetadata:
    """Of a clean that saw that last commit."""
    done = CleanPartitionMetadata(partition_path="r0", policy="x", delete_path_patterns=deleted)
    return CleanMetadata(
        start_clean_time="9",
        time_taken_ms=1,
        total_files_deleted=len(deleted),
        last_completed_commit_timestamp=at(number),
        partitions={"r0": done},
    )


def plan_of(number: int) -> CleanerPlan:
    return CleanerPlan(policy="x", last_completed_commit_timestamp=at(number))


def rollback(number: int) -> RollbackMetadata:
    return RollbackMetadata(
        start_rollback_time="9",
        time_taken_ms=1,
        total_files_deleted=0,
        commits_rollback=(at(number),),
        partitions={},
        instants_rollback=(),
    )


def restore(*numbers: int, rollbacks: Sequence[int] = ()) -> RestoreMetadata:
    return RestoreMetadata(
        start_restore_time="9",
        time_taken_ms=1,
        instants_to_rollback=tuple(map(at, numbers)),
        rollbacks={at(number): (rollback(number),) for number in rollbacks},
        restore_instant_info=(),
    )


def rollback_plan(number: int) -> RollbackPlan:
    return RollbackPlan(instant_to_rollback=InstantInfo(at(number), "commit"))


def restore_plan(number: int) -> RestorePlan:
    return RestorePlan(instants_to_rollback=(InstantInfo(at(number), "commit"),), savepoint_to_restore_timestamp=at(1))


TAKES_BACK: Mapping[str, Callable[[int], object]] = {
    "rollback plan": rollback_plan,
    "rollback": rollback,
    "restore plan": restore_plan,
    "restore": restore,
    "restore that names its rollbacks only": lambda number: restore(rollbacks=[number]),
}


@pytest.mark.parametrize("content", TAKES_BACK)
def test_every_record_of_undoing_tells_what_it_takes_back(content):
    """Plans and records of rollbacks and restores; nothing else tells."""
    assert undone_by(TAKES_BACK[content](3)) == {at(3)}


def test_undoing_nothing_is_known_from_not_knowing():
    """A rollback plan without a target takes nothing back; a damaged one may have taken back any."""
    assert undone_by(RollbackPlan(instant_to_rollback=None)) == set()
    assert undone_by(None) is None
    assert undone_by(clean_of(3)) is None


@LAYOUTS
@pytest.mark.parametrize("restored", [False, True])
def test_an_attempt_that_was_rolled_back_may_have_run_again(layout, restored):
    """B-25: a service keeps its time, so a restore later on does not say which attempt wrote a file."""
    builder = TableBuilder(layout)
    for number, action in ((2, "commit"), (3, "compaction")):
        info = InstantInfo(at(number), action)
        content = attrs.evolve(rollback(number), instants_rollback=(info,))
        data = codec.encode_rollback_metadata(content, sync=SYNC)
        builder.instant(at(number + 3), "rollback", State.COMPLETED, data)
    if restored:
        builder.instant(at(8), "restore", State.COMPLETED, codec.encode_restore_metadata(restore(2, 3), sync=SYNC))
    table = builder.table()
    undone = undone_writes(table.contents, table.timeline)
    assert {time: each.may_run_again for time, each in undone.items()} == {at(2): False, at(3): True}
    by = {at(8)} if restored else {at(5), at(6)}
    assert by == {time for each in undone.values() for time in by if time in each.by}
    assert undone_writes(table.contents, table.timeline, after=at(8)) == {}


@pytest.mark.parametrize("content", [clean_of(3), plan_of(3), built_on(3)], ids=["clean", "clean plan", "commit"])
@pytest.mark.parametrize("undone", [None, 2, 3])
def test_a_write_is_missed_where_a_later_instant_saw_it_completed(content, undone):
    """Unless something took it back; that another one was taken back does not matter."""
    lost = pending(3)
    told = completed(5, Action.COMMIT if isinstance(content, CommitMetadata) else Action.CLEAN)
    timeline = Timeline((completed(1), pending(2), lost, told))
    contents = [(told, content)]
    assert set(lost_completions(timeline, contents)) == {lost}
    for record in TAKES_BACK.values():
        more = [] if undone is None else [(completed(6, Action.ROLLBACK), record(undone))]
        assert set(lost_completions(timeline, [*contents, *more])) == (set() if undone == 3 else {lost})
    assert lost_completions(timeline, [*contents, (completed(6, Action.RESTORE), None)]) == {}


@pytest.mark.parametrize("content", [clean_of(3), plan_of(3), built_on(3)])
def test_what_came_before_a_write_proves_nothing_of_it(content):
    """An instant cannot have seen what is not older than it is; nor are logs merged into base files."""
    timeline = Timeline((completed(1), pending(3)))
    for number in (2, 3):
        assert lost_completions(timeline, [(completed(number, Action.CLEAN), content)]) == {}
    assert lost_completions(timeline, [(completed(5), built_on(3, ".a_5.log.1_0-1-0"))]) == {}
    stats = (WriteStat(file_id="a", prev_commit=None), WriteStat(file_id="a", path=None, prev_commit=at(1)))
    assert lost_completions(timeline, [(completed(5), CommitMetadata(partition_to_write_stats={"r0": stats}))]) == {}


def test_a_write_that_is_only_requested_was_never_completed():
    """It is inflight before; what tells otherwise tells of one that was rolled back."""
    told = (completed(5, Action.CLEAN), clean_of(3))
    assert lost_completions(Timeline([completed(1), pending(3, State.REQUESTED), told[0]]), [told]) == {}
    assert lost_completions(Timeline([completed(1), pending(3), told[0]]), [told]) != {}


def test_other_proofs_count_as_what_instants_tell():
    """And give way to a rollback as those do."""
    lost = pending(3)
    timeline = Timeline((completed(1), lost))
    assert lost_completions(timeline, (), {at(3): "the checksum"}) == {lost: "the checksum"}
    assert lost_completions(timeline, (), {at(4): "the checksum"}) == {}
    undone = [(completed(6, Action.ROLLBACK), rollback(3))]
    assert lost_completions(timeline, undone, {at(3): "the checksum"}) == {}


def without_completion(layout: int) -> TableBuilder:
    """The completed file of the third commit is lost, and a clean saw it."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]}, state=State.INFLIGHT if number == 3 else State.COMPLETED)
    builder.cleaned(at(4), earliest=at(3), last_commit=at(3))
    return builder


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT, State.COMPLETED])
@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_rollbacks_and_restores_on_the_timeline_account_for_it(layout, state, number, action):
    """Whether they are still under way or done; of another write they are no excuse."""
    builder = without_completion(layout)
    plan = codec.encode_rollback_plan(rollback_plan(number), sync=SYNC)
    done = codec.encode_rollback_metadata(rollback(number), sync=SYNC)
    if action == "restore":
        plan = codec.encode_restore_plan(restore_plan(number), sync=SYNC)
        done = codec.encode_restore_metadata(restore(number), sync=SYNC)
    for each in State:
        if each <= state:
            told = {State.REQUESTED: b"torn" if state is State.COMPLETED else plan, State.COMPLETED: done}.get(
                each, b""
            )
            builder.instant(at(5), action, each, told)
    table = builder.table()
    if number == 3:
        refuse_lost_completions(table.timeline, table.contents)
        return
    with pytest.raises(CorruptMetadata, match=f"{at(3)}.*was completed once"):
        refuse_lost_completions(table.timeline, table.contents)


@LAYOUTS
def test_an_older_rollback_accounts_for_nothing(layout):
    """It cannot have taken back a write that began after it, even where it cannot be read."""
    builder = without_completion(layout)
    builder.instant("20260101023000000", "rollback", State.REQUESTED, b"torn")
    table = builder.table()
    with pytest.raises(CorruptMetadata, match=f"{at(3)}.*was completed once"):
        refuse_lost_completions(table.timeline, table.contents)


@LAYOUTS
def test_only_the_writes_that_matter_are_asked_about(layout):
    """Another lost one is for those who need it; one that is under way beside it does not stand for it."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a"]})
    for number in (2, 3):
        builder.commit(at(number), {"r0": ["a"]}, state=State.INFLIGHT)
    builder.cleaned(at(4), earliest=at(1), last_commit=at(3))
    table = builder.table()
    for times, is_refused in (([], False), ([at(2)], False), ([at(3)], True), ([at(2), at(3)], True), (None, True)):
        if is_refused:
            with pytest.raises(CorruptMetadata, match=at(3)):
                refuse_lost_completions(table.timeline, table.contents, times)
        else:
            refuse_lost_completions(table.timeline, table.contents, times)


@LAYOUTS
def test_a_write_that_is_completed_or_undone_meanwhile_is_not_missed(layout):
    """The timeline was loaded before; the clean that saw the write came in between."""
    builder = without_completion(layout)
    seen = builder.table()
    timeline = seen.timeline
    builder.commit(at(3), {"r0": ["a"]})
    refuse_lost_completions(timeline, seen.contents)
    (inflight,) = timeline.writes.pending()
    for each in seen.contents.store.files_of(inflight):
        builder.storage.delete(seen.contents.store.path(each))
    refuse_lost_completions(timeline, seen.contents)


@LAYOUTS
def test_no_content_is_read_where_no_write_is_under_way(layout):
    """The question costs nothing then."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"r0": ["a"]})
    builder.commit(at(2), {"r0": ["a"]}, state=State.REQUESTED)
    builder.cleaned(at(4), earliest=at(1), last_commit=at(1))
    storage = RecordingStorage(builder.storage)
    table = Table(storage, clock=builder.clock)
    timeline, before = table.timeline, len(storage.calls)
    refuse_lost_completions(timeline, table.contents)
    assert storage.calls[before:] == []


@LAYOUTS
def test_contents_that_are_damaged_or_deleted_are_none(layout):
    """The others are told as they are."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]})
    table = builder.table()
    whole, damaged, deleted = table.timeline.completed(Action.COMMIT)
    builder.put(table.contents.store.path(damaged), b"torn")
    builder.storage.delete(table.contents.store.path(deleted))
    found = dict(contents_of(table.contents, (whole, damaged, deleted)))
    assert found == {whole: table.contents.commit(whole), damaged: None, deleted: None}


# --- before the start of the timeline --------------------------------------------------------------------------------
EARLY = Timeline((completed(5), completed(6)))


@pytest.mark.parametrize(
    ("content", "times"),
    [
        (built_on(3), {at(3)}),
        (built_on(5), set()),
        (built_on(3, ".a_5.log.1_0-1-0"), set()),
        (clean_of(3), {at(3)}),
        (clean_of(6, NAME("a", at(3)), ".a_x.log.1_0-1-0", "x"), {at(3)}),
        (clean_of(6, NAME("a", at(5))), set()),
        (plan_of(3), set()),
        (None, set()),
    ],
)
def test_archived_writes_are_told_by_the_names_of_commits_and_cleans(content, times):
    """Those that are on the timeline are none, nor are plans and logs proof."""
    action = Action.COMMIT if isinstance(content, CommitMetadata) else Action.CLEAN
    found = list(Before(EARLY, [(completed(6, action), content)]).earlier())
    assert {each.time for each in found} == times
    assert all(each.time in each.why for each in found)


def test_what_was_taken_back_was_never_archived():
    """Nor is a time of the initial load, or what is no time at all."""
    assert Before(EARLY, ()).is_archived(at(3))
    for record in TAKES_BACK.values():
        before = Before(EARLY, [(completed(6, Action.ROLLBACK), record(3))])
        assert not before.is_archived(at(3))
        assert before.is_archived(at(2))
    assert [Before(EARLY, ()).is_archived(each) for each in ("00000000000001", "1x", "", at(5), at(6), at(7))] == [
        False
    ] * 6
    assert not Before(Timeline(()), ()).is_archived(at(3))
    known = Timeline((Instant(at(3), Action.COMMIT, State.INFLIGHT), completed(5)))
    assert not Before(known, ()).is_archived(at(3))
