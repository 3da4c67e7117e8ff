"""Rollback and restore of merge-on-read tables interrupted at every storage call; resumed twice; states compared."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_py.errors import ConfigError
from hudi_py.formats.log_block import BlockType, HeaderKey, iterate_log_blocks
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.instant import Action, State
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.storage.memory import MemoryStorage
from hudi_py.testing import INTERRUPTION_MODES
from support.crash_points import interruptions
from support.history_tables import fixture_in_memory, open_in, state_of
from support.tables import TableBuilder, at
from support.undoing import merge_on_read_history

RELEASES = ("0.15.0", "1.0.2", "1.1.1")
FAILED = ["layout 1", "layout 2", *(f"mor_failed_write-{release}" for release in RELEASES)]
COMPLETED = ["layout 1", "layout 2", *(f"mor_logs-{release}" for release in RELEASES)]
RESTORED = ["layout 1", "layout 2", *(f"mor_compacted-{release}" for release in RELEASES)]


def by_hand(layout: int, last: State) -> MemoryStorage:
    """Delta commits of base and log files; the last one into two old groups and a new one, with markers."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    new = [("eu", "n", at(3))]
    builder.log_files(at(3), [("eu", "a", at(1)), ("us", "b", at(1)), *new], state=last)
    if last is State.INFLIGHT:
        for path in [p for p in builder.storage.files() if ".log." in p]:
            if layout == 1 and ".log.1_" in path and "a_" in path:
                continue  # of the delta commit before
            if layout == 2 and at(3) not in path:
                continue
            builder.put(f".hoodie/.temp/{at(3)}/{path}.marker.APPEND", b"")
    return builder.storage


def full_state(storage: MemoryStorage) -> dict[str, Any]:
    """What users see, and what each rollback block takes back."""
    blocks = [
        (path, block.header[HeaderKey.TARGET_INSTANT_TIME])
        for path, data in storage.files().items()
        if ".log." in path and not path.startswith(".hoodie/")
        for block in iterate_log_blocks(data, path)
        if block.block_type is BlockType.COMMAND
    ]
    return state_of(storage) | {"blocks": blocks}


def modes_for(name: str) -> tuple[Any, ...]:
    """All of them; on the larger tables of real Hudi two."""
    return INTERRUPTION_MODES if name.startswith("layout") else INTERRUPTION_MODES[:2]


@pytest.mark.parametrize("name", FAILED)
def test_rollback_of_a_failed_delta_commit_survives_every_interruption(name, record_property):
    """The next write finishes it: same files, one rollback block for each slice, one rollback on the timeline."""

    def fresh() -> MemoryStorage:
        return by_hand(int(name[-1]), State.INFLIGHT) if name.startswith("layout") else fixture_in_memory(name)

    calm = fresh()
    assert len(open_in(calm).rollback_failed_writes()) == 1
    wanted = full_state(calm)
    assert bool(wanted["blocks"]) == (name in ("layout 1", "mor_failed_write-0.15.0"))
    assert not wanted["pending"]
    cases = 0
    for cases, case in enumerate(interruptions(fresh, modes_for(name)), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).rollback_failed_writes())
        for _ in range(2):
            open_in(case.storage).rollback_failed_writes()
            assert wanted == full_state(case.storage), case
        assert len(open_in(case.storage).timeline.completed(Action.ROLLBACK)) == 1, case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", COMPLETED)
def test_rollback_of_a_completed_delta_commit_survives_every_interruption(name, record_property):
    """Asked for again after any interruption, the delta commit is gone as if nothing had interrupted it."""

    def fresh() -> MemoryStorage:
        return by_hand(int(name[-1]), State.COMPLETED) if name.startswith("layout") else fixture_in_memory(name)

    time = open_in(fresh()).timeline.completed(Action.DELTA_COMMIT)[-1].requested_time
    calm = fresh()
    open_in(calm).rollback(time)
    wanted = full_state(calm)
    cases = 0
    for cases, case in enumerate(interruptions(fresh, modes_for(name)), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).rollback(time))
        for _ in range(2):
            try:
                open_in(case.storage).rollback(time)
            except ConfigError as error:
                assert "is not a commit" in str(error), case  # it is deleted already
            open_in(case.storage).rollback_failed_writes()  # as the next write does; a refusal removes no markers
            assert wanted == full_state(case.storage), case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", RESTORED)
def test_restore_survives_every_interruption(name, record_property):
    """To a savepoint before a compaction; what lay on the compacted slices goes with them, the rest is taken back."""

    def fresh() -> tuple[MemoryStorage, str]:
        if name.startswith("layout"):
            return merge_on_read_history(int(name[-1])).storage, at(2)
        storage = fixture_in_memory(name)
        time = next(
            i.requested_time for i in open_in(storage).timeline.completed(Action.DELTA_COMMIT) if has_logs(storage, i)
        )
        open_in(storage).create_savepoint(time)
        return storage, time

    calm, time = fresh()
    open_in(calm).restore(time)
    wanted = full_state(calm)
    assert wanted["writes"][-1][0] == time
    assert not recorded_under_vanished_times(calm)
    cases = 0
    for cases, case in enumerate(interruptions(lambda: fresh()[0], modes_for(name)), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).restore(time))
        for _ in range(2):
            open_in(case.storage).restore(time)
            assert wanted == full_state(case.storage), case
        assert not recorded_under_vanished_times(case.storage), case
    record_property("interruptions", cases)


def recorded_under_vanished_times(storage: MemoryStorage) -> set[str]:
    """Delta commits of the metadata table that Hudi 0.15 does not count: the table has no such instant."""
    table = open_in(storage)
    if not table.config.has_metadata_table:
        return set()
    known = {instant.requested_time for instant in table.timeline}
    recorded = MetadataTable(storage).store.load().completed(Action.DELTA_COMMIT)
    return {i.requested_time for i in recorded if not i.requested_time.startswith(INIT_TIME)} - known


def has_logs(storage: MemoryStorage, instant: Any) -> bool:
    """Whether a delta commit wrote log files, so that there is something before it to go back to."""
    stats = open_in(storage).contents.commit(instant).partition_to_write_stats
    return any(stat.log_version for each in stats.values() for stat in each)
