"""
Where the metadata table is, and which of its file slices counts.

Source: rules/data-files 9.1, 10 and 11; Hudi 1.1.1 ``HoodieTableMetadataUtil``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from hudi_py.config.table import TableConfig, table_config
from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.formats.properties import parse_properties
from hudi_py.formats.records_codec import decode_compaction_plan
from hudi_py.fsview.expected import ExpectedSlice
from hudi_py.mdt.recorded import check_recorded, recorded_slices
from hudi_py.model.files import METADATA_TABLE_FOLDER, BaseFile, LogFile, parse_base_file, parse_log_file
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import INIT_TIME
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.storage.folder import FolderStorage
from hudi_py.timeline.lock import NO_LOCK, Lock, LockOfTable
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import TableFormat

FILES_PARTITION: Final = "files"
FILES_GROUP: Final = "files-0000-0"
WRITE_TOKEN: Final = "0-0-0"  # noqa: S105 - part of a file name

_COMPLETING: Final = (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
_PLANNED: Final = (Action.COMPACTION, Action.LOG_COMPACTION)


class MetadataTableMissing(NotFound):
    """The properties of a table name a metadata table that is not there, or has no properties of its own."""


@attrs.frozen
class Slice:
    """
    The newest base file of a file group and the log files that come after it.

    A pending compaction of the metadata table opens a slice of its own, without a base file; its log files are
    listed here together with those of the slice before, which is how Hudi reads them (*merged file slice*).

    Args:
        partition: Partition of the metadata table (``files``).
        file_id: The group's file id.
        base: Completed base file, or None in a group that has only logs.
        logs: Oldest first, those of pending delta commits included; ``size_bytes`` is what a completed one recorded.
        next_base_time: Base instant for the next log file of layout 1: that of the newest slice, pending or not.
    """

    partition: str
    file_id: str
    base: BaseFile | None
    logs: tuple[LogFile, ...]
    next_base_time: str

    def path(self, name: str) -> str:
        """Path of a file of this slice, relative to the metadata table."""
        return f"{self.partition}/{name}"


class MetadataTable:
    """
    The metadata table of one table.

    Args:
        storage: The data table's storage.
        clock: Gives completion times.
        lock: The table's lock, which is asked for again before each commit point.

    Raises:
        MetadataTableMissing: There is no metadata table.
        CorruptMetadata: Its properties make no sense.
    """

    def __init__(self, storage: Storage, clock: Clock | None = None, lock: Lock = NO_LOCK) -> None:
        self.data_storage = storage
        self.storage = FolderStorage(storage, METADATA_TABLE_FOLDER)
        self.config: TableConfig = _read_config(self.storage)
        self.store = TimelineStore(self.storage, self.config, clock, lock=LockOfTable(lock), of_data=False)

    @property
    def table_version(self) -> int:
        """6, 8 or 9."""
        return self.config.version

    @property
    def format(self) -> TableFormat:
        """What its version changes."""
        return self.config.format

    def source(self, path: str) -> str:
        """A path of the metadata table for messages."""
        return f"{METADATA_TABLE_FOLDER}/{path}"

    def partitions(self) -> list[str]:
        """Folders of the metadata table's partitions."""
        return sorted(entry.name for entry in self.storage.list("") if entry.is_folder and entry.name[:1] != ".")

    def slices(self, timeline: Timeline, partition: str = FILES_PARTITION) -> tuple[Slice, ...]:
        """
        The current slice of each file group of a partition.

        Args:
            timeline: The metadata table's timeline.
            partition: Partition of the metadata table.

        Raises:
            CorruptMetadata: A file is missing that a completed commit wrote into a current slice.
        """
        bases: dict[str, list[BaseFile]] = {}
        logs: dict[str, list[LogFile]] = {}
        for entry in self.storage.list(partition):
            base = parse_base_file(entry.name)
            # Everything else in the folder (metafiles, markers, temporary files) is ignored, as Hudi does.
            if base is not None and base.extension == "hfile":
                bases.setdefault(base.file_id, []).append(base)
                continue
            log = parse_log_file(entry.name)
            if log is not None:
                logs.setdefault(log.file_id, []).append(log)
        pending = self.pending_compactions(timeline, partition)
        # Compared here, below all readers, so that none can forget it.
        log_times = {log.instant_time for found in logs.values() for log in found}
        recorded = recorded_slices(self.store, timeline, partition, bases.keys() | logs.keys(), log_times)
        return tuple(
            self._slice(
                timeline,
                partition,
                file_id,
                bases.get(file_id, ()),
                logs.get(file_id, ()),
                pending,
                recorded.get(file_id, ExpectedSlice(None)),
            )
            for file_id in sorted(bases.keys() | logs.keys() | recorded.keys())
        )

    def pending_compactions(self, timeline: Timeline, partition: str) -> dict[str, str]:
        """File id to the time of the newest pending compaction of that group."""
        found: dict[str, str] = {}
        for instant in timeline.pending(*_PLANNED):
            plan = decode_compaction_plan(self.store.read_plan(instant), self.source(self.store.path(instant)))
            for operation in plan.operations:
                if operation.partition_path == partition and operation.file_id is not None:
                    found[operation.file_id] = instant.requested_time
        return found

    def _slice(
        self,
        timeline: Timeline,
        partition: str,
        file_id: str,
        bases: Iterable[BaseFile],
        logs: Iterable[LogFile],
        pending: dict[str, str],
        recorded: ExpectedSlice,
    ) -> Slice:
        # A base file of a compaction that failed has no effect until it completes, if it ever does.
        visible = [base for base in bases if _is_base_committed(timeline, base.instant_time)]
        base = max(visible, key=lambda each: (each.instant_time, each.name), default=None)
        base_time = base.instant_time if base is not None else ""
        current = [log for log in logs if self.slice_time(timeline, log) >= base_time]
        check_recorded(recorded, base, {log.name for log in current}, self.source(partition))
        sizes = {file.name: file.size_bytes for file in recorded.logs}
        # Of the recorded size, so that a log file that was cut off is noticed when it is read.
        current = [attrs.evolve(log, size_bytes=sizes.get(log.name)) for log in current]
        times = [base_time, pending.get(file_id, "")]
        if self.format.log_naming.tells_slice:
            times += [log.instant_time for log in current]
        return Slice(partition, file_id, base, tuple(sorted(current, key=lambda log: log.order)), max(times))

    def slice_time(self, timeline: Timeline, log: LogFile) -> str:
        """
        A log file belongs to the newest slice that is not newer than this time.

        In layout 1 it is the base instant in its name, in layout 2 the completion time of its delta commit. Delta
        commits that compaction has not seen are never archived, so one that is missing on the timeline is old.
        """
        if self.format.log_naming.tells_slice:
            return log.instant_time
        instant = timeline.find(log.instant_time, Action.DELTA_COMMIT)
        if instant is None:
            return log.instant_time
        # A pending delta commit belongs to the newest slice, whatever its time: "9" is later than all of them.
        return instant.completion_time or "9"


def is_committed(timeline: Timeline, requested_time: str) -> bool:
    """Whether a write of the metadata table is completed, or so old that its instant is archived."""
    instants = (timeline.find(requested_time, action) for action in _COMPLETING)
    known = [instant for instant in instants if instant is not None]
    # A pending instant of that time is proof that the write is not completed, however old it is.
    if known:
        return any(instant.is_completed for instant in known)
    return is_archived(timeline, requested_time)


def _is_base_committed(timeline: Timeline, requested_time: str) -> bool:
    """As `is_committed`, of a base file: one of a compaction is not there with the delta commit of an equal time."""
    compaction = timeline.find(requested_time, Action.COMPACTION)
    return is_committed(timeline, requested_time) if compaction is None else compaction.is_completed


def is_archived(timeline: Timeline, requested_time: str) -> bool:
    """
    Whether an instant that the metadata table's active timeline does not have is older than that timeline.

    A partition that is created late has an instant of zeros: it is on the active timeline, in front of all others, when
    those that are really older are archived, among them the zeros of other partitions. Rollbacks and cleans tell
    nothing: in layout 1 an old one stays for long, while the writes behind it are archived.
    """
    if requested_time.startswith(INIT_TIME):
        return True
    start = archived_before(timeline.writes)
    return start is not None and requested_time < start


def archived_before(writes: Timeline) -> str | None:
    """
    Time before which the metadata table's writes may be archived: of the first active one that is not of zeros.

    Or the time at which one of zeros was made that is active: archived are the smallest times first.
    """
    zeros = [instant for instant in writes.instants if instant.requested_time.startswith(INIT_TIME)]
    if len(zeros) == len(writes.instants):
        return None
    # Zeros are in front of all others.
    made = (instant.completion_time for instant in zeros)
    return min([writes.instants[len(zeros)].requested_time, *filter(None, made)])


def _read_config(storage: Storage) -> TableConfig:
    path = ".hoodie/hoodie.properties"
    try:
        # The backup, while the file is rewritten or after that was interrupted.
        content = _first(storage, path, f"{path}.backup")
    except NotFound as error:
        raise MetadataTableMissing(
            f"{storage.root}/{path} is missing, though the table's properties name a metadata table there. Nothing was "
            "changed; hudi-py recover clears that property, and so does a write with hoodie.metadata.enable=false "
            "(--conf), which makes do without"
        ) from error
    source = f"{METADATA_TABLE_FOLDER}/{path}"
    config = table_config(parse_properties(content, source), source)
    if config.base_file_format != "HFILE" or config.populate_meta_fields:
        raise CorruptMetadata(f"{source}: these are not the properties of a metadata table")
    return config


def _first(storage: Storage, path: str, instead: str) -> bytes:
    try:
        return storage.read(path)
    except NotFound:
        return storage.read(instead)
