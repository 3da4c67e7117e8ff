"""The result of a clean: for callers, and for the completed instant. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.model.files import join_path
from hudi_py.model.instant import Instant
from hudi_py.model.records import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hudi_py.model.shown import Shown
from hudi_py.runtime.who import who_runs_this
from hudi_py.services.clean.planning.plan import POLICY, RUN_BY
from hudi_py.services.clean.planning.stored_plan import Names


@attrs.frozen(kw_only=True, repr=False)
class CleanResult(Shown):
    """
    One clean that was carried out.

    Args:
        instant: Requested time of the clean.
        metadata: The metadata stored in the completed instant.
        missing_files: Files that were already deleted, for instance by an interrupted run before.
        failed_files: Files that could not be deleted; the next clean tries again.
        side_files_left: Checksum files (``.<name>.crc``) that could not be deleted although their data files were; the
            next clean tries again.
        superseded: Whether another process completed the same clean first; its record counts, ours was not written.
        is_finished: False if the time limit was reached: the clean stays pending, and the next one deletes the rest.
        withdrawn: Whether the plan was removed from the timeline because it was no longer valid and had not deleted
            anything; the next clean makes a new plan.
        why_spared: The first of `spared_files` and what needs it; without any, which commit was undone; ``""`` if the
            plan was valid.
        is_partial: Whether a limit cut the plan short; the next clean plans the rest.
        bytes_freed: Bytes of the deleted files; None if unknown: the plan was stored by an earlier run, or there was no
            progress callback, without which no sizes are read.
        expired_savepoints: Times of the expired savepoints that the run deleted before the clean; only in the first
            result of a run.
    """

    instant: str
    metadata: CleanMetadata
    missing_files: tuple[str, ...]
    failed_files: tuple[str, ...] = ()
    side_files_left: tuple[str, ...] = ()
    superseded: bool = False
    is_finished: bool = True
    withdrawn: bool = False
    why_spared: str = ""
    is_partial: bool = False
    bytes_freed: int | None = None
    expired_savepoints: tuple[str, ...] = ()
    _deleted: Names = attrs.field(factory=dict)
    _spared: Mapping[str, Collection[str]] = attrs.field(factory=dict)

    def _facts(self) -> Mapping[str, object]:
        left = {"missing": len(self.missing_files), "failed": len(self.failed_files),
                "spared": sum(map(len, self._spared.values())), "superseded": self.superseded,
                "withdrawn": self.withdrawn, "why_spared": self.why_spared, "is_partial": self.is_partial}  # fmt: skip
        done = {"instant": self.instant, "deleted": self.deleted_count, "is_finished": self.is_finished}
        # What is as usual is left out, so that the rest is seen.
        return done | {name: value for name, value in left.items() if value}

    def _listed(self) -> Iterable[tuple[str]]:
        return ((join_path(path, name),) for path, names in self._deleted.items() for name in names)

    @property
    def has_more_to_do(self) -> bool:
        """Whether a limit of the run left planned or unplanned files for the next clean."""
        return self.is_partial or not (self.is_finished or self.withdrawn)

    @property
    def spared_files(self) -> tuple[str, ...]:
        """Relative paths of planned files that were kept because something needs them now, sorted."""
        return tuple(sorted(join_path(path, name) for path, names in self._spared.items() for name in names))

    @property
    def deleted_files(self) -> tuple[str, ...]:
        """Relative paths deleted by this run, sorted. Built at every call: there may be a million."""
        return tuple(sorted(join_path(path, name) for path, names in self._deleted.items() for name in names))

    @property
    def deleted_count(self) -> int:
        """Number of files deleted by this run."""
        return sum(map(len, self._deleted.values()))


@attrs.frozen(kw_only=True)
class Outcome:
    """
    The results of deleting a plan's files.

    Args:
        missing: Relative paths of files that did not exist.
        failed: Relative paths of files that could not be deleted, with the reason.
        left: Number of files that were not tried because the time limit was reached.
        tried: Names of the files that were tried, by partition path.
        side_files: Relative paths of checksum files that could not be deleted although their data files were, with the
            reason.
    """

    missing: frozenset[str]
    failed: Mapping[str, str]
    left: int
    tried: Names
    side_files: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def deleted(self) -> Names:
        """Names of the deleted files, by partition path."""
        others = self.missing.union(self.failed)
        if not others:
            return self.tried
        return {
            path: tuple(name for name in names if join_path(path, name) not in others)
            for path, names in self.tried.items()
        }


def together(deleted: Names, gone: Mapping[str, tuple[str, ...]]) -> Names:
    """The deleted files of the plan, with those deleted together with their partitions."""
    return {**deleted, **{path: (*deleted.get(path, ()), *names) for path, names in gone.items()}} if gone else deleted


def metadata_of(
    instant: Instant,
    plan: CleanerPlan,
    outcome: Outcome,
    deleted_partitions: frozenset[str],
    config: CleanConfig,
    elapsed_ms: int,
) -> CleanMetadata:
    """
    The metadata of the completed instant, from what was really deleted, never from the plan alone.

    Files that were missing are recorded among the failed ones, as in every release of Hudi (rule A-65); the
    policy is that of the running configuration (rule A-66).
    """
    others = outcome.missing.union(outcome.failed)
    partitions = {}
    for partition, names in outcome.tried.items():
        failed = tuple(name for name in names if join_path(partition, name) in others) if others else ()
        partitions[partition] = CleanPartitionMetadata(
            partition_path=partition,
            policy=config.policy.value,
            delete_path_patterns=tuple(names),
            success_delete_files=tuple(name for name in names if join_path(partition, name) not in others)
            if failed
            else tuple(names),
            failed_delete_files=failed,
            is_partition_deleted=partition in deleted_partitions,
        )
    earliest = plan.earliest_instant_to_retain
    return CleanMetadata(
        start_clean_time=instant.requested_time,
        time_taken_ms=elapsed_ms,
        total_files_deleted=sum(len(each.success_delete_files) for each in partitions.values()),
        earliest_commit_to_retain="" if earliest is None else earliest.requested_time,
        last_completed_commit_timestamp=plan.last_completed_commit_timestamp,
        partitions=partitions,
        extra_metadata={**plan.extra_metadata, **_runner(plan)},
    )


def _runner(plan: CleanerPlan) -> Mapping[str, str]:
    """
    Who carries the plan out, which may be another process than the one that made it.

    Only of tables with a retention policy: other cleans are equal to those of Apache Hudi, which do not say.
    """
    return {RUN_BY: who_runs_this()} if POLICY in plan.extra_metadata else {}
