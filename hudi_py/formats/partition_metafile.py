"""
Content of ``.hoodie_partition_metadata``. Readers ignore a partition without this file.

Source: Hudi 0.15.0, 1.0.2, 1.1.1, ``HoodiePartitionMetadata``.
"""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Final

# Java's Date.toString is always English; strftime depends on the locale.
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def partition_depth(partition_path: str) -> int:
    """Return the number of folders in a partition path; 0 in a table without partitions."""
    return partition_path.count("/") + 1 if partition_path else 0


def format_partition_metadata(partition_path: str, *, instant_time: str, written_at: datetime) -> bytes:
    """
    Format the file's content.

    Args:
        partition_path: Relative, ``""`` when the table has no partitions.
        instant_time: Requested time of the commit that creates the partition.
        written_at: Timezone-aware; written into the comment, in UTC.

    Raises:
        ValueError: *written_at* is naive.
    """
    if written_at.tzinfo is None:
        raise ValueError("written_at must be aware")
    at = written_at.astimezone(timezone.utc)
    date = f"{_DAYS[at.weekday()]} {_MONTHS[at.month - 1]} {at:%d %H:%M:%S} UTC {at.year:04d}"
    lines = (
        "#partition metadata",
        f"#{date}",
        f"commitTime={instant_time}",
        f"partitionDepth={partition_depth(partition_path)}",
        "",
    )
    return "\n".join(lines).encode("ascii")
