"""The services that follow a commit: tags, then clean, archival, compaction and clustering as in Hudi (G-4, G-5)."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from hudi_py.clean_beside import CleanBeside
from hudi_py.config import keys
from hudi_py.config.compaction import compacts_after_writes
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.engine.base import Engine
from hudi_py.errors import ConflictError, HudiError, ServiceFailed
from hudi_py.model.instant import Action
from hudi_py.runtime.log import log
from hudi_py.services.clean.result import CleanResult
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.table_services import TableServices
from hudi_py.table_view import TableView


@attrs.frozen(kw_only=True)
class Served:
    """
    What followed a commit.

    Args:
        cleans: Cleans that were run.
        compactions: Compactions that were carried out, then log compactions.
        clusterings: Clusterings that were carried out.
    """

    cleans: tuple[CleanResult, ...] = ()
    compactions: tuple[RewriteResult, ...] = ()
    clusterings: tuple[RewriteResult, ...] = ()


def serve_after(
    commit: str, table: TableView, settings: Settings, engine: Callable[[], Engine], beside: CleanBeside
) -> Served:
    """
    Clean, archive, compact and cluster, as the settings say.

    Args:
        commit: Requested time of the commit.
        table: The table; what was loaded of it before the commit is forgotten.
        settings: Of the write.
        engine: Returns the engine that deletes files.
        beside: The clean that ran beside the write.

    Raises:
        ServiceFailed: One of them failed; the commit is completed and must not be repeated. Not of compactions and
            clusterings, if hoodie.fail.writes.on.inline.table.service.exception says so.
    """
    cleans: tuple[CleanResult, ...] = ()
    compactions: tuple[RewriteResult, ...] = ()
    fails = True
    try:
        # In here, too: whatever fails after the commit must not look as if the rows had not been written.
        services = TableServices(table.refresh())
        _tag(services)  # before the clean, which may delete files of the commits to tag
        cleans = _clean(services, settings, table, engine, beside)
        if settings[keys.ARCHIVE_AUTOMATIC]:  # after the clean, which makes more commits archivable (G-4)
            services.archive().run()
            services.run_upkeep()
        fails = settings[keys.FAILS_WITH_SERVICES]  # of the services before, failures always count (G-6)
        compactions = _compact(services, settings, table)
        compactions += _compact_logs(services, settings, table)
        clusterings = _cluster(services, settings)
    except ConflictError as error:  # another process is doing the same
        log.info("write.services.superseded", instant=commit, why=str(error))
        # With what is complete, whatever came in the way of the services after it.
        return Served(cleans=cleans, compactions=compactions)
    except HudiError as error:
        if not fails:
            log.warning("write.services.failed", instant=commit, why=str(error))
            return Served(cleans=cleans, compactions=compactions)
        raise ServiceFailed(
            f"commit {commit} is completed and its rows are visible, so do not write them again; cleaning, "
            f"archiving, compacting or clustering after it failed: {error}",
            commit,
        ) from error
    return Served(cleans=cleans, compactions=compactions, clusterings=clusterings)


def _tag(services: TableServices) -> None:
    schedule = services.tag_schedule
    if schedule:
        services.savepoint().create_due(schedule)


def _clean(
    services: TableServices,
    settings: Settings,
    table: TableView,
    engine: Callable[[], Engine],
    beside: CleanBeside,
) -> tuple[CleanResult, ...]:
    if not settings[keys.CLEAN_AUTOMATIC]:
        return ()
    known = table.config.properties  # read when the table was loaded, after the commit
    why = table.contents.store.deletion.why_off(known)
    if why is not None:
        log.info("write.clean.left_out", why=why)
        services.failed_writes().with_clean()  # what they wrote was never committed
        return ()
    if settings[keys.CLEAN_ASYNC]:
        done = [*beside.results()]
    else:
        done = services.run_clean(services.clean(services.clean_config(), engine=engine()), known)
    if done and not settings[keys.ARCHIVE_AUTOMATIC]:  # else the upkeep after the archival does it all
        services.run_upkeep()
    return tuple(done)


def _compact(services: TableServices, settings: Settings, table: TableView) -> tuple[RewriteResult, ...]:
    what = compacts_after_writes(settings)
    if what is None or table.config.table_type is not TableType.MERGE_ON_READ:
        return ()
    service = services.compaction()
    if what == "run":
        return tuple(service.run(refuses=False))
    # Loaded again, because the clean and the archival above have changed the timeline.
    if not table.refresh_timeline().timeline.pending(Action.COMPACTION):  # E-24
        service.schedule()
    return ()


def _compact_logs(services: TableServices, settings: Settings, table: TableView) -> tuple[RewriteResult, ...]:
    if not settings[keys.LOG_COMPACTION_INLINE] or table.config.table_type is not TableType.MERGE_ON_READ:
        return ()
    return tuple(services.log_compaction().run(refuses=False))


def _cluster(services: TableServices, settings: Settings) -> tuple[RewriteResult, ...]:
    """Cluster, or only store a plan, if that is asked for and due (E-30, E-40)."""
    if settings[keys.CLUSTERING_INLINE]:
        done = services.clustering().run(settings[keys.CLUSTERING_INLINE_COMMITS])
        if done:
            services.run_upkeep()
        return tuple(done)
    if settings[keys.CLUSTERING_SCHEDULE_INLINE]:
        service = services.clustering()
        if service.is_due(settings[keys.CLUSTERING_SCHEDULE_COMMITS]):
            service.schedule()
    return ()
