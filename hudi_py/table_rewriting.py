"""
An opened table whose files are changed: compaction, clustering, and what methods that change the table have in common.

Services are imported when they are first used, so that reading a table does not load them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from hudi_py.config import keys
from hudi_py.config.arguments import check_kinds, check_texts
from hudi_py.engine.base import Engine
from hudi_py.errors import ConfigError
from hudi_py.model.files import FileSlice
from hudi_py.table_view import TableView

if TYPE_CHECKING:
    from hudi_py.services.clustering.plan import PlannedClustering
    from hudi_py.services.clustering.service import ClusteringService
    from hudi_py.services.compaction.service import CompactionService
    from hudi_py.services.log_compaction.service import LogCompactionService
    from hudi_py.services.rewriting.explain import GroupExplanation
    from hudi_py.services.rewriting.progress import OnGroup
    from hudi_py.services.rewriting.result import RewriteResult
    from hudi_py.table_services import TableServices

T = TypeVar("T")

__all__ = ["TableRewriting"]


class TableRewriting(TableView):
    """A table whose file slices are rewritten; its rows stay as they are."""

    @property
    def services(self) -> TableServices:
        """The services of the table, for callers who need their single steps."""
        from hudi_py.table_services import TableServices

        self.refresh_if_moved()
        return TableServices(self)

    def _changed(self, action: Callable[[], T], *, recorded: bool = False, beside: bool = False) -> T:
        """
        Run *action*, which changes the table, and forget what was loaded before, even if it fails.

        Other threads of this process that change the table are waited for, unless all writers look for conflicts.

        Args:
            action: Changes the table.
            recorded: Whether a result means that the metadata table has grown, so that its upkeep is run.
            beside: Whether it may be done in the middle of a write of another thread, because it touches no file.

        Raises:
            RefusedError: It is called by what makes the rows of a write to this table.
        """
        from hudi_py.config.concurrency import SINGLE_WRITER
        from hudi_py.table_services import TableServices
        from hudi_py.txn.turns import taking_turns

        is_single = self.settings[keys.CONCURRENCY_MODE] == SINGLE_WRITER
        is_alone = is_single and not beside and not self.storage.capabilities.is_rehearsal
        with taking_turns(self.storage.root) if is_alone else nullcontext():
            try:
                result = action()
                if recorded and result:
                    TableServices(self).run_upkeep()
            finally:
                self._forget()
        # The action may have changed the properties, too, such as the partitions of the metadata table.
        self.refresh()
        return result

    def _changed_alone(self, action: Callable[[], T]) -> T:
        """
        Run *action* as `_changed`, after finishing an interrupted rewrite of the properties.

        Only for actions during which no writer may run: a rewrite in progress looks like an interrupted one.
        """
        from hudi_py.timeline.properties_file import finish_rewrite

        def run() -> T:
            # Under the lock: what looks like an interrupted rewrite may be one that another process is making right
            # now.
            with self._store.lock.held("properties"):
                finish_rewrite(self.storage)
            return action()

        return self._changed(run, recorded=True)

    def compact(
        self,
        *,
        instant: str | None = None,
        now: datetime | None = None,
        engine: Engine | None = None,
        on_group: OnGroup | None = None,
    ) -> list[RewriteResult]:
        """
        Compact a merge-on-read table: log files become part of new base files.

        All pending compactions are carried out, oldest first; then one is scheduled if it is due and carried out. The
        old files are left for the clean.

        Args:
            instant: Requested time of a pending compaction; carry out only this one.
            now: Timezone-aware; replaces the clock for planning.
            engine: Engine that writes base files; local threads by default.
            on_group: Called after each file group with the number of those that are written and of all; not on Spark.

        Returns:
            The compactions that were carried out, oldest first; empty if there was nothing to do.

        Raises:
            ConfigError: The table is not merge-on-read, a setting is invalid, or there is no such compaction.
            UnsupportedTable: Log files hold what hudi_py does not merge.
            RefusedError: A restore is pending.
            CorruptMetadata: A file that is needed is missing or damaged; the compaction stays pending.
            StorageError: The storage failed; the compaction stays pending, and the next call carries it out.
        """
        return self._compacted(lambda: self.services.compaction(now=now, engine=engine, on_group=on_group), instant)

    def schedule_compaction(self, *, now: datetime | None = None) -> str | None:
        """
        Store the plan of a compaction, which `compact` or Apache Hudi carries out later.

        Args:
            now: Timezone-aware; replaces the clock for planning.

        Returns:
            Its requested time; None if none is due or nothing is left to compact.

        Raises:
            As `compact`.
        """
        scheduled = self._changed(lambda: self.services.compaction(now=now).schedule())
        return None if scheduled is None else scheduled.requested_time

    def cancel_compaction(self, instant: str) -> None:
        """
        Withdraw the plan of a pending compaction; an attempt that was begun is rolled back first.

        Args:
            instant: Its requested time.

        Raises:
            ConfigError: There is no such pending compaction.
            RefusedError: It is running, by its heartbeat; or, in table version 6, log files rest on its plan.
            ConflictError: Another process has begun it, or a write beside it, at this moment.
        """
        check_texts(instant=instant)
        self._changed(lambda: self.services.compaction().cancel(instant))

    def compact_logs(
        self,
        *,
        instant: str | None = None,
        now: datetime | None = None,
        engine: Engine | None = None,
        on_group: OnGroup | None = None,
    ) -> list[RewriteResult]:
        """
        Compact log files among themselves: many small log blocks of a file slice become one, base files stay.

        All pending log compactions are carried out, oldest first, or withdrawn where others changed their file slices
        since; then one is scheduled if it is due (``hoodie.log.compaction.blocks.threshold``) and carried out.

        Args:
            instant: Requested time of a pending log compaction; carry out only this one.
            now: Timezone-aware; replaces the clock for planning.
            engine: Engine that writes log files; local threads by default.
            on_group: Called after each file group with the number of those that are written and of all; not on Spark.

        Returns:
            The log compactions that were carried out, oldest first; empty if there was nothing to do.

        Raises:
            ConfigError: The table is not merge-on-read, a setting is invalid, or there is no such log compaction.
            UnsupportedTable: Log files hold what is merged with base files only.
            RefusedError: A restore is pending, or the plan *instant* does not hold any more.
            ConflictError: Another process wrote to the same file slices; the next call tries again.
            CorruptMetadata: A file that is needed is missing or damaged; the log compaction stays pending.
            StorageError: The storage failed; the log compaction stays pending.
        """
        return self._compacted(lambda: self.services.log_compaction(now=now, engine=engine, on_group=on_group), instant)

    def schedule_log_compaction(self, *, now: datetime | None = None) -> str | None:
        """
        Store the plan of a log compaction, which `compact_logs` or Apache Hudi carries out later.

        Args:
            now: Timezone-aware; replaces the clock for planning.

        Returns:
            Its requested time; None if none is due or nothing is left to merge.

        Raises:
            As `compact_logs`.
        """
        scheduled = self._changed(lambda: self.services.log_compaction(now=now).schedule())
        return None if scheduled is None else scheduled.requested_time

    def cancel_log_compaction(self, instant: str) -> None:
        """
        Withdraw the plan of a pending log compaction; an attempt that was begun is rolled back first.

        Args:
            instant: Its requested time.

        Raises:
            ConfigError: There is no such pending log compaction.
            RefusedError: It is running, by its heartbeat.
            ConflictError: Another process has begun it at this moment.
        """
        check_texts(instant=instant)
        self._changed(lambda: self.services.log_compaction().cancel(instant))

    def _compacted(
        self, service: Callable[[], CompactionService | LogCompactionService], instant: str | None
    ) -> list[RewriteResult]:
        """Carry out one pending compaction, or for None all of them and the next one."""
        check_kinds(str, "the requested time of a plan", instant=instant)

        def run() -> list[RewriteResult]:
            found = service()
            return found.run() if instant is None else [found.execute(instant)]

        return self._changed(run, recorded=True)

    def cancel_clustering(self, instant: str) -> None:
        """
        Withdraw the plan of a pending clustering; an attempt that was begun is rolled back first.

        Args:
            instant: Its requested time.

        Raises:
            ConfigError: There is no such pending clustering.
            RefusedError: It is running, by its heartbeat.
            ConflictError: Another process has begun it at this moment.
        """
        check_texts(instant=instant)
        self._changed(lambda: self.services.clustering().cancel(instant))

    def explain_compaction(self, target: str, *, now: datetime | None = None) -> tuple[GroupExplanation, ...]:
        """
        Explain why file groups are in the next plan of a compaction, or are not; nothing is written.

        Args:
            target: A partition, a file id, or the name or path of a file.
            now: Timezone-aware; replaces the clock for planning.

        Raises:
            ConfigError: The table is not merge-on-read, a setting is invalid, or there is no such file group.
            CorruptMetadata: A file that is needed is missing or damaged.
        """
        from hudi_py.services.compaction.plan import explain_outlook

        return explain_outlook(self.services.compaction(now=now).plan(), self._slices_of(target))

    def explain_log_compaction(self, target: str, *, now: datetime | None = None) -> tuple[GroupExplanation, ...]:
        """Explain the same of a log compaction; arguments and errors as for `explain_compaction`."""
        from hudi_py.services.compaction.plan import explain_outlook

        return explain_outlook(self.services.log_compaction(now=now).plan(), self._slices_of(target))

    def explain_clustering(self, target: str) -> tuple[GroupExplanation, ...]:
        """
        Explain why file groups are in the next plan of a clustering, or are not; nothing is written.

        Args:
            target: As for `explain_compaction`.

        Raises:
            ConfigError: A setting is invalid, or there is no such file group.
            CorruptMetadata: A file that is needed is missing or damaged.
        """
        from hudi_py.services.clustering.plan import explain_plan

        return explain_plan(self.services.clustering().plan(), self._slices_of(target))

    def _slices_of(self, target: str) -> tuple[FileSlice, ...]:
        from hudi_py.services.rewriting.explain import is_meant

        check_texts(target=target)
        partitions = self.partitions()
        wanted = target.rstrip("/")
        paths = (wanted,) if wanted in partitions else partitions
        found = tuple(each for path in paths for each in self.file_slices(path) if is_meant(wanted, each))
        if not found:
            raise ConfigError(
                f"{self.storage.root} has no partition, no file group and no file {target!r} that readers see; see "
                "hudi-py files"
            )
        return found

    def plan_cluster(
        self,
        *,
        sort_by: str | Sequence[str] = (),
        layout: str | None = None,
        partitions: Sequence[str] | None = None,
    ) -> PlannedClustering:
        """Plan a clustering; nothing is written. Arguments and errors as for `cluster`."""
        config = self.services.clustering_config(sort_by=sort_by, layout=layout, partitions=partitions)
        return self.services.clustering(config).plan()

    def cluster(
        self,
        *,
        sort_by: str | Sequence[str] = (),
        layout: str | None = None,
        partitions: Sequence[str] | None = None,
        engine: Engine | None = None,
    ) -> list[RewriteResult]:
        """
        Cluster: rewrite the rows of small files into larger ones, in one commit. A clean deletes the old files later.

        Pending clusterings are carried out first, also those that Apache Hudi has planned.

        Args:
            sort_by: Columns by which rows are sorted; none to leave them in their order.
            layout: ``linear`` (by the first column, then by the second, ...), ``z-order`` or ``hilbert``, which serve
                conditions on any of the columns; by default as ``hoodie.layout.optimize.strategy`` says.
            partitions: Paths of the partitions to cluster; by default as ``hoodie.clustering.plan.*`` says.
            engine: Runs a task for each group of files; local threads by default.

        Returns:
            The clusterings that were carried out, oldest first; empty if there was nothing to do.

        Raises:
            ConfigError: There is no such column, partition or layout, or the settings allow several writers.
            UnsupportedTable: hudi_py does not write this kind of table.
            RefusedError: Rows could be lost; the message says what to do.
            ConflictError: Another process is writing to the table.
            StorageError: The storage failed; the clustering stays pending, and the next call begins it again.
        """
        config = self.services.clustering_config(sort_by=sort_by, layout=layout, partitions=partitions)
        return self.run_clustering(self.services.clustering(config, engine=engine))

    def run_clustering(self, service: ClusteringService, only: str | None = None) -> list[RewriteResult]:
        """
        Run `cluster` with a service from `TableServices.clustering`.

        Args:
            service: The service.
            only: Requested time of the one pending clustering that is carried out; None for all and a new one.
        """
        return self._changed(lambda: service.run() if only is None else [service.execute(only)], recorded=True)
