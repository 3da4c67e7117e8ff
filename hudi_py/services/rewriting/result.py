"""What a compaction or a clustering did, as the caller gets it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from hudi_py.model.records import CommitMetadata
from hudi_py.model.shown import Shown


@attrs.frozen(kw_only=True, repr=False)
class RewriteResult(Shown):
    """
    Result of a service that rewrote file slices.

    Args:
        instant: Requested time of the service.
        metadata: Metadata of its commit, as stored.
        file_groups: Number of file groups that were rewritten.
        rows: Number of rows in the new files.
        bytes_before: Bytes of the files that were read.
        bytes_after: Bytes of the files that were written.
        seconds: Duration in seconds.
        left: Number of file groups that limits of the plan left for the next one, where it was made in the same run.
        superseded: Whether another process completed the same plan first; its commit counts, ours was not written.
    """

    instant: str
    metadata: CommitMetadata
    file_groups: int
    rows: int
    bytes_before: int
    bytes_after: int
    # Not compared, because no two runs take the same time.
    seconds: float = attrs.field(default=0.0, eq=False)
    left: int = 0
    superseded: bool = False

    def _facts(self) -> Mapping[str, object]:
        done = {"instant": self.instant, "file_groups": self.file_groups, "rows": self.rows}
        sizes = {"bytes_before": self.bytes_before, "bytes_after": self.bytes_after}
        return done | sizes | ({"superseded": True} if self.superseded else {})

    def _listed(self) -> Iterable[tuple[object, ...]]:
        stats = self.metadata.partition_to_write_stats.values()
        return ((stat.path, stat.num_writes) for of_partition in stats for stat in of_partition)
