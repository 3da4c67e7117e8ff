"""
Plans a clean: the trigger, the partitions to examine, and the plan made from the verdicts. Pure.

Source: rules/table-services A.2 to A.6; Hudi ``CleanPlanActionExecutor``, ``CleanPlanner``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.config.table import TableType
from hudi_py.model.holes import NO_HOLES, Holes
from hudi_py.model.instant import Instant
from hudi_py.model.shown import Shown
from hudi_py.services.clean.planning.planned_files import PlannedFiles
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason, Verdict
from hudi_py.timeline.timeline import Timeline

PLAN_VERSION: Final = 2
SAVEPOINTED_TIMES: Final = "savepointed_timestamps"
COUNTED_VERSIONS: Final = "hudi_py.file_versions"
_NOTHING_LISTED: Final = "nothing is listed"


@attrs.frozen(kw_only=True)
class LastClean:
    """
    What the last completed clean recorded.

    Args:
        requested_time: Requested time of the clean.
        earliest_to_retain: Requested time of the earliest instant to retain, ``""`` for a clean by file versions.
        last_completed_commit: Requested time of the last commit that the clean saw, ``""`` if none.
        savepoints: Times of the savepoints whose files it kept.
        holes: The snapshots that it kept before its window, with holes between them.
        counted_versions: Whether it also kept a number of versions although it had an earliest instant to retain.
        whole_from: Requested time of the commit from which on it left every snapshot complete, ``""`` for all.
    """

    requested_time: str
    earliest_to_retain: str
    last_completed_commit: str
    savepoints: frozenset[str]
    holes: Holes = NO_HOLES
    counted_versions: bool = False
    whole_from: str = ""


@attrs.frozen
class Trigger:
    """Compares the number of commits since the last clean with the setting (rules A-10, A-11)."""

    commits: int
    required: int

    @property
    def is_due(self) -> bool:
        return self.commits >= self.required


def trigger(timeline: Timeline, last_clean: LastClean | None, config: CleanConfig) -> Trigger:
    """Count the completed commits that the last clean did not see; an explicit request is always due."""
    completed = timeline.commits.completed()
    if last_clean is not None:
        completed = tuple(i for i in completed if i.requested_time > last_clean.last_completed_commit)
    # Whoever names a time or a snapshot wants the clean now, however few commits there are.
    is_requested = config.older_than is not None or bool(config.forget)
    return Trigger(len(completed), 0 if is_requested else config.trigger_max_commits)


@attrs.frozen(kw_only=True)
class Scope:
    """
    Which partitions a plan examines.

    Args:
        everything: Whether all partitions have to be listed.
        instants: Otherwise: completed commits whose partitions are examined.
        partitions: Further partitions, to which archived commits wrote.
        archived_since: Time at which the last clean stopped, if that commit is archived and the archive may show which
            partitions were written since.
        reason: The reason for this choice, for people.
        cost: The work that this takes, for people.
    """

    everything: bool
    instants: tuple[Instant, ...] = ()
    partitions: frozenset[str] = frozenset()
    archived_since: str = ""
    reason: str
    cost: str = "every partition is listed"


def scope(
    timeline: Timeline,
    table_type: TableType,
    config: CleanConfig,
    *,
    earliest: Instant | None,
    last_clean: LastClean | None,
    savepoints: frozenset[str],
) -> Scope:
    """
    Decide between all partitions and those written since the last clean (rules A-26 to A-33).

    If a savepoint was removed since the last clean, all partitions are examined, in every table version: 0.15.0
    examines only those of the savepointed commit, and so never deletes some files (K-1).
    """
    # The first reason to look everywhere decides; an incremental plan is right only if none of them applies.
    if config.has_window and earliest is None:
        return Scope(everything=False, reason=_why_no_window(timeline, config), cost=_NOTHING_LISTED)
    if config.versions or earliest is None:
        return Scope(everything=True, reason="file versions are counted in every partition")
    if not config.incremental:
        return Scope(everything=True, reason="incremental cleaning is switched off")
    if last_clean is None:
        return Scope(everything=True, reason="the active timeline has no completed clean")
    start = last_clean.earliest_to_retain.strip()
    if not start:
        return Scope(everything=True, reason=f"clean {last_clean.requested_time} recorded no earliest commit")
    if last_clean.counted_versions:
        return Scope(everything=True, reason="the last clean kept file versions too, which may lie in any partition")
    # Commits between the last window and this one are not on the timeline any more (rule A-29, K-2).
    if timeline.commits.is_before_start(start):
        return Scope(
            everything=True,
            archived_since=start if last_clean.savepoints <= savepoints else "",
            reason=f"{start}, where the last clean stopped, is archived",
        )
    if not last_clean.savepoints <= savepoints:
        gone = ", ".join(sorted(last_clean.savepoints - savepoints))
        return Scope(everything=True, reason=f"savepoint {gone} was removed since the last clean")
    # Also after the retention was made longer: the window went back, and everything before it is clean (rule A-32).
    if start >= earliest.requested_time:
        return Scope(
            everything=False,
            reason=f"the last clean got to {start}, and the window begins at {earliest.requested_time}",
            cost=_NOTHING_LISTED,
        )
    instants = tuple(
        instant
        for instant in timeline.table_commits(table_type).completed()
        if start <= instant.requested_time < earliest.requested_time
    )
    return Scope(
        everything=False,
        instants=instants,
        reason=f"partitions written from {start} to {earliest.requested_time}",
        cost=f"{len(instants)} commits are read, and their partitions listed",
    )


def _why_no_window(timeline: Timeline, config: CleanConfig) -> str:
    """Why there is no earliest instant to retain (rules A-17, A-18, A-20)."""
    commits = timeline.commits_and_compaction
    completed, pending = commits.completed(), commits.pending()
    if not completed:
        return "no commit is completed yet"
    if pending and pending[0].requested_time < completed[0].requested_time:
        return f"{pending[0]} is pending, and every completed commit came after it"
    if config.counted_commits is None and config.window_age is not None and config.min_commits is None:
        return "every commit is older than the retention window, so nothing is deleted before a newer one completes"
    return "no commit lies outside the retention window"


@attrs.frozen
class Unseen:
    """
    Partitions that earlier plans left out at their time limit.

    Args:
        everything: Whether any partition may be among them.
        partitions: Otherwise: the partitions.
    """

    everything: bool = False
    partitions: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return self.everything or bool(self.partitions)

    def __or__(self, other: Unseen) -> Unseen:
        everything = self.everything or other.everything
        return Unseen(everything, frozenset() if everything else self.partitions | other.partitions)


def with_unseen(found: Scope, unseen: Unseen, earliest: Instant | None) -> Scope:
    """The scope *found* with the partitions left out before; without a window nothing is removable or added."""
    if not unseen or found.everything or earliest is None:
        return found
    if unseen.everything:
        return Scope(everything=True, reason="the last clean had no time to look everywhere")
    return attrs.evolve(
        found,
        partitions=found.partitions | unseen.partitions,
        reason=f"{found.reason}, and {len(unseen.partitions)} that the last clean had no time for",
    )


def scope_of_archive(
    full: Scope,
    timeline: Timeline,
    table_type: TableType,
    *,
    earliest: Instant,
    archived: Mapping[str, frozenset[str]] | None,
) -> Scope:
    """
    The partitions written since the last clean, if the archive still has the commits; else *full*.

    Hudi examines all partitions then (rule A-29). The plan is the same: files become garbage between two windows only
    in partitions that were written between them, and the last clean left no garbage before.

    Args:
        full: The scope that examines all partitions.
        timeline: The active timeline.
        table_type: The table's type.
        earliest: The earliest instant to retain.
        archived: Partitions by requested time of the archived commits from ``full.archived_since`` on; None if the
            archive does not have them.
    """
    if archived is None:
        return attrs.evolve(full, reason=f"{full.reason}, and the archived timeline does not tell what it wrote")
    instants = tuple(
        i for i in timeline.table_commits(table_type).completed() if i.requested_time < earliest.requested_time
    )
    before = {time: paths for time, paths in archived.items() if time < earliest.requested_time}
    return Scope(
        everything=False,
        instants=instants,
        partitions=frozenset().union(*before.values()),
        reason=f"partitions written from {full.archived_since}, which is archived, to {earliest.requested_time}",
        cost=f"the archived timeline and {len(instants)} commits are read, and their partitions listed",
    )


@attrs.frozen(kw_only=True, repr=False)
class CleanPlan(Shown):
    """
    What a clean would do; nothing has been done yet.

    Args:
        policy: The policy's name in the stored plan.
        version: Version of the stored plan.
        earliest_to_retain: The earliest instant to retain; None with file versions.
        last_completed_commit: Requested time of the last completed commit, ``""`` if none.
        files: Files to delete by partition path, in the order in which Hudi lists them (rule A-37).
        partitions_to_delete: Partitions whose files are all deleted.
        extra_metadata: Savepoints whose files were kept (rule A-34), and what the keeps of hudi_py record.
        needs_cleaning: Whether enough commits completed since the last clean.
        scope: Which partitions were examined, and why.
        verdicts: Every verdict, if asked for.
        kept: Number of kept slices by reason.
        breakers: Reasons not to carry out the plan; a plan with any is not stored.
        is_partial: Whether a limit cut the plan short; the next clean plans the rest.
        unseen: Partitions left out at the time limit.
        warnings: Doubtful settings, one sentence each; none of them stops a clean.
        refused: Partitions whose files cannot be deleted, with the reason; only if sizes were asked for.
    """

    policy: str
    version: int = PLAN_VERSION
    earliest_to_retain: Instant | None = None
    last_completed_commit: str = ""
    files: PlannedFiles = attrs.field(factory=PlannedFiles)
    partitions_to_delete: tuple[str, ...] = ()
    extra_metadata: Mapping[str, str] = attrs.field(factory=dict)
    needs_cleaning: bool = True
    scope: Scope
    verdicts: tuple[Verdict, ...] = attrs.field(default=(), repr=False)
    kept: Mapping[Reason, int] = attrs.field(factory=dict)
    breakers: tuple[str, ...] = ()
    is_partial: bool = False
    unseen: Unseen = Unseen()
    warnings: tuple[str, ...] = ()
    refused: Mapping[str, str] = attrs.field(factory=dict)

    def _facts(self) -> Mapping[str, object]:
        earliest = self.earliest_to_retain
        facts = {"policy": self.policy, "files": self.file_count, "bytes": self.size_bytes,
                 "partitions": len(self.files),
                 "earliest_to_retain": None if earliest is None else earliest.requested_time,
                 "would_schedule": self.would_schedule, "scope": self.scope.reason}  # fmt: skip
        open_ends = {
            "breakers": self.breakers,
            "warnings": self.warnings,
            "is_partial": self.is_partial,
            "refused": self.refused,
        }
        return facts | {name: value for name, value in open_ends.items() if value}

    def _listed(self) -> Iterable[tuple[str, str]]:
        return ((file.path, file.reason.name.lower()) for path in self.files for file in self.files[path])

    @property
    def is_examined(self) -> bool:
        """Whether any partition was examined."""
        return self.version == PLAN_VERSION

    @property
    def file_count(self) -> int:
        """Number of files to delete."""
        return self.files.count

    @property
    def size_bytes(self) -> int | None:
        """Bytes of the files to delete; None if the listing has no sizes."""
        return self.files.size_bytes

    @property
    def would_schedule(self) -> bool:
        """Whether the plan gets stored: it is due, and there is something to delete (rules A-54, A-55)."""
        return self.needs_cleaning and self.file_count > 0


def assemble(
    judgements: Iterable[PartitionJudgement],
    *,
    config: CleanConfig,
    earliest: Instant | None,
    last_completed_commit: str,
    savepoints: frozenset[str],
    needs_cleaning: bool,
    scope: Scope,
    with_verdicts: bool = False,
    is_partial: bool = False,
) -> CleanPlan:
    """
    Make the plan from the judged partitions.

    Args:
        judgements: The judgements of the examined partitions.
        config: The settings of the clean.
        earliest: The earliest instant to retain; None with file versions.
        last_completed_commit: Requested time of the last completed commit to record.
        savepoints: Times to record; empty for tables that never record them (rule A-34).
        needs_cleaning: Whether a clean is due.
        scope: Which partitions were examined.
        with_verdicts: Whether to keep every verdict, to show the reasons.
        is_partial: Whether a limit cut the judgements short.
    """
    files = PlannedFiles()
    kept: dict[Reason, int] = {}
    delete: list[str] = []
    verdicts: list[Verdict] = []
    examined = 0
    for judgement in judgements:
        examined += 1
        condemned = []
        for verdict in judgement.verdicts:
            if verdict.keep:
                kept[verdict.reason] = kept.get(verdict.reason, 0) + 1
            else:
                condemned.append(verdict)
        if condemned:
            files.add(judgement.partition_path, condemned)
        if judgement.condemned is not None:
            files.add_names(judgement.partition_path, judgement.condemned)
        for reason, count in judgement.kept.items():
            kept[reason] = kept.get(reason, 0) + count
        if judgement.delete_partition:
            delete.append(judgement.partition_path)
        if with_verdicts:
            verdicts += judgement.verdicts
    if not examined:
        return _nothing_to_examine(scope, needs_cleaning=needs_cleaning)
    return CleanPlan(
        policy=config.policy.value,
        earliest_to_retain=earliest,
        last_completed_commit=last_completed_commit,
        files=files,
        partitions_to_delete=tuple(sorted(delete)),
        # The next clean compares these with the savepoints of its time, and looks everywhere if one was
        # deleted (rule A-33).
        extra_metadata={SAVEPOINTED_TIMES: ",".join(sorted(savepoints))} if savepoints else {},
        needs_cleaning=needs_cleaning,
        scope=scope,
        verdicts=tuple(verdicts),
        kept=kept,
        is_partial=is_partial,
    )


def _nothing_to_examine(scope: Scope, *, needs_cleaning: bool) -> CleanPlan:
    """The empty plan that Hudi makes if no partition is in scope; never stored, always with the same policy name."""
    return CleanPlan(
        policy=CleanPolicy.KEEP_LATEST_COMMITS.value, version=1, needs_cleaning=needs_cleaning, scope=scope
    )
