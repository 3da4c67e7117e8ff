"""
Which slices a clean removes, and why each of the others stays. Pure.

Source: format/table-services A.3 and A.5; Hudi ``CleanPlanner``, ``CleanerUtils``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import NamedTuple

import attrs

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.fsview.build import PartitionView, PendingOperation, ViewContext
from hudi_py.model.files import PARTITION_METAFILE, FileGroup, FileSlice
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import time_before
from hudi_py.timeline.timeline import Timeline


class Reason(enum.Enum):
    """Why a slice is kept or deleted; values are what people read."""

    LATEST = "newest slice of its file group"
    WINDOW = "written inside the retention window"
    BEFORE_WINDOW = "newest slice before the retention window: a query that began there still reads it"
    VERSIONS = "one of the newest versions"
    SAVEPOINT = "held by a savepoint"
    PENDING_COMPACTION = "needed by a pending compaction"
    NOT_EXAMINED = "its partition did not change since the last clean"
    NO_WINDOW = "not enough history for the policy to remove anything"
    UNCOMMITTED = "written by an instant that is not completed: rollback's business"
    REPLACED_IN_WINDOW = "replaced, but by an instant inside the retention window"
    OVER_BUDGET = "removable, but over this run's budget: the next clean plans it"
    EXPIRED = "older than the retention window"
    OLD_VERSION = "older than the versions to keep"
    REPLACED = "its file group was replaced"

    __hash__ = object.__hash__


class Verdict(NamedTuple):
    """What happens to one slice, the rule that decides, and every other rule that protects it."""

    file_slice: FileSlice
    keep: bool
    reason: Reason
    also: tuple[Reason, ...] = ()


@attrs.frozen(kw_only=True)
class Protection:
    """
    What no policy may delete.

    Args:
        savepointed_files: Partition path to names of files held by savepoints (rule A-39).
        pending: Pending compactions by file group (rule A-40).
        pending_files: Relative paths that a pending compaction plan reads (K-15: never planned, even on a mismatch).
    """

    savepointed_files: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    pending: Mapping[tuple[str, str], PendingOperation] = attrs.field(factory=dict)
    pending_files: frozenset[tuple[str, str]] = frozenset()

    def concerns(self, partition_path: str) -> bool:
        """Whether anything in the partition is protected at all; most partitions have nothing to ask about."""
        return bool(self.pending) or partition_path in self.savepointed_files

    def is_savepointed(self, file_slice: FileSlice) -> bool:
        """Rule A-39: one savepointed file protects its whole slice."""
        names = self.savepointed_files.get(file_slice.partition_path)
        return names is not None and not names.isdisjoint(file_slice.file_names)

    def is_pending(self, file_slice: FileSlice) -> bool:
        """Rule A-40, and K-15."""
        operation = self.pending.get((file_slice.partition_path, file_slice.file_id))
        if operation is not None and file_slice.base_instant_time >= operation.base_instant_time:
            return True
        return bool(self.pending_files) and any(
            (file_slice.partition_path, name) in self.pending_files for name in file_slice.file_names
        )


def earliest_to_retain(timeline: Timeline, config: CleanConfig, *, now: datetime, zone: tzinfo) -> Instant | None:
    """
    The earliest instant whose files must all be kept, or None when the policy has none (rules A-16 to A-22).

    Args:
        timeline: The active timeline.
        now: Aware; matters to KEEP_LATEST_BY_HOURS only.
        zone: Of the table's instant times. Hudi takes the process's zone whatever the table says (A-20, K-8).
    """
    commits = timeline.commits_and_compaction
    completed = commits.completed()
    if config.policy is CleanPolicy.KEEP_LATEST_COMMITS:
        if len(completed) <= config.commits_retained:
            return None
        candidate = completed[-config.commits_retained]
        pending = commits.pending()
        if not pending or candidate.requested_time <= pending[0].requested_time:
            return candidate
        before = [i for i in completed if i.requested_time < pending[0].requested_time]
        return before[-1] if before else None
    if config.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        limit = time_before(now, hours_retained(config.hours_retained), zone)
        return next((i for i in completed if i.requested_time >= limit), None)
    return None


def hours_retained(count: int) -> timedelta:
    """So many hours; as many as there are when that is more."""
    try:
        return timedelta(hours=count)
    except OverflowError:  # more than there are: keep everything
        return timedelta.max


@attrs.frozen(kw_only=True)
class PartitionJudgement:
    """
    All verdicts of one partition.

    Args:
        verdicts: One per committed slice, live and replaced.
        delete_partition: Whether nothing else is left there, so that the folder may go too (rules A-50, A-51).
        kept: Kept slices by reason that are left out of the verdicts.
    """

    partition_path: str
    verdicts: tuple[Verdict, ...]
    delete_partition: bool
    kept: Mapping[Reason, int] = attrs.field(factory=dict)


def judge_partition(
    context: ViewContext,
    partition: PartitionView,
    config: CleanConfig,
    protection: Protection,
    *,
    earliest: str | None,
    commit_count: int,
) -> PartitionJudgement:
    """
    Judge every committed slice of one partition.

    Args:
        earliest: Requested time of the earliest instant to retain, if the policy has one.
        commit_count: Completed instants of ``TL.table`` (rule A-41).
    """
    by_versions = config.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    required = config.commits_retained if config.policy is CleanPolicy.KEEP_LATEST_COMMITS else 0
    active = by_versions or (earliest is not None and commit_count > required)
    verdicts: list[Verdict] = []
    for group in partition.groups:
        if not active:
            verdicts += [
                Verdict(s, True, Reason.LATEST if s is group.slices[0] else Reason.NO_WINDOW) for s in group.slices
            ]
        elif by_versions:
            verdicts += _judge_versions(group, config.file_versions_retained, protection)
        else:
            assert earliest is not None
            verdicts += _judge_window(group, earliest, protection)
    replaced_later = False
    for group in partition.replaced_groups:
        replaced_at = context.replaced[partition.partition_path, group.file_id]
        expired = active and (by_versions or (earliest is not None and replaced_at < earliest))
        replaced_later = replaced_later or not expired
        for file_slice in group.slices:
            verdicts.append(_judge_replaced(file_slice, expired, protection))
    delete_partition = active and not partition.groups and (by_versions or not replaced_later)
    # Hudi executes the deletion of a partition recursively, savepointed and unknown files included: never ask for that
    spared = any(verdict.keep for verdict in verdicts) or bool(partition.uncommitted) or _has_unknown_files(partition)
    return PartitionJudgement(
        partition_path=partition.partition_path,
        verdicts=tuple(verdicts),
        delete_partition=delete_partition and not spared,
    )


def _has_unknown_files(partition: PartitionView) -> bool:
    return any(not name.startswith(PARTITION_METAFILE) for name in partition.other_names)


def _judge_window(group: FileGroup, earliest: str, protection: Protection) -> list[Verdict]:
    """KEEP_LATEST_COMMITS and KEEP_LATEST_BY_HOURS (rules A-43 to A-46)."""
    newest = group.slices[0] if group.slices else None
    bridge = next((s for s in group.slices if s.base_instant_time < earliest), None)
    protected = protection.concerns(group.partition_path)
    verdicts = []
    for file_slice in group.slices:
        keeps: tuple[Reason, ...] = ()
        if file_slice.base_instant_time >= earliest:
            keeps = _LATEST_IN_WINDOW if file_slice is newest else _IN_WINDOW
        elif file_slice is bridge:
            keeps = _LATEST_BEFORE_WINDOW if file_slice is newest else _BEFORE_WINDOW
        if protected:
            keeps += _protections(file_slice, protection)
        if keeps:
            verdicts.append(Verdict(file_slice, True, keeps[0], keeps[1:]))
        else:
            verdicts.append(Verdict(file_slice, False, Reason.EXPIRED))
    return verdicts


_IN_WINDOW = (Reason.WINDOW,)
_LATEST_IN_WINDOW = (Reason.LATEST, Reason.WINDOW)
_BEFORE_WINDOW = (Reason.BEFORE_WINDOW,)
_LATEST_BEFORE_WINDOW = (Reason.LATEST, Reason.BEFORE_WINDOW)


def _judge_versions(group: FileGroup, versions: int, protection: Protection) -> list[Verdict]:
    """KEEP_LATEST_FILE_VERSIONS (rules A-48, A-49)."""
    in_compaction = (group.partition_path, group.file_id) in protection.pending
    remaining = versions - in_compaction
    verdicts = []
    for position, file_slice in enumerate(group.slices):
        keeps: tuple[Reason, ...] = ()
        if position == 0 and not in_compaction:
            keeps += (Reason.LATEST,)
        if not protection.is_pending(file_slice):
            if remaining > 0:
                keeps += (Reason.VERSIONS,)
            remaining -= 1
        keeps += _protections(file_slice, protection)
        if keeps:
            verdicts.append(Verdict(file_slice, True, keeps[0], keeps[1:]))
        else:
            verdicts.append(Verdict(file_slice, False, Reason.OLD_VERSION))
    return verdicts


def _judge_replaced(file_slice: FileSlice, expired: bool, protection: Protection) -> Verdict:
    """A replaced group goes as a whole, its newest slice too (rules A-42, A-47); compaction does not hold it."""
    keeps = [] if expired else [Reason.REPLACED_IN_WINDOW]
    if protection.is_savepointed(file_slice):
        keeps.insert(0, Reason.SAVEPOINT)
    if keeps:
        return Verdict(file_slice, True, keeps[0], tuple(keeps[1:]))
    return Verdict(file_slice, False, Reason.REPLACED)


def _protections(file_slice: FileSlice, protection: Protection) -> tuple[Reason, ...]:
    """What holds a slice whatever the policy says."""
    held = (Reason.SAVEPOINT,) if protection.is_savepointed(file_slice) else ()
    return (*held, Reason.PENDING_COMPACTION) if protection.is_pending(file_slice) else held
