"""Which writes may be rolled back, and what a plan makes of what they left; no table at all."""

from __future__ import annotations

from itertools import combinations

import pytest

from hudi_py.config.table import TableType
from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, InstantInfo, RollbackPlan, RollbackRequest, WriteStat
from hudi_py.services.rollback.plan import (
    RUN_AGAIN,
    Written,
    appended_to,
    belongs_to,
    blocks_to_undo,
    check_named,
    check_no_logs_above,
    check_not_the_end,
    failed_writes,
    files_of_commit,
    named_write,
    rollback_plan,
    target_info,
)
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import LogNaming
from support.tables import TableBuilder, at

NAME = TableBuilder.base_name
BASE, LOG, CHANGES = NAME("a", at(3)), f".a_{at(1)}.log.1_0-1-0", f".a_{at(3)}.log.1_0-1-0.cdc"
TARGET = InstantInfo(at(3), "deltacommit")
ROOT = "/lake/trips"


def instant(number: int, action: Action = Action.COMMIT, state: State = State.COMPLETED) -> Instant:
    return Instant(at(number), action, state)


def timeline(*instants: Instant) -> Timeline:
    return Timeline(tuple(sorted(instants, key=lambda each: each.requested_time)))


@pytest.mark.parametrize("table_type", TableType)
def test_failed_writes_come_newest_first_and_services_are_run_again(table_type):
    """Of those that are pending; a clustering of layout 1 is told by its plan."""
    writes = [Action.COMMIT, Action.REPLACE_COMMIT]
    if table_type is TableType.MERGE_ON_READ:
        writes.append(Action.DELTA_COMMIT)
    instants = [instant(1)] + [
        instant(n, action, state)
        for n, (action, state) in enumerate(
            ((action, state) for action in (*writes, *RUN_AGAIN) for state in (State.REQUESTED, State.INFLIGHT)), 2
        )
    ]
    failed = [each for each in reversed(instants) if each.is_pending and each.action in writes]
    assert list(failed_writes(timeline(*instants), table_type)) == failed
    clusterings = frozenset(each.requested_time for each in failed if each.action is Action.REPLACE_COMMIT)
    assert list(failed_writes(timeline(*instants), table_type, clusterings=clusterings)) == [
        each for each in failed if each.action is not Action.REPLACE_COMMIT
    ]


def test_a_write_is_named_by_its_time():
    """Completed or not; what is no write is none."""
    writes = instant(1), instant(2, state=State.INFLIGHT)
    named = timeline(*writes, instant(3, Action.CLEAN))
    assert [named_write(named, each.requested_time) for each in writes] == list(writes)
    for number in (3, 4):
        with pytest.raises(ConfigError, match="not a commit of the active timeline"):
            named_write(named, at(number))


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT, State.COMPLETED])
def test_what_stands_in_the_way_of_a_rollback(state):
    """A pending restore always; later completed commits and a savepoint where the write is completed."""
    target = instant(3, state=state)
    standing = {
        "restore": instant(5, Action.RESTORE, State.INFLIGHT),
        "came after it": instant(4),
        "savepointed": instant(3, Action.SAVEPOINT),
    }
    harmless = [instant(2), instant(4, state=State.INFLIGHT), instant(5, Action.RESTORE), instant(6, Action.CLEAN)]
    check_named(timeline(target, *harmless), TableType.COPY_ON_WRITE, target)
    check_named(timeline(target, instant(3, Action.SAVEPOINT, State.INFLIGHT)), TableType.COPY_ON_WRITE, target)
    for why, each in standing.items():
        if target.is_pending and why != "restore":
            check_named(timeline(target, each), TableType.COPY_ON_WRITE, target)
            continue
        with pytest.raises(RefusedError, match=why):
            check_named(timeline(target, each), TableType.COPY_ON_WRITE, target)


@pytest.mark.parametrize(("last", "why"), [("", "the only active commit"), (at(2), "are older, with savepoints")])
def test_the_last_commit_before_archived_ones_stays(last, why):
    """Those that are newer than all that stay would be out of sight."""
    check_not_the_end(last, (), instant(5), lambda: "ways")
    words = rf"{why}.* {at(4)}, would be hidden from readers; nothing was changed\. ways"
    with pytest.raises(RefusedError, match=words):
        check_not_the_end(last, {at(4), at(3)}, instant(5), lambda: "ways")


def test_only_logs_on_the_slice_of_a_compaction_keep_it():
    """Those of other slices, and its base file, do not lie on it."""
    target = instant(3)
    check_no_logs_above(target, {"r0": [LOG, BASE, "x"], "r1": []})
    with pytest.raises(RefusedError, match=r"r1/.*belongs to a base file of it"):
        check_no_logs_above(target, {"r0": [LOG], "r1": [BASE, f".a_{at(3)}.log.1_0-1-0"]})


def test_files_of_a_commit_are_all_that_its_stats_name():
    """Base files, logs and change logs, by the partition of the commit."""
    stats = (
        WriteStat(file_id="a", path=f"r0/{BASE}", cdc_stats={f"r0/{CHANGES}": 9}),
        WriteStat(file_id="b", path=LOG),
        WriteStat(file_id="c", path=None),
    )
    metadata = CommitMetadata(partition_to_write_stats={"r0": stats, "": stats[1:2]})
    assert files_of_commit(metadata) == {("r0", BASE), ("r0", CHANGES), ("r0", LOG), ("", LOG)}
    assert files_of_commit(CommitMetadata()) == set()


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT, State.COMPLETED])
@pytest.mark.parametrize(
    ("action", "completed"),
    [
        (Action.COMMIT, Action.COMMIT),
        (Action.COMPACTION, Action.COMMIT),
        (Action.LOG_COMPACTION, Action.DELTA_COMMIT),
        (Action.CLUSTERING, Action.REPLACE_COMMIT),
    ],
)
def test_a_target_is_named_by_its_completed_action_unless_it_is_run_again(action, completed, state):
    """As Apache Hudi names it."""
    target = Instant(at(3), action, state)
    expected = action if target.is_pending else completed
    assert target_info(target) == InstantInfo(at(3), expected.value)


def test_a_plan_deletes_what_is_the_writes_own_and_undoes_blocks_in_the_rest():
    """One request for each file and each slice; read again, it says the same."""
    own = {("r0", BASE), ("r1", CHANGES), ("r0", "no_data_file"), ("", BASE)}
    appended = {
        ("r0", LOG): 1,
        ("r0", f".a_{at(1)}.log.2_0-1-0"): 2,
        ("r0", f".a_{at(2)}.log.1_0-1-0"): 3,
        ("r0", f".b_{at(1)}.log.1_0-1-0"): 4,
        ("r1", LOG): 5,
    }
    plan = rollback_plan(TARGET, Written(own=frozenset(own), appended=appended), ROOT)
    assert plan.instant_to_rollback == TARGET
    deleted = [(each, path) for each in plan.rollback_requests for path in each.files_to_be_deleted]
    assert {path for _, path in deleted} == {f"{ROOT}/{path}/{name}".replace("//", "/") for path, name in own}
    assert len(deleted) == len(own)
    assert {each.latest_base_instant for each, _ in deleted} == {TARGET.requested_time}
    assert {each.file_id for each, path in deleted if path.endswith((BASE, CHANGES))} == {"a"}
    sizes = {
        (each.partition_path, *item)
        for each in plan.rollback_requests
        for item in each.log_blocks_to_be_deleted.items()
    }
    assert sizes == {(path, name, size) for (path, name), size in appended.items()}
    blocks = blocks_to_undo(plan, at(3), LogNaming.BY_SLICE)
    assert {(each.partition_path, name) for each in blocks for name in each.log_names} == set(appended)
    assert len({(each.partition_path, *each.slice_key) for each in blocks}) == len(blocks) == 4
    for each in blocks:
        for log in map(parse_log_file, each.log_names):
            assert log is not None
            assert (log.file_id, log.instant_time) == each.slice_key == (each.file_id, each.base_instant_time)


def asks(**other: object) -> RollbackPlan:
    """A plan for blocks of group ``a`` on the slice of the first commit."""
    given = {
        "partition_path": "r0",
        "file_id": "a",
        "latest_base_instant": at(1),
        "log_blocks_to_be_deleted": {f"{ROOT}/r0/{LOG}": 1, f"{ROOT}/r0": 1},
        **other,
    }
    return RollbackPlan(instant_to_rollback=TARGET, rollback_requests=(RollbackRequest(**given),))


def test_a_plan_of_apache_hudi_may_name_the_folder_instead_of_logs():
    """Where it knows the file group only."""
    (block,) = blocks_to_undo(asks(), at(3), LogNaming.BY_SLICE)
    assert (block.slice_key, block.log_names) == (("a", at(1)), frozenset({LOG}))
    (block,) = blocks_to_undo(asks(log_blocks_to_be_deleted={f"{ROOT}/r0": 1}), at(3), LogNaming.BY_SLICE)
    assert block.log_names == frozenset()
    assert blocks_to_undo(asks(log_blocks_to_be_deleted={}), at(3), LogNaming.BY_SLICE) == ()


@pytest.mark.parametrize(
    "strange",
    [{"file_id": "b"}, {"latest_base_instant": at(2)}]
    + [
        {name: value, "log_blocks_to_be_deleted": {f"{ROOT}/r0": 1}}
        for name in ("file_id", "latest_base_instant")
        for value in ("", None)
    ]
    + [{"latest_base_instant": at(n), "log_blocks_to_be_deleted": {f"{ROOT}/r0": 1}} for n in (3,)],
)
def test_blocks_that_cannot_be_are_refused(strange):
    """Of another group or slice than the logs are, of none, or of the slice of the write itself."""
    with pytest.raises(RefusedError, match="nothing was changed"):
        blocks_to_undo(asks(**strange), at(3), LogNaming.BY_SLICE)


def test_layout_2_has_no_blocks_to_undo():
    """There each write has its own log files."""
    with pytest.raises(RefusedError, match="before the table was upgraded from version 6"):
        blocks_to_undo(asks(), at(3), LogNaming.BY_WRITE)
    assert blocks_to_undo(asks(log_blocks_to_be_deleted={}), at(3), LogNaming.BY_WRITE) == ()


def test_names_tell_whose_a_file_is():
    """A data file belongs to the write it names; a delta commit of layout 1 may have appended to logs of others."""
    names = {BASE: (True, True, False), LOG: (False, False, True), CHANGES: (True, False, False)}
    names[f".a_{at(3)}.log.1_0-1-0"] = (True, False, False)
    names[f".a_{at(4)}.log.1_0-1-0"] = (False, False, True)  # of a write that was requested later and was faster
    names |= dict.fromkeys((NAME("a", at(1)), ".hoodie_partition_metadata", "x"), (False,) * 3)
    names[f".a_{at(1)}.log.1_0-1-0.cdc"] = (False,) * 3
    for name, expected in names.items():
        found = belongs_to(name, at(3)), belongs_to(name, at(3), logs=False), appended_to(name, at(3))
        assert found == expected, name


def test_no_two_requests_are_for_one_file():
    """Whatever a write left."""
    names = [BASE, NAME("b", at(3)), f".b_{at(3)}.log.1_0-1-0"]
    for count in range(len(names) + 1):
        for some in combinations(names, count):
            plan = rollback_plan(TARGET, Written(own=frozenset(("r0", name) for name in some)), ROOT)
            assert len(plan.rollback_requests) == count
