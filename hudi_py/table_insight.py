"""
Reports about a table: its health, where its bytes are, its history, and what other settings would do.

Nothing is changed, and no JVM is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from hudi_py.config.arguments import check_flags, check_kinds, texts_of
from hudi_py.errors import ConfigError, CorruptMetadata, NotFound
from hudi_py.table_view import TableView

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Unpack

    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.check.findings import Finding
    from hudi_py.services.erasure.facts import ErasureReport
    from hudi_py.services.simulation.plan import Simulation
    from hudi_py.services.usage.facts import Usage
    from hudi_py.snapshot.difference import Difference
    from hudi_py.snapshot.history import Event, InstantContent
    from hudi_py.snapshot.snapshot import Snapshot

__all__ = ["TableInsight"]


class TableInsight(TableView):
    """A table, examined; no method changes it."""

    def doctor(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> tuple[Finding, ...]:
        """
        Judge settings and health: contradictions, what blocks cleans and archival, clocks, small files.

        Lists all files.

        Args:
            now, options: As for `hudi_py.Table.plan_clean`.

        Returns:
            Findings, the most severe first. Their codes are stable, see `hudi_py.services.doctor.findings.RULES`.

        Raises:
            StorageError: The storage failed or is unreachable. Damage is not raised but returned as finding.
        """
        from hudi_py.table_services import TableServices

        return TableServices(self).doctor(now=now, **options).run().findings

    def usage(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> Usage:
        """
        Return where the bytes of the table are, by what keeps them, by partition and by commit. Lists all files once.

        Args:
            now, options: As for `hudi_py.Table.plan_clean`; they decide which files are retained.

        Raises:
            ConfigError: A value is invalid, or two values contradict each other.
            CorruptMetadata: An instant that decides about files is damaged.
        """
        from hudi_py.table_services import TableServices

        return TableServices(self).usage(now=now, **options).run()

    def erased(
        self,
        *,
        partition: str | None = None,
        keys: str | Sequence[str] = (),
        now: datetime | None = None,
        **options: Unpack[CleanOptions],
    ) -> ErasureReport:
        """
        Tell whether the bytes of a partition, or of record keys, are gone from every file; see docs/erasure.md.

        Reads every file that may hold them: with *keys* the keys of all files, or of those of *partition*.

        Args:
            partition: Its path; ``""`` for a table without partitions.
            keys: Record keys, as ``_hoodie_record_key`` has them.
            now, options: As for `hudi_py.Table.plan_clean`; they decide when the next clean deletes a file.

        Returns:
            The files that hold them or may hold them, what keeps each, and, if there is none, since when.

        Raises:
            ConfigError: Neither is given, or the table never had the partition.
            UnsupportedTable: Keys are asked for, and the table's rows hold none.
            ConflictError: The table kept changing while it was looked at.
            CorruptMetadata: The timeline or its archive is damaged.
        """
        from hudi_py.table_services import TableServices

        check_kinds(str, "the path of a partition", partition=partition)
        wanted = (keys,) if isinstance(keys, str) else texts_of("keys", keys)
        return TableServices(self).erasure(partition, wanted, now=now, **options).run()

    def simulate(self, **options: Unpack[CleanOptions]) -> Simulation:
        """
        Replay all commits as if every one had been followed by a clean with these settings.

        Args:
            options: As for `hudi_py.Table.plan_clean`; no limits and no calendar ladder.

        Raises:
            ConfigError: A value is invalid, or cannot be simulated.
            CorruptMetadata: A commit, a savepoint or the archive is damaged.
        """
        from hudi_py.table_services import TableServices

        limits = ("max_files", "max_partitions", "max_bytes", "max_duration", "instants")
        given = [name for name in limits if options.get(name) is not None]
        if given:
            raise ConfigError(
                f"{given[0]} is for one clean, and a simulation replays one after each commit; leave it out"
            )
        services = TableServices(self)
        return services.simulation().run(services.clean_config(**options))

    def history(self, *, archived: bool = False) -> tuple[Event, ...]:
        """
        Return what happened to the table, oldest first: an event for each instant, with its numbers and parameters.

        Args:
            archived: Include archived instants.

        Raises:
            CorruptMetadata: The archive is damaged. A damaged instant is an event with a problem.
        """
        from hudi_py.snapshot.history import event_of

        check_flags(archived=archived)  # before the first event is asked for
        return tuple(event_of(found, self.zone) for found in self.instant_contents(archived=archived))

    def instant_contents(self, *, archived: bool = False) -> Iterator[InstantContent]:
        """
        Yield each instant in its highest state, oldest first, with its decoded content.

        Args:
            archived: Include archived instants.

        Raises:
            CorruptMetadata: The archive is damaged.
        """
        from hudi_py.snapshot.history import InstantContent
        from hudi_py.timeline.archive import load_archived_actions

        check_flags(archived=archived)
        if archived:
            for old in load_archived_actions(self.storage, self.config, self.zone):
                yield InstantContent(old.instant, old.content, is_archived=True, seconds=old.seconds)
        # One damaged instant must not hide the history of all others, so its problem becomes part of its event.
        for instant in self.timeline:
            content, problem = None, None
            try:
                content = self.contents.plain(instant) if instant.is_completed else None
            except (CorruptMetadata, NotFound) as error:
                problem = str(error)
            yield InstantContent(instant, content, problem)

    def diff(self, start: str | datetime, end: str | datetime | None = None) -> Difference:
        """
        Return what differs between two times: files, rows that were written, columns.

        Args:
            start, end: As for `resolve_time`; *end* is the latest snapshot if None.

        Raises:
            ConfigError: One of them is not a time, or *end* is before *start*.
            RefusedError: The rows of one of the times are no longer complete, or may still change.
        """
        from hudi_py.snapshot.difference import columns_of, difference
        from hudi_py.snapshot.history import sum_of
        from hudi_py.timeline.timeline import WRITES

        before = self.as_of(start)
        after = self._latest() if end is None else self.as_of(end)
        last = max((i.requested_time for i in self.timeline.writes.completed()), default=before.requested_time)
        until = last if after.requested_time is None else after.requested_time
        if until < before.requested_time:
            raise ConfigError(f"{until} lies before {before.requested_time}; give the earlier time first")
        # The archive is read only if the range begins before the active timeline: it may be long.
        is_archived = self.timeline.writes.is_before_start(before.requested_time)
        events = [
            event
            for event in self.history(archived=is_archived)
            if event.instant.is_completed
            and event.instant.action in WRITES
            and before.requested_time < event.instant.requested_time <= until
        ]
        return difference(
            before.requested_time,
            until,
            files=(_sizes(before), _sizes(after)),
            columns=(columns_of(before.schema), columns_of(after.schema)),
            commits=tuple(event.instant.requested_time for event in events),
            numbers=sum_of(events),
        )

    def view(self, name: str, *, archived: bool = True) -> pa.Table:
        """
        Return what is known of the table as an Arrow table, to be asked with SQL; see docs/sql.md.

        Args:
            name: ``instants``, ``files``, ``savepoints``, ``cleans`` or ``findings``.
            archived: Whether ``instants`` and ``cleans`` include the archived timeline.

        Raises:
            ConfigError: There is no such view.
            CorruptMetadata: The archive, or an instant that decides about files, is damaged.
        """
        from hudi_py.snapshot import sql_views
        from hudi_py.table_services import TableServices

        sql_views.checked_name(name)
        if name == "instants":
            return sql_views.instants_view(self.history(archived=archived), self.zone)
        if name == "cleans":
            return sql_views.cleans_view(self.history(archived=archived), self.zone)
        if name == "files":
            return sql_views.files_view(TableServices(self).usage().files())
        if name == "savepoints":
            return sql_views.savepoints_view(TableServices(self).savepoint().savepoints())
        return sql_views.findings_view(self.doctor())

    def register_views(self, connection: Any, *, prefix: str = "", archived: bool = True) -> tuple[str, ...]:
        """
        Make all views known to DuckDB or Spark, as they are now.

        Args:
            connection: ``duckdb.DuckDBPyConnection`` or ``pyspark.sql.SparkSession``.
            prefix: Put before each name, to tell tables apart.
            archived: As for `view`.

        Returns:
            The names.

        Raises:
            ConfigError: The connection is neither of the two.
            As `view`.
        """
        from functools import partial

        from hudi_py.snapshot.sql_views import SCHEMAS, register_views

        views = {name: partial(self.view, name, archived=archived) for name in SCHEMAS}
        return register_views(connection, views, prefix)


def _sizes(snapshot: Snapshot) -> dict[str, int | None]:
    """Path to size of every file that a snapshot shows."""
    from hudi_py.model.files import join_path

    found: dict[str, int | None] = {}
    for each in snapshot.sized_slices():
        for file in (each.base_file, *each.log_files):
            if file is not None:
                found[join_path(each.partition_path, file.name)] = file.size_bytes
    return found
