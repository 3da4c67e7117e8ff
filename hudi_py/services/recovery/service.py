"""
Recovery of a whole table: look, judge, repair, and look again until nothing is left that can be repaired.

After a crash: the steps do not depend on one another, so the next run finds what is still to be done. A step that fails
does not stop the others, unless it is the restore: rollbacks and cleans would change what it still has to undo.
"""

from __future__ import annotations

import attrs

from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConflictError, HudiError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.runtime.log import log
from hudi_py.services.recovery.execute import RecoveryExecutor
from hudi_py.services.recovery.finding import Problem, RecoveryFinding, RecoveryOutcome, Step
from hudi_py.services.recovery.gather import gather_recovery_facts
from hudi_py.services.recovery.gather_locks import gather_locks
from hudi_py.services.recovery.plan import lock_findings, plan_recovery
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config

_ROUNDS_MAX = 5  # a step may uncover another problem, twice in a row at most, which the next round settles


@attrs.frozen(kw_only=True)
class RecoveryService:
    """
    Recovers one table.

    Args:
        contents: Its timeline.
        table: Its properties.
        settings: As given.
        metadata_table: The table's metadata table.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    metadata_table: MetadataTableKeeper

    def plan(self) -> tuple[RecoveryFinding, ...]:
        """
        What is wrong and what would be done, in that order; nothing is written.

        Raises:
            StorageError: The storage refused or cannot be reached.
        """
        return plan_recovery(gather_recovery_facts(self.contents, self.table, self.settings))

    def rehearse(self) -> tuple[RecoveryOutcome, ...]:
        """
        Every finding, and why its step would fail where that can be known; nothing is written. Raises as `plan`.
        """
        return tuple(_rehearsed(self.executor, each) for each in self.plan())

    def run(self) -> tuple[RecoveryOutcome, ...]:
        """
        Repair what can be repaired.

        Returns:
            Every finding with its outcome, in the order in which they were dealt with.

        Raises:
            ConflictError: Another writer holds the table's lock, and something has to be repaired; nothing was done.
            StorageError: The storage refused or cannot be reached.
        """
        # First: a lock of a dead process would stop every other step.
        outcomes = self._remove_dead_locks()
        self._wait_for_lock()
        settled: set[tuple[Problem, Step, str, tuple[str, ...]]] = set()
        findings: tuple[RecoveryFinding, ...] = ()
        for _ in range(_ROUNDS_MAX):
            current = self._afresh()
            findings = current.plan()
            # Each finding is dealt with once: a step that failed would fail again in the next round.
            new = [each for each in findings if _key(each) not in settled]
            settled.update(map(_key, new))
            work = [each for each in new if each.is_settled_by_us]
            outcomes += [RecoveryOutcome(finding=each, done=False) for each in new if not each.is_settled_by_us]
            if not work:
                break
            executor = current.executor
            for done, finding in enumerate(work):
                outcome = _take(executor, finding)
                outcomes.append(outcome)
                if outcome.error is not None and finding.step is Step.FINISH_RESTORE:
                    why = "the restore has to be finished first"
                    rest = (RecoveryOutcome(finding=each, done=False, error=why) for each in work[done + 1 :])
                    return _final([*outcomes, *rest], findings)
        return _final(outcomes, findings)

    def _remove_dead_locks(self) -> list[RecoveryOutcome]:
        """First of all, because the services wait for the lock: locks that expired or whose process has ended."""
        store = self.contents.store
        if not store.lock.is_used:
            return []
        now_ms = int(store.clock.now().timestamp() * 1000)
        found = lock_findings(gather_locks(store.storage, self.settings, now_ms=now_ms))
        return [_take(self.executor, each) for each in found if each.is_settled_by_us]

    def _wait_for_lock(self) -> None:
        """Until its holder is done. A lock that is never released is a finding, and no error if it is the only one."""
        try:
            with self.contents.store.lock.held("recover"):
                return
        except ConflictError:
            # A table with nothing to repair can be reported beside a lock that nobody releases.
            if any(each.is_settled_by_us for each in self._afresh().plan()):
                raise

    def _afresh(self) -> RecoveryService:
        """The table as the last round left it; what was read before is read again."""
        store = self.contents.store
        config = read_table_config(store.storage)
        return attrs.evolve(self, contents=Contents(store.afresh(config)), table=config)

    @property
    def executor(self) -> RecoveryExecutor:
        """Takes the steps."""
        return RecoveryExecutor(
            contents=self.contents, table=self.table, settings=self.settings, metadata_table=self.metadata_table
        )


def _take(executor: RecoveryExecutor, finding: RecoveryFinding) -> RecoveryOutcome:
    try:
        executor.take(finding)
    except HudiError as error:
        log.warning("recovery.step.failed", step=finding.step.name, instant=finding.time, why=str(error))
        return RecoveryOutcome(finding=finding, done=False, error=str(error))
    return RecoveryOutcome(finding=finding, done=True)


def _rehearsed(executor: RecoveryExecutor, finding: RecoveryFinding) -> RecoveryOutcome:
    try:
        executor.rehearse(finding)
    except HudiError as error:
        return RecoveryOutcome(finding=finding, done=False, error=str(error))
    return RecoveryOutcome(finding=finding, done=False)


def _key(finding: RecoveryFinding) -> tuple[Problem, Step, str, tuple[str, ...]]:
    return (finding.problem, finding.step, str(finding.instant or finding.requested_time), finding.paths)


def _final(outcomes: list[RecoveryOutcome], last: tuple[RecoveryFinding, ...]) -> tuple[RecoveryOutcome, ...]:
    """Drop findings that were left alone in one round and settled, or not found any more, in a later one."""
    keys = set(map(_key, last))
    outcomes = [o for o in outcomes if o.finding.problem is not Problem.CONTRADICTION or _key(o.finding) in keys]
    settled = {(o.finding.time, o.finding.paths) for o in outcomes if o.done and (o.finding.time or o.finding.paths)}
    return tuple(o for o in outcomes if o.done or (o.finding.time, o.finding.paths) not in settled)
