"""Decides what keeps each file of a table, and sums up sizes. Pure."""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from hudi_py.services.clean.retention.policy import Reason, Verdict

_Key = TypeVar("_Key", bound=Hashable)


class Holder(enum.Enum):
    """What keeps a file; the values are the words of ``hudi-py du``."""

    LIVE = "live"
    RETAINED = "retained"
    SAVEPOINT = "savepoint"
    LEASE = "lease"
    PENDING = "pending"
    REMOVABLE = "removable"
    UNEXAMINED = "unexamined"
    UNCOMMITTED = "uncommitted"
    ORPHAN = "orphan"
    FOREIGN = "foreign"
    METAFILE = "metafile"
    TIMELINE = "timeline"
    ARCHIVE = "archive"
    METADATA_TABLE = "metadata_table"
    INTERNAL = "internal"

    # Members are keys for every file, and the hash of an enumeration is computed in Python.
    __hash__ = object.__hash__

    @property
    def meaning(self) -> str:
        """What files with this holder are, in words."""
        return _MEANINGS[self]


_MEANINGS = {
    Holder.LIVE: "the newest rows",
    Holder.RETAINED: "older versions that the retention policy keeps",
    Holder.SAVEPOINT: "older versions that only savepoints keep",
    Holder.LEASE: "older versions that only leases of readers keep",
    Holder.PENDING: "older versions that a pending compaction or clustering needs",
    Holder.REMOVABLE: "the next clean that is due deletes them",
    Holder.UNEXAMINED: "not kept by anything, but the next clean does not look at their partition",
    Holder.UNCOMMITTED: "written by instants that are not completed",
    Holder.ORPHAN: "left by writes that were undone, or by tasks that were retried",
    Holder.FOREIGN: "files that do not belong to a Hudi table",
    Holder.METAFILE: "files that mark folders as partitions",
    Holder.TIMELINE: "the active timeline",
    Holder.ARCHIVE: "the archived timeline",
    Holder.METADATA_TABLE: "the metadata table",
    Holder.INTERNAL: "properties, markers, heartbeats, locks and notes",
}
WASTED: Final = (Holder.REMOVABLE, Holder.UNEXAMINED, Holder.ORPHAN)
"""Holders of files that nothing needs. Retained ones are not among them: those are what the settings ask for."""
# Both end by themselves, so what they hold is neither waste nor retention.
_PENDING = frozenset({Reason.PENDING_COMPACTION, Reason.PENDING_CLUSTERING})


@attrs.frozen(slots=True)
class FileUse:
    """
    One file and what keeps it.

    Args:
        path: Relative to the table.
        partition_path: Relative path of its partition; None outside of partitions.
        size_bytes: Size in bytes; 0 if unknown.
        holder: What keeps it.
        rule: The rule that decides, as ``hudi-py explain`` names it.
        commit: Requested time of the instant that wrote it; None if that is unknown or there is none.
        is_base_file: Whether it is a base file.
    """

    path: str
    partition_path: str | None
    size_bytes: int
    holder: Holder
    rule: str
    commit: str | None = None
    is_base_file: bool = False


@attrs.frozen
class Share:
    """Number of files and their bytes."""

    files: int = 0
    bytes: int = 0


@attrs.frozen(kw_only=True)
class Usage:
    """
    Where the bytes of a table are; every sum equals `total`.

    Args:
        total: All files in the table's folder, except hidden temporary files and checksum files.
        by_reason: Holder and rule to share.
        by_partition: Partition path to holder to share; None stands for everything outside of partitions.
        by_commit: Requested time of the instant that wrote the files to holder to share; None if it is unknown.
        small: Partition path to the newest base files below the limit for small files.
    """

    total: Share
    by_reason: Mapping[tuple[Holder, str], Share]
    by_partition: Mapping[str | None, Mapping[Holder, Share]]
    by_commit: Mapping[str | None, Mapping[Holder, Share]]
    small: Mapping[str, Share]

    def of(self, *holders: Holder) -> Share:
        """Sum of the files that these keep."""
        return total_of(share for (holder, _), share in self.by_reason.items() if holder in holders)


def total_of(shares: Iterable[Share]) -> Share:
    """The sum of shares."""
    found = list(shares)
    return Share(sum(each.files for each in found), sum(each.bytes for each in found))


def sum_up(uses: Iterable[FileUse], small_bytes: int) -> Usage:
    """
    Sum up files.

    Args:
        uses: Every file once.
        small_bytes: Base files below this size count as small.
    """
    by_reason: dict[tuple[Holder, str], list[int]] = {}
    by_partition: dict[tuple[str | None, Holder], list[int]] = {}
    by_commit: dict[tuple[str | None, Holder], list[int]] = {}
    small: dict[str, list[int]] = {}
    for use in uses:
        size = use.size_bytes
        _add(by_reason, (use.holder, use.rule), size)
        _add(by_partition, (use.partition_path, use.holder), size)
        _add(by_commit, (use.commit, use.holder), size)
        if use.is_base_file and use.holder is Holder.LIVE and size < small_bytes and use.partition_path is not None:
            _add(small, use.partition_path, size)
    # In the order in which they are declared: rows first, then what could be saved, then what is not rows.
    order = list(Holder)
    reasons = sorted(by_reason, key=lambda key: (order.index(key[0]), key[1]))
    return Usage(
        total=total_of(Share(*sums) for sums in by_reason.values()),
        by_reason={key: Share(*by_reason[key]) for key in reasons},
        by_partition=_nested(by_partition),
        by_commit=_nested(by_commit),
        small={path: Share(*small[path]) for path in sorted(small)},
    )


def _add(sums: dict[_Key, list[int]], key: _Key, size: int) -> None:
    # Changed in place: a table may have a million files.
    found = sums.get(key)
    if found is None:
        sums[key] = [1, size]
    else:
        found[0] += 1
        found[1] += size


def _nested(sums: Mapping[tuple[str | None, Holder], list[int]]) -> Mapping[str | None, Mapping[Holder, Share]]:
    order = list(Holder)
    found: dict[str | None, dict[Holder, Share]] = {}
    for key in sorted(sums, key=lambda key: (key[0] is None, key[0] or "", order.index(key[1]))):
        found.setdefault(key[0], {})[key[1]] = Share(*sums[key])
    return found


def holders_of(verdicts: Sequence[Verdict], is_replaced: Callable[[str], bool], *, is_examined: bool) -> list[Holder]:
    """
    What keeps the slices of one partition, in the order of *verdicts*.

    Live is what readers of the latest snapshot open: of a group that is not replaced the newest slice, and the one
    below it while the newest has no base file.

    Args:
        verdicts: Slices of each group together, newest first.
        is_replaced: Whether a file group was replaced.
        is_examined: Whether the next clean looks at the partition.
    """
    found = []
    group, is_live = None, False
    for verdict in verdicts:
        file_slice = verdict.file_slice
        if file_slice.file_id != group:
            group = file_slice.file_id
            is_live = not is_replaced(group)
        # A slice of log files alone is live together with the one below it: readers merge both.
        if is_live:
            found.append(Holder.LIVE)
            is_live = file_slice.base_file is None
        else:
            found.append(_holder(verdict, is_examined=is_examined))
    return found


def _holder(verdict: Verdict, *, is_examined: bool) -> Holder:
    if not verdict.keep:
        return Holder.REMOVABLE if is_examined else Holder.UNEXAMINED
    if verdict.reason is Reason.SAVEPOINT:
        return Holder.SAVEPOINT
    if verdict.reason is Reason.LEASE:
        return Holder.LEASE
    return Holder.PENDING if verdict.reason in _PENDING else Holder.RETAINED
