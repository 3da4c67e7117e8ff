"""
Whether the record index, the Bloom filters and the statistics of the metadata table agree with the files.

Bounded: looked at are the newest base files that the active commits wrote, a limited number of files and keys. That is
where a writer that bypasses an index leaves its traces; what is archived was looked at when it was new.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hudi_py.errors import CorruptMetadata, NotFound, UnsupportedTable
from hudi_py.formats.bloom import BloomFilter
from hudi_py.mdt.bloom_filters import BloomFilters
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.record_index import RecordIndex, is_between_states
from hudi_py.mdt.statistics import COLUMN_STATS
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import METADATA_TABLE_FOLDER, join_path, parse_base_file
from hudi_py.rows.file_keys import keys_of_base_file, texts
from hudi_py.rows.lookup import read_footer
from hudi_py.services.check.findings import Finding, finding
from hudi_py.services.check.judge_statistics import judge_statistics
from hudi_py.services.check.newest_files import WrittenData, newest_files
from hudi_py.storage.base import Storage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_FILES_MAX: Final = 200
_KEYS_MAX: Final = 100_000
_FOLDER: Final = METADATA_TABLE_FOLDER


def judge_indexes(
    storage: Storage, partitions: Iterable[str], table: MetadataTable, contents: Contents, timeline: Timeline
) -> list[Finding]:
    """
    Compare the indexes of keys and the statistics with the files.

    Args:
        storage: Storage of the table.
        partitions: Partitions of the metadata table that the properties name.
        table: The metadata table.
        contents: Contents of the table's timeline.
        timeline: Timeline of the table.

    Raises:
        StorageError: As the storage.
    """
    names = set(partitions)
    if not names & {RECORD_INDEX, BLOOM_FILTERS, COLUMN_STATS}:
        return []
    found: list[Finding] = []
    try:
        newest = newest_files(contents, timeline, _FILES_MAX)
        files = _only_base(newest)
        if COLUMN_STATS in names:
            found += judge_statistics(storage, newest, table, timeline)
        # Beside a pending rollback or restore, the index is ahead of the files or behind them.
        if RECORD_INDEX in names and not is_between_states(timeline):
            with RecordIndex(table, timeline) as index:
                found += _judge_rows(storage, files, index)
        if BLOOM_FILTERS in names:
            with BloomFilters(table, timeline) as filters:
                found += _judge_filters(storage, files, filters)
    except UnsupportedTable:  # an index that only Apache Hudi keeps
        pass
    except CorruptMetadata as error:
        found.append(finding("mdt-unreadable", _FOLDER, str(error)))
    return found


def _only_base(files: Iterable[WrittenData]) -> list[WrittenData]:
    """Return the base files of groups without deletes in log files: deleted keys are in the file, and in no index."""
    left_out = {file[:2] for file in files if file.has_deletes}
    return [each for each in files if each[:2] not in left_out and parse_base_file(each.name) is not None]


def _judge_rows(storage: Storage, files: Iterable[WrittenData], index: RecordIndex) -> Iterator[Finding]:
    looked_at = 0
    there: dict[str, set[str]] = {}
    for file in files:
        where = join_path(file.partition_path, file.name)
        try:
            keys = texts(keys_of_base_file(storage, where)[: _KEYS_MAX - looked_at])
        except NotFound:  # another finding
            continue
        looked_at += len(keys)
        known = index.locations(keys)
        missing = [key for key in keys if key not in known]
        if missing:
            yield finding("mdt-index-row-missing", where, f"{len(missing)} of {len(keys)} keys, such as {missing[0]!r}")
        for path, file_id in {at[:2] for at in known.values()} - {(file.partition_path, file.file_id)}:
            if path not in there:
                there[path] = {entry.name for entry in storage.list(path)}
            # The index may be right that a key lies elsewhere (it was written twice), but not in a group that does not
            # exist.
            if not any(file_id in name for name in there[path]):
                yield finding(
                    "mdt-index-group-missing", join_path(path, file_id), f"rows of {where} are looked for there"
                )
        if looked_at >= _KEYS_MAX:
            return


def _judge_filters(storage: Storage, files: Iterable[WrittenData], filters: BloomFilters) -> Iterator[Finding]:
    wanted = {(file.partition_path, file.name) for file in files}
    known = dict(filters.filters(wanted))
    for path, name in sorted(wanted):
        where = join_path(path, name)
        try:
            with storage.open_read(where) as stream:
                footer = read_footer(stream)
        except NotFound:  # another finding
            continue
        # A file without a filter has none in the index either.
        if footer.bloom_text is None:
            continue
        of_file = BloomFilter.parse(footer.bloom_text, footer.bloom_type)
        kept = known.get((path, name))
        # By their bytes: a filter that merely has more bits set would be as wrong for other keys.
        if kept is None or kept.to_text() != of_file.to_text():
            yield finding("mdt-filter-differs", where, "none there" if kept is None else "")
