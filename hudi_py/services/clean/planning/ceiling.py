"""
Shortens a window by time until the older versions that it keeps fit into a number of bytes. Pure.

Counted are the versions that windows alone keep, those that the last commit superseded too: neither the newest rows,
nor what a savepoint, a lease, a pending action, the ladder or a number of versions keeps anyway. Other windows (a
floor, the changes that are kept, a number of commits) are where the shortening ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from hudi_py.model.instant import Instant
from hudi_py.services.clean.planning.budget import size_of
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason, Verdict
from hudi_py.services.clean.retention.windows import Window
from hudi_py.timeline.timeline import Timeline

_BY_WINDOWS: Final = frozenset(
    (
        *(Reason.WINDOW, Reason.BEFORE_WINDOW, Reason.REPLACED_IN_WINDOW, Reason.NO_WINDOW),
        *(Reason.FLOOR, Reason.CHANGES, Reason.LATEST),
    )
)


class OldVersion(NamedTuple):
    """An older version that windows alone keep: when it was superseded, and its size in bytes."""

    superseded: str
    size_bytes: int


def old_versions(
    judgements: Iterable[PartitionJudgement], replaced: Mapping[tuple[str, str], str]
) -> Iterator[OldVersion]:
    """
    The older versions that only windows keep.

    Args:
        judgements: All verdicts of each partition, slices of a group newest first.
        replaced: Time of the replacecommit by partition path and file id.
    """
    for judged in judgements:
        newer: Verdict | None = None
        is_live = False
        for verdict in judged.verdicts:
            this = verdict.file_slice
            at = replaced.get((this.partition_path, this.file_id))
            if newer is None or newer.file_slice.file_id != this.file_id:
                newer, is_live = None, at is None
            superseded = at if at is not None or newer is None else newer.file_slice.base_instant_time
            newer = verdict
            if is_live:
                # Below a slice of log files alone the next one has rows of the newest snapshot, too.
                is_live = this.base_file is None
                continue
            reasons = {verdict.reason, *verdict.also}
            if verdict.keep and superseded is not None and reasons <= _BY_WINDOWS:
                yield OldVersion(superseded, size_of(this))


def shortened(
    kept: Sequence[Window], timeline: Timeline, found: Iterable[OldVersion], bytes_max: int
) -> tuple[tuple[Window, ...], str]:
    """
    The windows, the policy's own shortened as far as it has to be.

    Args:
        kept: The windows, the policy's own first.
        timeline: The active timeline.
        found: Every older version that the windows keep.
        bytes_max: The limit.

    Returns:
        The windows, and a sentence if even the shortest that is allowed keeps more; ``""`` otherwise.
    """
    versions = sorted(found, reverse=True)
    total = sum(each.size_bytes for each in versions)
    own, others = kept[0], kept[1:]
    if total <= bytes_max:
        return tuple(kept), ""
    start, left = own.earliest, total
    for candidate in _starts(timeline, own.earliest, others):
        start = candidate
        while versions and versions[-1].superseded < candidate.requested_time:
            left -= versions.pop().size_bytes
        if left <= bytes_max:
            break
    windows = (own._replace(earliest=start), *others)
    if left <= bytes_max:
        return windows, ""
    why = "other lines of the retention keep them" if others else "they are of the last commit, or a write is pending"
    return (
        windows,
        f"the window keeps {left} bytes of older versions, more than the {bytes_max} that are allowed: {why}",
    )


def _starts(timeline: Timeline, own: Instant | None, others: Sequence[Window]) -> Iterator[Instant]:
    """Commits at which the window may begin instead, ascending: none past a pending write, or where another begins."""
    if any(each.earliest is None for each in others):
        return
    commits = timeline.commits_and_compaction
    pending = commits.pending()
    ends = [each.earliest.requested_time for each in others if each.earliest is not None]
    for commit in commits.completed():
        time = commit.requested_time
        if own is not None and time <= own.requested_time:
            continue
        # Behind the begin of another window a later one frees nothing more; a pending write may read what is before it.
        if (ends and time > min(ends)) or (pending and time > pending[0].requested_time):
            return
        yield commit
