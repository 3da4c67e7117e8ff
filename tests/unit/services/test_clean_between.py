"""What another process does between two steps of a clean that is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import attrs
import pytest

from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConflictError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CleanMetadata
from hudi_py.runtime.clock import Deadline
from hudi_py.services.clean.executing import execute
from hudi_py.services.clean.service import CleanService
from hudi_py.storage.wrappers import DelegatingStorage, RecordingStorage
from hudi_py.table import Table
from hudi_py.timeline.timeline import Timeline
from support.meanwhile import Meanwhile, ending
from support.tables import TableBuilder, at, data_files

NAME = TableBuilder.base_name
LAYOUTS = pytest.mark.parametrize("layout", [1, 2])


@attrs.frozen
class LockHeldByAnother:
    """A lock that is free only after another process, which held it, has done something."""

    does: Callable[[], None]
    is_used: bool = True

    @contextmanager
    def held(self, purpose: str) -> Iterator[None]:
        if purpose.startswith("clean 2"):
            self.does()
        yield

    def check(self) -> None:
        return


@attrs.frozen(kw_only=True)
class Recorder(MetadataTableKeeper):
    """Remembers how often a clean was recorded in the metadata table, which has no partition here."""

    recorded: list[str] = attrs.field(factory=list)

    def record_clean(self, timeline: Timeline, instant: Instant, metadata: CleanMetadata) -> str | None:
        self.recorded.append(instant.requested_time)
        return super().record_clean(timeline, instant, metadata)


def planned(layout: int) -> tuple[TableBuilder, Instant]:
    """Group ``a`` of r0, written three times; a clean of its first version is planned."""
    builder = TableBuilder(layout)
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]})
    table = builder.table()
    instant = table.services.clean(table.services.clean_config(file_versions_retained=2)).schedule()
    assert instant is not None
    return builder, instant


def service_of(builder: TableBuilder, storage: DelegatingStorage | None = None) -> tuple[CleanService, list[str]]:
    """A clean of the table, and the times that it records in the metadata table."""
    table = Table(storage or builder.storage, clock=builder.clock)
    keeper = table.services.metadata_table
    recorder = Recorder(storage=keeper.storage, settings=keeper.settings, clock=keeper.clock)
    service = table.services.clean(table.services.clean_config(file_versions_retained=2))
    return attrs.evolve(service, metadata_table=recorder), recorder.recorded


def finished_by_another(builder: TableBuilder) -> None:
    (done,) = builder.table().services.clean().execute_pending()
    assert done.is_finished


@LAYOUTS
def test_a_savepoint_made_while_the_lock_was_waited_for_is_seen(layout):
    """The plan is judged again under the lock: what the savepoint holds stays, and the plan goes."""
    builder, _ = planned(layout)
    service, _ = service_of(builder)
    held = NAME("a", at(1))
    service.contents.store.lock = LockHeldByAnother(lambda: builder.savepoint(at(1), {"r0": [held]}))
    (result,) = service.execute_pending()
    assert result.withdrawn and result.spared_files == (f"r0/{held}",)
    assert f"r0/{held}" in data_files(builder.storage)


@LAYOUTS
def test_an_instant_that_is_gone_is_not_completed_again_and_again(layout):
    """Another process took the inflight clean off the timeline: one attempt, then the error says what happened."""
    builder, instant = planned(layout)

    def take_away() -> None:
        for each in builder.table().contents.store.files_of(instant):
            builder.storage.delete(builder.table().contents.store.path(each))

    storage = Meanwhile(builder.storage, take_away, before=ending(".parquet"))
    service, recorded = service_of(builder, storage)
    held: list[None] = []
    service.contents.store.lock = LockHeldByAnother(lambda: held.append(None))
    with pytest.raises(ConflictError, match="could not be completed, another process is working on it"):
        service.execute_pending()
    assert (recorded, len(held)) == ([], 2)  # as it began, and for the one attempt to complete it
    assert builder.table().timeline.completed("clean") == ()


@LAYOUTS
def test_a_clean_that_another_process_completed_is_not_recorded_again(layout):
    """Its result is the other's, and the metadata table is left as the other left it."""
    builder, _ = planned(layout)
    storage = Meanwhile(builder.storage, lambda: finished_by_another(builder), before=ending(".parquet"))
    service, recorded = service_of(builder, storage)
    (result,) = service.execute_pending()
    assert result.superseded and recorded == []
    assert result.metadata == builder.table().contents.clean(builder.table().timeline.completed(Action.CLEAN)[-1])
    assert result.metadata.total_files_deleted == 1


@LAYOUTS
@pytest.mark.parametrize("lock", ["waited for", "none"])
def test_a_clean_that_another_process_completed_first_deletes_nothing_again(layout, lock):
    """What was written under the names of its files since stays, and the record of the other process counts."""
    builder, instant = planned(layout)
    victim = f"r0/{NAME('a', at(1))}"

    def finish() -> None:
        finished_by_another(builder)
        builder.put(victim)

    requested = f"{instant.requested_time}.clean.requested"
    recording = RecordingStorage(builder.storage)
    at_reading = Meanwhile(recording, finish, before=ending(requested), verbs=["read"])
    storage = recording if lock == "waited for" else at_reading
    service, recorded = service_of(builder, storage)
    if lock == "waited for":
        service.contents.store.lock = LockHeldByAnother(finish)
    (result,) = service.execute_pending()
    assert (result.superseded, result.deleted_count, recorded) == (True, 0, [])
    assert result.metadata.total_files_deleted == 1
    assert not [path for verb, path in recording.calls if verb.startswith("delete")]
    assert victim in data_files(builder.storage)
    assert result.metadata == builder.table().contents.clean(builder.table().timeline.completed(Action.CLEAN)[-1])


@LAYOUTS
def test_a_clean_that_another_process_withdrew_first_deletes_nothing(layout):
    """Its plan is no longer on the timeline: the result says so, and nothing is completed under its time."""
    builder, instant = planned(layout)
    before = data_files(builder.storage)

    def withdraw() -> None:
        store = builder.table().contents.store
        assert builder.storage.delete(store.path(instant))

    service, recorded = service_of(builder)
    service.contents.store.lock = LockHeldByAnother(withdraw)
    (result,) = service.execute_pending()
    assert result.withdrawn and not result.is_finished
    assert (result.why_spared, result.deleted_count, recorded) == ("another process withdrew it", 0, [])
    assert data_files(builder.storage) == before
    assert builder.table().timeline.find(instant.requested_time, Action.CLEAN) is None


@LAYOUTS
def test_a_clean_that_another_process_has_just_begun_is_carried_out_with_it(layout):
    """Rule A-73: deleting twice does no harm, so the one that comes second goes on."""
    builder, instant = planned(layout)
    inflight = f"{instant.requested_time}.clean.inflight"

    def begin() -> None:
        store = builder.table().contents.store
        store.transition(instant, store.read_plan(instant))

    service, _ = service_of(builder, Meanwhile(builder.storage, begin, before=ending(inflight)))
    (result,) = service.execute_pending()
    assert result.is_finished and not result.superseded
    assert result.deleted_count == 1
    assert builder.table().timeline.pending() == ()


@LAYOUTS
def test_partitions_stay_while_files_are_left_for_want_of_time(layout, monkeypatch):
    """A dropped partition is deleted by the run that finishes the clean, which alone says so."""
    monkeypatch.setattr(execute, "TASK_FILES_MAX_TIMED", 2)
    builder = TableBuilder(layout)
    for number in (1, 2):
        builder.commit(at(number), {"r0": ["a"], "r1": ["b", "c"]})
    builder.commit(at(3), {}, replaced={"r0": ["a"]}, operation="DELETE_PARTITION")
    builder.commit(at(4), {"r1": ["b", "c"]})
    recording = RecordingStorage(builder.storage)
    table = Table(recording, clock=builder.clock)
    service = table.services.clean(table.services.clean_config(file_versions_retained=1), engine=LocalEngine(threads=1))
    assert table.contents.clean_plan(service.schedule()).partitions_to_delete == ("r0",)
    (result,) = service.execute_pending(Deadline(builder.clock, builder.clock.now()))
    assert not result.is_finished
    assert not any(path.startswith("r0/") for path in data_files(builder.storage))
    assert "r0/.hoodie_partition_metadata" in builder.storage.files()
    assert ("delete_empty", "r0") not in recording.calls
    (result,) = service.execute_pending()
    assert result.is_finished
    assert result.metadata.partitions["r0"].is_partition_deleted
    assert "r0/.hoodie_partition_metadata" in result.deleted_files
    assert ("delete_empty", "r0") in recording.calls
    assert not any(path.startswith("r0/") for path in builder.storage.files())
