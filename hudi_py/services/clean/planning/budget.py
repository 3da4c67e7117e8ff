"""
Cutting a plan down to a budget so that the rest is found again. Pure.

What a clean records as its earliest instant to retain is where Apache Hudi's next incremental plan begins, what its
archiver trusts to be cleaned and below which no savepoint may be made (rules A-30, C-2, D-9). So a plan over budget is
made for an earlier window: the newest one whose complete plan fits. Where even the next window is too much, only part
of that window's files go and the window stays where the last clean left it: whoever reads at that point still finds
every file, because what goes was superseded before it.

By file versions there is no window, every plan looks everywhere, and the archiver takes all replaced groups for
cleaned: those always go at once, over budget or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import attrs

from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Instant
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason, Verdict


@attrs.frozen(kw_only=True)
class Budget:
    """
    What one clean may delete; None means any number.

    Args:
        files_max: Files.
        partitions_max: Partitions with a file to delete.
        bytes_max: Bytes; a file of unknown size counts as 0.
    """

    files_max: int | None = None
    partitions_max: int | None = None
    bytes_max: int | None = None

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return (self.files_max, self.partitions_max, self.bytes_max) != (None, None, None)

    def allows(self, files: int, partitions: int, size_bytes: int) -> bool:
        """Whether so much fits."""
        return (
            (self.files_max is None or files <= self.files_max)
            and (self.partitions_max is None or partitions <= self.partitions_max)
            and (self.bytes_max is None or size_bytes <= self.bytes_max)
        )


@attrs.frozen(kw_only=True)
class Cut:
    """
    A plan's judgements, cut down.

    Args:
        window: The newest window that is finished once the plan is carried out; None when that is none of them.
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
        judgements: Judgements of every partition looked at, for the last of *windows*.
        replaced: (partition path, file id) to the time of the replacecommit.
        windows: Completed commits after the last clean's window, ascending, the last one being the full plan's; empty
            by file versions.
        with_kept: Hold on to the verdicts on kept slices too, instead of counting them: they take as much memory
            as the table has slices.
    """
    looked: list[PartitionJudgement] = []
    released: dict[int, str] = {}
    for each in judgements:
        slim = each if with_kept else _condemned(each)
        looked.append(slim)
        released.update((id(v), t) for v, t in _released(each, replaced))
    judged = tuple(looked)
    everything = [v for each in judged for v in each.verdicts if not v.keep]
    if _fits(everything, budget):
        return Cut(judgements=judged, window=windows[-1] if windows else None, is_partial=False)
    for window in reversed(windows):
        chosen = [v for v in everything if released[id(v)] < window.requested_time]
        if chosen and _fits(chosen, budget):
            return Cut(judgements=_only(judged, chosen), window=window, is_partial=True)
    candidates, before = everything, None
    for position, window in enumerate(windows):  # the first one that frees anything; the one before it is finished
        candidates = [v for v in everything if released[id(v)] < window.requested_time]
        if candidates:
            before = windows[position - 1] if position else None
            break
    chosen = _greedy(candidates, budget, by_versions=not windows)
    return Cut(judgements=_only(judged, chosen), window=before, is_partial=True)


def _condemned(judged: PartitionJudgement) -> PartitionJudgement:
    kept = Counter(v.reason for v in judged.verdicts if v.keep)
    return attrs.evolve(judged, verdicts=tuple(v for v in judged.verdicts if not v.keep), kept=kept)


def _released(judged: PartitionJudgement, replaced: Mapping[tuple[str, str], str]) -> Iterable[tuple[Verdict, str]]:
    """Each condemned slice with the time a window has to lie behind: of its successor, or of its replacement."""
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
    """As many slices as fit, in order; at least one, so that every clean gets on."""
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
        if chosen and not budget.allows(files + names, len(more), size + weight):
            continue
        chosen.append(verdict)
        files, size, partitions = files + names, size + weight, more
    return chosen


def _only(judged: Iterable[PartitionJudgement], chosen: Iterable[Verdict]) -> tuple[PartitionJudgement, ...]:
    """The judgements with everything condemned but not chosen left for later."""
    going = {id(verdict) for verdict in chosen}
    result = []
    for each in judged:
        verdicts = tuple(
            v if v.keep or id(v) in going else v._replace(keep=True, reason=Reason.OVER_BUDGET, also=(v.reason,))
            for v in each.verdicts
        )
        left = bool(each.kept) or any(v.keep for v in verdicts)
        result.append(attrs.evolve(each, verdicts=verdicts, delete_partition=each.delete_partition and not left))
    return tuple(result)


def size_of(file_slice: FileSlice) -> int:
    """Bytes of a slice's files, as far as they are known."""
    base = 0 if file_slice.base_file is None else file_slice.base_file.size_bytes or 0
    return base + sum(log.size_bytes or 0 for log in file_slice.log_files)
