"""A Hudi table, opened: its timeline, its files, its clean. No JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import cached_property
from typing import Any, TypeVar

from hudi_py.config import keys
from hudi_py.config.archive import archive_config
from hudi_py.config.clean import CleanConfig, CleanPolicy, clean_config
from hudi_py.config.keys import Settings
from hudi_py.config.table import TableConfig
from hudi_py.engine.base import Engine
from hudi_py.engine.inline import LocalEngine
from hudi_py.formats.instant_content import decode_content
from hudi_py.fsview.build import PartitionView, ViewContext, build_partition, latest_slices
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import BaseFile, FileSlice
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.instant_time import resolve_time
from hudi_py.model.records import RestoreMetadata, RollbackMetadata
from hudi_py.reading.select import base_files, check_as_of, context_as_of, slices_as_of
from hudi_py.runtime.clock import Clock
from hudi_py.services.archive.service import ArchiveResult, ArchiveService
from hudi_py.services.clean.execute import CleanResult
from hudi_py.services.clean.explain_files import Explanation, explain
from hudi_py.services.clean.plan import CleanPlan
from hudi_py.services.clean.service import CleanService
from hudi_py.services.restore.service import RestoreService
from hudi_py.services.rollback.service import RollbackService
from hudi_py.services.savepoint.service import SavepointService
from hudi_py.storage.base import Storage
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.timeline.archive import load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline

T = TypeVar("T")

__all__ = ["Table", "open_table"]

_NO_ROW_SCHEMA = frozenset({"CLUSTER", "COMPACT", "LOG_COMPACT", "INDEX"})


def open_table(
    location: str,
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
        settings: ``hoodie.*`` settings, old and new spellings.
        clock: Replaces the machine's clock.

    Returns:
        The table; its properties have been read, nothing else.

    Raises:
        TableNotFound: There is no table.
        UnsupportedTable: It is of a version that is not served.
        CorruptMetadata: Its properties are damaged.
        StorageError: The storage refused or is away.
    """
    from hudi_py.storage.factory import open_storage

    return Table(open_storage(location, storage_options), settings=settings, clock=clock)


class Table:
    """
    A table on a storage.

    Args:
        storage: Rooted at the table's base path.
        settings: ``hoodie.*`` settings.
        clock: Replaces the machine's clock.
    """

    def __init__(
        self, storage: Storage, *, settings: Mapping[str, Any] | None = None, clock: Clock | None = None
    ) -> None:
        self.storage = storage
        self.config: TableConfig = read_table_config(storage)
        self.settings = Settings(settings)
        self._store = TimelineStore(storage, self.config, clock)
        self._contents = Contents(self._store)

    def __repr__(self) -> str:
        return f"Table({self.storage.root!r}, version {self.config.version})"

    @cached_property
    def timeline(self) -> Timeline:
        """The active timeline as it was when first asked for; see `refresh`."""
        return self._snapshot[0]

    @property
    def listing(self) -> Listing:
        """Where partitions and files are looked up: in the metadata table where there is one, else in the folders."""
        return self._snapshot[1]

    @cached_property
    def _snapshot(self) -> tuple[Timeline, Listing]:
        return open_snapshot(self._store, self.config, self.settings)

    @property
    def contents(self) -> Contents:
        """What the instants hold."""
        return self._contents

    def refresh(self) -> Table:
        """Forget what was loaded, so that the next question sees the table as it is now."""
        self.config = read_table_config(self.storage)
        self._forget()
        return self

    def _changed(self, action: Callable[[], T]) -> T:
        """Run what changes the table; whatever becomes of it, nothing loaded before is believed any more."""
        try:
            result = action()
        finally:
            self._forget()
        self.refresh()
        return result

    def _forget(self) -> None:
        for name in ("timeline", "view_context", "listing", "_snapshot"):
            self.__dict__.pop(name, None)

    @cached_property
    def view_context(self) -> ViewContext:
        """What decides about file slices, for every partition."""
        return load_context(self.timeline, self._contents)

    def partitions(self) -> tuple[str, ...]:
        """Relative paths of all partitions, sorted; ``("",)`` for a table without partition columns."""
        return tuple(sorted(path for path, _ in self.listing.walk()))

    def partition(self, partition_path: str) -> PartitionView:
        """All file groups of one partition, replaced and uncommitted files included; sizes are known."""
        entries = self.listing.partition(partition_path, details=True)
        return build_partition(self.view_context, partition_path, ((e.name, e.size_bytes) for e in entries))

    def file_slices(self, partition_path: str = "") -> tuple[FileSlice, ...]:
        """The newest slice of each live file group of one partition, without files of pending writes."""
        return latest_slices(self.view_context, self.partition(partition_path))

    def plan_clean(
        self,
        *,
        policy: str | None = None,
        commits_retained: int | None = None,
        file_versions_retained: int | None = None,
        hours_retained: int | None = None,
        now: datetime | None = None,
        details: bool = False,
    ) -> CleanPlan:
        """
        Plan a clean; nothing happens.

        Args:
            policy: ``KEEP_LATEST_COMMITS``, ``KEEP_LATEST_FILE_VERSIONS``, ``KEEP_LATEST_BY_HOURS``; default: that of
                the one retention given, else of the settings.
            commits_retained, file_versions_retained, hours_retained: Retention of the policy of that name.
            now: Aware; replaces the clock.
            details: Ask for sizes and keep every verdict.

        Raises:
            ConfigError: A value is wrong.
            CorruptMetadata: An instant that the decision needs does not decode.
        """
        config = self.clean_config(
            policy=policy,
            commits_retained=commits_retained,
            file_versions_retained=file_versions_retained,
            hours_retained=hours_retained,
        )
        return self.clean_service(config, now=now).plan(details=details)

    def clean(
        self,
        *,
        policy: str | None = None,
        commits_retained: int | None = None,
        file_versions_retained: int | None = None,
        hours_retained: int | None = None,
        now: datetime | None = None,
        engine: Engine | None = None,
    ) -> list[CleanResult]:
        """
        Clean: finish pending cleans, else plan, store the plan, delete, complete.

        Args:
            policy, commits_retained, file_versions_retained, hours_retained, now: As `plan_clean`.
            engine: What deletes; local threads by default.

        Returns:
            What was carried out, oldest first; empty when there was nothing to do.

        Raises:
            RefusedError: It could lose data; the message names the way out.
            StorageError: Files refuse to go; the clean stays pending and is finished by the next one.
        """
        config = self.clean_config(
            policy=policy,
            commits_retained=commits_retained,
            file_versions_retained=file_versions_retained,
            hours_retained=hours_retained,
        )
        try:
            results = self.clean_service(config, now=now, engine=engine).run()
        finally:  # not `refresh`, whose own failure would hide the first one
            self._forget()
        self.refresh()
        return results

    def explain(
        self,
        target: str,
        *,
        policy: str | None = None,
        commits_retained: int | None = None,
        file_versions_retained: int | None = None,
        hours_retained: int | None = None,
        now: datetime | None = None,
    ) -> Explanation:
        """
        Why files are still there, and when a clean may remove them; nothing happens.

        Args:
            target: A file (path or name), a file id, or a partition.
            policy, commits_retained, file_versions_retained, hours_retained, now: As `plan_clean`.

        Raises:
            ConfigError: Nothing of that name is in the table, or a value is wrong.
            CorruptMetadata: An instant that the answer needs does not decode.
        """
        config = self.clean_config(
            policy=policy,
            commits_retained=commits_retained,
            file_versions_retained=file_versions_retained,
            hours_retained=hours_retained,
        )
        return explain(self.clean_service(config, now=now), target)

    def clean_service(
        self, config: CleanConfig | None = None, *, now: datetime | None = None, engine: Engine | None = None
    ) -> CleanService:
        """The clean of this table, its steps callable one by one."""
        return CleanService(
            contents=self._contents,
            table=self.config,
            config=config or clean_config(self.settings),
            engine=engine or LocalEngine(),
            now=now,
            metadata_table=self.metadata_table,
        )

    def rollback_failed_writes(self) -> list[RollbackMetadata]:
        """
        Undo every write that did not complete, newest first; pending rollbacks are finished.

        Only when no writer is at work: a write that is still running would be undone too.

        Raises:
            UnsupportedTable: A merge-on-read table has failed writes.
            RefusedError: It could lose data; the message names the way out.
        """
        return self._changed(lambda: self.rollback_service().run())

    def rollback(self, requested_time: str) -> RollbackMetadata:
        """
        Undo one write, failed or completed; of a completed one the rows go.

        Raises:
            ConfigError: There is no such write.
            RefusedError: A later commit, a savepoint or a clean stands in the way; nothing was changed.
            UnsupportedTable: A kind of write that is not rolled back.
            StorageError: A file refuses to go; the rollback stays pending and is finished by the next call.
        """
        return self._changed(lambda: self.rollback_service().roll_back(requested_time))

    def rollback_service(self) -> RollbackService:
        """Rollbacks of this table, step by step."""
        return RollbackService(contents=self._contents, table=self.config, metadata_table=self.metadata_table)

    def create_savepoint(self, requested_time: str | None = None, *, user: str = "", comment: str = "") -> Instant:
        """
        Pin the files of a completed commit, the last one by default: no clean takes them, a restore can go back.

        Raises:
            ConfigError: There is no such completed commit.
            RefusedError: A clean has taken some of its files or is about to, or it is savepointed already.
        """
        done = self.savepoint_service().create(requested_time, user=user, comment=comment)
        self.refresh()
        return done

    def delete_savepoint(self, requested_time: str) -> bool:
        """Let go of a savepoint; False when there was none."""
        found = self.savepoint_service().delete(requested_time)
        self.refresh()
        return found

    def savepoint_service(self) -> SavepointService:
        """Savepoints of this table."""
        return SavepointService(contents=self._contents, table=self.config, metadata_table=self.metadata_table)

    def restore(self, savepoint_time: str) -> RestoreMetadata:
        """
        Go back to a savepoint: every write after it is undone; a pending restore to it is finished.

        Raises:
            ConfigError, RefusedError, UnsupportedTable: It cannot be; nothing was changed.
            StorageError: A file refuses to go; the restore stays pending, and no commit can start before it is done.
        """
        return self._changed(lambda: self.restore_service().run(savepoint_time))

    def restore_service(self) -> RestoreService:
        """Restores of this table."""
        return RestoreService(contents=self._contents, table=self.config, metadata_table=self.metadata_table)

    def archive(self, **settings: int | bool) -> ArchiveResult:
        """
        Move old instants from the active timeline to the archived one, as far as nothing needs them any more.

        Args:
            settings: ``keep_min_commits``, ``keep_max_commits``, ``archive_beyond_savepoint``; default: the settings.

        Raises:
            ConfigError, CorruptMetadata, ConflictError: See `ArchiveService`; nothing was deleted.
        """
        return self._changed(lambda: self.archive_service(**settings).run())

    def archive_service(self, **settings: int | bool) -> ArchiveService:
        """Archival of this table, its steps callable one by one; arguments as `archive`."""
        named = {f"hoodie.{name.replace('_', '.')}": value for name, value in settings.items()}
        merged = self.settings.merged(named)
        return ArchiveService(
            contents=self._contents, table=self.config, config=archive_config(merged), cleaning=clean_config(merged)
        )

    @property
    def metadata_table(self) -> MetadataTableKeeper:
        """Keeps the table's metadata table in step with what we do."""
        return MetadataTableKeeper(self.storage, self.settings, self._store.clock)

    def clean_config(
        self,
        *,
        policy: str | None = None,
        commits_retained: int | None = None,
        file_versions_retained: int | None = None,
        hours_retained: int | None = None,
    ) -> CleanConfig:
        """The table's cleaning settings with these on top; a single retention without a policy implies its policy."""
        retentions = {
            CleanPolicy.KEEP_LATEST_COMMITS: (keys.CLEAN_COMMITS_RETAINED, commits_retained),
            CleanPolicy.KEEP_LATEST_FILE_VERSIONS: (keys.CLEAN_FILE_VERSIONS_RETAINED, file_versions_retained),
            CleanPolicy.KEEP_LATEST_BY_HOURS: (keys.CLEAN_HOURS_RETAINED, hours_retained),
        }
        given = [word for word, (_, value) in retentions.items() if value is not None]
        if policy is None and len(given) == 1:
            policy = given[0].value
        values = {key.name: value for key, value in retentions.values()}
        return clean_config(self.settings.merged({**values, keys.CLEAN_POLICY.name: policy}))

    def base_files(self, as_of: str | None = None) -> tuple[tuple[str, BaseFile], ...]:
        """
        Partition path and base file of everything that holds rows of a snapshot.

        Args:
            as_of: Instant time; None for the latest snapshot.

        Raises:
            RefusedError: The table has no single answer for that time (any more).
            UnsupportedTable: There are log files to merge.
        """
        if as_of is None:
            context = load_context(self.timeline, self._contents, with_clustering=False)
        else:
            context = self.as_of(as_of).view_context
        found: list[tuple[str, BaseFile]] = []
        for path, entries in self.listing.walk():
            partition = build_partition(context, path, ((e.name, e.size_bytes) for e in entries))
            slices = latest_slices(context, partition) if as_of is None else slices_as_of(partition)
            found += base_files(slices, self.storage.root)
        return tuple(sorted(found, key=lambda each: (each[0], each[1].name)))

    def schema_text(self, as_of: str | None = None) -> str | None:
        """
        Avro text of the rows, without meta columns: that of the newest commit that has one (format/timeline 4.5).

        Args:
            as_of: Instant time; None for the newest.

        Returns:
            None for a table without such a commit that was not created with a schema either.
        """
        for instant in reversed(self.timeline.commits.completed()):
            if as_of is not None and instant.requested_time > as_of:
                continue
            metadata = self._contents.commit(instant)
            text = metadata.extra_metadata.get("schema")
            if text and metadata.operation_type not in _NO_ROW_SCHEMA:
                return text
        return self.config.properties.get("hoodie.table.create.schema") or None

    def as_of(self, requested_time: str) -> Table:
        """
        The same table with its files as they were at that time.

        Raises:
            RefusedError: As `base_files`.
        """
        check_as_of(
            self.timeline,
            requested_time,
            earliest_retained=self._earliest_retained(),
            pending_clusterings=frozenset(self.view_context.pending_clustering.values()),
        )
        past = Table(self.storage, settings=self.settings.as_dict(), clock=self._store.clock)
        past.__dict__["view_context"] = context_as_of(self.view_context, requested_time)
        return past

    def _earliest_retained(self) -> str:
        """
        From when on everything is still there, ``""`` when unknown.

        A clean that has begun counts like a completed one: Hudi does not ask for those and finds files missing, or
        rows.
        """
        cleans = self.timeline.completed(Action.CLEAN)
        times = [self._contents.clean(cleans[-1]).earliest_commit_to_retain] if cleans else []
        begun = (instant for instant in self.timeline.pending(Action.CLEAN) if instant.state is State.INFLIGHT)
        for instant in begun:
            earliest = self._contents.clean_plan(instant).earliest_instant_to_retain
            if earliest is not None:
                times.append(earliest.requested_time)
        return max(times, default="")

    def archived_timeline(self) -> Timeline:
        """
        Completed and pending instants that were archived, oldest first; layout 2 archives completed ones only.

        Raises:
            CorruptMetadata: A file of the archive is damaged.
        """
        return load_archived(self.storage, self.config)

    # --- times and views -----------------------------------------------------------------------------------------
    @property
    def zone(self) -> tzinfo:
        """The zone of the table's instant times."""
        return self._store.zone

    def resolve_time(self, text: str) -> str:
        """
        An instant time from what a user typed: digits, ISO 8601, or a duration counted back from now.

        Raises:
            ConfigError: None of these.
        """
        return resolve_time(text, now=self._store.clock.now(), zone=self.zone)

    def read_only(self) -> Table:
        """The same table through a storage that refuses every write: what a dry run works on."""
        return Table(ReadOnlyStorage(self.storage), settings=self.settings.as_dict(), clock=self._store.clock)

    def decoded(self, instant: Instant) -> Any:
        """
        Content of one instant as plain data; None for an empty file.

        Raises:
            CorruptMetadata: It does not decode.
        """
        source = f"{self.storage.root}/{self._store.path(instant)}"
        return decode_content(self._store.read(instant), source).value
