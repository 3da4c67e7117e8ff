"""In which order a rollback is carried out, and what it leaves to others: each step guards what comes after it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from hudi_py.errors import ConflictError, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import InstantInfo
from hudi_py.services.rollback.execute import RollbackExecutor
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import is_fenced
from hudi_py.timeline.markers import Marker, MarkerType, create_marker, instants_with_markers
from hudi_py.timeline.store import TimelineStore
from support.tables import SYNC, TableBuilder, at, on_disk

LAYOUTS = pytest.mark.parametrize("layout", [1, 2])
TARGET = at(2)


class Told:
    """A lock, and a metadata table, that note when they are asked; storage calls that delete are noted between."""

    is_used = True

    def __init__(self, builder: TableBuilder) -> None:
        self.events: list[str] = []
        delete = builder.storage.delete

        def noted(path: str) -> bool:
            self.events.append(path.rpartition("/")[2])
            return delete(path)

        builder.storage.delete = noted  # type: ignore[method-assign]

    def held(self, purpose: str) -> Any:
        return nullcontext()

    def look(self) -> None:
        return

    def check(self) -> None:
        self.events.append("check")

    def forget(self, requested_time: str) -> None:
        self.events.append(f"forget {requested_time}")

    def record_rollback(self, *_: object, **__: object) -> None:
        self.events.append("record")

    def before_target_goes(self) -> list[str]:
        """What was noted before the first file of the target was deleted; asserts that one was."""
        first = next(n for n, each in enumerate(self.events) if each.startswith(f"{TARGET}."))
        return self.events[:first]


def begun(layout: int) -> tuple[TableBuilder, Instant, Any]:
    """A failed write, and its rollback as it is stored."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    builder.commit(TARGET, {"eu": ["a", "b"]}, state=State.INFLIGHT)
    plan = builder.table().services.rollback().plan(TARGET)
    builder.instant(at(3), "rollback", State.REQUESTED, codec.encode_rollback_plan(plan, sync=SYNC))
    return builder, Instant(at(3), Action.ROLLBACK, State.REQUESTED), plan


def execute(builder: TableBuilder, told: Told, instant: Instant, plan: Any, kind: type = TimelineStore, **more: Any):
    store = kind(builder.storage, builder.table().config, builder.clock, lock=told)
    executor = RollbackExecutor(contents=Contents(store), metadata_table=told)  # type: ignore[arg-type]
    return executor.execute(instant, plan, InstantInfo(TARGET, "commit"), **more)


@LAYOUTS
@pytest.mark.parametrize("publish", [True, False])
def test_the_lock_is_asked_right_before_the_write_leaves_the_timeline(layout, publish):
    """Whoever lost it meanwhile must not take away what another process may have begun to undo or to complete."""
    builder, instant, plan = begun(layout)
    told = Told(builder)
    execute(builder, told, instant, plan, publish=publish)
    assert told.before_target_goes()[-1] == "check"


@LAYOUTS
def test_the_metadata_table_takes_the_write_back_before_its_instants_go(layout):
    """By the record of the rollback, within a restore by forgetting; after a crash in between it is repeated."""
    for publish, said in ((True, "record"), (False, f"forget {TARGET}")):
        builder, instant, plan = begun(layout)
        told = Told(builder)
        execute(builder, told, instant, plan, publish=publish)
        assert [each for each in told.before_target_goes() if each != "check"][-1] == said
        assert ("record" in told.events, f"forget {TARGET}" in told.events) == (publish, not publish)


class LosesTheRace(TimelineStore):
    """Another process completes the rollback first, or takes it back."""

    def complete(self, instant: Instant, content: bytes, *, after: str | None = None) -> Instant:
        if self.storage.race_is_completed:  # type: ignore[attr-defined]
            super().complete(instant, content, after=after)
        raise ConflictError("another process was faster")


@LAYOUTS
@pytest.mark.parametrize("is_completed", [True, False])
def test_only_a_completed_rollback_of_another_process_stands_for_ours(layout, is_completed):
    """Where it is pending still nothing was recorded, and whoever asked has to know."""
    builder, instant, plan = begun(layout)
    builder.storage.race_is_completed = is_completed  # type: ignore[attr-defined]
    told = Told(builder)
    if is_completed:
        assert execute(builder, told, instant, plan, LosesTheRace).commits_rollback == (TARGET,)
    else:
        with pytest.raises(ConflictError, match="faster"):
            execute(builder, told, instant, plan, LosesTheRace)
    found = builder.table().timeline.find(at(3), Action.ROLLBACK)
    assert found.is_completed is is_completed


@LAYOUTS
def test_a_file_that_was_announced_after_the_plan_goes_too(layout):
    """A task of the dead write may have begun one between plan and fence; its marker names it."""
    builder, instant, plan = begun(layout)
    late = builder.base_name("late", TARGET)
    create_marker(builder.storage, TARGET, Marker("eu", late, MarkerType.CREATE))
    builder.put(f"eu/{late}")
    done = execute(builder, Told(builder), instant, plan)
    assert f"eu/{late}" not in builder.storage.files()
    assert any(path.endswith(late) for path in done.partitions["eu"].success_delete_files)
    assert is_fenced(builder.storage, TARGET)


@LAYOUTS
def test_within_a_restore_the_markers_of_the_rollback_stay(layout):
    """They tell which blocks are written already, should its plan be carried out again; alone they go with the rest."""
    for publish in (True, False):
        builder, instant, plan = begun(layout)
        for time in (TARGET, at(3)):
            create_marker(builder.storage, time, Marker("eu", builder.base_name("a", TARGET), MarkerType.CREATE))
        execute(builder, Told(builder), instant, plan, publish=publish)
        assert instants_with_markers(builder.storage) == (() if publish else (at(3),))


def test_what_is_run_again_under_its_time_is_not_fenced():
    """A compaction keeps its plan, so its files may be written under the same time afterwards."""
    builder = TableBuilder(1, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    builder.compaction(at(3), [("eu", "a", at(1), [])])
    builder.instant(at(3), "compaction", State.INFLIGHT)
    builder.table().rollback(at(3))
    found = builder.table().timeline.find(at(3))
    assert (found.action, found.state) == (Action.COMPACTION, State.REQUESTED)
    assert not is_fenced(builder.storage, at(3))


@LAYOUTS
@pytest.mark.parametrize("is_begun", [False, True])
def test_a_stored_plan_over_a_linked_partition_changes_nothing(layout, is_begun, tmp_path):
    """The link came after the plan: refused before the first file goes; without it the plan is carried out."""
    builder, instant, _ = begun(layout)
    if is_begun:
        builder.instant(instant.requested_time, "rollback", State.INFLIGHT)
    table = on_disk(builder, tmp_path / "table")
    linked, away = tmp_path / "table" / "eu", tmp_path / "away"
    linked.rename(away)
    linked.symlink_to(away)

    def there() -> set[str]:
        return {str(path) for folder in (tmp_path / "table", away) for path in folder.rglob("*")}

    before = there()
    for undo in (lambda: table.rollback(TARGET), table.rollback_failed_writes):
        with pytest.raises(RefusedError, match=f"{TARGET} cannot be undone, nothing was changed: .*eu is a symbolic"):
            undo()
        assert there() == before
    linked.unlink()
    away.rename(linked)
    table.refresh().rollback(TARGET)
    assert not table.refresh().timeline.pending()
