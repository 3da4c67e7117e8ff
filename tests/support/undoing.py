"""Tables on which a commit builds on an earlier one, for what undoes commits."""

from __future__ import annotations

from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.model.files import join_path
from hudi_py.model.instant import State
from hudi_py.model.records import (
    ClusteringGroup,
    ClusteringPlan,
    ClusteringSlice,
    CommitMetadata,
    RequestedReplaceMetadata,
    WriteStat,
)
from support.tables import SYNC, TableBuilder, at


def update(builder: TableBuilder, time: str, groups: dict[str, list[str]], prev: str, **more) -> None:
    """A commit whose stats name the commit before, as those of real writers do."""
    builder.commit(time, groups, **more)
    stats = {
        partition: tuple(
            WriteStat(
                file_id=file_id,
                path=join_path(partition, builder.base_name(file_id, time)),
                partition_path=partition,
                prev_commit=prev,
                num_writes=1,
            )
            for file_id in ids
        )
        for partition, ids in groups.items()
    }
    content = encode_commit(
        CommitMetadata(partition_to_write_stats=stats, operation_type="UPSERT"),
        as_json=builder.layout.version == 1,
        sync=SYNC,
    )
    builder.instant(time, "commit", State.COMPLETED, content)


def times(builder: TableBuilder, *actions: str) -> list[str]:
    return [i.requested_time for i in builder.table().timeline.completed(*actions)]


def clustering(builder: TableBuilder, time: str, state: State) -> None:
    """A clustering of group a into n, up to *state*."""
    name = "replacecommit" if builder.layout.version == 1 else "clustering"
    old = ClusteringSlice(file_id="a", partition_path="eu", data_file_path=builder.base_name("a", at(2)))
    plan = ClusteringPlan(input_groups=(ClusteringGroup(slices=(old,)),))
    request = RequestedReplaceMetadata(operation_type="CLUSTER", clustering_plan=plan)
    builder.instant(time, name, State.REQUESTED, codec.encode_requested_replace(request, sync=SYNC))
    if state >= State.INFLIGHT:
        builder.instant(time, name, State.INFLIGHT)
        builder.put(f"eu/{builder.base_name('n', time)}")
    if state is State.COMPLETED:
        stat = WriteStat(file_id="n", path=f"eu/{builder.base_name('n', time)}", partition_path="eu")
        metadata = CommitMetadata(
            partition_to_write_stats={"eu": (stat,)},
            operation_type="CLUSTER",
            partition_to_replace_file_ids={"eu": ("a",)},
        )
        content = encode_commit(metadata, as_json=builder.layout.version == 1, sync=SYNC)
        builder.instant(time, "replacecommit", State.COMPLETED, content)


def merge_on_read(layout: int = 1) -> TableBuilder:
    """Delta commits of base files, then of log files on them."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a", "b"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    return builder


def merge_on_read_history(layout: int) -> TableBuilder:
    """Base files, log files (savepoint), a later delta commit, a compaction, log files on top, and a failed write."""
    builder = TableBuilder(layout, table_type="MERGE_ON_READ")
    builder.commit(at(1), {"eu": ["a", "b"]}, action="deltacommit")
    builder.log_files(at(2), [("eu", "a", at(1))])
    builder.table().create_savepoint(at(2))
    builder.log_files(at(3), [("eu", "a", at(1)), ("eu", "b", at(1))])
    builder.compaction(at(4), [("eu", "a", at(1), [])])
    builder.instant(at(4), "compaction", State.INFLIGHT)
    builder.put(f"eu/{builder.base_name('a', at(4))}")
    stat = WriteStat(file_id="a", path=f"eu/{builder.base_name('a', at(4))}", partition_path="eu", prev_commit=at(1))
    metadata = CommitMetadata(partition_to_write_stats={"eu": (stat,)}, operation_type="COMPACT")
    builder.instant(at(4), "commit", State.COMPLETED, encode_commit(metadata, as_json=layout == 1, sync=SYNC))
    builder.log_files(at(5), [("eu", "a", at(4)), ("eu", "b", at(1)), ("eu", "n", at(5))])
    builder.log_files(at(6), [("eu", "a", at(4))], state=State.INFLIGHT)
    return builder


def updated(layout: int) -> TableBuilder:
    """Two commits of one file group."""
    builder = TableBuilder(layout)
    builder.commit(at(1), {"eu": ["a"]})
    update(builder, at(2), {"eu": ["a"]}, at(1))
    return builder
