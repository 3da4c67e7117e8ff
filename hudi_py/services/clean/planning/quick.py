"""
Judges plain partitions by file names alone: a million files in a third of the time. Pure.

Most partitions contain only committed base files and a metafile, none of them protected. Then each slice is one file,
and names are enough. Every other partition is left to `hudi_py.services.clean.retention.policy.judge_partition`, which
applies all rules and returns a verdict on each slice. Tests on generated partitions check that the two agree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import repeat
from operator import itemgetter
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.fate import Protection
from hudi_py.fsview.held import HeldFiles
from hudi_py.model.files import PARTITION_METAFILE, PARTITION_METAFILES, parse_base_file
from hudi_py.model.lease import Lease
from hudi_py.services.clean.retention.policy import Condemned, Keeps, PartitionJudgement, Reason

_UNDERSCORES: Final = 2  # in the name of a base file: after the file id, and before the instant time
_file_id, _end = itemgetter(0), itemgetter(1)
_Slice = tuple[str, str, str]  # file id; end of the name: instant time, dot, extension; name
_Judged = tuple[dict[Reason, int], list[str], list[str]]  # kept slices; names of condemned ones, and of the newest


class _Leased(dict[tuple[str, str], bool]):
    """
    Whether a lease needs the slice whose name has the first ending, which is superseded by that with the second.

    A table has millions of slices and few times, so each pair of times is asked about once. Endings are an instant
    time, a dot and an extension: no digit comes before the dot, so the time is what stands before it.
    """

    def __init__(self, leases: Sequence[Lease]) -> None:
        super().__init__()
        self._leases = leases

    def __bool__(self) -> bool:
        return bool(self._leases)

    def __missing__(self, ends: tuple[str, str]) -> bool:
        begins, superseded = (end.partition(".")[0] for end in ends)
        self[ends] = found = any(lease.needs(begins, superseded) for lease in self._leases)
        return found


@attrs.define(kw_only=True)
class QuickJudge:
    """
    Judges the plain partitions of one plan.

    Args:
        context: View context of the whole table.
        protection: Files that no policy may delete.
        earliest: Requested time at which the window begins; None if versions are counted.
        versions: Number of versions to keep of each group, if they are counted.
        leased: Which slices leases need that reach back behind the window.
    """

    context: ViewContext
    protection: Protection
    earliest: str | None
    versions: int
    leased: _Leased
    _others: frozenset[str]
    _times: dict[str, str | None] = attrs.field(factory=dict)
    _encoded_ends: tuple[int, list[bytes]] = (0, [])
    _held: HeldFiles

    @classmethod
    def of(
        cls,
        context: ViewContext,
        protection: Protection,
        config: CleanConfig,
        *,
        earliest: str | None,
        commit_count: int,
        keeps: Keeps | None,
    ) -> QuickJudge | None:
        """
        A judge for the same arguments as `judge_partition`; None if the settings need rules that it lacks.

        Args:
            context, protection, config, earliest, commit_count, keeps: As `judge_partition`.
        """
        if config.is_union or (config.has_window and (earliest is None or commit_count <= config.commits_required)):
            return None
        by_versions = config.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        others = {path for path, _ in (*context.replaced, *context.pending_compactions, *protection.pending)}
        read = (*protection.pending_files, *protection.clustered_files)
        others.update(path for path, _ in read)
        return cls(
            context=context,
            protection=protection,
            earliest=None if by_versions else earliest,
            versions=config.file_versions_retained if by_versions else 0,
            others=frozenset(others),
            held=HeldFiles(protection.savepointed_files),
            leased=_Leased(() if keeps is None else keeps.leases),
        )

    def judge(
        self, partition_path: str, names: Sequence[str], sizes: Sequence[int | None]
    ) -> PartitionJudgement | None:
        """
        The judgement of one partition, without verdicts; None if names alone do not decide.

        Args:
            partition_path: Path of the partition.
            names: Names of all files in the partition's folder.
            sizes: Sizes of the same files, None for an unknown one; empty if all are unknown.
        """
        if partition_path in self._others:
            return None
        slices = self._slices(names)
        if not slices:
            return None
        judged = self._by_versions(slices) if self.earliest is None else self._by_window(slices, self.earliest)
        if judged is None:
            return None
        kept, condemned, newest = judged
        if condemned:
            saved = self._held.among(partition_path, condemned, self._ends())
            if saved:
                condemned = [name for name in condemned if name not in saved]
                kept[Reason.SAVEPOINT] = len(saved)
        if not condemned or sizes.count(None) == len(sizes):
            known: tuple[int | None, ...] = (None,) * len(condemned)
        else:
            known = tuple(map(dict(zip(names, sizes, strict=True)).__getitem__, condemned))
        reason = Reason.OLD_VERSION if self.earliest is None else Reason.EXPIRED
        return PartitionJudgement(
            partition_path=partition_path,
            verdicts=(),
            delete_partition=False,
            kept={reason: count for reason, count in kept.items() if count},
            condemned=Condemned(tuple(condemned), known, reason),
            newest=tuple(newest),
        )

    def _slices(self, names: Sequence[str]) -> list[_Slice] | None:
        """
        The slices of a plain partition, by file id, newest first.

        None if the partition has other files than committed base files of one format and a metafile. A million names
        are parsed here, so they are handled all at once where possible, and each distinct name ending only once.
        """
        names = _without_metafile(names)
        # Any other name makes the partition a matter for all rules.
        if {*map(str.count, names, repeat("_"))} != {_UNDERSCORES}:
            return None
        parts = "_".join(names).split("_")
        file_ids, ends = parts[0::3], parts[2::3]
        times = [self._time(end) for end in {*ends}]
        # Two endings with one time are two formats, or two spellings: then order by ending is not order by time.
        if None in times or len({*times}) != len(times):
            return None
        slices = list(zip(file_ids, ends, names, strict=True))
        slices.sort(key=_end, reverse=True)  # the same order as by time: the dot sorts before all digits
        slices.sort(key=_file_id)
        return None if not slices[0][0] or _starts_with_dot(slices) else slices

    def _time(self, end: str) -> str | None:
        """The instant time at the end of the name of a committed base file; None for other names."""
        if end not in self._times:
            file = parse_base_file(f"a_0_{end}")
            allowed = self.context.extensions
            is_plain = file is not None and (not allowed or file.extension in allowed)
            is_plain = is_plain and file is not None and self.context.is_committed(file.instant_time)
            self._times[end] = file.instant_time if is_plain and file is not None else None
        return self._times[end]

    def _ends(self) -> list[bytes]:
        """What the names of condemned slices end with; further ends that a plan knows do no harm."""
        if self._encoded_ends[0] != len(self._times):  # it only grows
            known = list(self._times)
            ends = [end.encode() for end in known if self.earliest is None or end < self.earliest]
            self._encoded_ends = (len(known), ends)
        return self._encoded_ends[1]

    def _by_window(self, slices: list[_Slice], earliest: str) -> _Judged | None:
        """
        Rules A-43 to A-46.

        None if two files belong to one slice, as a task that ran twice leaves them.
        """
        condemned, newest, leases = [], [], self.leased or None
        window = before = leased = 0
        group = last = ""
        has_bridge = False
        for file_id, end, name in slices:
            if file_id != group:
                group = file_id
                newest.append(name)
                has_bridge = end < earliest
            # A task that ran twice: which of the two files counts is for `build_partition` to decide.
            elif end == last:
                return None
            elif end >= earliest:
                window += 1
            elif not has_bridge:
                has_bridge = True
                before += 1
            elif leases and leases[end, last]:
                leased += 1
            else:
                condemned.append(name)
            last = end
        kept = {
            Reason.LATEST: len(newest),
            Reason.WINDOW: window,
            Reason.BEFORE_WINDOW: before,
            Reason.LEASE: leased,
        }
        return kept, condemned, newest

    def _by_versions(self, slices: list[_Slice]) -> _Judged | None:
        """Rules A-48 and A-49. None as in `_by_window`."""
        condemned, newest, leases = [], [], self.leased or None
        position = leased = 0
        group = last = ""
        for file_id, end, name in slices:
            if file_id != group:
                group = file_id
                newest.append(name)
                position = 1
            elif end == last:
                return None
            else:
                position += 1
                if position > self.versions:
                    if leases and leases[end, last]:
                        leased += 1
                    else:
                        condemned.append(name)
            last = end
        versions = len(slices) - len(newest) - len(condemned) - leased
        kept = {
            Reason.LATEST: len(newest),
            Reason.VERSIONS: versions,
            Reason.LEASE: leased,
        }
        return kept, condemned, newest


def _without_metafile(names: Sequence[str]) -> Sequence[str]:
    """The names of data files; most partitions have one metafile with the plain name."""
    if PARTITION_METAFILE in names:
        at = names.index(PARTITION_METAFILE)
        names = [*names[:at], *names[at + 1 :]]
    metafiles = [each for each in PARTITION_METAFILES if each in names]
    return [name for name in names if name not in metafiles] if metafiles else names


def _starts_with_dot(slices: list[_Slice]) -> bool:
    """Whether a file id starts with a dot; *slices* are sorted by file id."""
    at = bisect_left(slices, ".", key=_file_id)
    return at < len(slices) and slices[at][0].startswith(".")
