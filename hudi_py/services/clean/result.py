"""What became of a clean: for callers, and for the completed instant. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.model.files import join_path
from hudi_py.model.instant import Instant
from hudi_py.model.records import CleanerPlan, CleanMetadata, CleanPartitionMetadata
from hudi_py.model.shown import Shown
from hudi_py.services.clean.planning.stored_plan import Names


@attrs.frozen(kw_only=True, repr=False)
class CleanResult(Shown):
    """
    One clean that was carried out.

    Args:
        instant: Requested time.
        metadata: What was stored as the completed instant.
        missing_files: Were gone already, for instance deleted by an interrupted run before.
        failed_files: Refused to go; the next clean tries them again.
        side_files_left: Checksum files (``.<name>.crc``) that refused to go, of data that is deleted; tried again too.
        superseded: Another process completed the same clean first; its record counts, ours was not written.
        is_finished: False when the time was up: the clean stays pending, and the next one deletes the rest.
        withdrawn: The plan is no longer right, and nothing was deleted yet: it was taken off the timeline, and the next
            clean plans anew.
        why_spared: Which planned file stays and who needs it, the first of `spared_files`; without any, which commit
            was undone; ``""`` if the plan was valid.
        is_partial: A limit cut the plan short: the next clean plans the rest.
        expired_savepoints: Of the first clean of a run: times of the savepoints that the run let go of before, because
            their time to live was over.
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
    expired_savepoints: tuple[str, ...] = ()
    _deleted: Names = attrs.field(factory=dict)
    _spared: Mapping[str, Collection[str]] = attrs.field(factory=dict)

    def _facts(self) -> Mapping[str, object]:
        left = {"missing": len(self.missing_files), "failed": len(self.failed_files),
                "spared": sum(map(len, self._spared.values())), "superseded": self.superseded,
                "withdrawn": self.withdrawn, "why_spared": self.why_spared, "is_partial": self.is_partial}  # fmt: skip
        done = {"instant": self.instant, "deleted": self.deleted_count, "is_finished": self.is_finished}
        return done | {name: value for name, value in left.items() if value}

    def _listed(self) -> Iterable[tuple[str]]:
        return ((join_path(path, name),) for path, names in self._deleted.items() for name in names)

    @property
    def spared_files(self) -> tuple[str, ...]:
        """Relative paths of planned files that were kept because they are needed by now, sorted."""
        return tuple(sorted(join_path(path, name) for path, names in self._spared.items() for name in names))

    @property
    def deleted_files(self) -> tuple[str, ...]:
        """Relative paths deleted by this run, sorted; made at every call, there may be a million."""
        return tuple(sorted(join_path(path, name) for path, names in self._deleted.items() for name in names))

    @property
    def deleted_count(self) -> int:
        """How many those are."""
        return sum(map(len, self._deleted.values()))


@attrs.frozen(kw_only=True)
class Outcome:
    """
    What became of a plan's files.

    Args:
        missing: Relative paths.
        failed: Relative path to why.
        left: How many were not tried, the time being up.
        tried: Partition path to names.
        side_files: Relative path of each checksum file that refused to go, its data being deleted, to why.
    """

    missing: frozenset[str]
    failed: Mapping[str, str]
    left: int
    tried: Names
    side_files: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def deleted(self) -> Names:
        """Partition path to names."""
        others = self.missing.union(self.failed)
        if not others:
            return self.tried
        return {
            path: tuple(name for name in names if join_path(path, name) not in others)
            for path, names in self.tried.items()
        }


def together(deleted: Names, gone: Mapping[str, tuple[str, ...]]) -> Names:
    """What went of the plan, and what went with the partitions."""
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
    What the completed instant records: built from what was observed, never from the plan alone.

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
        extra_metadata=plan.extra_metadata,
    )
