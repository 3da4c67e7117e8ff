"""Savepoints and rollbacks interrupted at every storage call, in every way; recovered twice; states compared."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.crash_points import interruptions
from support.history_tables import fixture_in_memory, open_in, state_of
from support.tables import NOW, TableBuilder, at
from support.undoing import clustering

TABLES = [
    "layout 1",
    "layout 2",
    "cow_partitioned-0.15.0",
    "cow_partitioned-1.0.2",
    "cow_partitioned-1.1.1",
    "cow_partitioned-1.2.0",
]
HOUR_LATER_MS = int((NOW + timedelta(hours=1)).timestamp() * 1000)
CLEANING = {"hoodie_py.clean.breakers": False}  # of two commits one goes


def fresh(name: str) -> MemoryStorage:
    """Two commits by hand, or a table of real Hudi with its metadata table."""
    if not name.startswith("layout"):
        return fixture_in_memory(name)
    builder = TableBuilder(int(name[-1]))
    builder.commit(at(1), {"eu": ["a"], "us": ["b"]})
    builder.commit(at(2), {"eu": ["a", "c"]})
    return builder.storage


def last_commit(storage: MemoryStorage) -> str:
    return open_in(storage).timeline.writes.completed()[-1].requested_time


@pytest.mark.parametrize("name", TABLES)
def test_savepoint_created_survives_every_interruption(name, record_property):
    """Created again after any interruption there is one savepoint with the same files, and nothing pending."""
    time = last_commit(fresh(name))
    calm = fresh(name)
    open_in(calm).create_savepoint(time)
    wanted, held = state_of(calm), open_in(calm).services.savepoint().savepoints()[0][1].files
    cases = 0
    for cases, case in enumerate(interruptions(lambda: fresh(name)), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).create_savepoint(time))
        for _ in range(2):
            try:
                open_in(case.storage).create_savepoint(time)
            except RefusedError as error:
                assert "savepointed already" in str(error), case
            ((_, content),) = open_in(case.storage).services.savepoint().savepoints()
            assert held == content.files, case
            assert wanted == state_of(case.storage), case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", TABLES)
def test_savepoint_deleted_survives_every_interruption(name, record_property):
    """Deleted again after any interruption it is gone without a trace."""
    pinned = fresh(name)
    time, wanted = last_commit(pinned), state_of(pinned)
    open_in(pinned).create_savepoint(time)
    cases = 0
    for cases, case in enumerate(interruptions(pinned.copy), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).delete_savepoint(time))
        for _ in range(2):
            open_in(case.storage).delete_savepoint(time)
            assert wanted == state_of(case.storage), case
            assert not [path for path in case.storage.files() if "savepoint" in path], case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", TABLES)
def test_name_and_time_to_live_come_with_the_savepoint_or_not_at_all(name, record_property):
    """Interrupted anywhere, there is no savepoint or one with both, and asking again gives one with both."""
    time = last_commit(fresh(name))
    cases = 0
    for cases, case in enumerate(interruptions(lambda: fresh(name)), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).create_savepoint(time, name="before", ttl="1h"))
        found = open_in(case.storage).services.savepoint().savepoints()
        assert [(c.name, c.expires_at_ms) for _, c in found] in ([], [("before", HOUR_LATER_MS)]), case
        try:
            open_in(case.storage).create_savepoint(time, name="before", ttl="1h")
        except RefusedError as error:
            assert "savepointed already" in str(error), case
        assert open_in(case.storage).services.savepoint().time_of("before") == time, case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", TABLES)
def test_expiry_in_a_clean_survives_every_interruption(name, record_property):
    """
    Stopped anywhere, a savepoint whose time to live is over is there as a whole, with its files, or gone.

    Recovered and cleaned again, the table is as after a clean that nothing interrupted.
    """
    expired = fresh(name)
    open_in(expired).create_savepoint(open_in(expired).timeline.writes.completed()[0].requested_time, ttl="1ms")

    def clean(storage) -> None:
        table = Table(storage, settings=CLEANING, clock=FixedClock(NOW + timedelta(days=1)))
        table.clean(file_versions_retained=1)

    def settled(storage) -> dict:
        open_in(storage).recover()
        clean(storage)
        return state_of(storage)

    calm = expired.copy()
    clean(calm)
    wanted = settled(calm)
    assert wanted["savepoints"] == []
    cases = 0
    for cases, case in enumerate(interruptions(expired.copy), 1):  # noqa: B007 - reported below
        case.run(clean)
        for _, content in open_in(case.storage).services.savepoint().savepoints():
            held = {join_path(path, file) for path, files in content.files.items() for file in files}
            assert held <= set(case.storage.files()), case
        for _ in range(2):
            assert wanted == settled(case.storage), case
    record_property("interruptions", cases)


@pytest.mark.parametrize("layout", [1, 2])
def test_savepoint_that_goes_with_its_commit_survives_every_interruption(layout, record_property):
    """It stays until its commit is archived; asked again both are gone, and the rows in sight are the same."""

    def passed() -> MemoryStorage:
        builder = TableBuilder(layout)
        for number in range(1, 6):
            builder.commit(at(number), {"eu": ["a"]})
            if number == 1:
                builder.table().create_savepoint(at(1))
        builder.table().archive(keep_min_commits=2, keep_max_commits=3, archive_beyond_savepoint=True)
        return builder.storage

    def delete(storage) -> None:
        open_in(storage).delete_savepoint(at(1), archive_commit=True)

    calm = passed()
    visible = open_in(calm).file_slices("eu")
    delete(calm)
    wanted, archived = state_of(calm), open_in(calm).archived_timeline().commits
    cases = 0
    for cases, case in enumerate(interruptions(passed), 1):  # noqa: B007 - reported below
        case.run(delete)
        table = open_in(case.storage)
        assert table.file_slices("eu") == visible, case
        if at(1) in {i.requested_time for i in table.timeline.commits}:
            assert table.timeline.find(at(1), Action.SAVEPOINT) is not None, case
        for _ in range(2):
            delete(case.storage)
            assert wanted == state_of(case.storage), case
            assert open_in(case.storage).archived_timeline().commits == archived, case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", TABLES)
def test_rollback_of_a_completed_commit_survives_every_interruption(name, record_property):
    """Asked for again after any interruption, the commit is gone as if nothing had interrupted it."""
    time = last_commit(fresh(name))
    calm = fresh(name)
    open_in(calm).rollback(time)
    wanted = state_of(calm)
    cases = 0
    for cases, case in enumerate(interruptions(lambda: fresh(name)), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).rollback(time))
        for _ in range(2):
            try:
                open_in(case.storage).rollback(time)
            except ConfigError as error:
                assert "is not a commit" in str(error), case  # it is deleted already
            assert wanted == state_of(case.storage), case
        assert len(open_in(case.storage).timeline.completed(Action.ROLLBACK)) == 1, case
    record_property("interruptions", cases)


@pytest.mark.parametrize("layout", [1, 2])
def test_no_stale_clean_outlives_a_rollback(layout, record_property):
    """
    Interrupted anywhere, the commit is there, or no pending clean names what lies below it.

    Whoever carries out a plan without judging it, as Apache Hudi does, would delete the latest rows.
    """

    def planned() -> MemoryStorage:
        builder = TableBuilder(layout)
        for number in (1, 2, 3):
            builder.commit(at(number), {"eu": ["a"]})
        table = Table(builder.storage, settings=CLEANING, clock=FixedClock(NOW))
        table.services.clean(table.services.clean_config(file_versions_retained=1)).schedule()
        assert builder.table().timeline.pending(Action.CLEAN)
        return builder.storage

    calm = planned()
    open_in(calm).rollback(at(3))
    wanted = state_of(calm)
    assert wanted["pending"] == []
    cases = 0
    for cases, case in enumerate(interruptions(planned), 1):  # noqa: B007 - reported below
        case.run(lambda faulty: open_in(faulty).rollback(at(3)))
        table = open_in(case.storage)
        names = [
            file.path
            for i in table.timeline.pending(Action.CLEAN)
            for files in table.contents.clean_plan(i).files_to_delete.values()
            for file in files
        ]
        assert not names or table.timeline.find(at(3), Action.COMMIT).is_completed, case
        for _ in range(2):
            try:
                open_in(case.storage).rollback(at(3))
            except ConfigError as error:
                assert "is not a commit" in str(error), case
            assert wanted == state_of(case.storage), case
    record_property("interruptions", cases)


@pytest.mark.parametrize("name", TABLES)
def test_next_write_settles_an_interrupted_rollback(name):
    """Without being asked again: either nothing has happened to the commit, or it is gone altogether."""
    time = last_commit(fresh(name))
    calm = fresh(name)
    untouched = state_of(calm)
    open_in(calm).rollback(time)
    undone = state_of(calm)
    seen = set()
    for case in interruptions(lambda: fresh(name)):
        case.run(lambda faulty: open_in(faulty).rollback(time))
        for _ in range(2):
            open_in(case.storage).rollback_failed_writes()
            after = state_of(case.storage)
            assert after in (untouched, undone), case
        seen.add(after == undone)
    assert seen == {True, False}


@pytest.mark.parametrize("layout", [1, 2])
def test_rollback_of_a_clustering_survives_every_interruption(layout):
    """Its plan is left, its files are gone, whenever it was interrupted."""
    from hudi_py.model.instant import State

    def clustered() -> MemoryStorage:
        builder = TableBuilder(layout)
        builder.commit(at(1), {"eu": ["a"]})
        builder.commit(at(2), {"eu": ["a"]})
        clustering(builder, at(3), State.COMPLETED)
        return builder.storage

    calm = clustered()
    open_in(calm).rollback(at(3))
    wanted = state_of(calm)
    for case in interruptions(clustered):
        case.run(lambda faulty: open_in(faulty).rollback(at(3)))
        for _ in range(2):
            try:
                open_in(case.storage).rollback(at(3))
            except RefusedError as error:
                assert "only planned" in str(error), case
            assert wanted == state_of(case.storage), case
