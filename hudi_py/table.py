"""
An opened Hudi table and its services: clean, rollback, savepoints, restore, archival, recovery. Needs no JVM.

Services are imported when they are first used, so that reading a table does not load them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any

from hudi_py.config.arguments import check_flags, check_texts
from hudi_py.config.keys import READ_BYTES_MAX
from hudi_py.config.settings import Settings
from hudi_py.model.instant import Instant
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import warnings_only
from hudi_py.table_insight import TableInsight
from hudi_py.table_leases import TableLeases
from hudi_py.table_retention import TableRetention

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.engine.base import Engine
    from hudi_py.model.records import RestoreMetadata, RollbackMetadata
    from hudi_py.services.archive.service import ArchiveResult
    from hudi_py.services.check.findings import Finding
    from hudi_py.services.clean.executing.watch import OnProgress
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.clean.service import CleanService
    from hudi_py.services.explain.files import Explanation
    from hudi_py.services.maintenance.service import MaintenanceReport
    from hudi_py.services.orphans.facts import OrphanReport
    from hudi_py.services.orphans.options import OrphanOptions
    from hudi_py.services.recovery.finding import RecoveryOutcome
    from hudi_py.services.savepoint.words import SavepointWords
    from hudi_py.services.undo.result import UndoReport

__all__ = ["Table", "open_table"]


def open_table(
    location: str | PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] | None = None,
    clock: Clock | None = None,
) -> Table:
    """
    Open a table.

    Args:
        location: Local path or URL (``s3://...``, or another URL that fsspec supports).
        storage_options: Options of the storage library.
        settings: ``hoodie.*`` settings under their old or new names; docs/settings.md lists them all. Unknown settings
            are an error unless ``hoodie_py.conf.allow.unknown`` is true.
        clock: Replaces the machine's clock.

    Returns:
        The table. Only its properties have been read.

    Raises:
        ConfigError: A setting is unknown or invalid.
        TableNotFound: There is no table.
        UnsupportedTable: The version of the table is not supported.
        CorruptMetadata: The properties of the table are damaged.
        StorageError: The storage failed or is unreachable.
    """
    from hudi_py.storage.factory import open_storage

    # Before the settings are checked as a whole, because the storage needs its limit to read the table's properties.
    bound = Settings(settings)[READ_BYTES_MAX]
    return Table(open_storage(location, storage_options, read_bytes_max=bound), settings=settings, clock=clock)


class Table(TableRetention, TableInsight, TableLeases):
    """
    A table and its services: what `TableInsight` reports, `TableWriting` writes, what `TableLeases` and
    `TableRetention` keep, and methods that change the table.

    If ``hoodie.write.lock.provider`` is set, these methods take the table's lock as Apache Hudi does. They raise
    `ConflictError` if another process does not release it in time; try again then.
    """

    def plan_clean(
        self,
        *,
        now: datetime | None = None,
        details: bool = False,
        **options: Unpack[CleanOptions],
    ) -> CleanPlan:
        """
        Plan a clean. Nothing is written or deleted.

        Args:
            now: Timezone-aware; replaces the clock.
            details: Include sizes of files, and the verdict on every file slice.
            options: ``policy``, ``commits_retained``, ``file_versions_retained``, ``hours_retained``, further keeps,
                and limits of this run; see `CleanOptions`.

        Raises:
            ConfigError: A value is invalid, or two values contradict each other.
            CorruptMetadata: An instant that is needed for the plan is damaged.
        """
        check_flags(details=details)
        config = self.services.clean_config(now=now, **options)
        return self.services.clean(config, now=now).plan(details=details)

    def clean(
        self,
        *,
        now: datetime | None = None,
        engine: Engine | None = None,
        on_progress: OnProgress | None = None,
        **options: Unpack[CleanOptions],
    ) -> list[CleanResult]:
        """
        Clean: finish pending cleans; if there are none, make and store a plan, delete the files, and complete.

        Before that, expired savepoints are deleted and, with the failed-writes policy LAZY, writes with an expired
        heartbeat are rolled back.

        Args:
            now, options: As `plan_clean`.
            engine: Engine that deletes files; local threads by default.
            on_progress: Called with a `CleanProgress`, at most ten times a second and at the beginning and end of each
                phase; never twice at the same time. An exception in it ends the run.

        Returns:
            The cleans that were run, oldest first; empty if there was nothing to do.

        Raises:
            RefusedError: The clean could lose data; the message says what to do.
            StorageError: Files cannot be deleted; the clean stays pending, and the next clean finishes it.
        """
        services = self.services
        config = services.clean_config(now=now, **options)
        return self.run_clean(services.clean(config, now=now, engine=engine, on_progress=on_progress))

    def run_clean(
        self,
        service: CleanService,
        *,
        failed_writes: bool = True,
        on_undone: Callable[[list[RollbackMetadata]], object] = len,
    ) -> list[CleanResult]:
        """Run `clean` with a service and arguments of `TableServices`, for callers who need the service afterwards."""
        run = partial(self.services.run_clean, service, failed_writes=failed_writes, on_undone=on_undone)
        return self._changed(run, recorded=True)

    def explain(
        self,
        target: str,
        *,
        now: datetime | None = None,
        **options: Unpack[CleanOptions],
    ) -> Explanation:
        """
        Explain why files are kept, and when a clean may delete them. Nothing is changed.

        Args:
            target: A file (path or name), a file id, or a partition.
            now, options: As `plan_clean`.

        Raises:
            ConfigError: There is nothing with this name in the table, or a value is invalid.
            CorruptMetadata: An instant that is needed for the answer is damaged.
        """
        check_texts(target=target)
        config = self.services.clean_config(now=now, **options)
        from hudi_py.services.explain.files import explain

        return explain(self.services.clean(config, now=now), target)

    def rollback_failed_writes(self) -> list[RollbackMetadata]:
        """
        Undo all writes that did not complete, newest first, and finish pending rollbacks.

        Stop all writers before, except those with heartbeats (failed-writes policy LAZY), which are not touched.

        Raises:
            CorruptMetadata: A marker names a file that its write cannot have written; nothing was deleted.
            RefusedError: The rollback could lose data; the message says what to do.
        """
        return self._changed_alone(lambda: self.services.rollback().run())

    def roll_back_dead_writes(self) -> tuple[list[RollbackMetadata], Mapping[str, str]]:
        """
        Undo the writes that have failed for certain, beside running writers: as `maintain` does, by the heartbeats.

        Returns:
            The rollbacks, and the requested time of each other write that may have failed, to why it was left.

        Raises:
            As `rollback_failed_writes`.
        """
        return self._changed(lambda: self.services.failed_writes().with_maintenance())

    def rollback(self, requested_time: str) -> RollbackMetadata:
        """
        Undo a write, failed or completed; rows of a completed write are deleted.

        Raises:
            ConfigError: There is no such write.
            RefusedError: A later commit, a savepoint, a clean or a live heartbeat of the write prevents it; nothing was
                changed.
            CorruptMetadata: The files of the write cannot be determined; nothing was changed.
            StorageError: A file cannot be deleted; the rollback stays pending, and the next call finishes it.
        """
        check_texts(requested_time=requested_time)
        return self._changed_alone(lambda: self.services.rollback().roll_back(requested_time))

    def check(self, *, contents: bool = False) -> tuple[Finding, ...]:
        """
        Check the table for damage: compare timeline, files and metadata table. Nothing is changed.

        Args:
            contents: Read the footer of each base file and the blocks of each log file, too, and compare them with the
                file's name and commits. That finds a file that was swapped for another one of the same size, and costs
                a request or two for each file.

        Returns:
            Findings, the most severe first; empty for an intact table. Their codes are stable, see
            `hudi_py.services.check.findings.RULES`.

        Raises:
            StorageError: The storage failed or is unreachable. Damage is not raised but returned as finding.
        """
        from hudi_py.services.check.service import CheckService

        check_flags(contents=contents)
        return CheckService(store=self._store, table=self.config, settings=self.settings, contents=contents).run()

    def create_savepoint(self, requested_time: str | None = None, **words: Unpack[SavepointWords]) -> Instant:
        """
        Create a savepoint of a completed commit: cleans keep its files, and a restore can go back to it.

        Args:
            requested_time: Requested time of the commit; None for the last completed one.
            words: ``user``, ``comment``, ``name`` and ``ttl``; see `SavepointWords`.

        Raises:
            ConfigError: There is no such completed commit, the name looks like a time, or the time to live is invalid.
            RefusedError: A clean has deleted some of its files or is about to, the commit has a savepoint already, or
                another savepoint has this name.
        """
        service = self.services.savepoint()
        return self._changed(lambda: service.create(requested_time, **words), beside=True)

    def delete_savepoint(self, savepoint: str, *, archive_commit: bool = False) -> bool:
        """
        Delete a savepoint; return False if there was none.

        Args:
            savepoint: Requested time of its commit, or its name.
            archive_commit: If later commits are archived already, archive the savepoint's commit first. If it stayed on
                the active timeline, it would hide the commits that were archived after it.

        Raises:
            ConfigError: No savepoint has this name.
            RefusedError: Later commits are archived already, or two savepoints have this name; nothing was changed.
                With *archive_commit*: the commit is still needed on the active timeline.
        """
        check_flags(archive_commit=archive_commit)
        service = self.services.savepoint()

        def run() -> bool:
            time = service.time_of(savepoint)
            # First the commit, then the savepoint: the other order would leave the commit as the start of the timeline
            # (D-7).
            if archive_commit and service.is_passed_by_archival(time):
                self.services.archive().archive_savepointed(time)
            return service.delete(time)

        return self._changed(run)

    def remove_expired_savepoints(self) -> tuple[Instant, ...]:
        """
        Delete expired savepoints. Every clean does this by itself.

        Returns:
            The deleted savepoints, oldest first.
        """
        return self._changed(lambda: self.services.savepoint().remove_expired())

    def restore(self, savepoint: str) -> RestoreMetadata:
        """
        Go back to a savepoint: undo all later writes. Finishes a pending restore to it.

        Args:
            savepoint: Requested time of its commit, or its name.

        Raises:
            ConfigError, RefusedError, CorruptMetadata: The restore is impossible; nothing was changed.
            StorageError: A file cannot be deleted; the restore stays pending, and no commit can begin before it is
                finished.
        """
        time = self.services.savepoint().time_of(savepoint)
        return self._changed_alone(lambda: self.services.restore().run(time))

    def archive(self, **settings: int | bool) -> ArchiveResult:
        """
        Move old instants that are no longer needed from the active timeline to the archived one.

        Also compacts, cleans and archives the metadata table.

        Args:
            settings: ``keep_min_commits``, ``keep_max_commits``, ``archive_beyond_savepoint``; default: the table's
                settings.

        Raises:
            ConfigError, CorruptMetadata, ConflictError: See `ArchiveService`; nothing was deleted.
        """
        from hudi_py.services.archive.plan import Bound

        def run() -> ArchiveResult:
            done = self.services.archive(**settings).run()
            # Without the lock the upkeep would not get it either.
            if done.bound is not Bound.LOCK:
                self.services.run_upkeep()
            return done

        return self._changed(run)

    def orphans(self, **options: Unpack[OrphanOptions]) -> OrphanReport:
        """
        Find files that no instant knows, and move them into quarantine; see docs/orphans.md.

        A file is removed only if it is old enough and if timeline, archive, metadata table, savepoints, pending plans,
        markers and heartbeats all say that nothing needs it. If something about the table is in doubt, nothing is.

        Args:
            options: ``older_than`` (3 days by default), ``dry_run``, ``delete`` (for good), ``max_deletes``,
                ``inventory``, ``now``; see `hudi_py.services.orphans.options.OrphanOptions`.

        Returns:
            Every file in question with the reason, and what was done.

        Raises:
            ConfigError: A value is invalid; nothing was done.
            RefusedError: There are such files, but the table is in doubt or a breaker tripped; nothing was removed.
            ConflictError: Another process holds the table's lock; nothing was removed.
        """
        return self.services.orphans(**options).run()

    def undo(self, removal: str, *, dry_run: bool = False) -> UndoReport:
        """
        Put back the files that a clean or a search for orphans moved into quarantine; see docs/orphans.md.

        Of a clean, the metadata table lists the files again, and the clean leaves the timeline as if it had never run:
        the next clean plans those files again, unless it retains more. Recorded as a rollback of the clean.

        Args:
            removal: Requested time of the clean, or name of the search (`OrphanReport.quarantine`).
            dry_run: Only tell what would be put back; nothing is written.

        Raises:
            ConfigError: There is no such clean or search.
            RefusedError: It cannot be undone; the message says why. Nothing was changed.
            ConflictError: Another process holds the table's lock; nothing was changed.
            StorageError: A file could not be moved; the same call goes on.
        """
        check_flags(dry_run=dry_run)
        check_texts(removal=removal)
        service = self.services.undo()
        return service.plan(removal) if dry_run else self._changed(lambda: service.run(removal))

    def maintain(
        self,
        *,
        dry_run: bool = False,
        max_deletes: int | None = None,
        max_bytes: int | None = None,
        max_duration: str | timedelta | None = None,
    ) -> MaintenanceReport:
        """
        Do everything that is due: failed writes, expired tags, dead leases and clean, archival, quarantine; report
        orphans. Where the settings or the policy ask for it, also tags on a schedule, expired partitions, compaction
        (``hoodie.compact.inline``) and clustering (``hoodie.clustering.inline``).

        A step that fails does not stop the others.

        Args:
            dry_run: Only tell what would be done: the steps are rehearsed in memory, one after the other, so each finds
                what those before it will have done. Nothing is written, and no time limit counts. Compaction and
                clustering, which read and write rows, are planned only; what comes after a due one says so.
            max_deletes, max_bytes: Largest number of files, and of bytes, that all steps together delete; None for no
                limit. The limits of the settings stay in force.
            max_duration: A span, or text as ``"90s"``, after which no step begins and the clean begins no deletion.

        Returns:
            Every step: what was done and why, or why it failed or was left for the next run.

        Raises:
            ConfigError: A limit is invalid.
        """
        from hudi_py.services.maintenance.budget import run_budget
        from hudi_py.services.maintenance.service import run
        from hudi_py.services.maintenance.steps import works

        check_flags(dry_run=dry_run)
        budget = run_budget(self._store.clock, max_deletes, max_bytes, max_duration)
        if not dry_run:
            return run(works(self, budget), budget=budget)
        self._store.lock.examine()
        with warnings_only():
            budget = budget.without_time()
            return run(works(self.rehearsed(), budget, rehearses=True), dry_run=True, budget=budget)

    def recover(self, *, dry_run: bool = False) -> tuple[RecoveryOutcome, ...]:
        """
        Repair a table after a crash: find everything that is unfinished or damaged, and take the steps that are safe.

        Stop all writers before, except those with heartbeats (failed-writes policy LAZY), which are not touched.

        Args:
            dry_run: Only report; write nothing.

        Returns:
            Findings and what was done about them, in this order; empty for an intact table.

        Raises:
            StorageError: The storage failed or is unreachable.
        """
        check_flags(dry_run=dry_run)
        if dry_run:
            return self.rehearsal().services.recovery().rehearse()
        return self._changed(lambda: self.services.recovery().run(), recorded=True)
