"""
Opens stored clustering plans: whether they are still valid, their file slices, and the job for their tasks.

Source: rules/table-services E-40, E-41; Hudi ``SparkExecuteClusteringCommitActionExecutor``.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from hudi_py.config.clustering import ClusteringConfig
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.column_history import MovedColumns
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.fsview.build import GroupKey, build_partition, latest_slices
from hudi_py.fsview.listing import Listing
from hudi_py.fsview.loader import load_context
from hudi_py.fsview.moved import with_moved
from hudi_py.fsview.written_ranges import WrittenRanges
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import FileSlice
from hudi_py.model.instant import Instant
from hudi_py.model.records import ClusteringPlan
from hudi_py.rows.base_file import BaseFileOptions
from hudi_py.rows.column_ids import outdates_statistics
from hudi_py.rows.log_reading import LogReading
from hudi_py.rows.row_order import RowOrder, check_order
from hudi_py.rows.table_logs import table_log_reading, why_not_read
from hudi_py.services.clustering.stored import changed_by, order_of, refuse_odd_plan, why_not_served, works_of
from hudi_py.services.clustering.tasks import ClusteringJob, GroupWork
from hudi_py.services.rewriting.left_pending import LeftPending, left_pending_if
from hudi_py.services.rewriting.tasks import COPIES
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.row_schema import column_ids, moved_columns
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import cancelling


@attrs.frozen
class OpenedPlan:
    """A stored plan that can be carried out, the work it stands for, and the timeline of that moment."""

    plan: ClusteringPlan
    works: list[GroupWork]
    timeline: Timeline


@attrs.frozen(kw_only=True)
class StoredPlans:
    """
    The stored plans of one table; fields as those of `ClusteringService`.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    config: ClusteringConfig
    metadata_table: MetadataTableKeeper
    options: BaseFileOptions
    schema_text: Callable[[str | None], str | None]

    def opened(self, instant: Instant) -> OpenedPlan | str:
        """
        Return what a stored plan stands for now; if it is no longer valid, the reason.

        Raises:
            CorruptMetadata: The plan, or a commit since then, does not decode, or the plan would change rows.
            UnsupportedTable: The plan asks for more than to move rows.
        """
        timeline, listing = open_snapshot(self.contents.store, self.table, self.settings)
        plan = self._plan(instant)
        left = self.left_pending(instant)
        if left is not None:
            raise UnsupportedTable(left.reason)
        root = self.contents.store.storage.root
        refuse_odd_plan(plan, f"{instant} of {root}", f"withdraw it with {cancelling(root, instant)}")
        groups = plan.file_groups
        later = [
            each
            for each in timeline.commits.completed()
            # Either time: in layout 1 there is only the first, and in layout 2 an older write may have completed since.
            if max(each.requested_time, each.completion_time or "") > instant.requested_time
        ]
        found = changed_by(groups, ((each, self.contents.commit(each)) for each in later))
        if found is not None:
            return f"{found[0]} changed file group {found[1][1]} in partition {found[1][0]!r} since it was planned"
        # The files themselves decide as well: a clean or rollback leaves no commit that names the group.
        moved = moved_columns(self.contents, timeline, instant.requested_time)
        works = works_of(plan, self._latest(timeline, listing, {path for path, _ in groups}, moved))
        return works if isinstance(works, str) else OpenedPlan(plan, works, timeline)

    def left_pending(self, instant: Instant) -> LeftPending | None:
        """
        Return why hudi_py does not carry a stored plan out; None if it does.

        Raises:
            CorruptMetadata: The plan does not decode.
        """
        plan, text = self._plan(instant), self.schema_text(instant.requested_time)
        root = self.contents.store.storage.root
        why = why_not_served(plan, None if text is None else parse_record_schema(text))
        has_logs = any(each.delta_file_paths for group in plan.input_groups for each in group.slices)
        unread = why_not_read(self.table.properties, text, root) if has_logs and text is not None else None
        if why is None and unread is not None:
            why = f"has log files that cannot be merged: {unread}"
        return left_pending_if(instant, plan.file_groups, self.contents.store.storage, why)

    def _plan(self, instant: Instant) -> ClusteringPlan:
        plan = self.contents.requested_replace(instant).clustering_plan
        if plan is None:
            raise CorruptMetadata(f"{instant} of {self.contents.store.storage.root} has no plan")
        return plan

    def _latest(
        self, timeline: Timeline, listing: Listing, paths: set[str], moved: MovedColumns | None
    ) -> dict[GroupKey, FileSlice]:
        context = load_context(timeline, self.contents)
        found: dict[GroupKey, FileSlice] = {}
        for path in sorted(paths):
            entries = listing.partition(path, details=True)
            view = build_partition(context, path, ((entry.name, entry.size_bytes) for entry in entries))
            found |= {
                (path, file_slice.file_id): file_slice for file_slice in with_moved(latest_slices(context, view), moved)
            }
        return found

    def job(self, found: OpenedPlan, requested_time: str) -> ClusteringJob:
        """
        Return what every task needs to carry the plan out.

        Raises:
            ConfigError: Rows cannot be sorted by a column of the plan.
            CorruptMetadata: The columns of the rows are unknown.
        """
        store = self.contents.store
        text = self.schema_text(requested_time)
        if text is None:
            raise CorruptMetadata(f"{store.storage.root}: no commit and no file says which columns the rows have")
        schema = parse_record_schema(text)
        columns, layout = order_of(found.plan)
        order = RowOrder(columns=columns, layout=layout or self.config.layout) if columns else None
        if order is not None:
            check_order(order, schema)
        is_widened = outdates_statistics(self.contents, found.timeline)
        ranged = self.metadata_table.columns_to_range(found.timeline, schema, is_widened=is_widened)
        slices = [file_slice for work in found.works for file_slice in work.slices]
        return ClusteringJob(
            storage=store.storage,
            instant_time=requested_time,
            schema=schema,
            avro_schema=text,
            logs=self._log_reading(slices, text, found.timeline, requested_time),
            options=attrs.evolve(self.options, max_file_bytes=self.config.target_bytes, ranged=ranged),
            order=order,
            memory_bytes=self.config.memory_bytes,
            spill_folder=self.config.spill_folder,
        )

    def _log_reading(
        self, slices: list[FileSlice], text: str, timeline: Timeline, requested_time: str
    ) -> LogReading | None:
        # Without log files the rules do not matter, and those that are not supported need not be refused.
        if not any(not file.is_cdc for file_slice in slices for file in file_slice.log_files):
            return None
        root = self.contents.store.storage.root
        context = load_context(timeline, self.contents, with_clustering=False)
        reading = table_log_reading(self.table.properties, text, context.is_completed, root)
        moved = moved_columns(self.contents, timeline, requested_time)
        has_ids = column_ids(self.contents, timeline, requested_time) is not None
        return attrs.evolve(
            reading.by_ids(moved, has_ids=has_ids),
            written=WrittenRanges(self.contents, timeline),
            memory_bytes=max(1, self.config.memory_bytes // COPIES),
            spill_folder=self.config.spill_folder,
        )
