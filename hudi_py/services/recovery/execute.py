"""
Putting right what was found, by the service whose work it was.

Every step can be taken again after a crash in the middle of it: what is moved is copied first, what is finished is
finished from its stored plan, and what is deleted was garbage before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import attrs

from hudi_py.config import keys
from hudi_py.config.clean import clean_config
from hudi_py.config.keys import Settings
from hudi_py.config.table import TableConfig
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConflictError, StorageError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.instant import Action, Instant, State
from hudi_py.runtime.log import log
from hudi_py.services.clean.service import CleanService
from hudi_py.services.recovery.failed_writes import FailedWrites
from hudi_py.services.recovery.finding import Problem, RecoveryFinding, Step
from hudi_py.services.recovery.look_locks import look_at_locks
from hudi_py.services.restore.service import RestoreService
from hudi_py.services.rollback.leftovers import Leftovers
from hudi_py.services.rollback.service import RollbackService
from hudi_py.services.savepoint.service import SavepointService
from hudi_py.storage.base import StorageFailure
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.heartbeat import Rhythm, delete_heartbeat, heartbeat_ages
from hudi_py.timeline.properties_file import recover_properties
from hudi_py.timeline.store import TimelineStore

_UNDER_LOCK = frozenset(
    (Step.RESTORE_PROPERTIES, Step.MEND_PLAN, Step.QUARANTINE, Step.REWRITE_METAFILE, Step.DROP_METADATA_TABLE)
)
"""Steps that change what others look at, and delete no data; the services take the lock themselves."""
_QUARANTINE = f"{OWN_FOLDER}/quarantine"


@attrs.frozen(kw_only=True)
class RecoveryExecutor:
    """
    Args:
        contents: The table's timeline.
        table: Its properties.
        settings: As given.
        metadata_table: Of the table.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    metadata_table: MetadataTableKeeper

    def take(self, finding: RecoveryFinding) -> None:
        """
        Take the finding's step.

        Raises:
            HudiError: It could not be taken; the table is as consistent as before.
        """
        actions: dict[Step, Callable[[RecoveryFinding], None]] = {
            Step.RESTORE_PROPERTIES: lambda _: self._properties(),
            Step.MEND_PLAN: self._mend_plan,
            Step.QUARANTINE: self._quarantine,
            Step.REDO: self._redo,
            Step.FINISH_RESTORE: self._finish_restore,
            Step.REMOVE_SAVEPOINT: self._remove_savepoint,
            Step.FINISH_ROLLBACK: self._finish_rollback,
            Step.ROLL_BACK: self._roll_back,
            Step.FINISH_CLEAN: self._finish_clean,
            Step.SETTLE_CLEAN: self._finish_clean,
            Step.WITHDRAW_CLEAN: self._finish_clean,
            Step.REWRITE_METAFILE: self._rewrite_metafile,
            Step.REMOVE_FILES: self._remove_files,
            Step.DROP_METADATA_TABLE: lambda _: self._drop_metadata_table(),
        }
        lock = self._store.lock
        with lock.held("recover") if finding.step in _UNDER_LOCK else nullcontext():
            actions[finding.step](finding)
        log.info("recovery.step", step=finding.step.name, problem=finding.problem.name, instant=finding.time)

    def rehearse(self, finding: RecoveryFinding) -> None:
        """
        Look whether what the step would delete can be told and reached; nothing is written.

        Raises:
            HudiError: It cannot, so the step would fail.
        """
        if finding.step is Step.ROLL_BACK:
            Leftovers(self.contents).of_pending(_instant(finding))
        elif finding.step is Step.FINISH_ROLLBACK:
            plan = self.contents.rollback_plan(_instant(finding))
            self._reach(request.partition_path for request in plan.rollback_requests)
        elif finding.step is Step.REMOVE_FILES:
            self._reach(path.rstrip("/").rpartition("/")[0] for path in finding.paths)

    def _reach(self, folders: Iterable[str]) -> None:
        for barrier in filter(None, map(self._store.storage.barrier, folders)):
            raise StorageError(barrier)

    @property
    def _store(self) -> TimelineStore:
        return self.contents.store

    @property
    def _rollbacks(self) -> RollbackService:
        return RollbackService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)

    def _properties(self) -> None:
        recover_properties(self._store.storage)

    def _mend_plan(self, finding: RecoveryFinding) -> None:
        """The copy in the inflight file becomes the plan again: the requested file is what everybody reads."""
        instant = _instant(finding)
        requested = Instant(instant.requested_time, instant.action, State.REQUESTED)
        copy = self._store.read(Instant(instant.requested_time, instant.action, State.INFLIGHT))
        self._keep_copy(requested)
        self._store.replace(requested, copy)

    def _quarantine(self, finding: RecoveryFinding) -> None:
        """Inflight before requested, and a completed file before both: it is the same case after a crash between."""
        for each in sorted(self._store.files_of(_instant(finding)), key=lambda i: i.state, reverse=True):
            self._keep_copy(each)
            self._store.remove(each)

    def _redo(self, finding: RecoveryFinding) -> None:
        instant = _instant(finding)
        with self._store.lock.held("recover"):
            for each in self._store.files_of(instant):
                if each.is_completed:
                    self._keep_copy(each)
            self._store.reopen(instant)
        if instant.action is Action.CLEAN:
            self._finish_clean(finding)
        else:
            self._finish_rollback(finding)

    def _keep_copy(self, instant: Instant) -> None:
        path = self._store.path(instant)
        self._store.storage.replace(f"{_QUARANTINE}/{path.rpartition('/')[2]}", self._store.storage.read(path))

    def _finish_restore(self, finding: RecoveryFinding) -> None:
        plan = self.contents.restore_plan(_instant(finding))
        service = RestoreService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
        service.run(plan.savepoint_to_restore_timestamp or "")

    def _remove_savepoint(self, finding: RecoveryFinding) -> None:
        service = SavepointService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
        found = self._store.load().find(finding.time, Action.SAVEPOINT)
        if found is not None and found.is_pending:
            service.delete(finding.time)

    def _finish_rollback(self, finding: RecoveryFinding) -> None:
        """As part of all of them, or, where it undoes no ordinary write, by what it undoes."""
        self._rollbacks.run(only=frozenset())
        instant = _instant(finding)
        found = self._store.load().find(instant.requested_time, Action.ROLLBACK)
        if found is not None and found.is_pending:
            target = self.contents.rollback_plan(found).instant_to_rollback
            if target is not None:
                self._rollbacks.roll_back(target.requested_time)

    def _roll_back(self, finding: RecoveryFinding) -> None:
        """Looked at once more right before: its heart may beat again, and it may be completed (rule B-3, K-14)."""
        storage = self._store.storage
        age = heartbeat_ages(storage, self._store.clock).get(finding.time)
        if age is not None and not Rhythm.of(self.settings).is_expired(age):
            raise ConflictError(f"{finding.instant} is at work again: its heartbeat is {age // 1000} s old")
        self._rollbacks.run(only=frozenset({finding.time}), is_dead=self._is_dead)
        if all(each.requested_time != finding.time for each in self._store.load()):
            delete_heartbeat(storage, finding.time)

    def _is_dead(self, requested_time: str) -> bool:
        return FailedWrites(
            contents=self.contents, table=self.table, settings=self.settings, metadata_table=self.metadata_table
        ).is_dead(requested_time)

    def _finish_clean(self, finding: RecoveryFinding) -> None:
        CleanService(
            contents=self.contents,
            table=self.table,
            config=clean_config(self.settings),
            engine=LocalEngine(),
            metadata_table=self.metadata_table,
        ).execute_pending()

    def _rewrite_metafile(self, finding: RecoveryFinding) -> None:
        storage = self._store.storage
        (path,) = finding.paths
        storage.replace(f"{_QUARANTINE}/{path}", storage.read(path))
        storage.replace(path, finding.content)

    def _remove_files(self, finding: RecoveryFinding) -> None:
        """A lock is looked at once more right before: somebody may have taken it over."""
        storage = self._store.storage
        if finding.problem is Problem.LOCK:
            now_ms = int(self._store.clock.now().timestamp() * 1000)
            locks = {each.path: each for each in look_at_locks(storage, self.settings, now_ms=now_ms)}
            if not all(locks[path].is_expired for path in finding.paths if path in locks):
                raise ConflictError(f"{finding.paths[0]} was taken over by another process meanwhile")
        for path in finding.paths:
            if path.endswith("/"):
                storage.delete_folder(path.rstrip("/"))
        outcomes = storage.delete_many(path for path in finding.paths if not path.endswith("/"))
        for path, outcome in outcomes.items():
            if isinstance(outcome, StorageFailure):
                raise StorageError(
                    f"{storage.root}/{path} could not be deleted: {outcome.message}; correct the access and recover "
                    "again",
                    outcome.retryable,
                )

    def _drop_metadata_table(self) -> None:
        settings = self.metadata_table.settings.merged({keys.METADATA_ENABLED.name: False})
        attrs.evolve(self.metadata_table, settings=settings).prepare(writes_data=False)


def _instant(finding: RecoveryFinding) -> Instant:
    assert finding.instant is not None  # its step is about an instant
    return finding.instant
