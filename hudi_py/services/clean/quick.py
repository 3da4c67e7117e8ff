"""
Judging a partition by its names alone, where that comes to the same: a million files in a third of the time. Pure.

Most partitions hold nothing but committed base files and a metafile, and nothing protects any of them. Then a slice is
a file, and a list of names is all there is to make; every other partition is left to
`hudi_py.services.clean.policy.judge_partition`, which knows all rules and gives a verdict on each slice. That the two
agree is a law of the tests, on generated partitions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.fate import Protection
from hudi_py.model.files import BASE_FILE_PATTERN, PARTITION_METAFILES
from hudi_py.services.clean.policy import Condemned, Keeps, PartitionJudgement, Reason

# All names at once, each between slashes, which no name holds: one search instead of one call per name.
_find_base_files: Final = re.compile(rf"/({BASE_FILE_PATTERN.format(none='/')})(?=/)").findall
_time_of, _file_id_of, _extension_of = itemgetter(3), itemgetter(1), itemgetter(4)
_Found = tuple[str, str, str, str, str]  # name, file id, write token, instant time, extension


@attrs.define(kw_only=True)
class QuickJudge:
    """
    Judges the plain partitions of one plan.

    Args:
        context: Of the whole table.
        protection: What no policy may delete.
        earliest: Where the window begins; None where versions are counted.
        versions: To keep of each group, where they are counted.
    """

    context: ViewContext
    protection: Protection
    earliest: str | None
    versions: int
    _others: frozenset[str]
    _committed: set[str] = attrs.field(factory=set)

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
        One for a plan as `judge_partition` takes it; None where the settings ask for more than it knows.

        Args:
            context, protection, config, earliest, commit_count, keeps: As `judge_partition`.
        """
        if keeps is not None or (config.has_window and (earliest is None or commit_count <= config.commits_required)):
            return None
        by_versions = config.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
        others = {path for path, _ in (*context.replaced, *context.pending_compactions, *protection.pending)}
        read = (*protection.pending_files, *protection.clustered_files)
        others.update(protection.savepointed_files, (path for path, _ in read))
        return cls(
            context=context,
            protection=protection,
            earliest=None if by_versions else earliest,
            versions=config.file_versions_retained if by_versions else 0,
            others=frozenset(others),
        )

    def judge(
        self, partition_path: str, names: Sequence[str], sizes: Sequence[int | None]
    ) -> PartitionJudgement | None:
        """
        The judgement of one partition, without verdicts; None where it takes more than names.

        Args:
            names: Of all files in the partition's folder.
            sizes: Of the same files; None where one is unknown.
        """
        if partition_path in self._others:
            return None
        found: list[_Found] = _find_base_files(f"/{'/'.join(names)}/")
        if not found or len(found) + len(PARTITION_METAFILES.intersection(names)) != len(names):
            return None
        if self.context.extensions and not self.context.extensions.issuperset(map(_extension_of, found)):
            return None
        if not self._are_committed({*map(_time_of, found)}):
            return None
        found.sort(key=_time_of, reverse=True)
        found.sort(key=_file_id_of)
        judged = self._by_versions(found) if self.earliest is None else self._by_window(found, self.earliest)
        if judged is None:
            return None
        kept, condemned = judged
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
        )

    def _are_committed(self, times: set[str]) -> bool:
        if times <= self._committed:
            return True
        if not all(map(self.context.is_committed, times)):
            return False
        self._committed |= times
        return True

    def _by_window(self, found: list[_Found], earliest: str) -> tuple[dict[Reason, int], list[str]] | None:
        """Rules A-43 to A-46. None where two files are of one slice, as a task that ran twice leaves them."""
        condemned = []
        groups = window = before = 0
        group = last = ""
        has_bridge = False
        for name, file_id, _, time, _ in found:
            if file_id != group:
                group = file_id
                groups += 1
                has_bridge = time < earliest
            elif time == last:
                return None
            elif time >= earliest:
                window += 1
            elif has_bridge:
                condemned.append(name)
            else:
                has_bridge = True
                before += 1
            last = time
        return {Reason.LATEST: groups, Reason.WINDOW: window, Reason.BEFORE_WINDOW: before}, condemned

    def _by_versions(self, found: list[_Found]) -> tuple[dict[Reason, int], list[str]] | None:
        """Rules A-48 and A-49. None as `_by_window`."""
        condemned = []
        groups = position = 0
        group = last = ""
        for name, file_id, _, time, _ in found:
            if file_id != group:
                group = file_id
                groups += 1
                position = 1
            elif time == last:
                return None
            else:
                position += 1
                if position > self.versions:
                    condemned.append(name)
            last = time
        return {Reason.LATEST: groups, Reason.VERSIONS: len(found) - groups - len(condemned)}, condemned
