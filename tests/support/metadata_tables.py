"""Tables of real Hudi in memory, without their data files: the metadata table is all that counts here."""

from __future__ import annotations

from hudi_py.config.table import TableConfig, table_config
from hudi_py.formats.properties import format_properties, parse_properties
from hudi_py.mdt.compaction import compact
from hudi_py.mdt.read import MetadataReader
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import format_base_file, join_path
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import WriteStat
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.transaction import begin_write
from support.fixtures import expected, fixture_names, metadata_files

PROPERTIES = ".hoodie/hoodie.properties"
SYNC = bytes(16)
VERSIONS = ("0.15.0", "1.0.2", "1.1.1")
LATER = "20991231235959000"
LATEST = "20991231235959900"

Listing = dict[str, dict[str, int]]


def with_metadata_table() -> list[str]:
    """Fixtures that have one."""
    return [name for name in fixture_names() if ".hoodie/metadata/.hoodie/hoodie.properties" in metadata_files(name)]


def table_of(name: str) -> MemoryStorage:
    """A fixture's ``.hoodie`` folder."""
    return MemoryStorage.from_files(metadata_files(name))


def compact_metadata_table(storage: Storage, timeline: Timeline, delta_commits_max: int) -> Instant | None:
    """Compact the metadata table of a table if it has that many log files; *timeline* is the data table's."""
    partitions = config_of(storage).metadata_partitions
    return compact(MetadataTable(storage), timeline, partitions=partitions, delta_commits_max=delta_commits_max)


def config_of(storage: Storage) -> TableConfig:
    return table_config(parse_properties(storage.read(PROPERTIES), PROPERTIES), PROPERTIES)


def store_of(storage: Storage) -> TimelineStore:
    return TimelineStore(storage, config_of(storage))


def timeline_of(storage: Storage) -> Timeline:
    return store_of(storage).load()


def listing(storage: Storage) -> Listing:
    """Everything, read in both ways."""
    with MetadataReader(MetadataTable(storage), timeline_of(storage)) as reader:
        scanned = dict(reader.scan())
        looked_up = {path: reader.files(path) for path in reader.partitions()}
    assert scanned == {path: files for path, files in looked_up.items() if files}
    return scanned


def partitions(storage: Storage) -> tuple[str, ...]:
    with MetadataReader(MetadataTable(storage), timeline_of(storage)) as reader:
        return reader.partitions()


def on_disk(name: str) -> Listing:
    """What real Hudi saw on disk, without files of pending writes: those are not in the metadata table."""
    answers = expected(name)["expected"]
    instants = answers["timeline"]["instants"]
    writes = ("commit", "deltacommit", "replacecommit")
    pending = [i["requested_time"] for i in instants if i["state"] != "COMPLETED" and i["action"] in writes]
    found: Listing = {}
    for path, size in answers["data_files"].items():
        partition, _, file = path.rpartition("/")
        if not file.startswith(".hoodie") and not any(f"_{time}.parquet" in file for time in pending):
            found.setdefault(partition, {})[file] = size
    return found


def begin(storage: Storage, action: Action, time: str) -> None:
    """An inflight instant in the data table."""
    store = store_of(storage)
    store.transition(store.request(action, time, b""), b"")


def end(storage: Storage, action: Action, time: str) -> None:
    """The same, completed."""
    store_of(storage).complete(Instant(time, action, State.INFLIGHT), b"")


def vanish(storage: Storage, action: Action, time: str) -> None:
    """The same, gone."""
    store = store_of(storage)
    for state in (State.INFLIGHT, State.REQUESTED):
        store.remove(Instant(time, action, state))


def update_properties(storage: Storage):
    """A plain stand-in for the backup protocol: one replace."""

    def update(changes):
        properties = parse_properties(storage.read(PROPERTIES), PROPERTIES)
        for key, value in changes.items():
            if value is None:
                properties.pop(key, None)
            else:
                properties[key] = value
        storage.replace(PROPERTIES, format_properties(properties))

    return update


def write(table, partition="eu", *, groups=1):
    """One commit: the next version of each of the partition's file groups."""
    table.refresh()
    transaction = begin_write(table.contents, table.config, table.settings, table.services.metadata_table)
    table.storage.replace(join_path(partition, ".hoodie_partition_metadata"), b"commitTime=1\npartitionDepth=1\n")
    stats = []
    for number in range(groups):
        group = f"group-{partition}{number}"
        name = format_base_file(group, "0-1-0", transaction.instant_time)
        table.storage.replace(join_path(partition, name), b"PAR1")
        stats.append(WriteStat(file_id=group, path=join_path(partition, name), partition_path=partition,
                               num_writes=1, total_write_bytes=4, file_size_in_bytes=4))  # fmt: skip
    transaction.commit(stats, operation="UPSERT", extra_metadata={})
    table.refresh()
