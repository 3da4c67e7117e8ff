"""
A Hudi table, opened, and its services: clean, rollback, savepoints, restore, archival, recovery. No JVM.

Each service is imported when it is first asked for, so that looking at a table does not load them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from hudi_py.config.clean_options import CleanOptions
from hudi_py.config.keys import READ_BYTES_MAX, Settings
from hudi_py.engine.base import Engine
from hudi_py.model.instant import Instant
from hudi_py.model.records import RestoreMetadata, RollbackMetadata
from hudi_py.runtime.clock import Clock
from hudi_py.services.recovery.finding import RecoveryOutcome
from hudi_py.table_services import TableServices
from hudi_py.table_view import TableView
from hudi_py.timeline.properties_file import finish_rewrite

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.services.archive.service import ArchiveResult
    from hudi_py.services.check.findings import Finding
    from hudi_py.services.clean.executing.watch import OnProgress
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.clean.service import CleanService
    from hudi_py.services.explain.files import Explanation
    from hudi_py.services.savepoint.service import SavepointWords

T = TypeVar("T")

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
        location: Local path or URL (``s3://...``, whatever fsspec knows).
        storage_options: For the storage library.
        settings: ``hoodie.*`` settings, old and new spellings; docs/settings.md lists them all. Unknown ones are an
            error unless ``hoodie_py.conf.allow.unknown`` is true.
        clock: Replaces the machine's clock.

    Returns:
        The table; its properties have been read, nothing else.

    Raises:
        ConfigError: A setting is unknown or not valid.
        TableNotFound: There is no table.
        UnsupportedTable: It is of a version that is not served.
        CorruptMetadata: Its properties are damaged.
        StorageError: The storage refused or is away.
    """
    from hudi_py.storage.factory import open_storage

    bound = Settings(settings)[READ_BYTES_MAX]
    return Table(open_storage(location, storage_options, read_bytes_max=bound), settings=settings, clock=clock)


class Table(TableView):
    """
    A table and its services: what `TableView` shows, and what changes it.

    With ``hoodie.write.lock.provider`` set, whatever changes the table takes the table's lock where Apache Hudi does,
    and raises `ConflictError` where another writer does not give it back in time; try again then.
    """

    @property
    def services(self) -> TableServices:
        """The services of the table, step by step."""
        return TableServices(self)

    def _changed(self, action: Callable[[], T], *, recorded: bool = False) -> T:
        """
        Run what changes the table; whatever becomes of it, nothing loaded before is believed any more.

        Args:
            recorded: A result means that the metadata table has grown, so it is looked after.
        """
        try:
            result = action()
            if recorded and result:
                self.services.run_upkeep()
        finally:
            self._forget()
        self.refresh()
        return result

    def _changed_alone(self, action: Callable[[], T]) -> T:
        """`_changed` for what no writer may be at work beside, so a rewrite of the properties can be finished first."""

        def run() -> T:
            with self._store.lock.held("properties"):
                finish_rewrite(self.storage)
            return action()

        return self._changed(run, recorded=True)

    def plan_clean(
        self,
        *,
        now: datetime | None = None,
        details: bool = False,
        **options: Unpack[CleanOptions],
    ) -> CleanPlan:
        """
        Plan a clean; nothing happens.

        Args:
            now: Aware; replaces the clock.
            details: Ask for sizes and keep every verdict.
            options: ``policy``, ``commits_retained``, ``file_versions_retained``, ``hours_retained``, what is kept
                besides, and limits of this run; see `CleanOptions`.

        Raises:
            ConfigError: A value is wrong, or two contradict each other.
            CorruptMetadata: An instant that the decision needs does not decode.
        """
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
        Clean: finish pending cleans, else plan, store the plan, delete, complete.

        Under the failed-writes policy LAZY, writes whose heartbeat is expired are rolled back before; savepoints whose
        time to live is over, by the clock, are let go of before.

        Args:
            now, options: As `plan_clean`.
            engine: What deletes; local threads by default.
            on_progress: Called with a `CleanProgress` as the run gets on, at most ten times a second and at the
                beginning and end of each phase; never twice at once. What it raises ends the run.

        Returns:
            What was carried out, oldest first; empty when there was nothing to do.

        Raises:
            RefusedError: It could lose data; the message names the way out.
            StorageError: Files refuse to go; the clean stays pending and is finished by the next one.
        """
        config = self.services.clean_config(now=now, **options)
        return self.run_clean(self.services.clean(config, now=now, engine=engine, on_progress=on_progress))

    def run_clean(self, service: CleanService) -> list[CleanResult]:
        """Do what `clean` does by a service of `TableServices.clean`, for callers who want to look at it afterwards."""

        def run() -> list[CleanResult]:
            self.services.failed_writes().with_clean()
            return service.run()

        return self._changed(run, recorded=True)

    def explain(
        self,
        target: str,
        *,
        now: datetime | None = None,
        **options: Unpack[CleanOptions],
    ) -> Explanation:
        """
        Why files are still there, and when a clean may remove them; nothing happens.

        Args:
            target: A file (path or name), a file id, or a partition.
            now, options: As `plan_clean`.

        Raises:
            ConfigError: Nothing of that name is in the table, or a value is wrong.
            CorruptMetadata: An instant that the answer needs does not decode.
        """
        config = self.services.clean_config(now=now, **options)
        from hudi_py.services.explain.files import explain

        return explain(self.services.clean(config, now=now), target)

    def rollback_failed_writes(self) -> list[RollbackMetadata]:
        """
        Undo every write that did not complete, newest first; pending rollbacks are finished.

        Only when no writer is at work, but those that have a heartbeat, which are spared.

        Raises:
            CorruptMetadata: A marker names what is no file of its write; nothing was deleted.
            RefusedError: It could lose data; the message names the way out.
        """
        return self._changed_alone(lambda: self.services.rollback().run())

    def rollback(self, requested_time: str) -> RollbackMetadata:
        """
        Undo one write, failed or completed; of a completed one the rows go.

        Raises:
            ConfigError: There is no such write.
            RefusedError: A later commit, a savepoint, a clean or the write's own heartbeat stands in the way; nothing
                was changed.
            CorruptMetadata: What it wrote cannot be told; nothing was changed.
            StorageError: A file refuses to go; the rollback stays pending and is finished by the next call.
        """
        return self._changed_alone(lambda: self.services.rollback().roll_back(requested_time))

    def check(self) -> tuple[Finding, ...]:
        """
        Hold timeline, files and metadata table against each other; nothing is changed.

        Returns:
            Findings, the worst first; empty for a table where everything is as it should be. The codes are stable, see
            `hudi_py.services.check.findings.RULES`.

        Raises:
            StorageError: The storage refused or is away; what is damaged is a finding instead.
        """
        from hudi_py.services.check.service import CheckService

        return CheckService(store=self._store, table=self.config, settings=self.settings).run()

    def create_savepoint(self, requested_time: str | None = None, **words: Unpack[SavepointWords]) -> Instant:
        """
        Pin the files of a completed commit, the last one by default: no clean takes them, a restore can go back.

        Args:
            requested_time: Of the commit.
            words: ``user``, ``comment``, ``name`` and ``ttl``; see `SavepointWords`.

        Raises:
            ConfigError: There is no such completed commit; or the name reads as a time, or the time to live is none.
            RefusedError: A clean has taken some of its files or is about to, it is savepointed already, or the name is
                taken.
        """
        service = self.services.savepoint()
        return self._changed(lambda: service.create(requested_time, **words))

    def delete_savepoint(self, savepoint: str, *, archive_commit: bool = False) -> bool:
        """
        Let go of a savepoint; False when there was none.

        Args:
            savepoint: Requested time of its commit, or its name.
            archive_commit: Where archival has gone beyond the savepoint, archive its commit first: on the active
                timeline it would hide those that are archived behind it.

        Raises:
            ConfigError: No savepoint has that name.
            RefusedError: Archival has gone beyond it, or two savepoints have that name; nothing was changed. With
                *archive_commit*: something still needs the commit on the active timeline.
        """
        service = self.services.savepoint()

        def run() -> bool:
            time = service.time_of(savepoint)
            if archive_commit and service.is_passed_by_archival(time):
                self.services.archive().archive_savepointed(time)
            return service.delete(time)

        return self._changed(run)

    def remove_expired_savepoints(self) -> tuple[Instant, ...]:
        """
        Let go of the savepoints whose time to live is over; each clean does so by itself.

        Returns:
            Those that are gone, oldest first.
        """
        return self._changed(lambda: self.services.savepoint().remove_expired())

    def restore(self, savepoint: str) -> RestoreMetadata:
        """
        Go back to a savepoint: every write after it is undone; a pending restore to it is finished.

        Args:
            savepoint: Requested time of its commit, or its name.

        Raises:
            ConfigError, RefusedError, CorruptMetadata: It cannot be; nothing was changed.
            StorageError: A file refuses to go; the restore stays pending, and no commit can start before it is done.
        """
        time = self.services.savepoint().time_of(savepoint)
        return self._changed_alone(lambda: self.services.restore().run(time))

    def archive(self, **settings: int | bool) -> ArchiveResult:
        """
        Move old instants from the active timeline to the archived one, as far as nothing needs them any more.

        The metadata table is compacted, cleaned and archived along with it.

        Args:
            settings: ``keep_min_commits``, ``keep_max_commits``, ``archive_beyond_savepoint``; default: the settings.

        Raises:
            ConfigError, CorruptMetadata, ConflictError: See `ArchiveService`; nothing was deleted.
        """
        from hudi_py.services.archive.plan import Bound

        def run() -> ArchiveResult:
            done = self.services.archive(**settings).run()
            if done.bound is not Bound.LOCK:
                self.services.run_upkeep()
            return done

        return self._changed(run)

    def recover(self, *, dry_run: bool = False) -> tuple[RecoveryOutcome, ...]:
        """
        Find everything that a crash left, and put right what can be proven to be safe; the rest is told.

        Only when no writer is at work, but those that have a heartbeat (failed-writes policy LAZY), which are spared.

        Args:
            dry_run: Only tell; nothing is written.

        Returns:
            What was found, in the order in which it was dealt with; empty for a table in good health.

        Raises:
            StorageError: The storage refused or is away.
        """
        if dry_run:
            return self.rehearsal().services.recovery().rehearse()
        return self._changed(lambda: self.services.recovery().run(), recorded=True)
