"""
Writes without Spark: those of the write service, and replacecommits as Apache Hudi leaves them.

No service of ours writes the second yet, so their instants are built here, state by state, as Hudi 0.15.0 and 1.1.1
build them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.config.concurrency import failed_writes_policy
from hudi_py.config.table import TableConfig
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import ConflictError, RefusedError
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.record_schema import format_record_schema, parse_record_schema
from hudi_py.fsview.needed import NeededFiles
from hudi_py.local.rows import ArrowRows
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    RequestedReplaceMetadata,
)
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.keys import KeyGenerator, is_prefixed, key_generator_of
from hudi_py.rows.precedence import merge_rules_of
from hudi_py.storage.base import Storage
from hudi_py.table import Table
from hudi_py.timeline.heartbeat import FOLDER as HEARTBEATS
from hudi_py.timeline.heartbeat import delete_heartbeat, heartbeat_ages
from hudi_py.timeline.markers import delete_markers
from hudi_py.timeline.properties_file import recover_properties
from hudi_py.write_service import WriteService
from hudi_py.writing.assign import SizingLimits
from hudi_py.writing.bulk import run_bulk_task
from hudi_py.writing.tasks import TaskIdentity, WriteJob, run_task
from support.writes import ALONE

Row = dict[str, Any]
Announce = Callable[[str], None]
SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("ts", pa.int64()), ("note", pa.string())])
SYNC = bytes(range(16))
EVERYTHING = 1 << 60


def write(table: Table, rows: Sequence[Row], operation: str, announce: Announce, *, small_files: bool = True) -> bool:
    """
    Write *rows* in one commit; False where there was nothing to write.

    Args:
        announce: Is given the requested time, before anything is written.
        small_files: Whether inserts are added to existing files.
    """
    batch = pa.Table.from_pylist(list(rows), schema=schema_of(table))
    limits = {} if small_files else {"hoodie.parquet.small.file.limit": 0}
    settings = table.settings.merged({**ALONE, **limits})
    service = WriteService(table.storage, settings, table.services.metadata_table.clock, LocalEngine)
    return service.write(_Announced(batch, announce=announce), operation).instant is not None


@attrs.frozen
class _Announced(ArrowRows):
    """Says under which time they are written, before they are."""

    announce: Announce = attrs.field(kw_only=True)

    def shaped(self, *args: Any, **options: Any) -> _Announced:
        """See `IncomingRows`."""
        return attrs.evolve(self, table=ArrowRows.shaped(self, *args, **options).table)

    def write(self, job: WriteJob) -> list[Any]:
        """See `IncomingRows`."""
        self.announce(job.instant_time)
        return ArrowRows.write(self, job)


def replace(
    table: Table,
    rows: Sequence[Row],
    replaced: Callable[[], Iterable[tuple[str, str]]],
    operation: str,
    announce: Announce,
) -> None:
    """
    Write *rows* into new file groups and replace others, as ``insert_overwrite`` and its like do.

    Args:
        replaced: Gives (partition path, file id); called when the write has begun.
        operation: ``INSERT_OVERWRITE``, ``INSERT_OVERWRITE_TABLE`` or ``DELETE_PARTITION``.
    """
    request = codec.encode_requested_replace(RequestedReplaceMetadata(), sync=SYNC)
    instant = begin(table, Action.REPLACE_COMMIT, request, announce)
    _finish_replace(table, instant, rows, replaced(), operation)


def schedule_clustering(table: Table, groups: Mapping[str, Sequence[tuple[str, str]]], announce: Announce) -> None:
    """
    Store the plan of a clustering.

    Args:
        groups: Partition path to (file id, name of its base file).
    """
    plan = ClusteringPlan(
        input_groups=tuple(
            ClusteringGroup(
                slices=tuple(
                    ClusteringSlice(
                        file_id=file_id,
                        partition_path=partition,
                        data_file_path=f"{table.storage.root}/{join_path(partition, name)}",
                    )
                    for file_id, name in files
                )
            )
            for partition, files in groups.items()
        )
    )
    request = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan, version=1)
    content = codec.encode_requested_replace(request, sync=SYNC)
    begin(table, _clustering_action(table.config), content, announce, inflight=False)


def execute_clustering(
    table: Table, instant: Instant, rows_of: Callable[[Iterable[tuple[str, str]]], list[Row]]
) -> None:
    """
    Carry out a pending clustering; what an attempt before left is taken back first, as Hudi does.

    Args:
        rows_of: Rows of these file groups (partition path, file id).
    """
    plan = table.contents.requested_replace(instant).clustering_plan
    assert plan is not None
    if instant.state is State.INFLIGHT:
        table.rollback(instant.requested_time)
        table.refresh()
        instant = attrs.evolve(instant, state=State.REQUESTED, file_name=None)
    instant = table.contents.store.transition(instant, _empty_inflight(table.config))
    _finish_replace(table, instant, rows_of(plan.file_groups), plan.file_groups, "CLUSTER")


def pending_clusterings(table: Table) -> list[Instant]:
    """Oldest first."""
    return [each for each in table.timeline.pending() if table.contents.is_clustering(each)]


def rows_of_file(storage: Storage, path: str) -> list[tuple[str, Row]]:
    """Partition path and row, of every row of a base file; read without any of our readers."""
    found = pq.read_table(io.BytesIO(storage.read(path))).to_pylist()
    return [
        (row["_hoodie_partition_path"], {name: value for name, value in row.items() if not name.startswith("_hoodie_")})
        for row in found
    ]


def schema_of(table: Table) -> pa.Schema:
    """Of the table's rows."""
    text = table.schema_text()
    return SCHEMA if text is None else parse_record_schema(text)


# ------------------------------------------------------------------ parts
def _run(job: WriteJob, rows: Sequence[Row], schema: pa.Schema) -> list[Any]:
    run = run_bulk_task if job.operation == "BULK_INSERT" else run_task
    return list(run(job, [pa.RecordBatch.from_pylist(list(rows), schema=schema)], TaskIdentity(0, 1, 2)))


def _job(table: Table, time: str, operation: str, schema: pa.Schema, *, small_files: bool) -> WriteJob:
    return WriteJob(
        storage=table.storage,
        instant_time=time,
        operation=operation,
        context=table.view_context,
        needed=NeededFiles(table.contents, table.timeline).required(),
        schema=schema,
        avro_schema=table.schema_text() or format_record_schema(schema, table.config.name),
        keys=_keys(table),
        rules=merge_rules_of(table.config.properties),
        options=BaseFileOptions(compression="snappy"),
        limits=SizingLimits() if small_files else SizingLimits(small_file_bytes=0),
        record_bytes=100,
    )


def _keys(table: Table) -> KeyGenerator:
    """Where the form of keys depends on the release that wrote them, a stored key tells."""
    properties = dict(table.config.properties)
    prefixed = False
    for partition, base in table.base_files()[:1]:
        keys = pq.read_table(
            io.BytesIO(table.storage.read(join_path(partition, base.name))), columns=["_hoodie_record_key"]
        ).column(0)
        prefixed = bool(len(keys)) and is_prefixed(keys[0].as_py(), table.config.record_key_fields[0])
    return key_generator_of(properties, single_field_prefixed=prefixed)


def _clustering_action(config: TableConfig) -> Action:
    return Action.REPLACE_COMMIT if config.layout_version == 1 else Action.CLUSTERING


def _empty_inflight(config: TableConfig) -> bytes:
    return b"" if config.layout_version == 1 else encode_commit(CommitMetadata(), as_json=False, sync=SYNC)


def begin(table: Table, action: Action, request: bytes, announce: Announce, *, inflight: bool = True) -> Instant:
    """Begin a write of any kind as `begin_write` begins a commit."""
    store = table.contents.store
    with store.lock.held("write"):
        recover_properties(store.storage)
        if store.load().pending(Action.RESTORE):
            raise RefusedError("a restore is pending")
        table.services.metadata_table.prepare(writes_data=True)
    table.services.failed_writes().before_write(store.load())
    with store.lock.held("write"):
        table.services.metadata_table.prepare(writes_data=True)
        time = store.new_time(after=table.services.metadata_table.compact(store.load()))
        announce(time)
        if inflight and failed_writes_policy(table.settings) == "LAZY":
            store.storage.replace(join_path(HEARTBEATS, time), b"")
        instant = store.request(action, time, request)
        if inflight:
            instant = store.transition(instant, _empty_inflight(table.config))
    table.refresh()
    return instant


def _finish_replace(
    table: Table, instant: Instant, rows: Sequence[Row], replaced: Iterable[tuple[str, str]], operation: str
) -> None:
    schema = schema_of(table)
    job = _job(table, instant.requested_time, "BULK_INSERT", schema, small_files=False)
    results = _run(job, rows, schema) if rows else []
    stats: dict[str, tuple[Any, ...]] = {}
    for stat in (result.stat for result in results):
        stats[stat.partition_path] = (*stats.get(stat.partition_path, ()), stat)
    ids: dict[str, tuple[str, ...]] = {}
    for partition, file_id in sorted(replaced):
        ids[partition] = (*ids.get(partition, ()), file_id)
    metadata = CommitMetadata(
        partition_to_write_stats=stats,
        extra_metadata={"schema": job.avro_schema},
        operation_type=operation,
        partition_to_replace_file_ids=ids,
    )
    finish(table, instant, metadata)


def finish(table: Table, instant: Instant, metadata: CommitMetadata) -> None:
    """Complete a write of any kind as a transaction completes a commit."""
    store, time = table.contents.store, instant.requested_time
    is_lazy = failed_writes_policy(table.settings) == "LAZY" and not table.contents.is_clustering(instant)
    if is_lazy and instant.action is not Action.COMPACTION and time not in heartbeat_ages(store.storage, store.clock):
        raise ConflictError(f"{instant}: its heartbeat is gone")
    with store.lock.held("commit"):
        content = encode_commit(metadata, as_json=table.config.layout_version == 1, sync=SYNC)
        after = table.services.metadata_table.record_commit(store.load(), instant, metadata)
        store.complete(instant, content, after=after)
        delete_markers(store.storage, time)
        delete_heartbeat(store.storage, time)
