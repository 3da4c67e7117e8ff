"""
Decides which slices a clean deletes, and why it keeps the others. Pure.

Source: rules/table-services A.3 and A.5; Hudi ``CleanPlanner``, ``CleanerUtils``.
"""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import attrs

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.fsview.build import PartitionView, ViewContext
from hudi_py.fsview.fate import Protection, latest_of
from hudi_py.model.files import PARTITION_METAFILE, FileGroup, FileSlice
from hudi_py.model.lease import Lease


class Reason(enum.Enum):
    """Why a slice is kept or deleted; the values are shown to people."""

    LATEST = "newest slice of its file group"
    WINDOW = "written inside the retention window"
    BEFORE_WINDOW = "newest slice before the retention window: a query that began there still reads it"
    VERSIONS = "one of the newest versions"
    FLOOR = "needed by the commits that are always kept"
    AGE = "needed inside the span of time that is kept"
    CHANGES = "needed by readers of changes in the span that is kept"
    DAILY = "in the newest snapshot of a day that is kept"
    WEEKLY = "in the newest snapshot of a week that is kept"
    MONTHLY = "in the newest snapshot of a month that is kept"
    SAVEPOINT = "held by a savepoint"
    LEASE = "in a snapshot that a reader holds a lease on"
    PENDING_COMPACTION = "needed by a pending compaction"
    PENDING_CLUSTERING = "read by a pending clustering"
    BASE_OF_LATEST = "holds the base file of its file group: the newest slice has none"
    NOT_EXAMINED = "its partition did not change since the last clean"
    NO_WINDOW = "not enough history for the policy to remove anything"
    UNCOMMITTED = "written by an instant that is not completed; a rollback deletes it, not a clean"
    REPLACED_IN_WINDOW = "replaced, but by an instant inside the retention window"
    OVER_BUDGET = "removable, but over this run's budget: the next clean plans it"
    NOT_APPROVED = "removable, but it is not among the approved files, or not with all files of its slice"
    EXPIRED = "older than the retention window"
    OLD_VERSION = "older than the versions to keep"
    REPLACED = "its file group was replaced"

    __hash__ = object.__hash__


class Verdict(NamedTuple):
    """Whether one slice is kept, the rule that decides, and all other rules that protect it."""

    file_slice: FileSlice
    keep: bool
    reason: Reason
    also: tuple[Reason, ...] = ()


class Snapshot(NamedTuple):
    """A time before every window at which the table stays readable, and the rung of the ladder that keeps it."""

    time: str
    reason: Reason


def _time_of(snapshot: Snapshot) -> str:
    return snapshot.time


@attrs.frozen(kw_only=True)
class Keeps:
    """
    A union of keeps: a slice stays if any of them keeps it.

    Args:
        windows: Reason and first requested time of each window that does not keep everything.
        snapshots: The snapshots on the ladder, ascending.
        versions: Number of slices to keep per group; 0 if they are not counted.
        leases: Leases that reach back behind every window.
    """

    windows: tuple[tuple[Reason, str], ...] = ()
    snapshots: tuple[Snapshot, ...] = ()
    versions: int = 0
    leases: tuple[Lease, ...] = ()

    def rungs(self, begins: str, ends: str | None) -> tuple[Reason, ...]:
        """Why snapshots are kept that see a slice, shown from one time on and superseded at the other, if ever."""
        low = bisect_left(self.snapshots, begins, key=_time_of)
        high = len(self.snapshots) if ends is None else bisect_left(self.snapshots, ends, key=_time_of)
        rungs = tuple(dict.fromkeys(snapshot.reason for snapshot in self.snapshots[low:high]))
        return (*rungs, Reason.LEASE) if any(lease.needs(begins, ends) for lease in self.leases) else rungs


class Condemned(NamedTuple):
    """Base files of one partition to delete for one reason, with their sizes (None: unknown)."""

    names: tuple[str, ...]
    sizes: tuple[int | None, ...]
    reason: Reason


@attrs.frozen(kw_only=True)
class PartitionJudgement:
    """
    All verdicts of one partition.

    Args:
        partition_path: Path of the partition.
        verdicts: One per committed slice, live and replaced.
        delete_partition: Whether nothing else is left, so that the folder can be deleted too (rules A-50, A-51).
        kept: Number of kept slices without verdicts, by reason.
        condemned: Files to delete without verdicts.
        newest: The newest base file of each group, by file id; empty if not known of all groups.
    """

    partition_path: str
    verdicts: tuple[Verdict, ...]
    delete_partition: bool
    kept: Mapping[Reason, int] = attrs.field(factory=dict)
    condemned: Condemned | None = None
    newest: tuple[str, ...] = ()

    @property
    def condemned_count(self) -> int:
        """Number of files to delete."""
        in_verdicts = sum(verdict.file_slice.file_count for verdict in self.verdicts if not verdict.keep)
        return in_verdicts + (0 if self.condemned is None else len(self.condemned.names))


def judge_partition(
    context: ViewContext,
    partition: PartitionView,
    config: CleanConfig,
    protection: Protection,
    *,
    earliest: str | None,
    commit_count: int,
    keeps: Keeps | None = None,
) -> PartitionJudgement:
    """
    Judge every committed slice of one partition.

    Args:
        context: View context of the whole table.
        partition: The slices of the partition.
        config: The settings of the clean.
        protection: Files that no policy may delete.
        earliest: Requested time of the earliest instant to retain, if there is one.
        commit_count: Number of completed instants of ``TL.table`` (rule A-41).
        keeps: All keeps, if the settings have more than Hudi's policy.
    """
    by_versions = config.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS
    # Rule A-41; the count is of another timeline than the window is.
    active = not config.has_window or (earliest is not None and commit_count > config.commits_required)
    verdicts: list[Verdict] = []
    for group in partition.groups:
        # Too few commits for the policy to delete anything (rule A-41): every slice is kept.
        if not active:
            verdicts += [
                Verdict(s, True, Reason.LATEST if s is group.slices[0] else Reason.NO_WINDOW) for s in group.slices
            ]
        elif keeps is not None:
            verdicts += _judge_union(group, keeps, protection)
        elif by_versions:
            verdicts += _judge_versions(group, config.file_versions_retained, protection)
        else:
            assert earliest is not None
            verdicts += _judge_window(group, earliest, protection)
    replaced_later = False
    for group in partition.replaced_groups:
        replaced_at = context.replaced[partition.partition_path, group.file_id]
        expired = active and (earliest is None or replaced_at < earliest)
        replaced_later = replaced_later or not expired
        ends = replaced_at
        for file_slice in group.slices:
            rungs = () if keeps is None or not expired else keeps.rungs(file_slice.shown_from, ends)
            verdicts.append(_judge_replaced(file_slice, expired, protection, rungs))
            # Slices come newest first, and each is superseded when the one before it began.
            ends = min(ends, file_slice.base_instant_time)
    delete_partition = active and not partition.groups and not replaced_later
    # Hudi deletes partitions recursively, with savepointed and unknown files, so a plan must not name such a partition.
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
        verdicts.append(_verdict(group, file_slice, keeps, Reason.EXPIRED))
    return verdicts


def _verdict(group: FileGroup, file_slice: FileSlice, keeps: tuple[Reason, ...], otherwise: Reason) -> Verdict:
    """Keep what the policy keeps and, if the newest slice has no base file, the older slice with the newest rows."""
    if not keeps and group.slices[0].base_file is None and file_slice in latest_of(group):
        keeps = _BASE_OF_LATEST
    return Verdict(file_slice, True, keeps[0], keeps[1:]) if keeps else Verdict(file_slice, False, otherwise)


_BASE_OF_LATEST = (Reason.BASE_OF_LATEST,)
_IN_WINDOW = (Reason.WINDOW,)
_LATEST_IN_WINDOW = (Reason.LATEST, Reason.WINDOW)
_BEFORE_WINDOW = (Reason.BEFORE_WINDOW,)
_LATEST_BEFORE_WINDOW = (Reason.LATEST, Reason.BEFORE_WINDOW)


def _judge_versions(group: FileGroup, versions: int, protection: Protection) -> list[Verdict]:
    """KEEP_LATEST_FILE_VERSIONS (rules A-48, A-49)."""
    in_compaction = (group.partition_path, group.file_id) in protection.pending
    # The slice that a pending compaction will write counts as a version already (rule A-48).
    remaining = versions - in_compaction
    verdicts = []
    for position, file_slice in enumerate(group.slices):
        keeps: tuple[Reason, ...] = ()
        if position == 0 and not in_compaction:
            keeps += (Reason.LATEST,)
        # A slice that a compaction needs stays anyway, and does not count as a version (rule A-48).
        if not protection.is_pending(file_slice):
            if remaining > 0:
                keeps += (Reason.VERSIONS,)
            remaining -= 1
        keeps += _protections(file_slice, protection)
        verdicts.append(_verdict(group, file_slice, keeps, Reason.OLD_VERSION))
    return verdicts


def _judge_union(group: FileGroup, keeps: Keeps, protection: Protection) -> list[Verdict]:
    """Keep a slice if any keep protects it, with all reasons."""
    # One for each window, also if two have the same reason.
    bridges = [next((s for s in group.slices if s.base_instant_time < start), None) for _, start in keeps.windows]
    in_compaction = (group.partition_path, group.file_id) in protection.pending
    # As where versions alone are counted (rule A-48).
    remaining = keeps.versions - in_compaction
    verdicts = []
    ends: str | None = None
    for file_slice in group.slices:
        begins = file_slice.base_instant_time
        reasons = [] if ends is not None else [Reason.LATEST]
        for (reason, earliest), bridge in zip(keeps.windows, bridges, strict=True):
            # Each window has a bridge of its own: queries that began there read the slice before it (rule A-44).
            if begins >= earliest:
                reasons.append(reason)
            elif file_slice is bridge:
                reasons.append(Reason.BEFORE_WINDOW if reason is Reason.WINDOW else reason)
        if keeps.versions and not protection.is_pending(file_slice):
            if remaining > 0:
                reasons.append(Reason.VERSIONS)
            remaining -= 1
        reasons += keeps.rungs(file_slice.shown_from, ends)
        reasons += _protections(file_slice, protection)
        otherwise = Reason.EXPIRED if keeps.windows else Reason.OLD_VERSION
        verdicts.append(_verdict(group, file_slice, tuple(reasons), otherwise))
        # A slice ends for readers when the newer one began.
        ends = begins
    return verdicts


def _judge_replaced(
    file_slice: FileSlice, expired: bool, protection: Protection, rungs: tuple[Reason, ...] = ()
) -> Verdict:
    """Delete a replaced group as a whole, with its newest slice (rules A-42, A-47), even if a compaction is pending."""
    keeps = list(rungs) if expired else [Reason.REPLACED_IN_WINDOW]
    if protection.clusterings(file_slice):
        # In front: the reason that no setting can change is the one to show.
        keeps.insert(0, Reason.PENDING_CLUSTERING)
    if protection.is_savepointed(file_slice):
        keeps.insert(0, Reason.SAVEPOINT)
    if keeps:
        return Verdict(file_slice, True, keeps[0], tuple(keeps[1:]))
    return Verdict(file_slice, False, Reason.REPLACED)


def _protections(file_slice: FileSlice, protection: Protection) -> tuple[Reason, ...]:
    """The reasons to keep a slice that no policy overrides."""
    held = (Reason.SAVEPOINT,) if protection.is_savepointed(file_slice) else ()
    if protection.is_pending(file_slice):
        held = (*held, Reason.PENDING_COMPACTION)
    return (*held, Reason.PENDING_CLUSTERING) if protection.clusterings(file_slice) else held
