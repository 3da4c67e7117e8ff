"""
Whether a record index may lack places of rows, because keys are repeated.

The index has one place for each key. A ``bulk_insert`` or ``insert`` looks up no keys, and an index that is not global
none of other partitions: then a key has rows in several file groups, and all but one of them would not be found, as in
Apache Hudi. No commit tells which index its writer used, so rows are counted where commits and statistics tell how many
there are: as many as keys in the index, or some key is repeated.
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
) -> tuple[int, int] | None:
    """
    Count the rows of file slices without opening their files.

    Args:
        slices: File slices of a snapshot.
        commits: Completed writes, newest first; read no further than needed.
        statistics: Opens `column_stats` of the metadata table, for files whose commits are archived; None without any.

    Returns:
        The least and the largest number that there can be, which differ by the deletes in log files: nobody says how
        many rows each takes. None if unknown: nothing tells of a file.
    """
    bases = {join_path(each.partition_path, each.base_file.name): each for each in slices if each.base_file is not None}
    logs = {
        join_path(each.partition_path, log.name): each for each in slices for log in each.log_files if not log.is_cdc
    }
    count, deletes, told = 0, 0, set[str]()
    for metadata in commits:
        if not logs and len(told) == len(bases):
            break
        for stat in _stats_of(metadata):
            path = stat.path or ""
            if path in logs:  # in layout 1 several commits write to one log file
                told.add(path)
                if metadata.operation_type != "LOG_COMPACT":  # it repeats what the merged files say
                    count, deletes = count + stat.num_inserts, deletes + stat.num_deletes
            elif path in bases and path not in told:
                told.add(path)
                count += stat.num_writes
    if logs.keys() - told:
        return None
    rest = [bases[path] for path in bases.keys() - told]
    # Whose base file was written by an archived commit, those of its log files may be archived as well.
    if any(each.log_files for each in rest) or any(each.base_file is None for each in logs.values()):
        return None
    found = _counted(rest, statistics) if rest else 0
    return None if found is None else (count - deletes + found, count + found)


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
