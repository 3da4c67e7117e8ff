"""
Takes the steps that recovery proposes, each through the service that the instant belongs to.

Every step can be repeated after a crash in the middle of it: files are copied before they are moved, actions are
finished from their stored plans, and deleted files were garbage before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import nullcontext

import attrs

from hudi_py.config import keys
from hudi_py.config.clean import clean_config
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConflictError, StorageError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.files import OWN_FOLDER, parse_data_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.runtime.log import log
from hudi_py.services.clean.service import CleanService
from hudi_py.services.recovery.failed_writes import FailedWrites
from hudi_py.services.recovery.finding import Problem, RecoveryFinding, Step
from hudi_py.services.recovery.gather_locks import gather_locks
from hudi_py.services.restore.service import RestoreService
from hudi_py.services.rollback.leftovers import Leftovers
from hudi_py.services.rollback.service import RollbackService
from hudi_py.services.savepoint.service import SavepointService
from hudi_py.services.undo.service import UndoService
from hudi_py.storage.base import StorageFailure
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.erasures import noted
from hudi_py.timeline.heartbeat import Rhythm, delete_heartbeat, heartbeat_ages
from hudi_py.timeline.properties_file import recover_properties
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.attempt import forget_attempt, proof_of_failure

_UNDER_LOCK = frozenset(
    (Step.RESTORE_PROPERTIES, Step.MEND_PLAN, Step.QUARANTINE, Step.REWRITE_METAFILE, Step.DROP_METADATA_TABLE)
)
"""Steps that change files which other writers read, outside of a service; services take the lock themselves."""
_QUARANTINE = f"{OWN_FOLDER}/quarantine"


@attrs.frozen(kw_only=True)
class RecoveryExecutor:
    """
    Args:
        contents: The table's timeline.
        table: Its properties.
        settings: As given.
        metadata_table: The table's metadata table.
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
        Check that the files which the step would delete are known and can be reached; nothing is written.

        Raises:
            HudiError: They are not, so the step would fail.
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
        """Copy the inflight file to the requested file, which is the one that Hudi reads plans from."""
        instant = _instant(finding)
        requested = Instant(instant.requested_time, instant.action, State.REQUESTED)
        copy = self._store.read(Instant(instant.requested_time, instant.action, State.INFLIGHT))
        # Even damaged bytes are kept: they may be all that is left to find out what happened.
        self._keep_copy(requested)
        self._store.replace(requested, copy)

    def _quarantine(self, finding: RecoveryFinding) -> None:
        """Latest state first: after a crash in between, the next recovery finds the same problem and goes on."""
        for each in sorted(self._store.files_of(_instant(finding)), key=lambda i: i.state, reverse=True):
            self._keep_copy(each)
            self._store.remove(each)

    def _redo(self, finding: RecoveryFinding) -> None:
        """Make the instant pending again, and finish it: a service carries out only plans of pending instants."""
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
        path = self._store.path(instant)  # replaced, because a repeated step finds the copy of its first attempt
        self._store.storage.replace(f"{_QUARANTINE}/{path.rpartition('/')[2]}", self._store.storage.read(path))

    def _finish_restore(self, finding: RecoveryFinding) -> None:
        plan = self.contents.restore_plan(_instant(finding))
        service = RestoreService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
        # By the service: it finds the pending restore and its plan again.
        service.run(plan.savepoint_to_restore_timestamp or "")

    def _remove_savepoint(self, finding: RecoveryFinding) -> None:
        service = SavepointService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
        service.withdraw(finding.time)

    def _finish_rollback(self, finding: RecoveryFinding) -> None:
        """With all pending rollbacks; one of a table service is finished by rolling back that service again."""
        # No write beside these: others may be running.
        self._rollbacks.run(only=frozenset())
        instant = _instant(finding)
        found = self._store.load().find(instant.requested_time, Action.ROLLBACK)
        if found is not None and found.is_pending:
            target = self.contents.rollback_plan(found).instant_to_rollback
            if target is not None and target.action == Action.CLEAN.value:
                undo = UndoService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
                if not undo.settle_if_lost(target.requested_time):
                    undo.run(target.requested_time)
            elif target is not None:
                self._rollbacks.roll_back(target.requested_time)

    def _roll_back(self, finding: RecoveryFinding) -> None:
        """Read the heartbeat again: since recovery looked, the writer may have continued or completed (B-3, K-14)."""
        if finding.problem is Problem.STARTED_SERVICE:
            self._take_back(_instant(finding))
            return
        storage = self._store.storage
        age = heartbeat_ages(storage, self._store.clock).get(finding.time)
        if age is not None and not Rhythm.of(self.settings).is_expired(age):
            raise ConflictError(f"{finding.instant} is running again: its heartbeat is {age // 1000} s old")
        self._rollbacks.run(only=frozenset({finding.time}), is_dead=self._is_dead)
        if all(each.requested_time != finding.time for each in self._store.load()):
            delete_heartbeat(storage, finding.time)

    def _take_back(self, instant: Instant) -> None:
        """Roll back the attempt of a compaction or clustering; its plan stays (B-25)."""
        time = instant.requested_time
        # Another process may have begun it again since.
        if proof_of_failure(self._store, self.settings, time) is None:
            raise ConflictError(f"{instant} was begun again by another process in the meantime")
        self._rollbacks.roll_back(time)
        forget_attempt(self._store.storage, time)

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
        # The copy first: nothing that may be evidence is overwritten.
        storage.replace(f"{_QUARANTINE}/{path}", storage.read(path))
        storage.replace(path, finding.content)

    def _remove_files(self, finding: RecoveryFinding) -> None:
        """A lock is read again: since recovery looked, another process may have taken it over."""
        storage = self._store.storage
        if finding.problem is Problem.LOCK:
            now_ms = int(self._store.clock.now().timestamp() * 1000)
            # Between the look and this step minutes may have passed with other steps.
            locks = {lock.path: lock for lock in gather_locks(storage, self.settings, now_ms=now_ms)}
            if not all(locks[path].is_expired for path in finding.paths if path in locks):
                raise ConflictError(f"{finding.paths[0]} was taken over by another process in the meantime")
        for path in finding.paths:
            if path.endswith("/"):
                storage.delete_folder(path.rstrip("/"))
        files = [path for path in finding.paths if not path.endswith("/")]
        # What late tasks left has rows, and no instant says that it was deleted.
        rows = {path.rpartition("/")[0] for path in files if parse_data_file(path.rpartition("/")[2]) is not None}
        with noted(storage, rows, self._store.clock):
            outcomes = storage.delete_many(files)
        for path, outcome in outcomes.items():
            if isinstance(outcome, StorageFailure):
                raise StorageError(
                    f"{storage.root}/{path} could not be deleted: {outcome.message}; correct the access and recover "
                    "again",
                    outcome.retryable,
                )

    def _drop_metadata_table(self) -> None:
        # As a write without a metadata table does it.
        settings = self.metadata_table.settings.merged({keys.METADATA_ENABLED.name: False})
        attrs.evolve(self.metadata_table, settings=settings).prepare(writes_data=False)


def _instant(finding: RecoveryFinding) -> Instant:
    assert finding.instant is not None  # its step is about an instant
    return finding.instant
