"""Checks that the base files which a write merges with are those that the commits wrote."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_py.errors import CorruptMetadata
from hudi_py.fsview.checked import CheckedListing
from hudi_py.rows.written import WrittenFile
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.job import WriteJob

_WAY_OUT = (
    "This write was not committed. hudi-py check shows everything that is lost; put the file back, go back to a "
    "savepoint (hudi-py restore), or roll that commit back, then write again"
)


def check_listed(job: WriteJob, partition_path: str, names: Iterable[str]) -> None:
    """
    Raise if a partition lacks a base file of its latest slices.

    Args:
        job: The write.
        partition_path: Relative path of the partition.
        names: Names of the files in the partition.

    Raises:
        CorruptMetadata: A file is missing: rows would be merged with an older version, or not be found, and be lost.
        ConflictError: Another process changed the table meanwhile.
    """
    if not job.needed.get(partition_path, frozenset()).difference(names):
        return
    # Only now is the timeline read, in the task: a commit or clean of another process may explain the difference.
    contents = Contents(TimelineStore(job.storage, read_table_config(job.storage), job.clock))
    try:
        CheckedListing(contents, contents.store.load()).partition(partition_path)
    except CorruptMetadata as error:
        raise CorruptMetadata(f"{error}. This write was not committed") from error


def check_replaced(results: Iterable[WrittenFile], timeline: Timeline, contents: Contents) -> None:
    """
    Raise if rows were merged with a base file whose size differs from the size that its commit recorded.

    Args:
        results: Files that the tasks wrote.
        timeline: Timeline before this write; archived commits are not checked.
        contents: Contents of the timeline.

    Raises:
        CorruptMetadata: A size differs.
    """
    replaced: dict[str, dict[tuple[str, str], WrittenFile]] = {}
    for result in results:
        stat = result.stat
        if stat.prev_base_file is not None:
            replaced.setdefault(stat.prev_commit or "", {})[stat.partition_path or "", stat.file_id or ""] = result
    root = contents.store.storage.root
    for instant in timeline.writes.completed():
        time = instant.requested_time
        groups = replaced.get(time, {})
        for partition, stats in contents.commit(instant).partition_to_write_stats.items() if groups else ():
            for stat in stats:
                result_of = groups.get((partition, stat.file_id or ""))
                if result_of is None or (stat.path or "").rpartition("/")[2] != result_of.stat.prev_base_file:
                    continue
                there, recorded = result_of.prev_size_bytes, stat.file_size_in_bytes
                # A commit may have recorded no size; then nothing can be compared.
                if there is not None and recorded > 0 and there != recorded:
                    raise CorruptMetadata(
                        f"{root}/{stat.path} has {there} bytes, and the completed commit {time} wrote {recorded}: it "
                        f"is not the file of that commit. {_WAY_OUT}"
                    )
