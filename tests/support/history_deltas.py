"""
Merge-on-read tables: delta commits and compactions as Apache Hudi leaves them, and the files that each has to find.

No rows are merged here, so the model is one of files: the newest base file of each group, and every log file that a
commit after it has written. What the files hold is nobody's business but a rollback's, which looks for whole blocks.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import attrs

from hudi_py.formats import records_codec as codec
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.formats.partition_metafile import format_partition_metadata
from hudi_py.model.files import format_base_file, join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata, CompactionOperation, CompactionPlan, WriteStat
from hudi_py.table import Table
from hudi_py.timeline.markers import Marker, MarkerType, create_marker
from support.history_writer import SYNC, Announce, begin, finish

Group = tuple[str, str]


@attrs.define
class FileModel:
    """Which files each commit wrote and which groups it replaced, by requested time."""

    written: dict[str, list[tuple[str, str]]] = attrs.field(factory=dict)
    replaced: dict[str, frozenset[Group]] = attrs.field(factory=dict)

    def learn(self, table: Table) -> None:
        """Read what completed commits say, once for each."""
        for instant in table.timeline.writes.completed():
            if instant.requested_time in self.written:
                continue
            metadata = table.contents.commit(instant)
            self.written[instant.requested_time] = [
                (partition, (stat.path or "").rpartition("/")[2])
                for partition, stats in metadata.partition_to_write_stats.items()
                for stat in stats
            ]
            self.replaced[instant.requested_time] = frozenset(
                (partition, file_id)
                for partition, ids in (metadata.partition_to_replace_file_ids or {}).items()
                for file_id in ids
            )

    def written_after(self, time: str) -> set[str]:
        """Paths of everything that later commits wrote."""
        return {join_path(*file) for after, files in self.written.items() if after > time for file in files}

    def needed(self, chain: Iterable[str]) -> set[str]:
        """Paths of all files that hold newest rows once these commits have completed."""
        times = [time for time in chain if time in self.written]
        base: dict[Group, tuple[str, str]] = {}
        logs: dict[Group, list[tuple[str, str]]] = {}
        gone: set[Group] = set()
        for time in times:
            gone |= self.replaced[time]
            for partition, name in self.written[time]:
                found = parse_base_file(name)
                if found is not None:
                    group = (partition, found.file_id)
                    base[group] = max(base.get(group, ("", "")), (found.instant_time, name))
                    continue
                log = parse_log_file(name)
                if log is not None:
                    logs.setdefault((partition, log.file_id), []).append((time, name))
        paths = {join_path(group[0], name) for group, (_, name) in base.items() if group not in gone}
        for group, found_logs in logs.items():
            since, _ = base.get(group, ("", ""))
            if group not in gone:
                paths |= {join_path(group[0], name) for time, name in found_logs if time > since}
        return paths


def write_delta(table: Table, seed: int, announce: Announce) -> None:
    """A delta commit: log files for some groups, one new group."""
    chance = random.Random(seed)
    instant = begin(table, Action.DELTA_COMMIT, b"", announce)
    time = instant.requested_time
    stats: dict[str, tuple[WriteStat, ...]] = {}
    partitions = table.partitions() or (("p0",) if table.config.is_partitioned else ("",))
    for partition in partitions:
        found = [_log(table, time, partition, each) for each in table.file_slices(partition) if chance.random() < 0.6]
        if not found or chance.random() < 0.3:
            found.append(_base(table, time, partition, f"{chance.getrandbits(128):032x}-0"))
        stats[partition] = tuple(found)
    finish(table, instant, CommitMetadata(partition_to_write_stats=stats, operation_type="UPSERT"))


def schedule_compaction(table: Table, seed: int, announce: Announce) -> None:
    """Store the plan of a compaction of some slices with log files; where there is none, nothing."""
    chance = random.Random(seed)
    if table.timeline.writes.pending():  # Hudi plans none beside a pending delta commit, and this one plans no second
        return
    operations = tuple(
        CompactionOperation(
            base_instant_time=each.base_instant_time,
            file_id=each.file_id,
            partition_path=partition,
            delta_file_paths=tuple(log.name for log in each.log_files),
            data_file_path=None if each.base_file is None else each.base_file.name,
            metrics={"TOTAL_LOG_FILES": float(len(each.log_files))},
        )
        for partition in table.partitions()
        for each in table.file_slices(partition)
        if each.log_files and chance.random() < 0.8
    )
    if operations:
        plan = CompactionPlan(operations=operations, extra_metadata={})
        content = codec.encode_compaction_plan(plan, SYNC, table_version=table.config.version)
        begin(table, Action.COMPACTION, content, announce, inflight=False)


def execute_compaction(table: Table) -> None:
    """Carry out the oldest pending compaction; what an attempt before left is taken back first, as Hudi does."""
    pending = table.timeline.pending(Action.COMPACTION)
    if not pending:
        return
    time = pending[0].requested_time
    if pending[0].state is State.INFLIGHT:
        table.rollback(time)
        table.refresh()
    store = table.contents.store
    plan = table.contents.compaction_plan(Instant(time, Action.COMPACTION, State.REQUESTED))
    instant = store.transition(Instant(time, Action.COMPACTION, State.REQUESTED), b"")
    stats: dict[str, tuple[WriteStat, ...]] = {}
    for each in plan.operations:
        partition, file_id = each.partition_path or "", each.file_id or ""
        stat = _base(table, time, partition, file_id, base_time=each.base_instant_time)
        stats[partition] = (*stats.get(partition, ()), stat)
    metadata = CommitMetadata(
        partition_to_write_stats=stats, operation_type="COMPACT", compacted=True, extra_metadata={}
    )
    finish(table, instant, metadata)


def _log(table: Table, time: str, partition: str, file_slice: object) -> WriteStat:
    base_time, file_id = file_slice.base_instant_time, file_slice.file_id  # type: ignore[attr-defined]
    pending = table.view_context.pending_compactions.get((partition, file_id))
    if pending is not None:  # it has opened the slice that is written to from then on
        base_time = pending.instant_time
    stamp = base_time if table.config.format.log_naming.tells_slice else time
    names = [entry.name for entry in table.storage.list(partition)]
    version = 1 + max(
        (
            log.version
            for log in map(parse_log_file, names)
            if log and (log.file_id, log.instant_time) == (file_id, stamp)
        ),
        default=0,
    )
    name = f".{file_id}_{stamp}.log.{version}_0-1-0"
    header = {int(HeaderKey.INSTANT_TIME): time, int(HeaderKey.SCHEMA): '"string"'}
    data = encode_log_block(LogBlock(BlockType.AVRO_DATA, header, b"rows"))
    _put(
        table,
        time,
        partition,
        name,
        MarkerType.APPEND if table.config.format.log_naming.tells_slice else MarkerType.CREATE,
        data,
    )
    base = file_slice.base_file  # type: ignore[attr-defined]
    return WriteStat(
        file_id=file_id,
        path=join_path(partition, name),
        partition_path=partition,
        prev_commit=base_time,
        base_file=None if base is None else base.name,
        log_version=version,
        log_offset=0,
        log_files=(name,),
        num_writes=1,
        file_size_in_bytes=len(data),
        total_write_bytes=len(data),
    )


def _base(table: Table, time: str, partition: str, file_id: str, *, base_time: str | None = None) -> WriteStat:
    name = format_base_file(file_id, "0-1-0", time)
    metafile = join_path(partition, ".hoodie_partition_metadata")
    if table.storage.size(metafile) is None:
        now = table.contents.store.clock.now()
        table.storage.create_new(metafile, format_partition_metadata(partition, instant_time=time, written_at=now))
    _put(table, time, partition, name, MarkerType.CREATE, b"PAR1")
    return WriteStat(
        file_id=file_id, path=join_path(partition, name), partition_path=partition, num_writes=1, prev_commit=base_time,
        file_size_in_bytes=4, total_write_bytes=4,
    )  # fmt: skip


def _put(table: Table, time: str, partition: str, name: str, kind: MarkerType, data: bytes) -> None:
    create_marker(table.storage, time, Marker(partition, name, kind))
    with table.storage.open_write(join_path(partition, name)) as stream:
        stream.write(data)
