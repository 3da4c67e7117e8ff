"""Our side of a table at the level of the metadata table: commits, cleans and rollbacks made by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.config.table import table_config
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.properties import format_properties, parse_properties
from hudi_py.formats.records_codec import (
    encode_clean_metadata,
    encode_cleaner_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
)
from hudi_py.mdt.changes import changes_of_clean, changes_of_commit, changes_of_rollback
from hudi_py.mdt.create import create_metadata_table
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.removal import disable_unmaintained_partitions, drop_metadata_table, partition_folders
from hudi_py.mdt.table import MetadataTable
from hudi_py.mdt.update import record_rollback, write_delta_commit
from hudi_py.model.files import join_path, parse_base_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    CleanerPlan,
    CleanFileInfo,
    CleanMetadata,
    CleanPartitionMetadata,
    CommitMetadata,
    InstantInfo,
    RollbackMetadata,
    RollbackPartitionMetadata,
    RollbackPlan,
    RollbackRequest,
    WriteStat,
)
from hudi_py.storage.local import LocalStorage
from hudi_py.timeline.store import TimelineStore
from support.metadata_tables import compact_metadata_table

PROPERTIES = ".hoodie/hoodie.properties"
POLICY = "KEEP_LATEST_FILE_VERSIONS"


class Stop(BaseException):
    """We die here."""


class OurTable:
    """A table of real Hudi in our hands. Every call reads it afresh, as another process would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.storage = LocalStorage(str(path))

    # --- looking -------------------------------------------------------------------------------------------------
    def listed(self) -> dict[str, dict[str, int]]:
        """Partition → file → size, through the metadata table."""
        with MetadataReader(MetadataTable(self.storage), self._store().load()) as reader:
            return dict(reader.scan())

    def on_disk(self) -> dict[str, dict[str, int]]:
        """The same by listing folders; only files of completed (or no longer known) instants."""
        pending = {i.requested_time for i in self._store().load().pending("commit", "deltacommit", "replacecommit")}
        found: dict[str, dict[str, int]] = {}
        for folder, folders, names in os.walk(self.path):
            folders[:] = [name for name in folders if name != ".hoodie"]
            for name in names:
                base = parse_base_file(name)
                if base is not None and base.instant_time not in pending:
                    partition = Path(folder).relative_to(self.path).as_posix()
                    size = (Path(folder) / name).stat().st_size
                    found.setdefault("" if partition == "." else partition, {})[name] = size
        return found

    def metadata_partitions(self) -> tuple[str, ...]:
        return self._config().metadata_partitions

    # --- writing -------------------------------------------------------------------------------------------------
    def commit(self, change, *, stop_after_metadata: bool = False, record: bool = True) -> str:
        """*change* (a row to a row) applied to every newest base file; the commit's time."""
        disable_unmaintained_partitions(
            self.storage, self._config(), self._update_properties, folders=partition_folders(self.storage)
        )
        store = self._store()
        time = store.new_time()
        instant = store.request(Action.COMMIT, time, b"")
        instant = store.transition(instant, self._encode(CommitMetadata(operation_type="UPSERT")))
        stats: dict[str, list[WriteStat]] = {}
        for partition, file_id, old in self._newest():
            new = self._rewrite(partition, file_id, old, time, change)
            stats.setdefault(partition, []).append(new)
        metadata = CommitMetadata(
            partition_to_write_stats={path: tuple(each) for path, each in stats.items()},
            extra_metadata={"schema": self._schema()},
            operation_type="UPSERT",
        )
        if record:
            self._record(time, changes_of_commit(metadata))
        if stop_after_metadata:
            raise Stop
        store.complete(instant, self._encode(metadata))
        self.storage.delete_folder(f".hoodie/.temp/{time}")
        return time

    def clean(self) -> int:
        """Delete every base file but the newest of each group; the number of files."""
        kept = {old.name for _, _, old in self._newest()}
        expired = {p: sorted(set(names) - kept) for p, names in self.on_disk().items()}
        expired = {partition: names for partition, names in expired.items() if names}
        store = self._store()
        time = store.new_time()
        files = {
            partition: tuple(CleanFileInfo(f"{self.path}/{join_path(partition, name)}") for name in names)
            for partition, names in expired.items()
        }
        plan = encode_cleaner_plan(CleanerPlan(policy=POLICY, files_to_delete=files), os.urandom(16))
        instant = store.request(Action.CLEAN, time, plan)
        instant = store.transition(instant, plan if store.layout.version == 1 else b"")
        for partition, names in expired.items():
            self.storage.delete_many([join_path(partition, name) for name in names])
        done = {
            partition: CleanPartitionMetadata(
                partition_path=partition,
                policy=POLICY,
                delete_path_patterns=tuple(names),
                success_delete_files=tuple(names),
            )
            for partition, names in expired.items()
        }
        count = sum(map(len, expired.values()))
        metadata = CleanMetadata(start_clean_time=time, time_taken_ms=1, total_files_deleted=count, partitions=done)
        self._record(time, changes_of_clean(metadata))
        store.complete(instant, encode_clean_metadata(metadata, os.urandom(16)))
        return count

    def compact(self):
        """Compact the metadata table, however few its logs."""
        return compact_metadata_table(self.storage, self._store().load(), 1)

    def create_metadata_table(self) -> None:
        """Make the metadata table from a listing."""
        timeline, listing = self._store().load(), self.on_disk()
        create_metadata_table(self.storage, self._config(), timeline, listing, self._update_properties)

    def drop_metadata_table(self) -> None:
        """Remove it."""
        drop_metadata_table(self.storage, self._config(), self._update_properties)

    def rollback(self) -> str:
        """Roll back the one pending commit, as our recovery would."""
        store = self._store()
        (failed,) = store.load().pending("commit")
        wanted = failed.requested_time
        names = {
            Path(folder).relative_to(self.path).as_posix(): [
                n for n in files if f"_{wanted}.parquet" in n and n[0] != "."
            ]
            for folder, _, files in os.walk(self.path)
            if ".hoodie" not in folder
        }
        names = {partition: found for partition, found in names.items() if found}
        time = store.new_time()
        info = InstantInfo(requested_time=wanted, action="commit")
        requests = tuple(
            RollbackRequest(partition_path=p, files_to_be_deleted=tuple(f"{self.path}/{p}/{n}" for n in found))
            for p, found in names.items()
        )
        instant = store.request(
            Action.ROLLBACK,
            time,
            encode_rollback_plan(RollbackPlan(instant_to_rollback=info, rollback_requests=requests), os.urandom(16)),
        )
        instant = store.transition(instant, b"")
        done = {}
        for partition, found in names.items():
            self.storage.delete_many([join_path(partition, name) for name in found])
            paths = tuple(f"{self.path}/{partition}/{name}" for name in found)
            done[partition] = RollbackPartitionMetadata(partition_path=partition, success_delete_files=paths)
        metadata = RollbackMetadata(
            start_rollback_time=time,
            time_taken_ms=1,
            total_files_deleted=sum(map(len, names.values())),
            commits_rollback=(wanted,),
            partitions=done,
            instants_rollback=(info,),
        )
        table = MetadataTable(self.storage)
        changes = changes_of_rollback(metadata)
        record_rollback(table, store.load(), wanted, time, changes)
        for state in (State.INFLIGHT, State.REQUESTED):
            store.remove(Instant(wanted, Action.COMMIT, state))
        store.complete(instant, encode_rollback_metadata(metadata, os.urandom(16)))
        self.storage.delete_folder(f".hoodie/.temp/{wanted}")
        return time

    # --- parts ---------------------------------------------------------------------------------------------------
    def _record(self, time, changes) -> None:
        table = MetadataTable(self.storage)
        write_delta_commit(table, self._store().load(), time, changes)

    def _config(self):
        return table_config(parse_properties(self.storage.read(PROPERTIES), PROPERTIES), PROPERTIES)

    def _store(self) -> TimelineStore:
        return TimelineStore(self.storage, self._config())

    def _update_properties(self, changes) -> None:
        properties = parse_properties(self.storage.read(PROPERTIES), PROPERTIES)
        properties |= {key: value for key, value in changes.items() if value is not None}
        for key in [key for key, value in changes.items() if value is None]:
            properties.pop(key, None)
        self.storage.replace(PROPERTIES, format_properties(properties))

    def _encode(self, metadata: CommitMetadata) -> bytes:
        return encode_commit(metadata, as_json=self._config().format.commits_are_json, sync=os.urandom(16))

    def _schema(self) -> str:
        store = self._store()
        for instant in reversed(store.load().completed("commit", "deltacommit")):
            from hudi_py.formats.commit_codec import decode_commit

            schema = decode_commit(store.read(instant), "commit").extra_metadata.get("schema")
            if schema:
                return schema
        raise AssertionError("no schema")

    def _newest(self):
        """(partition, file id, base file) of each group's newest base file."""
        newest = {}
        for partition, names in self.on_disk().items():
            for name in names:
                base = parse_base_file(name)
                known = newest.get((partition, base.file_id))
                if known is None or known.instant_time < base.instant_time:
                    newest[partition, base.file_id] = base
        return [(partition, file_id, base) for (partition, file_id), base in sorted(newest.items())]

    def _rewrite(self, partition, file_id, old, time, change) -> WriteStat:
        source = pq.ParquetFile(self.path / partition / old.name)
        rows = [change(dict(row)) for row in source.read().to_pylist()]
        name = f"{file_id}_7-7-7_{time}.parquet"
        for row in rows:
            row["_hoodie_commit_time"], row["_hoodie_file_name"] = time, name
        path = self.path / partition / name
        self.storage.create_new(f".hoodie/.temp/{time}/{join_path(partition, name)}.marker.MERGE", b"")
        with pq.ParquetWriter(path, source.schema_arrow, store_schema=False, compression="gzip") as writer:
            writer.write_table(pa.Table.from_pylist(rows, source.schema_arrow))
            footer = {k: v for k, v in (source.metadata.metadata or {}).items() if k != b"ARROW:schema"}
            writer.add_key_value_metadata(footer)
        size = path.stat().st_size
        return WriteStat(
            file_id=file_id, path=join_path(partition, name), prev_commit=old.instant_time, partition_path=partition,
            num_writes=len(rows), num_update_writes=len(rows), total_write_bytes=size, file_size_in_bytes=size,
        )  # fmt: skip
