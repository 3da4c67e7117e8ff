"""Each entry of the table of pairs, played: what undoes or pins beside what is pending (`hudi_py.txn.pairs`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from hudi_py.errors import RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    CleanerPlan,
    CleanFileInfo,
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CompactionOperation,
    CompactionPlan,
    InstantInfo,
    RequestedReplaceMetadata,
    RestorePlan,
    RollbackPlan,
)
from hudi_py.txn.pairs import PAIRS, PENDING, REWRITES, WRITES, Answer, Pair, Relation, Service, judge
from support.tables import SYNC, TableBuilder, at
from support.undoing import update

between = "{:.10}4500000".format
TARGET, SAVEPOINT, LATE, EARLY = at(4), at(2), at(6), at(0)
WRITTEN = (*WRITES, *REWRITES)
DOCUMENT = Path(__file__).resolve().parents[3] / "docs/decisions/pairs.md"
CASES = [
    pytest.param(pair, state, layout, id=f"{pair}, {state.name.lower()}, layout {layout}")
    for pair in PAIRS
    for state in pair.states
    for layout in (1, 2)
    if not (layout == 1 and pair.action is Action.CLUSTERING and pair.service is Service.ARCHIVE)
]


def built(layout: int, service: Service) -> TableBuilder:
    """Group a in four commits, group b in the first; a restore and a deletion have a savepoint of the second."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a", "b"]})
    for number in (2, 3, 4):
        update(builder, at(number), {"eu": ["a"]}, at(number - 1))
    if service in (Service.RESTORE, Service.SAVEPOINT_DELETE):
        builder.table().create_savepoint(SAVEPOINT)
    return builder


def begin(builder: TableBuilder, pair: Pair, state: State) -> str:
    """Put the pending instant of the pair on the timeline; returns its time."""
    makers: dict[Action, Callable[[TableBuilder, Pair, State], str]] = {
        Action.CLEAN: _clean,
        Action.COMPACTION: _compaction,
        Action.LOG_COMPACTION: _compaction,
        Action.CLUSTERING: _clustering,
        Action.ROLLBACK: _rollback,
        Action.RESTORE: _restore,
        Action.SAVEPOINT: _savepoint,
        Action.INDEXING: _plain,
    }
    time = makers.get(pair.action, _plain)(builder, pair, state)
    if pair.relation is Relation.ALIVE:
        builder.storage._clock_ms = lambda: int(builder.clock.now().timestamp() * 1000)
        builder.put(f".hoodie/.heartbeat/{time}", b"")
    return time


def _states(builder: TableBuilder, time: str, action: str, state: State, content: bytes) -> str:
    builder.instant(time, action, State.REQUESTED, content)
    if state is State.INFLIGHT:
        builder.instant(time, action, State.INFLIGHT, content if action == "clean" else b"")
    return time


def _clean(builder: TableBuilder, pair: Pair, state: State) -> str:
    """Of the slice below the one that is undone, or of the oldest one, which nobody needs."""
    needed = {Service.ROLLBACK: at(3), Service.RESTORE: SAVEPOINT, Service.SAVEPOINT_CREATE: TARGET}
    time = needed[pair.service] if pair.relation is Relation.NEEDED else at(1)
    path = f"{builder.storage.root}/{join_path('eu', builder.base_name('a', time))}"
    plan = CleanerPlan(
        earliest_instant_to_retain=None,
        last_completed_commit_timestamp=TARGET,
        policy="KEEP_LATEST_FILE_VERSIONS",
        files_to_delete={"eu": (CleanFileInfo(path),)},
    )
    return _states(builder, LATE, "clean", state, codec.encode_cleaner_plan(plan, sync=SYNC))


def _began(pair: Pair) -> str:
    """Before everything where a restore leaves it alone, between two commits where an archival ends there."""
    if pair.service is Service.ARCHIVE:
        return between(at(2))
    return EARLY if pair.service is Service.RESTORE and pair.relation is Relation.ANY else LATE


def _group(pair: Pair) -> tuple[str, str]:
    """File group and the base instant that its plan reads."""
    return ("b", at(1)) if pair.relation is Relation.ANY else ("a", TARGET)


def _compaction(builder: TableBuilder, pair: Pair, state: State) -> str:
    group, base = _group(pair)
    operation = CompactionOperation(
        base_instant_time=base,
        file_id=group,
        partition_path="eu",
        data_file_path=builder.base_name(group, base),
        delta_file_paths=(),
    )
    content = codec.encode_compaction_plan(CompactionPlan(operations=(operation,)), sync=SYNC)
    return _states(builder, _began(pair), pair.action.value, state, content)


def _clustering(builder: TableBuilder, pair: Pair, state: State) -> str:
    group, base = _group(pair)
    old = ClusteringSlice(file_id=group, partition_path="eu", data_file_path=builder.base_name(group, base))
    plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=(old,)),))
    content = codec.encode_requested_replace(
        RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan), sync=SYNC
    )
    action = "clustering" if builder.layout.version == 2 else "replacecommit"
    return _states(builder, _began(pair), action, state, content)


def _plain(builder: TableBuilder, pair: Pair, state: State) -> str:
    content = b""
    if pair.action is Action.REPLACE_COMMIT:
        content = codec.encode_requested_replace(RequestedReplaceMetadata(), sync=SYNC)
    return _states(builder, _began(pair), pair.action.value, state, content)


def _rollback(builder: TableBuilder, pair: Pair, state: State) -> str:
    """Of the commit itself, by its own plan; or of a failed write whose instants are gone already."""
    plan = RollbackPlan(instant_to_rollback=InstantInfo(at(5), "commit"), rollback_requests=())
    if pair.relation is Relation.SAME:
        plan = builder.table().services.rollback().plan(TARGET)
    return _states(builder, LATE, "rollback", state, codec.encode_rollback_plan(plan, SYNC))


def _restore(builder: TableBuilder, pair: Pair, state: State) -> str:
    """To the savepoint there is; or, where another one is meant, to one of the first commit."""
    is_same = pair.relation is Relation.SAME
    undone = (at(4), at(3))
    if pair.service is Service.SAVEPOINT_CREATE and not is_same:
        undone = ()
    plan = RestorePlan(
        instants_to_rollback=tuple(InstantInfo(time, "commit") for time in undone),
        savepoint_to_restore_timestamp=SAVEPOINT if is_same else at(1),
    )
    return _states(builder, LATE, "restore", state, codec.encode_restore_plan(plan, SYNC))


def _savepoint(builder: TableBuilder, pair: Pair, state: State) -> str:
    same = {Service.SAVEPOINT_DELETE: at(3), Service.ARCHIVE: at(3)}.get(pair.service, TARGET)
    time = same if pair.relation is Relation.SAME or pair.service is Service.ARCHIVE else at(1)
    builder.instant(time, "savepoint", state)
    return time


def run(builder: TableBuilder, pair: Pair) -> None:
    """The service, asked for by a user; where the pair is about an interrupted savepoint, for that one."""
    opened = builder.table()
    if pair.service is Service.ROLLBACK and pair.relation is Relation.ALIVE:
        opened.rollback(LATE)
    elif pair.service is Service.ROLLBACK:
        opened.rollback(TARGET)
    elif pair.service is Service.RESTORE:
        opened.restore(SAVEPOINT)
    elif pair.service is Service.SAVEPOINT_CREATE:
        opened.create_savepoint(TARGET)
    elif pair.service is Service.SAVEPOINT_DELETE:
        is_interrupted = pair.action is Action.SAVEPOINT and pair.relation is Relation.SAME
        assert opened.delete_savepoint(at(3) if is_interrupted else SAVEPOINT)
    else:
        opened.archive(keep_min_commits=1, keep_max_commits=2)


def is_done(builder: TableBuilder, pair: Pair) -> bool:
    """Whether the service has done what it is for."""
    timeline = builder.table().timeline
    commits = [i.requested_time for i in timeline.completed("commit")]
    savepoints = [i.requested_time for i in timeline.completed("savepoint")]
    return {
        Service.ROLLBACK: commits == [at(1), at(2), at(3)] and latest(builder) == at(3),
        Service.RESTORE: commits == [at(1), at(2)] and latest(builder) == at(2),
        Service.SAVEPOINT_CREATE: savepoints == [TARGET],
        Service.SAVEPOINT_DELETE: at(3) not in savepoints and SAVEPOINT not in savepoints,
        Service.ARCHIVE: commits == [TARGET],
    }[pair.service]


def latest(builder: TableBuilder) -> str:
    (time,) = [s.base_instant_time for s in builder.table().file_slices("eu") if s.file_id == "a" and s.base_file]
    return time


def pending(builder: TableBuilder, time: str) -> list[Instant]:
    return [i for i in builder.table().timeline.pending() if i.requested_time == time]


def would_withdraw(builder: TableBuilder, pair: Pair) -> list[str]:
    """Requested times of the plans that a dry run says would go."""
    table = builder.table().read_only()
    if pair.service is Service.ROLLBACK and pair.relation is not Relation.SAME:
        return [each.requested_time for each in table.services.rollback().preview(TARGET).withdrawn]
    if pair.service is Service.RESTORE and pair.relation is not Relation.SAME:
        return [each.requested_time for each in table.services.restore().preview(SAVEPOINT).withdrawn]
    return []


@pytest.mark.parametrize(("pair", "state", "layout"), CASES)
def test_pair(pair, state, layout):
    """The service does what the table says: nothing at all, or its work; the pending instant is left or dealt with."""
    builder = built(layout, pair.service)
    time = begin(builder, pair, state)
    assert pending(builder, time)
    before = builder.storage.files()
    if pair.answer is Answer.REFUSED and pair.service is not Service.ARCHIVE:
        with pytest.raises(RefusedError, match=re.escape(pair.reason[:30])):
            run(builder, pair)
        assert before == builder.storage.files()
        return
    assert (time in would_withdraw(builder, pair)) is (pair.answer is Answer.WITHDRAWN)
    assert before == builder.storage.files()
    run(builder, pair)
    if pair.answer in (Answer.ENDS_THERE, Answer.REFUSED):
        assert not is_done(builder, pair)
        assert pending(builder, time)
        return
    is_interrupted_deletion = pair.service is Service.SAVEPOINT_DELETE and pair.relation is Relation.SAME
    assert is_interrupted_deletion or is_done(builder, pair)
    is_gone = pair.answer in (Answer.WITHDRAWN, Answer.INCLUDED)
    rolled_away = pair.service is Service.RESTORE and pair.action is Action.ROLLBACK
    assert bool(pending(builder, time)) is not (is_gone or rolled_away)


WAYS_OUT = [
    p
    for p in PAIRS
    if p.service is Service.ROLLBACK
    and p.answer is Answer.REFUSED
    and p.action in WRITTEN
    and p.relation is not Relation.ALIVE
]
LIVELY = pytest.mark.parametrize("service", [Service.ROLLBACK, Service.RESTORE])


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("pair", WAYS_OUT, ids=str)
def test_way_out_of_a_refusal_works(pair, layout):
    """What is under way is rolled back by name, as the message says; then the commit can be."""
    builder = built(layout, pair.service)
    time = begin(builder, pair, State.INFLIGHT)
    with pytest.raises(RefusedError, match="hudi-py rollback"):
        run(builder, pair)
    builder.table().rollback(time)
    run(builder, pair)
    assert is_done(builder, pair)
    assert not builder.table().timeline.pending()


@pytest.mark.parametrize("layout", [1, 2])
@LIVELY
@pytest.mark.parametrize("action", [Action.COMMIT, Action.REPLACE_COMMIT])
def test_a_live_heartbeat_is_never_overruled(service, action, layout):
    """Named with its age, in the dry run too; once it is expired the writer is dead, and the service goes on."""
    builder = built(layout, service)
    pair = next(p for p in PAIRS if (p.service, p.action, p.relation) == (service, action, Relation.ALIVE))
    time = begin(builder, pair, State.INFLIGHT)
    builder.clock.move(timedelta(seconds=60))
    for asked in (
        lambda: run(builder, pair),
        lambda: (
            builder.table().services.restore().plan(SAVEPOINT)
            if service is Service.RESTORE
            else builder.table().services.rollback().plan(LATE)
        ),
    ):
        with pytest.raises(RefusedError, match=rf"\.hoodie/\.heartbeat/{time} is \d+ s old and expires after 120 s"):
            asked()
    builder.clock.move(timedelta(seconds=61))
    run(builder, pair)
    assert not builder.table().timeline.pending()


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("service", ["rollback", "restore"])
def test_what_was_only_requested_does_not_overrule_a_heartbeat_either(service, layout):
    """Somebody has planned to undo the write, and its heart beats again: nothing is undone, it may go on later."""
    builder = built(layout, Service.RESTORE)
    pair = next(p for p in PAIRS if (p.action, p.relation) == (Action.COMMIT, Relation.ALIVE))
    time = begin(builder, pair, State.INFLIGHT)
    if service == "rollback":
        plan = RollbackPlan(instant_to_rollback=InstantInfo(time, "commit"), rollback_requests=())
        builder.instant(at(7), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, SYNC))
    else:
        undone = tuple(InstantInfo(each, "commit") for each in (time, at(4), at(3)))
        asked = RestorePlan(instants_to_rollback=undone, savepoint_to_restore_timestamp=SAVEPOINT)
        builder.instant(at(7), "restore", State.REQUESTED, codec.encode_restore_plan(asked, SYNC))
    before = builder.storage.files()
    with pytest.raises(RefusedError, match="its writer is at work, by its heartbeat"):
        builder.table().rollback(time) if service == "rollback" else builder.table().restore(SAVEPOINT)
    assert before == builder.storage.files()


@pytest.mark.parametrize("layout", [1, 2])
def test_rollback_of_all_failed_writes_spares_a_live_one(layout):
    """Its heart beats, so it has not failed."""
    builder = built(layout, Service.ROLLBACK)
    pair = next(p for p in PAIRS if (p.action, p.relation) == (Action.COMMIT, Relation.ALIVE))
    time = begin(builder, pair, State.INFLIGHT)
    assert builder.table().rollback_failed_writes() == []
    assert pending(builder, time)


def test_table_is_complete_and_unambiguous():
    """Every service has one answer for every action in every pending state."""
    for service in Service:
        for action in Action:
            for state in PENDING[1:] if action is Action.SAVEPOINT else PENDING:
                for relation in Relation:
                    found = [
                        p
                        for p in PAIRS
                        if (p.service, p.action, p.relation) == (service, action, relation) and state in p.states
                    ]
                    assert len(found) == 1 or (not found and relation is not Relation.ANY)
                assert judge(service, Instant(at(1), action, state)).service is service


def rendered() -> str:
    """The table as the document shows it."""
    lines = []
    for service in Service:
        lines += [
            f"### {service.value.capitalize()}",
            "",
            "| beside | state | when | answer | why |",
            "|---|---|---|---|---|",
        ]
        merged: dict[tuple[str, ...], list[str]] = {}
        for pair in (each for each in PAIRS if each.service is service):
            states = ", ".join(state.name.lower() for state in pair.states)
            key = (states, pair.relation.value, pair.answer.value, pair.reason)
            merged.setdefault(key, []).append(pair.action.value)
        lines += [f"| {', '.join(actions)} | {' | '.join(key)} |" for key, actions in merged.items()]
        lines.append("")
    return "\n".join(lines)


@pytest.mark.parametrize("layout", [1, 2])
@pytest.mark.parametrize("state", PENDING)
def test_a_clean_goes_on_beside_an_index_that_is_being_made(layout, state):
    """It deletes the slices that the newest one replaces, and leaves the other process its index."""
    builder = built(layout, Service.ROLLBACK)
    builder.instant(LATE, "indexing", State.REQUESTED)
    if state is State.INFLIGHT:
        builder.instant(LATE, "indexing", State.INFLIGHT)
    before = sum(path.startswith("eu/") for path in builder.storage.files())
    builder.table().clean(file_versions_retained=1)
    assert sum(path.startswith("eu/") for path in builder.storage.files()) == before - 3
    (left,) = builder.table().timeline.pending()
    assert (left.action, left.state) == (Action.INDEXING, state)


def test_document_shows_the_table():
    """docs/decisions/pairs.md is what the services do."""
    assert rendered().rstrip() in DOCUMENT.read_text(encoding="utf-8")
