"""
Whether all files that held the rows of an earlier time are still there. Pure.

A clean by commits or by hours records from when on everything is there; one by file versions does not, for it takes
superseded files however young they are. Apache Hudi then silently reads fewer rows; here the names that
the cleans recorded are held against those that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hudi_py.fsview.build import ViewContext
from hudi_py.model.files import BaseFile, join_path, parse_base_file


def gone_at(
    context: ViewContext, time: str, found: Iterable[tuple[str, BaseFile]], deleted: Mapping[str, Iterable[str]]
) -> str | None:
    """
    Relative path of a file that held rows at *time* and is gone or about to go; None when all are there to stay.

    Args:
        context: Of the table, or of the table at *time*.
        time: Instant time.
        found: Partition path and newest base file at *time* of every file group that is left.
        deleted: Partition path to names of files that later cleans deleted, or began to.
    """
    there = {(partition, base.file_id): base.instant_time for partition, base in found}
    for partition, names in deleted.items():
        for name in names:
            base = parse_base_file(name)
            if base is None or base.instant_time > time or not context.is_committed(base.instant_time):
                continue
            key = (partition, base.file_id)
            replaced_at = context.replaced.get(key)
            if (replaced_at is None or replaced_at > time) and there.get(key, "") <= base.instant_time:
                return join_path(partition, name)
    return None
