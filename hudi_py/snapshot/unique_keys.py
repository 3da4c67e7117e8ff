"""
Whether a record index names the place of every row, so that no other file has to be opened for a key.

The index has one place for each key. A ``bulk_insert`` or ``insert`` looks up no keys, and an index that is not global
none of other partitions: then a key has rows in several file groups, and all but one of them would not be found. No
commit tells which index its writer used, so the rows are counted: there are as many as keys in the index only if no two
of them have the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from hudi_py.mdt.statistics import column_prefix, key_suffix
from hudi_py.model.files import FileSlice, join_path

if TYPE_CHECKING:
    from hudi_py.mdt.read_statistics import StatisticsReader
    from hudi_py.model.records import CommitMetadata, WriteStat

_KEY_COLUMN: Final = "_hoodie_record_key"


def row_count(
    slices: Sequence[FileSlice],
    commits: Iterable[CommitMetadata],
    statistics: Callable[[], StatisticsReader | None],
) -> int | None:
    """
    Count the rows of file slices without opening their files.

    Args:
        slices: File slices of a snapshot.
        commits: Completed writes, newest first; read no further than needed.
        statistics: Opens `column_stats` of the metadata table, for files whose commits are archived; None without any.

    Returns:
        None if unknown: a log file may hold new keys or deletes, or nothing tells of a file.
    """
    logs = {join_path(each.partition_path, log.name) for each in slices for log in each.log_files if not log.is_cdc}
    bases = {join_path(each.partition_path, each.base_file.name): each for each in slices if each.base_file is not None}
    if len(bases) != len(slices):  # rows that only log files hold
        return None
    count, waiting = 0, bases.keys() | logs
    for metadata in commits:
        if not waiting:
            break
        for stat in _stats_of(metadata):
            path = stat.path or ""
            if path not in waiting:
                continue
            waiting.discard(path)
            if path not in logs:
                count += stat.num_writes
            elif stat.num_inserts or stat.num_deletes:
                return None
    if waiting & logs:
        return None
    rest = _counted([bases[path] for path in waiting], statistics) if waiting else 0
    return None if rest is None else count + rest


def _stats_of(metadata: CommitMetadata) -> Iterable[WriteStat]:
    return (stat for stats in metadata.partition_to_write_stats.values() for stat in stats)


def _counted(slices: Sequence[FileSlice], statistics: Callable[[], StatisticsReader | None]) -> int | None:
    """Rows of base files by their statistics; None where one has none."""
    reader = statistics()
    if reader is None:
        return None
    with reader:
        known, prefix = reader.of_column(_KEY_COLUMN), column_prefix(_KEY_COLUMN)
    total = 0
    for each in slices:
        assert each.base_file is not None
        found = known.get(prefix + key_suffix(each.partition_path, each.base_file.name))
        if found is None or found.value_count is None:
            return None
        total += found.value_count
    return total
