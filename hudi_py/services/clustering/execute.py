"""
Carries out the stored plan of a clustering.

What a crash leaves after each step, and what the next run does:

1. only the plan: it is carried out;
2. also the inflight file, markers and new files: the attempt is rolled back (B-25), the plan is carried out again;
3. the metadata table has recorded the attempt: the same, the rollback takes that back;
4. the completed file: the clustering is done; only markers are left, which the next rollback or archival removes.

The rows are visible in the old file groups until the completed file is there, and in the new ones from then on. The
clean deletes the old groups later. Source: rules/table-services E.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import attrs

from hudi_py.engine.base import Engine
from hudi_py.errors import ConflictError
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.records import ClusteringPlan
from hudi_py.model.words import counted
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.services.clustering.stored import changed_by, replaced_groups
from hudi_py.services.clustering.tasks import ClusteringJob, GroupWork, rewrite_group
from hudi_py.services.rewriting.progress import OnGroup, reported
from hudi_py.services.rewriting.publish import publish
from hudi_py.services.rewriting.result import RewriteResult
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.fence import put_up_fence
from hudi_py.timeline.row_schema import column_ids
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import Attempt
from hudi_py.txn.commit import Begun
from hudi_py.txn.conflict import archived_meanwhile


@attrs.frozen(kw_only=True)
class ClusteringExecutor:
    """
    Args:
        contents: Contents of the table's timeline.
        metadata_table: Updated before the clustering completes.
        engine: Runs a task for each group.
        on_group: Hears of each group that is written.
    """

    contents: Contents
    metadata_table: MetadataTableKeeper
    engine: Engine
    on_group: OnGroup | None = None

    def execute(
        self,
        begun: Begun,
        plan: ClusteringPlan,
        works: Sequence[GroupWork],
        job: ClusteringJob,
        seen: Timeline,
        attempt: Attempt,
    ) -> RewriteResult:
        """
        Rewrite the groups of a plan and complete the clustering.

        Args:
            begun: The inflight clustering.
            plan: Its stored plan.
            works: What the plan stands for.
            job: What the tasks need to know.
            seen: The timeline that *works* were found with.
            attempt: Shows others that it is at work.

        Raises:
            ConflictError: Another process changed one of the groups, rolled the attempt back, or completed it.
            CorruptMetadata, StorageError: A file cannot be read or written; the clustering stays inflight, and the next
                run begins it again.
        """
        started = MONOTONIC()
        time = begun.instant.requested_time
        done = self.engine.map(
            reported(partial(rewrite_group, job), len(works), self.on_group, self.engine),
            list(works),
            parallelism=self.engine.slots if self.engine.name == "spark" else 1,  # each may fill the memory of a task
            description=f"rewrite {counted(len(works), 'group')} of clustering {time}",
        )
        written = [each for of_group in done for each in of_group]
        # Before the results are published: tasks that nobody waits for any more must not add files to a completed
        # instant.
        put_up_fence(self.contents.store.storage, time)
        metadata = publish(
            begun,
            self.contents,
            self.metadata_table,
            written,
            operation="CLUSTER",
            schema=job.avro_schema,
            ids=column_ids(self.contents, seen, time),
            replaced=replaced_groups(plan),
            attempt=attempt,
            check=partial(self._refuse_changed, plan, seen),
        )
        stats = [each.stat for each in written]
        return RewriteResult(
            instant=time,
            metadata=metadata,
            file_groups=sum(len(work.slices) for work in works),
            rows=sum(stat.num_writes for stat in stats),
            bytes_before=sum(file_slice.size_bytes for work in works for file_slice in work.slices),
            bytes_after=sum(stat.file_size_in_bytes for stat in stats),
            seconds=MONOTONIC() - started,
        )

    def _refuse_changed(self, plan: ClusteringPlan, seen: Timeline, now: Timeline) -> None:
        """
        Refuse to replace a group that was changed since its rows were read: the change would be lost.

        Also where a write may have completed and been archived since, because nobody can say what it changed.
        """
        archived = archived_meanwhile(seen, now)
        if archived is not None:
            raise ConflictError(
                f"{archived} is archived, so it is unknown what it changed while rows were clustered; the clustering "
                "was not completed; run it again"
            )
        # By name and not by time: a commit that was requested earlier may have completed since.
        known = {each.requested_time for each in seen.commits.completed()}
        new = [each for each in now.commits.completed() if each.requested_time not in known]
        found = changed_by(plan.file_groups, ((each, self.contents.commit(each)) for each in new))
        if found is not None:
            instant, (partition, file_id) = found
            raise ConflictError(
                f"{instant} changed file group {file_id} in partition {partition!r} while it was clustered; the "
                "clustering was not completed; run it again, which makes a new plan"
            )
