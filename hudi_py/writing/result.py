"""The result of a write, as callers get it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.model.shown import Shown
from hudi_py.services.clean.result import CleanResult
from hudi_py.services.rewriting.result import RewriteResult


@attrs.frozen(kw_only=True, repr=False)
class WriteResult(Shown):
    """
    Result of a write.

    Args:
        instant: Requested time of the commit; None if there was nothing to write and ``hoodie.allow.empty.commit`` is
            false.
        metadata: Metadata of the commit, as stored.
        cleans: Results of the clean after the commit; empty if no clean was due.
        compactions: Compactions after the commit, with ``hoodie.compact.inline``; empty if none was due.
        indexes_dropped: Partitions of the metadata table that the write dropped because it could not keep
            them true (``secondary_index_…``), or because ``hoodie.metadata.enable`` is false; sorted.
        clusterings: Clusterings after the commit, with ``hoodie.clustering.inline``; empty if none was due.
        expired_partitions: Partitions that were dropped after the commit, with ``hoodie.partition.ttl.inline``.
        seconds: Duration of each phase in seconds: ``begin``, ``write``, ``commit``, ``services``.
        retries: Number of times that the write was begun again after a conflict.
        conflicts: Why, for each of these times: which action was faster, where, and the rule.
        put_onto: Requested times of the writes that completed while it ran and changed nothing that it read or wrote,
            so that it was completed behind them as it was; only with several writers.
        is_repeated: Whether an earlier write with this write key had been committed, so that nothing was done; then
            *instant* and *metadata* are those of the earlier commit (without metadata if it is archived).
    """

    instant: str | None
    metadata: CommitMetadata
    cleans: tuple[CleanResult, ...] = ()
    compactions: tuple[RewriteResult, ...] = ()
    indexes_dropped: tuple[str, ...] = ()
    clusterings: tuple[RewriteResult, ...] = ()
    expired_partitions: tuple[str, ...] = ()
    # Not compared, because no two writes take the same time.
    seconds: Mapping[str, float] = attrs.field(factory=dict, eq=False)
    retries: int = 0
    conflicts: tuple[str, ...] = ()
    put_onto: tuple[str, ...] = ()
    is_repeated: bool = False

    @property
    def rows_inserted(self) -> int:
        """Number of rows that were added."""
        # A number below 0 says nothing.
        return sum(max(stat.num_inserts, 0) for stat in self._stats())

    @property
    def rows_updated(self) -> int:
        """Number of stored rows that were replaced by a row with the same key."""
        return sum(max(stat.num_update_writes, 0) for stat in self._stats())

    @property
    def rows_deleted(self) -> int:
        """Number of stored rows that were deleted by key; rows of replaced file groups are not counted."""
        return sum(max(stat.num_deletes, 0) for stat in self._stats())

    @property
    def groups_replaced(self) -> int:
        """Number of file groups that were replaced with all their rows, by overwriting or dropping partitions."""
        return sum(map(len, (self.metadata.partition_to_replace_file_ids or {}).values()))

    @property
    def files_written(self) -> int:
        """Number of data files that were written."""
        return sum(1 for _ in self._stats())

    def _stats(self) -> Iterator[WriteStat]:
        for of_partition in self.metadata.partition_to_write_stats.values():
            yield from of_partition

    def _facts(self) -> Mapping[str, object]:
        done = {"instant": self.instant, "operation": self.metadata.operation_type, "files": self.files_written}
        return done | {"cleans": len(self.cleans)}

    def _listed(self) -> Iterable[tuple[object, ...]]:
        return ((stat.path, stat.num_inserts, stat.num_update_writes, stat.num_deletes) for stat in self._stats())
