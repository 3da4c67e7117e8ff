"""The average size of a stored row, computed from recent commits."""

from __future__ import annotations

from typing import Final

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline
from hudi_py.writing.assign import average_record_bytes
from hudi_py.writing.options import sizing_limits

_COMMITS_READ_MAX: Final = 5


def record_bytes_of(timeline: Timeline, contents: Contents, settings: Settings) -> int:
    """Return the average size of a row in recent commits, in bytes (E-56)."""
    # Five commits are read at most, whatever Hudi's own limit is for this version: each costs a request.
    newest = list(reversed(timeline.completed("commit", "deltacommit")))[:_COMMITS_READ_MAX]
    return average_record_bytes(
        (_written(contents.commit(instant)) for instant in newest),
        limits=sizing_limits(settings),
        threshold=settings[keys.RECORD_SIZE_THRESHOLD],
        estimate=settings[keys.RECORD_SIZE_ESTIMATE],
    )


def _written(metadata: CommitMetadata) -> tuple[int, int]:
    every = (stat for of_partition in metadata.partition_to_write_stats.values() for stat in of_partition)
    stats = [stat for stat in every if stat.log_version is None]  # rows of log files have another size
    return sum(stat.total_write_bytes for stat in stats), sum(stat.num_writes for stat in stats)
