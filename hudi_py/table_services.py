"""
Creates the services of an opened table, which methods of `hudi_py.Table` and commands use.

Services are imported when they are first used, so that reading a table does not load them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs

from hudi_py.config import keys
from hudi_py.config.archive import archive_config
from hudi_py.config.arguments import check_aware, check_callables, check_kinds, check_known
from hudi_py.config.clean import CleanConfig, clean_config
from hudi_py.config.clean_options import CleanOptions, clean_config_with
from hudi_py.config.clustering import ClusteringConfig, clustering_config, clustering_config_with
from hudi_py.config.expiry import ExpiryConfig
from hudi_py.config.keys import PARQUET_SMALL_FILE_LIMIT
from hudi_py.config.uses import Use
from hudi_py.engine.base import Engine
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConfigError, HudiError, UnsupportedTable
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.watch import Reporter
from hudi_py.table_view import TableView
from hudi_py.timeline.lock import held_if_free

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.mdt.keeper import MetadataTableKeeper
    from hudi_py.services.archive.service import ArchiveService
    from hudi_py.services.clean.executing.watch import OnProgress
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.clean.service import CleanService
    from hudi_py.services.clustering.service import ClusteringService
    from hudi_py.services.compaction.service import CompactionService
    from hudi_py.services.deletion.service import DeletionService
    from hudi_py.services.doctor.service import DoctorService
    from hudi_py.services.erasure.service import ErasureService
    from hudi_py.services.expiry.service import ExpiryService
    from hudi_py.services.log_compaction.service import LogCompactionService
    from hudi_py.services.orphans.options import OrphanOptions
    from hudi_py.services.orphans.service import OrphanService
    from hudi_py.services.policy.service import PolicyService
    from hudi_py.services.recovery.failed_writes import FailedWrites
    from hudi_py.services.recovery.service import RecoveryService
    from hudi_py.services.restore.service import RestoreService
    from hudi_py.services.rewriting.progress import OnGroup
    from hudi_py.services.rollback.service import RollbackService
    from hudi_py.services.savepoint.schedule import TagSchedule
    from hudi_py.services.savepoint.service import SavepointService
    from hudi_py.services.simulation.service import SimulationService
    from hudi_py.services.undo.service import UndoService
    from hudi_py.services.upkeep.service import UpkeepService
    from hudi_py.services.usage.service import UsageService


@attrs.frozen
class TableServices:
    """
    Creates the services of a table.

    Args:
        table: The opened table; services get its settings and its timeline.
    """

    _table: TableView

    def clean(
        self,
        config: CleanConfig | None = None,
        *,
        now: datetime | None = None,
        engine: Engine | None = None,
        on_progress: OnProgress | None = None,
    ) -> CleanService:
        """Return the clean service, whose steps can be called one by one."""
        check_aware(now)
        check_callables(on_progress=on_progress)
        self._table.require(Use.CLEAN)
        from hudi_py.services.clean.service import CleanService

        return CleanService(
            contents=self._table.contents,
            table=self._table.config,
            config=config or clean_config(self._table.settings),
            engine=_checked(engine),
            now=now,
            metadata_table=self.metadata_table,
            reporter=Reporter(on_progress),
        )

    def run_clean(
        self,
        service: CleanService,
        known: Mapping[str, str] | None = None,
        *,
        failed_writes: bool = True,
        on_undone: Callable[[list[Any]], object] = len,
    ) -> list[CleanResult]:
        """
        Run *service*, after rolling back writes with an expired heartbeat (failed-writes policy LAZY).

        The limit on files is of both together.

        Args:
            service: From `clean`.
            known: The properties of the table if they were read just now.
            failed_writes: False if the caller has rolled them back a moment ago.
            on_undone: Called with the list of rollbacks.
        """
        permit = service.permit(known)  # before anything is changed
        if failed_writes and service.config.approved is None:  # else no other file may go
            undone = self.failed_writes().with_clean()
            on_undone(undone)
            service = service.after(sum(each.total_files_deleted for each in undone))
        return service.run(permit)

    def clustering(
        self,
        config: ClusteringConfig | None = None,
        *,
        engine: Engine | None = None,
        on_group: OnGroup | None = None,
    ) -> ClusteringService:
        """
        Return the clustering service, whose steps can be called one by one; *on_group* hears of its progress.

        Raises:
            UnsupportedTable: The table has a bucket index, or is of another kind that hudi_py does not write.
        """
        table = self._table
        table.require(Use.REWRITE)
        from hudi_py.services.clustering.service import ClusteringService
        from hudi_py.writing.buckets import check_buckets
        from hudi_py.writing.options import base_file_options

        # The setting first, the files afterwards: a table without commits shows nothing in its files.
        if table.settings[keys.INDEX_TYPE] == "BUCKET":
            raise UnsupportedTable(
                f"{table.storage.root} has a bucket index: rows belong to certain files, and stay there"
            )
        check_buckets(table.storage, table.timeline, table.contents, None)
        self._check_column_ids()
        return ClusteringService(
            contents=table.contents,
            table=table.config,
            settings=table.settings,
            config=config or clustering_config(table.settings),
            metadata_table=self.metadata_table,
            engine=_checked(engine),
            options=base_file_options(table.settings),
            schema_text=self._schema_text,
            roll_back_failed=lambda timeline: self.failed_writes().before_write(timeline),
            roll_back=lambda time: self.rollback().roll_back(time),
            on_group=on_group,
        )

    def clustering_config(
        self,
        *,
        sort_by: str | Sequence[str] = (),
        layout: str | None = None,
        partitions: Sequence[str] | None = None,
    ) -> ClusteringConfig:
        """
        Return the table's clustering configuration, overridden by arguments as for `hudi_py.Table.cluster`.

        Raises:
            ConfigError: A value is invalid, or the table has no such partition.
        """
        config = clustering_config_with(self._table.settings, sort_by=sort_by, layout=layout, partitions=partitions)
        # An unknown partition would be planned as an empty one, and a misspelled name would look like success.
        absent = [] if partitions is None else sorted(set(config.partitions) - set(self._table.partitions()))
        if absent:
            raise ConfigError(f"{self._table.storage.root} has no partition {absent[0]!r}; see hudi-py files")
        return config

    def _schema_text(self, planned: str | None = None) -> str | None:
        """
        Return the Avro text of the rows at this moment: a column that came since the table was opened must not be lost.

        Args:
            planned: Time of the plan that is carried out. With schema on read its files have the columns of that time,
                because readers ask what the columns were then.
        """
        from hudi_py.snapshot.schema import committed_schema_text
        from hudi_py.timeline.row_schema import column_ids

        table = self._table.refresh()
        if planned is not None and column_ids(table.contents, table.timeline) is not None:
            return committed_schema_text(table.contents, table.timeline, table.config.properties, planned)
        return table.schema_text()

    def _check_column_ids(self) -> None:
        """
        Raises:
            UnsupportedTable: The table uses schema on read in a way that a rewrite cannot carry on.
        """
        from hudi_py.rows.column_ids import ids_to_keep

        table = self._table
        ids_to_keep(table.contents, table.timeline, table.config, table.schema_text)

    def rollback(self) -> RollbackService:
        """Return the rollback service."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.rollback.service import RollbackService

        return RollbackService(
            contents=self._table.contents,
            table=self._table.config,
            metadata_table=self.metadata_table,
            # Asked only if the rollback is refused, because it reads all savepoints.
            ways_back=lambda: self.restore().ways_back(),
        )

    def savepoint(self) -> SavepointService:
        """Return the savepoint service."""
        self._table.require(Use.SAVEPOINT)
        from hudi_py.services.savepoint.service import SavepointService

        return SavepointService(
            contents=self._table.contents, table=self._table.config, metadata_table=self.metadata_table
        )

    @property
    def tag_schedule(self) -> TagSchedule:
        """How many tags of each kind to keep, as the settings say."""
        from hudi_py.services.savepoint.schedule import TagSchedule

        settings = self._table.settings
        return TagSchedule(
            hourly=settings[keys.TAGS_HOURLY],
            daily=settings[keys.TAGS_DAILY],
            weekly=settings[keys.TAGS_WEEKLY],
            monthly=settings[keys.TAGS_MONTHLY],
            watermark=settings[keys.TAGS_WATERMARK],
            delay=settings[keys.TAGS_WATERMARK_DELAY],
        )

    def restore(self) -> RestoreService:
        """Return the restore service."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.restore.service import RestoreService

        return RestoreService(
            contents=self._table.contents, table=self._table.config, metadata_table=self.metadata_table
        )

    def archive(self, **settings: int | bool) -> ArchiveService:
        """Return the archival service; arguments as for `hudi_py.Table.archive`."""
        check_known(settings, ("keep_min_commits", "keep_max_commits", "archive_beyond_savepoint"))
        self._table.require(Use.ARCHIVE)
        # Arguments are called as the settings, with underscores for dots.
        named = {f"hoodie.{name.replace('_', '.')}": value for name, value in settings.items()}
        # Archival takes the settings of the clean, too: it must not archive what the clean still has to see.
        merged = self._table.settings.merged(named)
        from hudi_py.services.archive.service import ArchiveService

        return ArchiveService(
            contents=self._table.contents,
            table=self._table.config,
            config=archive_config(merged),
            cleaning=clean_config(merged),
        )

    def compaction(
        self, *, now: datetime | None = None, engine: Engine | None = None, on_group: OnGroup | None = None
    ) -> CompactionService:
        """
        Return the compaction service.

        Args:
            now: Timezone-aware; replaces the clock for planning.
            engine: Engine that writes base files; local threads by default.
            on_group: Called after each file group with the number of those that are written and of all; not on Spark.

        Raises:
            ConfigError, UnsupportedTable: The settings or the table ask for what hudi_py does not do.
        """
        check_aware(now)
        check_callables(on_group=on_group)
        self._table.require(Use.REWRITE)
        from hudi_py.config.compaction import compaction_config
        from hudi_py.services.compaction.service import CompactionService
        from hudi_py.writing.options import base_file_options

        self._check_column_ids()
        return CompactionService(
            contents=self._table.contents,
            table=self._table.config,
            config=compaction_config(self._table.settings),
            options=base_file_options(self._table.settings),
            schema_text=self._schema_text,
            engine=_checked(engine),
            metadata_table=self.metadata_table,
            rollback=self.rollback(),
            now=now,
            on_group=on_group,
        )

    def log_compaction(
        self, *, now: datetime | None = None, engine: Engine | None = None, on_group: OnGroup | None = None
    ) -> LogCompactionService:
        """Return the log compaction service; arguments and errors as for `compaction`."""
        from hudi_py.model.change_logging import logging_mode
        from hudi_py.services.log_compaction.service import LogCompactionService
        from hudi_py.writing.options import log_file_options

        plain = self.compaction(now=now, engine=engine, on_group=on_group)
        logging = logging_mode(self._table.config.properties, self._table.storage.root)
        return LogCompactionService(
            **{field.name: getattr(plain, field.name) for field in attrs.fields(type(plain))},
            log_options=log_file_options(self._table.settings),
            has_change_logs=logging is not None,
        )

    def upkeep(self) -> UpkeepService:
        """Return the service that compacts, cleans and archives the metadata table."""
        from hudi_py.services.upkeep.service import UpkeepService

        store = self._table.contents.store
        return UpkeepService(
            storage=self._table.storage, settings=self._table.settings, clock=store.clock, lock=store.lock
        )

    def run_upkeep(self) -> None:
        """
        Keep the metadata table small, under the table's lock; skipped if another process holds the lock.

        A failure is only logged: what was done before remains valid, and the next action tries the upkeep again.
        """
        try:
            with held_if_free(self._table.contents.store.lock, "upkeep of the metadata table") as is_held:
                if is_held:
                    self.upkeep().run()
        except HudiError as error:
            log.warning("metadata_table.upkeep.failed", reason=str(error))

    def failed_writes(self) -> FailedWrites:
        """Return the service that rolls back failed writes as the failed-writes policy says."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.recovery.failed_writes import FailedWrites

        return FailedWrites(
            contents=self._table.contents,
            table=self._table.config,
            settings=self._table.settings,
            metadata_table=self.metadata_table,
        )

    def recovery(self) -> RecoveryService:
        """Return the recovery service, which finds problems and repairs them in separate steps."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.recovery.service import RecoveryService

        return RecoveryService(
            contents=self._table.contents,
            table=self._table.config,
            settings=self._table.settings,
            metadata_table=self.metadata_table,
        )

    def orphans(self, **options: Unpack[OrphanOptions]) -> OrphanService:
        """
        Return the service that finds and removes files that no instant knows.

        Args:
            options: As for `hudi_py.Table.orphans`.

        Raises:
            ConfigError: A value is invalid.
        """
        self._table.require(Use.CLEAN | Use.ROLLBACK)
        from hudi_py.services.orphans.options import orphan_service

        return orphan_service(self._table.contents, self._table.config, self._table.settings, options)

    def undo(self) -> UndoService:
        """Return the service that puts files back from quarantine."""
        self._table.require(Use.CLEAN | Use.ROLLBACK)
        from hudi_py.services.undo.service import UndoService

        return UndoService(contents=self._table.contents, table=self._table.config, metadata_table=self.metadata_table)

    def deletion(self) -> DeletionService:
        """Return the service that forbids and allows deletion."""
        self._table.require(Use.CLEAN)
        from hudi_py.services.deletion.service import DeletionService

        return DeletionService(contents=self._table.contents)

    def policy(self) -> PolicyService:
        """Return the service that puts a retention policy in force."""
        self._table.require(Use.CLEAN)
        from hudi_py.services.policy.service import PolicyService

        return PolicyService(contents=self._table.contents)

    def expiry(self, config: ExpiryConfig, *, now: datetime | None = None) -> ExpiryService:
        """Return the service that finds the partitions that are older than they may be."""
        check_aware(now)
        # It ends in a commit that drops partitions.
        self._table.require(Use.WRITE)
        from hudi_py.services.expiry.service import ExpiryService

        table = self._table
        return ExpiryService(
            contents=table.contents, table=table.config, settings=table.settings, config=config, now=now
        )

    def doctor(
        self, *, now: datetime | None = None, keeps_files: bool = False, **options: Unpack[CleanOptions]
    ) -> DoctorService:
        """
        Return the service that judges settings and health; arguments as for `hudi_py.Table.plan_clean`.

        Args:
            keeps_files: See `hudi_py.services.doctor.service.DoctorService`.
        """
        from hudi_py.services.doctor.service import DoctorService

        check_aware(now)  # a mistake of the call is no finding about the settings
        check_known(options, CleanOptions.__annotations__)
        try:
            self.clean_config(now=now)
        except ConfigError:
            pass  # the settings contradict each other, which is a finding
        else:
            self.clean_config(now=now, **options)
        return DoctorService(
            contents=self._table.contents,
            table=self._table.config,
            settings=self._table.settings,
            # Called by the service, for which contradictory settings are a finding and not an error.
            clean=partial(self.clean_config, now=now, **options),
            clean_service=partial(self.clean, now=now),
            keeps_files=keeps_files,
        )

    def usage(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> UsageService:
        """Return the service that finds out what keeps the files; arguments as for `hudi_py.Table.plan_clean`."""
        from hudi_py.services.usage.service import UsageService

        clean = self.clean(self.clean_config(now=now, **options), now=now)
        # With a limit below 0, too, no file counts as small.
        return UsageService(clean, max(self._table.settings[PARQUET_SMALL_FILE_LIMIT], 0))

    def simulation(self) -> SimulationService:
        """Return the service that replays the writes under other settings of cleaning."""
        from hudi_py.services.simulation.service import SimulationService

        return SimulationService(contents=self._table.contents, table=self._table.config)

    def erasure(
        self,
        partition: str | None,
        keys: tuple[str, ...],
        *,
        now: datetime | None = None,
        **options: Unpack[CleanOptions],
    ) -> ErasureService:
        """Return the service that proves that bytes are gone; *options* as for `hudi_py.Table.plan_clean`."""
        from hudi_py.services.erasure.service import ErasureService

        clean = self.clean(self.clean_config(now=now, **options), now=now)
        return ErasureService(clean=clean, partition=partition, keys=keys)

    @property
    def metadata_table(self) -> MetadataTableKeeper:
        """The keeper, which updates the metadata table with every action on the table."""
        from hudi_py.mdt.keeper import MetadataTableKeeper

        store = self._table.contents.store
        return MetadataTableKeeper(self._table.storage, self._table.settings, store.clock, store.lock)

    def clean_config(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> CleanConfig:
        """
        Return the table's cleaning configuration, overridden by *options*; arguments as for `hudi_py.Table.plan_clean`.

        Raises:
            ConfigError: A value is invalid, or two values contradict each other.
        """
        check_aware(now)
        return clean_config_with(
            self._table.settings, options, now=now or self._table.contents.store.clock.now(), zone=self._table.zone
        )


def _checked(engine: Engine | None) -> Engine:
    check_kinds(Engine, "an engine, as hudi_py.Engine describes it", engine=engine)
    return LocalEngine() if engine is None else engine
