"""One damaged instant never stops a command that does not need it, and is always an error of ours that names it."""

from __future__ import annotations

import random

import pytest

from hudi_py.errors import CorruptMetadata, HudiError
from hudi_py.formats import records_codec as codec
from hudi_py.formats.avro_file import encode_avro_file
from hudi_py.formats.commit_json import encode_json
from hudi_py.formats.instant_content import decode_content
from hudi_py.model import records
from hudi_py.model.files import is_partition_path
from hudi_py.model.instant import State
from hudi_py.services.recovery.finding import Problem, Step
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.timeline.fence import put_up_fence
from support.tables import SYNC, TableBuilder, at

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
TEXTS = ("", "x", "no-such", "99999999999999999", "20261399999999", "../../etc", "0" * 300, "a\x1b[31m", "\u0663" * 17)
NUMBERS = (-1, 0, 1, 2**31 - 1, 2**62, -(2**63))
ODD = (None, {}, [], "", 5, [None], {"x": None}, {"a": {}}, True, 1.5)
MUTATIONS = 6


def rollback_plan(target: records.InstantInfo | None) -> bytes:
    return codec.encode_rollback_plan(records.RollbackPlan(instant_to_rollback=target), SYNC)


def restore_plan(*targets: records.InstantInfo, savepoint: str = at(1)) -> bytes:
    plan = records.RestorePlan(instants_to_rollback=targets, savepoint_to_restore_timestamp=savepoint)
    return codec.encode_restore_plan(plan, SYNC)


def table_of_every_kind(layout: int) -> TableBuilder:
    """Completed and pending instants of every action; the last ones are under way."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    for number in (1, 2, 3):
        builder.commit(at(number), {"eu": ["a", "b"]}, action="deltacommit")
    builder.savepoint(at(1), {"eu": [builder.base_name("a", at(1))]})
    builder.log_files(at(4), [("eu", "a", at(3))])
    builder.commit(at(5), {"eu": ["c"]}, replaced={"eu": ["b"]})
    builder.cleaned(at(6), earliest=at(1), last_commit=at(5))
    done = records.RollbackMetadata(
        start_rollback_time=at(7), time_taken_ms=1, total_files_deleted=0, commits_rollback=(at(50),), partitions={},
        instants_rollback=(records.InstantInfo(at(50), "commit"),),
    )  # fmt: skip
    builder.instant(at(7), "rollback", State.REQUESTED, rollback_plan(records.InstantInfo(at(50), "commit")))
    builder.instant(at(7), "rollback", State.INFLIGHT)
    builder.instant(at(7), "rollback", State.COMPLETED, codec.encode_rollback_metadata(done, SYNC))
    restored = records.RestoreMetadata(
        start_restore_time=at(8),
        time_taken_ms=1,
        instants_to_rollback=(at(51),),
        rollbacks={at(51): (done,)},
        restore_instant_info=(records.InstantInfo(at(51), "commit"),),
    )
    builder.instant(at(8), "restore", State.REQUESTED, restore_plan(records.InstantInfo(at(51), "commit")))
    builder.instant(at(8), "restore", State.INFLIGHT)
    builder.instant(at(8), "restore", State.COMPLETED, codec.encode_restore_metadata(restored, SYNC))
    builder.compaction(at(9), [("eu", "a", at(3), [f".a_{at(3)}.log.1_0-1-0"])])
    builder.instant(at(10), "deltacommit", State.REQUESTED)
    builder.instant(at(10), "deltacommit", State.INFLIGHT)
    builder.instant(at(11), "rollback", State.REQUESTED, rollback_plan(records.InstantInfo(at(10), "deltacommit")))
    builder.instant(at(12), "restore", State.REQUESTED, restore_plan(records.InstantInfo(at(5), "replacecommit")))
    return builder


KINDS = sorted(
    {
        name.rpartition("/")[2].partition(".")[2]
        for name in table_of_every_kind(1).storage.files()
        if name.startswith(".hoodie/2026")
    }
)


def leaves(value, path=()):
    """Every place in nested plain data: path and what stands there."""
    yield path, value
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from leaves(inner, (*path, key))


def put(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = put(copy[path[0]], path[1:], new)
    return copy


def other_field(data: bytes, chance: random.Random) -> bytes:
    """The same instant with another value in one place; bytes where the schema has no place for it."""
    content = decode_content(data, "test")
    if content.kind == "empty":
        return chance.randbytes(30)
    path, old = chance.choice(list(leaves(content.value))[1:])
    pool = TEXTS if isinstance(old, str) else NUMBERS if isinstance(old, int) else (*ODD, *TEXTS)
    value = put(content.value, path, chance.choice(pool if chance.random() < 0.7 else ODD))
    try:
        if content.kind == "json":
            return encode_json(value)
        return encode_avro_file(content.schema_text, value, content.sync)
    except Exception:  # the writer of a test has no such value
        return other_bytes(data, chance)


def other_bytes(data: bytes, chance: random.Random) -> bytes:
    """Torn, or with bytes that came in between."""
    at_byte = chance.randrange(len(data)) if data else 0
    if chance.random() < 0.4:
        return data[:at_byte]
    return data[:at_byte] + chance.randbytes(chance.randint(1, 9)) + data[at_byte + chance.randint(0, 9) :]


def fails_as_ours(command) -> None:
    try:
        command()
    except HudiError:
        return


@LAYOUTS
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_an_instant_holds_only_our_errors_come_out(layout, kind):
    """Looking and planning end in an answer or an error of ours; check and recover end in an answer."""
    seed = f"{layout} {kind} 1"
    chance = random.Random(seed)
    whole = table_of_every_kind(layout).storage
    paths = [path for path in whole.files() if path.partition("/2026")[2].partition(".")[2] == kind]
    for round_number in range(MUTATIONS if paths else 0):
        path = chance.choice(paths)
        storage = whole.copy()
        change = chance.choice((other_field, other_field, other_bytes))
        storage.replace(path, change(whole.read(path), chance))
        told = f"seed {seed!r}, round {round_number}: {path}"
        for command in commands(storage):
            try:
                fails_as_ours(command)
            except Exception as error:
                raise AssertionError(told) from error
        assert check_and_recover_tell(storage, path), told


def commands(storage: MemoryStorage):
    def table():
        return Table(storage).read_only()

    return (
        lambda: table().timeline.instants,
        lambda: table().file_slices("eu"),
        lambda: table().plan_clean(commits_retained=1),
        lambda: table().plan_clean(hours_retained=1, keep_daily=1, keep_weekly=1),
        lambda: table().overview(),
        lambda: table().history(archived=True),
        lambda: table().simulate(commits_retained=1),
        lambda: table().diff(at(1)),
        lambda: table().usage(),
        lambda: table().explain("eu"),
        lambda: table().services.rollback().plan(at(5)),
        lambda: table().services.restore().plan(at(1)),
    )


def check_and_recover_tell(storage: MemoryStorage, path: str) -> bool:
    """Both go through; where the instant cannot be understood, both name it."""
    found, outcomes = Table(storage).check(), Table(storage).recover(dry_run=True)
    if not any(each.code == "instant-unreadable" and each.where == path for each in found):
        return True
    time = path.rpartition("/")[2][:17]
    return any(each.finding.time == time or path in each.finding.paths for each in outcomes)


# --- plans that name what cannot be undone ------------------------------------------------------------------------
@pytest.mark.parametrize(
    "info",
    [records.InstantInfo(at(1), "no-such"), records.InstantInfo("../x", "commit"), records.InstantInfo("", "commit")],
)
def test_plans_to_undo_name_a_known_action_and_a_time(info):
    """Anything else is damage that names the file, before anybody acts on it."""
    with pytest.raises(CorruptMetadata, match=r"the-file.*nothing was undone"):
        codec.decode_rollback_plan(rollback_plan(info), "the-file")
    with pytest.raises(CorruptMetadata, match=r"the-file.*nothing was undone"):
        codec.decode_restore_plan(restore_plan(info), "the-file")
    with pytest.raises(CorruptMetadata, match=r"the-file.*not a time"):
        codec.decode_restore_plan(restore_plan(savepoint="yesterday"), "the-file")


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("action", ["rollback", "restore"])
def test_recovery_goes_on_past_a_plan_that_cannot_be_understood(layout, state, action):
    """It is named with what becomes of it, and the failed write beside it is rolled back all the same."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["b"]}, state=State.INFLIGHT)
    target = records.InstantInfo(at(9), "no-such")
    builder.instant(at(3), action, State.REQUESTED, (rollback_plan if action == "rollback" else restore_plan)(target))
    if state is State.INFLIGHT:
        builder.instant(at(3), action, State.INFLIGHT)
    outcomes = Table(builder.storage, clock=builder.clock).recover()
    damaged = [each for each in outcomes if each.finding.problem is Problem.DAMAGED_INSTANT]
    assert [at(3)] == [each.finding.time for each in damaged]
    assert "no-such" in damaged[0].finding.evidence[0]
    assert damaged[0].done or damaged[0].finding.step is Step.DECIDE
    assert any(each.finding.step is Step.ROLL_BACK and each.done for each in outcomes)
    assert all(at(2) not in path for path in builder.storage.files() if is_partition_path(path))


@pytest.mark.parametrize("time", ["99999999999999999", "20261399999999", "00000000000000", "00010101000000", "7"])
def test_a_write_whose_time_is_no_date_can_be_undone(time):
    """The digits of an instant need not be a date; the fence of such a write stands like any other."""
    storage = MemoryStorage()
    put_up_fence(storage, time)
    assert list(storage.files()) == [f".hoodie/.aux/hudi_py/closed/{time}"]


PLANNED = ("rollback", "restore", "clean", "compaction", "logcompaction", "replacecommit", "clustering", "indexing")


@LAYOUTS
@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
@pytest.mark.parametrize("action", PLANNED)
def test_recovery_does_the_rest_beside_any_damaged_plan(layout, state, action):
    """The failed write beside it is rolled back, and what is readable without the plan is still read."""
    if layout == 1 and action == "clustering":
        return  # there it is a replacecommit
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(at(2), {"eu": ["b"]}, state=State.INFLIGHT)
    builder.instant(at(3), action, State.REQUESTED, b"Obj\x01torn")
    if state is State.INFLIGHT:
        builder.instant(at(3), action, State.INFLIGHT)
    outcomes = Table(builder.storage, clock=builder.clock).recover()
    if action != "indexing":  # nobody reads the plan of one
        assert at(3) in {each.finding.time for each in outcomes if each.finding.problem is Problem.DAMAGED_INSTANT}
    failed = [each.error for each in outcomes if each.error is not None]
    assert [] == failed
    assert any(each.finding.step is Step.ROLL_BACK and each.done for each in outcomes)
    if "compaction" not in action:  # which slices there are depends on that plan
        assert ["a"] == [each.file_id for _, each in Table(builder.storage).base_files()]
        assert Table(builder.storage).overview().files.latest.files == 1
