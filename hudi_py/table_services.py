"""
The services of an opened table, step by step: what the verbs of `hudi_py.Table` and the commands are made of.

Each service is imported when it is first asked for, so that looking at a table does not load them all.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import attrs

from hudi_py.config.archive import archive_config
from hudi_py.config.clean import CleanConfig, clean_config
from hudi_py.config.clean_options import CleanOptions, clean_config_with
from hudi_py.config.uses import Use
from hudi_py.engine.base import Engine
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import HudiError
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.watch import Reporter
from hudi_py.table_view import TableView
from hudi_py.timeline.lock import held_if_free

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.mdt.keeper import MetadataTableKeeper
    from hudi_py.services.archive.service import ArchiveService
    from hudi_py.services.clean.executing.watch import OnProgress
    from hudi_py.services.clean.service import CleanService
    from hudi_py.services.recovery.failed_writes import FailedWrites
    from hudi_py.services.recovery.service import RecoveryService
    from hudi_py.services.restore.service import RestoreService
    from hudi_py.services.rollback.service import RollbackService
    from hudi_py.services.savepoint.service import SavepointService
    from hudi_py.services.upkeep.service import UpkeepService


@attrs.frozen
class TableServices:
    """
    Makes the services of one table.

    Args:
        table: As it is opened; each service gets its settings and its timeline.
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
        """The clean of this table, its steps callable one by one."""
        self._table.require(Use.CLEAN)
        from hudi_py.services.clean.service import CleanService

        return CleanService(
            contents=self._table.contents,
            table=self._table.config,
            config=config or clean_config(self._table.settings),
            engine=engine or LocalEngine(),
            now=now,
            metadata_table=self.metadata_table,
            reporter=Reporter(on_progress),
        )

    def rollback(self) -> RollbackService:
        """Rollbacks of this table, step by step."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.rollback.service import RollbackService

        return RollbackService(
            contents=self._table.contents,
            table=self._table.config,
            metadata_table=self.metadata_table,
            ways_back=lambda: self.restore().ways_back(),
        )

    def savepoint(self) -> SavepointService:
        """Savepoints of this table."""
        self._table.require(Use.SAVEPOINT)
        from hudi_py.services.savepoint.service import SavepointService

        return SavepointService(
            contents=self._table.contents, table=self._table.config, metadata_table=self.metadata_table
        )

    def restore(self) -> RestoreService:
        """Restores of this table."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.restore.service import RestoreService

        return RestoreService(
            contents=self._table.contents, table=self._table.config, metadata_table=self.metadata_table
        )

    def archive(self, **settings: int | bool) -> ArchiveService:
        """Archival of this table, its steps callable one by one; arguments as `archive`."""
        self._table.require(Use.ARCHIVE)
        named = {f"hoodie.{name.replace('_', '.')}": value for name, value in settings.items()}
        merged = self._table.settings.merged(named)
        from hudi_py.services.archive.service import ArchiveService

        return ArchiveService(
            contents=self._table.contents,
            table=self._table.config,
            config=archive_config(merged),
            cleaning=clean_config(merged),
        )

    def upkeep(self) -> UpkeepService:
        """The metadata table's own compaction, clean and archival."""
        from hudi_py.services.upkeep.service import UpkeepService

        return UpkeepService(
            storage=self._table.storage, settings=self._table.settings, clock=self._table.contents.store.clock
        )

    def run_upkeep(self) -> None:
        """
        Keep the metadata table small, under the table's lock; where another writer has that, some other time.

        A failure is logged, not raised: it takes nothing from what was done before, and the next action tries again.
        """
        try:
            with held_if_free(self._table.contents.store.lock, "upkeep of the metadata table") as is_held:
                if is_held:
                    self.upkeep().run()
        except HudiError as error:
            log.warning("metadata_table.upkeep.failed", reason=str(error))

    def failed_writes(self) -> FailedWrites:
        """What the failed-writes policy asks for."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.recovery.failed_writes import FailedWrites

        return FailedWrites(
            contents=self._table.contents,
            table=self._table.config,
            settings=self._table.settings,
            metadata_table=self.metadata_table,
        )

    def recovery(self) -> RecoveryService:
        """Recovery of this table, looking and acting apart."""
        self._table.require(Use.ROLLBACK)
        from hudi_py.services.recovery.service import RecoveryService

        return RecoveryService(
            contents=self._table.contents,
            table=self._table.config,
            settings=self._table.settings,
            metadata_table=self.metadata_table,
        )

    @property
    def metadata_table(self) -> MetadataTableKeeper:
        """Keeps the table's metadata table in step with what we do."""
        from hudi_py.mdt.keeper import MetadataTableKeeper

        return MetadataTableKeeper(self._table.storage, self._table.settings, self._table.contents.store.clock)

    def clean_config(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> CleanConfig:
        """
        The table's cleaning settings with *options* on top; arguments as `plan_clean`.

        Raises:
            ConfigError: A value is wrong, or two contradict each other.
        """
        return clean_config_with(
            self._table.settings, options, now=now or self._table.contents.store.clock.now(), zone=self._table.zone
        )
