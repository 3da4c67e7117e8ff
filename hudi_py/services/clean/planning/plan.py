"""
Makes the plan of a clean from the verdicts on the partitions that were examined. Pure.

Source: rules/table-services A.6; Hudi ``CleanPlanActionExecutor``, ``CleanPlanner``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.model.instant import Instant
from hudi_py.model.shown import Shown
from hudi_py.services.clean.planning.planned_files import PlannedFiles
from hudi_py.services.clean.planning.scope import NOTHING_UNSEEN, Scope, Unseen
from hudi_py.services.clean.retention.policy import PartitionJudgement, Reason, Verdict

PLAN_VERSION: Final = 2
# Hudi's own name, which its incremental cleans look for.
SAVEPOINTED_TIMES: Final = "savepointed_timestamps"
PASSING: Final = "hudi_py.passing_savepoints"
COUNTED_VERSIONS: Final = "hudi_py.file_versions"
APPROVED_BY: Final = "hudi_py.approved_by"
RUN_BY: Final = "hudi_py.run_by"
POLICY: Final = "hudi_py.policy"  # mark of the table's retention policy that it was made under


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
    unseen: Unseen = NOTHING_UNSEEN
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
        # Only on request: there is one for each slice of the table.
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
