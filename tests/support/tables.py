"""
Small tables in memory, built instant by instant as Apache Hudi writes them; shared by all tests.

Data files hold a few bytes: whatever decides about slices reads names. What the instants hold is real.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path

from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.formats.properties import checksum, format_properties
from hudi_py.model.files import format_base_file, join_path
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    ActionInstant,
    CleanMetadata,
    CommitMetadata,
    CompactionOperation,
    CompactionPlan,
    RequestedReplaceMetadata,
    SavepointMetadata,
    WriteStat,
)
from hudi_py.rows.read import plain_rows, read_batches, row_schema
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.versions.layout import LAYOUT_V1, LAYOUT_V2

SYNC = bytes(range(16))
_BASE_FILE = b"PAR1"
NOW = datetime(2026, 6, 1, tzinfo=timezone.utc)


def at(number: int) -> str:
    """Requested time of the *number*-th instant: one per hour of the first of January 2026, and on."""
    return f"202601{1 + number // 24:02d}{number % 24:02d}0000000"


def done(time: str) -> str:
    """Completion time of an instant: half an hour later."""
    return f"{time[:10]}30{time[12:]}"


class TableBuilder:
    """
    A table of one layout.

    Args:
        layout: 1 (table version 6) or 2 (table version 9).
        partitioned: Whether it has a partition column.
        table_type: ``COPY_ON_WRITE`` or ``MERGE_ON_READ``.
    """

    def __init__(self, layout: int = 2, *, partitioned: bool = True, table_type: str = "COPY_ON_WRITE") -> None:
        self.layout = LAYOUT_V1 if layout == 1 else LAYOUT_V2
        self.folder = ".hoodie" if layout == 1 else ".hoodie/timeline"
        self.storage = MemoryStorage("/lake/trips")
        self.clock = FixedClock(NOW)
        properties = {
            "hoodie.table.name": "trips",
            "hoodie.table.type": table_type,
            "hoodie.table.version": "6" if layout == 1 else "9",
            "hoodie.timeline.layout.version": str(layout),
            "hoodie.table.timeline.timezone": "UTC",
            "hoodie.table.recordkey.fields": "id",
            "hoodie.table.checksum": str(checksum("", "trips")),
        }
        if partitioned:
            properties["hoodie.table.partition.fields"] = "region"
        self.put(".hoodie/hoodie.properties", format_properties(properties, ("made", "for a test")))

    def put(self, path: str, data: bytes = _BASE_FILE) -> None:
        self.storage.replace(path, data)

    def table(self, **settings: object) -> Table:
        """The table, opened with settings (``clean_incremental_enabled`` for ``hoodie.clean.incremental.enabled``)."""
        named = {"hoodie." + name.replace("_", "."): value for name, value in settings.items()}
        return Table(self.storage, settings=named, clock=self.clock)

    # --- instants ------------------------------------------------------------------------------------------------
    def instant(
        self, time: str, action: str, state: State, content: bytes = b"", *, completed_at: str | None = None
    ) -> str:
        """Write one instant file; returns its path."""
        completion = (completed_at or done(time)) if state is State.COMPLETED and self.layout.version == 2 else None
        path = f"{self.folder}/{self.layout.file_name(Instant(time, Action(action), state, completion))}"
        self.put(path, content)
        return path

    def commit(
        self,
        time: str,
        groups: Mapping[str, Iterable[str]],
        *,
        action: str = "commit",
        replaced: Mapping[str, Iterable[str]] | None = None,
        state: State = State.COMPLETED,
        operation: str = "UPSERT",
        completed_at: str | None = None,
        previous: str | None = None,
    ) -> None:
        """
        Write a base file for each group (partition path to file ids), and the instant up to *state*.

        Args:
            previous: Requested time of the commit whose files these replace, as the commit tells it.
            replaced: Groups that the commit supersedes; makes it a replacecommit.
        """
        action = "replacecommit" if replaced is not None else action
        for partition, file_ids in groups.items():
            metafile = join_path(partition, ".hoodie_partition_metadata")
            if self.storage.size(metafile) is None:
                self.put(metafile, f"commitTime={time}\npartitionDepth=1\n".encode())
            for file_id in file_ids:
                path = join_path(partition, self.base_name(file_id, time))
                if state is not State.COMPLETED:
                    self.put(f".hoodie/.temp/{time}/{path}.marker.CREATE", b"")
                self.put(path)
        stats = {
            partition: tuple(
                WriteStat(
                    file_id=file_id,
                    path=join_path(partition, self.base_name(file_id, time)),
                    partition_path=partition,
                    prev_commit=previous or "null",
                    num_writes=1,
                    file_size_in_bytes=len(_BASE_FILE),
                )
                for file_id in file_ids
            )
            for partition, file_ids in groups.items()
        }
        metadata = CommitMetadata(
            partition_to_write_stats=stats,
            operation_type=operation,
            partition_to_replace_file_ids=None
            if replaced is None
            else {partition: tuple(ids) for partition, ids in replaced.items()},
        )
        self._states(time, action, state, metadata, completed_at)

    def log_files(
        self,
        time: str,
        logs: Iterable[tuple[str, str, str]],
        *,
        state: State = State.COMPLETED,
        completed_at: str | None = None,
    ) -> None:
        """
        A delta commit of log files.

        Args:
            logs: (partition, file id, base instant of the slice); layout 2 names the delta commit instead of the last.
        """
        stats: dict[str, tuple[WriteStat, ...]] = {}
        for partition, file_id, base in logs:
            stamp = base if self.layout.version == 1 else time
            version = 1 + sum(f".{file_id}_{stamp}.log." in path for path in self.storage.files())
            name = f".{file_id}_{stamp}.log.{version}_0-1-0"
            header = {int(HeaderKey.INSTANT_TIME): time, int(HeaderKey.SCHEMA): '"string"'}
            block = encode_log_block(LogBlock(BlockType.AVRO_DATA, header, b"rows"))
            self.put(join_path(partition, name), block)
            stat = WriteStat(
                file_id=file_id,
                path=join_path(partition, name),
                partition_path=partition,
                prev_commit=base,
                log_version=version,
                file_size_in_bytes=len(block),
            )
            stats[partition] = (*stats.get(partition, ()), stat)
        self._states(time, "deltacommit", state, CommitMetadata(partition_to_write_stats=stats), completed_at)

    def _states(self, time: str, action: str, state: State, metadata: CommitMetadata, completed_at: str | None) -> None:
        as_json = self.layout.version == 1
        request = RequestedReplaceMetadata() if action == "replacecommit" else None
        self.instant(
            time,
            action,
            State.REQUESTED,
            b"" if request is None else codec.encode_requested_replace(request, sync=SYNC),
        )
        if state >= State.INFLIGHT:
            self.instant(time, action, State.INFLIGHT)
        if state is State.COMPLETED:
            content = encode_commit(metadata, as_json=as_json, sync=SYNC)
            self.instant(time, action, State.COMPLETED, content, completed_at=completed_at)

    def savepoint(self, time: str, files: Mapping[str, Iterable[str]]) -> None:
        """A savepoint of that time's commit that holds *files* (partition path to names)."""
        held = {partition: tuple(names) for partition, names in files.items()}
        metadata = SavepointMetadata(savepointed_by="tester", savepointed_at_ms=0, comments="", files=held)
        self.instant(time, "savepoint", State.INFLIGHT)
        self.instant(time, "savepoint", State.COMPLETED, codec.encode_savepoint(metadata, sync=SYNC))

    def delete_savepoint(self, time: str) -> None:
        for state in (State.COMPLETED, State.INFLIGHT):
            completion = done(time) if state is State.COMPLETED and self.layout.version == 2 else None
            name = self.layout.file_name(Instant(time, Action.SAVEPOINT, state, completion))
            assert self.storage.delete(f"{self.folder}/{name}")

    def compaction(self, time: str, operations: Iterable[tuple[str, str, str, Iterable[str]]]) -> None:
        """A requested compaction of (partition, file id, base instant, log names)."""
        plan = CompactionPlan(
            operations=tuple(
                CompactionOperation(
                    base_instant_time=base,
                    file_id=file_id,
                    partition_path=partition,
                    data_file_path=self.base_name(file_id, base),
                    delta_file_paths=tuple(logs),
                )
                for partition, file_id, base, logs in operations
            )
        )
        self.instant(time, "compaction", State.REQUESTED, codec.encode_compaction_plan(plan, sync=SYNC))

    def cleaned(
        self, time: str, *, earliest: str, last_commit: str, savepoints: Iterable[str] = (), completed: bool = True
    ) -> None:
        """A completed clean that recorded this and deleted nothing that matters."""
        times = ",".join(savepoints)
        metadata = CleanMetadata(
            start_clean_time=time,
            time_taken_ms=1,
            total_files_deleted=0,
            earliest_commit_to_retain=earliest,
            last_completed_commit_timestamp=last_commit,
            extra_metadata={"savepointed_timestamps": times} if times else {},
        )
        for state in (State.REQUESTED, State.INFLIGHT):
            self.instant(time, "clean", state)
        if completed:
            self.instant(time, "clean", State.COMPLETED, codec.encode_clean_metadata(metadata, sync=SYNC))

    @staticmethod
    def base_name(file_id: str, time: str) -> str:
        return format_base_file(file_id, "0-1-0", time)


def earliest(time: str, action: str = "commit") -> ActionInstant:
    """An earliest instant to retain as plans hold it."""
    return ActionInstant(time, action, "COMPLETED")


def on_disk(builder: TableBuilder, folder: Path) -> Table:
    """The builder's table on local disk, which alone has checksums and links."""
    for path, data in builder.storage.files().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return Table(LocalStorage(str(folder)), clock=builder.clock)


def rows_of(table: Table) -> list[dict[str, object]]:
    """The rows of a table's latest snapshot, as ``hudi-py read`` gives them."""
    files = table.base_files()
    schema = row_schema(table.storage, lambda: files, table.schema_text())
    return [row for batch in read_batches(table.storage, files, schema) for row in plain_rows(batch)]


def data_files(storage: MemoryStorage) -> list[str]:
    """Paths of everything outside ``.hoodie`` but partition metafiles."""
    return [
        path
        for path in storage.files()
        if not path.startswith(".hoodie/") and not path.endswith(".hoodie_partition_metadata")
    ]


def planned(plan: object) -> dict[str, list[str]]:
    """What a plan deletes: partition path to base-file times or log names, in the plan's order."""
    files = plan.files  # type: ignore[attr-defined]
    return {partition: [file.path.rpartition("/")[2] for file in each] for partition, each in files.items()}
