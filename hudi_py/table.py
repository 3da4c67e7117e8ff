"""
A Hudi table, opened, and its services: clean, rollback, savepoints, restore, archival, recovery. No JVM.

Each service is imported when it is first asked for, so that looking at a table does not load them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar

from hudi_py.config.archive import archive_config
from hudi_py.config.clean import CleanConfig, clean_config
from hudi_py.config.clean_options import CleanOptions, clean_config_with
from hudi_py.config.keys import READ_BYTES_MAX, Settings
from hudi_py.config.uses import Use
from hudi_py.engine.base import Engine
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import HudiError
from hudi_py.model.instant import Instant
from hudi_py.model.records import RestoreMetadata, RollbackMetadata
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.watch import Reporter
from hudi_py.services.recovery.finding import RecoveryOutcome
from hudi_py.table_view import TableView
from hudi_py.timeline.lock import held_if_free
from hudi_py.timeline.properties_file import finish_rewrite

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.mdt.keeper import MetadataTableKeeper
    from hudi_py.services.archive.service import ArchiveResult, ArchiveService
    from hudi_py.services.check.findings import Finding
    from hudi_py.services.clean.executing.watch import OnProgress
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.clean.service import CleanService
    from hudi_py.services.explain.files import Explanation
    from hudi_py.services.recovery.failed_writes import FailedWrites
    from hudi_py.services.recovery.service import RecoveryService
    from hudi_py.services.restore.service import RestoreService
    from hudi_py.services.rollback.service import RollbackService
    from hudi_py.services.savepoint.service import SavepointService, SavepointWords
    from hudi_py.services.upkeep.service import UpkeepService

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

    def _changed(self, action: Callable[[], T], *, recorded: bool = False) -> T:
        """
        Run what changes the table; whatever becomes of it, nothing loaded before is believed any more.

        Args:
            recorded: A result means that the metadata table has grown, so it is looked after.
        """
        try:
            result = action()
            if recorded and result:
                self.run_upkeep()
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
        config = self.clean_config(now=now, **options)
        return self.clean_service(config, now=now).plan(details=details)

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
        config = self.clean_config(now=now, **options)
        return self.run_clean(self.clean_service(config, now=now, engine=engine, on_progress=on_progress))

    def run_clean(self, service: CleanService) -> list[CleanResult]:
        """Do what `clean` does by a `clean_service`, for callers who want to look at it afterwards."""

        def run() -> list[CleanResult]:
            self.failed_writes().with_clean()
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
        config = self.clean_config(now=now, **options)
        from hudi_py.services.explain.files import explain

        return explain(self.clean_service(config, now=now), target)

    def clean_service(
        self,
        config: CleanConfig | None = None,
        *,
        now: datetime | None = None,
        engine: Engine | None = None,
        on_progress: OnProgress | None = None,
    ) -> CleanService:
        """The clean of this table, its steps callable one by one."""
        self.require(Use.CLEAN)
        from hudi_py.services.clean.service import CleanService

        return CleanService(
            contents=self._contents,
            table=self.config,
            config=config or clean_config(self.settings),
            engine=engine or LocalEngine(),
            now=now,
            metadata_table=self.metadata_table,
            reporter=Reporter(on_progress),
        )

    def rollback_failed_writes(self) -> list[RollbackMetadata]:
        """
        Undo every write that did not complete, newest first; pending rollbacks are finished.

        Only when no writer is at work, but those that have a heartbeat, which are spared.

        Raises:
            CorruptMetadata: A marker names what is no file of its write; nothing was deleted.
            RefusedError: It could lose data; the message names the way out.
        """
        return self._changed_alone(lambda: self.rollback_service().run())

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
        return self._changed_alone(lambda: self.rollback_service().roll_back(requested_time))

    def rollback_service(self) -> RollbackService:
        """Rollbacks of this table, step by step."""
        self.require(Use.ROLLBACK)
        from hudi_py.services.rollback.service import RollbackService

        return RollbackService(
            contents=self._contents,
            table=self.config,
            metadata_table=self.metadata_table,
            ways_back=lambda: self.restore_service().ways_back(),
        )

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
        service = self.savepoint_service()
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
        service = self.savepoint_service()

        def run() -> bool:
            time = service.time_of(savepoint)
            if archive_commit and service.is_passed_by_archival(time):
                self.archive_service().archive_savepointed(time)
            return service.delete(time)

        return self._changed(run)

    def remove_expired_savepoints(self) -> tuple[Instant, ...]:
        """
        Let go of the savepoints whose time to live is over; each clean does so by itself.

        Returns:
            Those that are gone, oldest first.
        """
        return self._changed(lambda: self.savepoint_service().remove_expired())

    def savepoint_service(self) -> SavepointService:
        """Savepoints of this table."""
        self.require(Use.SAVEPOINT)
        from hudi_py.services.savepoint.service import SavepointService

        return SavepointService(contents=self._contents, table=self.config, metadata_table=self.metadata_table)

    def restore(self, savepoint: str) -> RestoreMetadata:
        """
        Go back to a savepoint: every write after it is undone; a pending restore to it is finished.

        Args:
            savepoint: Requested time of its commit, or its name.

        Raises:
            ConfigError, RefusedError, CorruptMetadata: It cannot be; nothing was changed.
            StorageError: A file refuses to go; the restore stays pending, and no commit can start before it is done.
        """
        time = self.savepoint_service().time_of(savepoint)
        return self._changed_alone(lambda: self.restore_service().run(time))

    def restore_service(self) -> RestoreService:
        """Restores of this table."""
        self.require(Use.ROLLBACK)
        from hudi_py.services.restore.service import RestoreService

        return RestoreService(contents=self._contents, table=self.config, metadata_table=self.metadata_table)

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
            done = self.archive_service(**settings).run()
            if done.bound is not Bound.LOCK:
                self.run_upkeep()
            return done

        return self._changed(run)

    def archive_service(self, **settings: int | bool) -> ArchiveService:
        """Archival of this table, its steps callable one by one; arguments as `archive`."""
        self.require(Use.ARCHIVE)
        named = {f"hoodie.{name.replace('_', '.')}": value for name, value in settings.items()}
        merged = self.settings.merged(named)
        from hudi_py.services.archive.service import ArchiveService

        return ArchiveService(
            contents=self._contents, table=self.config, config=archive_config(merged), cleaning=clean_config(merged)
        )

    def run_upkeep(self) -> None:
        """
        Keep the metadata table small, under the table's lock; where another writer has that, some other time.

        A failure is logged, not raised: it takes nothing from what was done before, and the next action tries again.
        """
        try:
            with held_if_free(self._store.lock, "upkeep of the metadata table") as is_held:
                if is_held:
                    self.upkeep_service().run()
        except HudiError as error:
            log.warning("metadata_table.upkeep.failed", reason=str(error))

    def upkeep_service(self) -> UpkeepService:
        """The metadata table's own compaction, clean and archival."""
        from hudi_py.services.upkeep.service import UpkeepService

        return UpkeepService(storage=self.storage, settings=self.settings, clock=self._store.clock)

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
            found = self.rehearsal().recovery_service().plan()
            return tuple(RecoveryOutcome(finding=each, done=False) for each in found)
        return self._changed(lambda: self.recovery_service().run(), recorded=True)

    def failed_writes(self) -> FailedWrites:
        """What the failed-writes policy asks for."""
        self.require(Use.ROLLBACK)
        from hudi_py.services.recovery.failed_writes import FailedWrites

        return FailedWrites(
            contents=self._contents, table=self.config, settings=self.settings, metadata_table=self.metadata_table
        )

    def recovery_service(self) -> RecoveryService:
        """Recovery of this table, looking and acting apart."""
        self.require(Use.ROLLBACK)
        from hudi_py.services.recovery.service import RecoveryService

        return RecoveryService(
            contents=self._contents, table=self.config, settings=self.settings, metadata_table=self.metadata_table
        )

    @property
    def metadata_table(self) -> MetadataTableKeeper:
        """Keeps the table's metadata table in step with what we do."""
        from hudi_py.mdt.keeper import MetadataTableKeeper

        return MetadataTableKeeper(self.storage, self.settings, self._store.clock)

    def clean_config(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> CleanConfig:
        """
        The table's cleaning settings with *options* on top; arguments as `plan_clean`.

        Raises:
            ConfigError: A value is wrong, or two contradict each other.
        """
        return clean_config_with(self.settings, options, now=now or self._store.clock.now(), zone=self.zone)
