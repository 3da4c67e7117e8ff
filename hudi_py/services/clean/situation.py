"""What a clean is planned from: a snapshot of everything but the files."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.fsview.build import ViewContext, build_partition
from hudi_py.fsview.listing import Listing
from hudi_py.model.instant import Instant
from hudi_py.services.clean.plan import LastClean, Scope, Trigger
from hudi_py.services.clean.policy import PartitionJudgement, Protection, judge_partition
from hudi_py.storage.base import Entry
from hudi_py.timeline.timeline import Timeline


@attrs.frozen(kw_only=True)
class Situation:
    """
    A table as a clean sees it at one moment.

    Args:
        timeline: The active timeline.
        listing: Where partitions and files are looked up.
        context: What decides about slices.
        protection: What no policy may delete.
        savepoints: Times of the savepoints there are.
        now: Aware; the moment of planning.
        earliest: Earliest instant to retain, if the policy has one.
        last_clean: What the last completed clean recorded.
        scope: Which partitions are looked at.
        trigger: Whether a clean is due.
        table_commits: Completed instants of ``TL.table``, ascending.
    """

    timeline: Timeline
    listing: Listing
    context: ViewContext
    protection: Protection
    savepoints: frozenset[str]
    now: datetime
    earliest: Instant | None
    last_clean: LastClean | None
    scope: Scope
    trigger: Trigger
    table_commits: tuple[Instant, ...]

    @property
    def last_completed_commit(self) -> str:
        """Requested time of the last completed commit, ``""`` when there is none (rule A-25)."""
        return self.table_commits[-1].requested_time if self.table_commits else ""

    def judge(self, partition_path: str, entries: Iterable[Entry], config: CleanConfig) -> PartitionJudgement:
        """Judge one partition by the files in it."""
        return judge_partition(
            self.context,
            build_partition(self.context, partition_path, ((entry.name, entry.size_bytes) for entry in entries)),
            config,
            self.protection,
            earliest=None if self.earliest is None else self.earliest.requested_time,
            commit_count=len(self.table_commits),
        )
