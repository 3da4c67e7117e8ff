"""
Reduces a plan to a budget in such a way that later plans find the rest. Pure.

A clean records the earliest instant to retain. Apache Hudi's next incremental plan begins there, its archiver trusts
that everything before is cleaned, and no savepoint may be created before it (rules A-30, C-2, D-9). So a plan over
budget is made for an earlier window: the newest one whose complete plan fits. If even the smallest step is too much,
only a part of that window's files is deleted, and the recorded window stays that of the last clean: a reader at that
time still finds all its files, because the deleted ones were superseded before it.

With file versions there is no window, every plan examines all partitions, and the archiver takes all replaced groups
for cleaned. So replaced groups are always deleted at once, even over budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from hudi_py.errors import RefusedError
from hudi_py.model.files import FileSlice, join_path
from hudi_py.model.instant import Instant
from hudi_py.model.removal_list import unlisted
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason, Verdict


@attrs.frozen(kw_only=True)
class Budget:
    """
    The limits of one clean; None means no limit.

    Args:
        files_max: Number of files to delete.
        partitions_max: Number of partitions with a file to delete.
        bytes_max: Number of bytes to delete; a file of unknown size counts as 0.
    """

    files_max: int | None = None
    partitions_max: int | None = None
    bytes_max: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether any limit is set."""
        return (self.files_max, self.partitions_max, self.bytes_max) != (None, None, None)

    def allows(self, files: int, partitions: int, size_bytes: int) -> bool:
        """Whether these numbers are within the limits."""
        return (
            (self.files_max is None or files <= self.files_max)
            and (self.partitions_max is None or partitions <= self.partitions_max)
            and (self.bytes_max is None or size_bytes <= self.bytes_max)
        )


@attrs.frozen(kw_only=True)
class Cut:
    """
    The judgements of a plan, reduced to a budget.

    Args:
        judgements: The judgements of all examined partitions; slices over budget are kept.
        window: The newest window that is complete once the plan is carried out; None if none is.
        is_partial: Whether anything was left out.
    """

    judgements: tuple[PartitionJudgement, ...]
    window: Instant | None
    is_partial: bool


def cut_to_budget(
    judgements: Iterable[PartitionJudgement],
    budget: Budget,
    *,
    replaced: Mapping[tuple[str, str], str],
    windows: Sequence[Instant],
    with_kept: bool = True,
) -> Cut:
    """
    Args:
        judgements: Judgements of every examined partition, for the last of *windows*.
        budget: The limits of the clean.
        replaced: Time of the replacecommit by partition path and file id.
        windows: Completed commits after the last clean's window, ascending; the last one is the window of the full
            plan. Empty with file versions.
        with_kept: Also return the verdicts on kept slices, instead of counts: that takes memory for every slice of the
            table.
    """
    looked: list[PartitionJudgement] = []
    released: dict[int, str] = {}
    for judgement in judgements:
        slim = judgement if with_kept else _condemned(judgement)
        looked.append(slim)
        # By identity: verdicts are tuples, and comparing two compares whole slices.
        released.update((id(v), t) for v, t in _released(judgement, replaced))
    judged = tuple(looked)
    everything = [v for each in judged for v in each.verdicts if not v.keep]
    # The usual case: then the plan is the same as without a budget.
    if _fits(everything, budget):
        return Cut(judgements=judged, window=windows[-1] if windows else None, is_partial=False)
    # The newest window that fits as a whole: later plans do not look for garbage before the recorded window.
    for window in reversed(windows):
        chosen = [v for v in everything if released[id(v)] < window.requested_time]
        if chosen and _fits(chosen, budget):
            return Cut(judgements=_only(judged, chosen), window=window, is_partial=True)
    candidates, before = everything, None
    # Not even the first window with garbage fits: delete a part of its files, and record the window before as done.
    for position, window in enumerate(windows):
        candidates = [v for v in everything if released[id(v)] < window.requested_time]
        if candidates:
            before = windows[position - 1] if position else None
            break
    chosen = _greedy(candidates, budget, by_versions=not windows)
    return Cut(judgements=_only(judged, chosen), window=before, is_partial=True)


def cut_to_approved(
    judgements: Iterable[PartitionJudgement],
    approved: Mapping[str, int],
    *,
    replaced: Mapping[tuple[str, str], str],
    windows: Sequence[Instant],
) -> Cut:
    """
    Reduce a plan to files that somebody approved: slices of which every file is named, with its size.

    Files of any age may go, so the plan has to record two times: the newest window before which nothing is left, for
    archival and later plans, and the window of the whole plan, from which on every snapshot is whole.

    Args:
        judgements, replaced, windows: As `cut_to_budget`.
        approved: Path of each file to its size in bytes.

    Raises:
        RefusedError: A group that was replaced would be left by a clean by file versions: archival trusts that such a
            clean deletes all of them.
    """
    judged = tuple(judgements)
    released = {id(v): time for each in judged for v, time in _released(each, replaced)}
    everything = [v for each in judged for v in each.verdicts if not v.keep]
    chosen = [v for v in everything if unlisted(approved, _files_of(v.file_slice)) is None]
    going = {id(v) for v in chosen}
    left = [v for v in everything if id(v) not in going]
    if not left:
        return Cut(judgements=judged, window=windows[-1] if windows else None, is_partial=False)
    for verdict in left if chosen and not windows else ():
        if verdict.reason is Reason.REPLACED:
            raise RefusedError(
                f"{verdict.file_slice} was replaced and is not among the approved files: a clean by file versions "
                "deletes all replaced groups at once; approve them too, or clean by commits. Nothing was removed"
            )
    first = min(released[id(v)] for v in left)
    whole = [window for window in windows if window.requested_time <= first]
    judged = _only(judged, chosen, Reason.NOT_APPROVED)
    return Cut(judgements=judged, window=whole[-1] if whole else None, is_partial=True)


def _files_of(file_slice: FileSlice) -> Iterable[tuple[str, int | None]]:
    return ((join_path(file_slice.partition_path, file.name), file.size_bytes) for file in file_slice.files)


def _condemned(judged: PartitionJudgement) -> PartitionJudgement:
    kept = Counter(v.reason for v in judged.verdicts if v.keep)
    return attrs.evolve(judged, verdicts=tuple(v for v in judged.verdicts if not v.keep), kept=kept)


def _released(judged: PartitionJudgement, replaced: Mapping[tuple[str, str], str]) -> Iterable[tuple[Verdict, str]]:
    """Each condemned slice with the time since which no query needs it: that of its successor or replacement."""
    newer: FileSlice | None = None
    for verdict in judged.verdicts:
        this = verdict.file_slice
        if newer is not None and newer.file_id != this.file_id:
            newer = None
        if not verdict.keep:
            time = replaced.get((this.partition_path, this.file_id))
            if time is None and newer is not None:
                time = newer.base_instant_time
            yield verdict, time if time is not None else ""
        newer = this


def _fits(verdicts: Iterable[Verdict], budget: Budget) -> bool:
    files, size, partitions = 0, 0, set()
    for verdict in verdicts:
        files += verdict.file_slice.file_count
        size += size_of(verdict.file_slice)
        partitions.add(verdict.file_slice.partition_path)
    return budget.allows(files, len(partitions), size)


def _greedy(verdicts: Sequence[Verdict], budget: Budget, *, by_versions: bool) -> list[Verdict]:
    """As many slices as fit, in order; at least one, so that every clean makes progress."""
    must = [v for v in verdicts if by_versions and v.reason is Reason.REPLACED]
    # Replaced groups go over budget, too: archival trusts that a clean by versions has dealt with them (rule D-9).
    chosen = list(must)
    files = sum(v.file_slice.file_count for v in chosen)
    size = sum(size_of(v.file_slice) for v in chosen)
    partitions = {v.file_slice.partition_path for v in chosen}
    for verdict in verdicts:
        if by_versions and verdict.reason is Reason.REPLACED:
            continue
        more = partitions | {verdict.file_slice.partition_path}
        names, weight = verdict.file_slice.file_count, size_of(verdict.file_slice)
        # Smaller slices further on may still fit.
        if chosen and not budget.allows(files + names, len(more), size + weight):
            continue
        chosen.append(verdict)
        files, size, partitions = files + names, size + weight, more
    return chosen


def _only(
    judged: Iterable[PartitionJudgement], chosen: Iterable[Verdict], why: Reason = Reason.OVER_BUDGET
) -> tuple[PartitionJudgement, ...]:
    """The judgements, in which condemned slices that were not chosen are kept for later."""
    going = {id(verdict) for verdict in chosen}
    result = []
    for each in judged:
        verdicts = tuple(
            v if v.keep or id(v) in going else v._replace(keep=True, reason=why, also=(v.reason,))
            for v in each.verdicts
        )
        # A folder is deleted only with all its files, so not while some are left for the next clean.
        left = bool(each.kept) or any(v.keep for v in verdicts)
        result.append(attrs.evolve(each, verdicts=verdicts, delete_partition=each.delete_partition and not left))
    return tuple(result)


def size_of(file_slice: FileSlice) -> int:
    """Bytes of a slice's files; unknown sizes count as 0."""
    base = 0 if file_slice.base_file is None else file_slice.base_file.size_bytes or 0
    return base + sum(log.size_bytes or 0 for log in file_slice.log_files)
