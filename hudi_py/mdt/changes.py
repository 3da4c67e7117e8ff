"""
Computes which records the metadata table needs for an action of the data table. Pure.

Source: rules/data-files 11; Hudi 1.1.1 ``HoodieTableMetadataUtil.convertMetadataToRecords``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hudi_py.errors import CorruptMetadata
from hudi_py.mdt.records import ALL_PARTITIONS, FileInfo, Files, key_of
from hudi_py.model.records import CleanMetadata, CommitMetadata, RollbackMetadata


@attrs.frozen(kw_only=True)
class ListingChanges:
    """
    Files that an action added and deleted, by partition path.

    Args:
        added: Partition path to file name to exact size in bytes: Hudi reads a file up to the recorded length.
        deleted: Partition path to file names.
        written_partitions: Partitions to list, empty ones included.
        deleted_partitions: Partitions to list no longer.
        is_return: Whether what is added was listed before, and then deleted.
    """

    added: Mapping[str, Mapping[str, int]] = attrs.field(factory=dict)
    deleted: Mapping[str, Iterable[str]] = attrs.field(factory=dict)
    written_partitions: tuple[str, ...] = ()
    deleted_partitions: tuple[str, ...] = ()
    is_return: bool = False


def changes_of_commit(metadata: CommitMetadata) -> ListingChanges:
    """
    Of a commit, deltacommit, replacecommit or compaction.

    Raises:
        CorruptMetadata: A file that was written has no size; Hudi could not read it.
    """
    added: dict[str, dict[str, int]] = {}
    for partition_path, stats in metadata.partition_to_write_stats.items():
        files = added.setdefault(partition_path, {})
        for stat in stats:
            # Change logs are files of the table like any other: one that is not listed is never cleaned.
            sizes = [(stat.path, stat.file_size_in_bytes), *(stat.cdc_stats or {}).items()]
            for path, size in sizes:
                if path is None:
                    continue
                if size <= 0:
                    raise CorruptMetadata(f"{path}: the commit records no size for this file, which Hudi needs")
                name = path.rpartition("/")[2]
                files[name] = max(size, files.get(name, 0))
    return ListingChanges(added=added, written_partitions=tuple(added))


def changes_of_clean(metadata: CleanMetadata) -> ListingChanges:
    """Changes of a clean: every file that it tried to delete, missing ones too, and the partitions that it removed."""
    deleted = {path: done.delete_path_patterns for path, done in metadata.partitions.items()}
    gone = tuple(path for path, done in metadata.partitions.items() if done.is_partition_deleted)
    return ListingChanges(deleted=deleted, deleted_partitions=gone)


def changes_of_rollback(metadata: RollbackMetadata) -> ListingChanges:
    """Changes of a rollback: the files it deleted, and in layout 1 the log files it wrote rollback blocks into."""
    deleted: dict[str, list[str]] = {}
    added: dict[str, dict[str, int]] = {}
    for path, done in metadata.partitions.items():
        names = (*done.success_delete_files, *done.failed_delete_files)
        deleted.setdefault(path, []).extend(name.rpartition("/")[2] for name in names)
        if not done.rollback_log_files:
            continue
        # The log files of the failed commit stay, for they may hold older blocks, too; only the rollback block undoes
        # it.
        for log, size in (*done.rollback_log_files.items(), *done.log_files_from_failed_commit.items()):
            files = added.setdefault(path, {})
            name = log.rpartition("/")[2]
            files[name] = max(size, files.get(name, 0))
    return ListingChanges(added=added, deleted=deleted)


def records_of(changes: ListingChanges) -> dict[str, Files]:
    """
    Key to files of each record that *changes* need, in the order of their keys.

    Raises:
        CorruptMetadata: An added file has no size, or a file is added and deleted at once.
    """
    records: dict[str, Files] = {}
    for partition_path, names in changes.deleted.items():
        gone = {name: FileInfo(0, True) for name in sorted(names)}
        if gone:
            records[key_of(partition_path)] = gone
    for partition_path, sizes in changes.added.items():
        files = records.setdefault(key_of(partition_path), {})
        for name in sorted(sizes):
            # One record cannot say both, and whichever came last would win without anybody having decided it.
            if name in files or sizes[name] <= 0:
                raise CorruptMetadata(f"{partition_path}/{name}: cannot be added with {sizes[name]} bytes")
            files[name] = FileInfo(sizes[name], False)
    listed = {key_of(path): FileInfo(0, False) for path in sorted(changes.written_partitions)}
    listed |= {key_of(path): FileInfo(0, True) for path in sorted(changes.deleted_partitions)}
    if listed:
        records[ALL_PARTITIONS] = listed
    return {key: records[key] for key in sorted(records, key=str.encode) if records[key]}
