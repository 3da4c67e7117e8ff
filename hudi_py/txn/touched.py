"""Reads what other actions touched, for `hudi_py.txn.conflict`: one request for each action since ours began."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.timeline.contents import Contents
from hudi_py.txn.conflict import Group, Kind, Touched

_APPENDS: Final = frozenset({"INSERT", "BULK_INSERT", "INSERT_PREPPED", "BULK_INSERT_PREPPED"})
LOOKED_UP: Final = "hudi_py.insert.duplicates"
"""Entry of the commit of an insert that dropped or refused known keys: what became of them."""
READS_WIDELY: Final = "hudi_py.write.reads"
"""Entry of the commit of a write that read more than the partitions that it wrote to: by what."""
_KINDS: Final = {"COMPACT": Kind.COMPACTION, "LOG_COMPACT": Kind.LOG_COMPACTION, "CLUSTER": Kind.CLUSTERING}


class Other(NamedTuple):
    """
    Another action.

    Args:
        touched: What it touched.
        schema: Avro schema of the rows that its commit names; None if it names none, or is no completed write of rows.
    """

    touched: Touched
    schema: str | None


def read_others(contents: Contents, candidates: Iterable[Instant]) -> Iterator[Other]:
    """
    Read what actions touched; those that look for conflicts themselves before they complete are left out.

    Args:
        contents: Contents of the timeline.
        candidates: Completed writes, planned rewrites, and for a rewrite that gives way, pending writes.

    Raises:
        CorruptMetadata: A commit or a plan is damaged, so that it is unknown what it touched.
        ConflictError: It was archived or rolled back at this moment.
    """
    for instant in candidates:
        if instant.is_completed:
            metadata = contents.commit(instant)
            schema = metadata.extra_metadata.get("schema")
            touched = touched_by(instant, metadata)
            yield Other(touched, None if touched.kind.is_rewrite else schema or None)
            continue
        planned = _planned(contents, instant)
        if planned is not None:
            yield Other(planned, None)


def touched_by(instant: Instant, metadata: CommitMetadata) -> Touched:
    """
    Return what a commit touched.

    Args:
        instant: The commit.
        metadata: Its content; that of an inflight write has statistics as planned.
    """
    stats = [
        (path, stat) for path, of_path in metadata.partition_to_write_stats.items() for stat in of_path if stat.file_id
    ]
    replaced = {
        (path, file_id) for path, ids in (metadata.partition_to_replace_file_ids or {}).items() for file_id in ids
    }
    kind = kind_of(metadata)
    return Touched(
        instant=instant,
        kind=kind,
        groups=frozenset((path, str(stat.file_id)) for path, stat in stats) | replaced,
        with_base=frozenset((path, str(stat.file_id)) for path, stat in stats if stat.log_version is None) | replaced,
        added=frozenset() if kind.is_rewrite else frozenset(path for path, stat in stats if _adds(stat)),
        changed=frozenset() if kind.is_rewrite else frozenset(path for path, stat in stats if _changes(stat)),
        removed=frozenset() if kind.is_rewrite else _removed(stats, replaced),
        # What an insert has dropped because of a known key, it has read and not written.
        reads_widely=any(metadata.extra_metadata.get(name) for name in (READS_WIDELY, LOOKED_UP)),
    )


def kind_of(metadata: CommitMetadata) -> Kind:
    """Return what a commit does to rows; an operation that hudi_py does not know changes them."""
    operation = (metadata.operation_type or "").upper()
    if operation in _APPENDS:
        # One that looked its keys up wrote what it wrote because nobody else had.
        return Kind.WRITE if metadata.extra_metadata.get(LOOKED_UP) else Kind.APPEND
    if metadata.compacted and operation not in _KINDS:
        return Kind.COMPACTION
    return _KINDS.get(operation, Kind.WRITE)


def _adds(stat: WriteStat) -> bool:
    return stat.num_inserts > 0 or _is_untold(stat)


def _changes(stat: WriteStat) -> bool:
    return stat.num_update_writes > 0 or _is_untold(stat)


def _removed(stats: Iterable[tuple[str, WriteStat]], replaced: Iterable[Group]) -> frozenset[str]:
    deleted = {path for path, stat in stats if stat.num_deletes > 0 or _is_untold(stat)}
    return frozenset(deleted.union(path for path, _ in replaced))


def _is_untold(stat: WriteStat) -> bool:
    """Whether a log file's statistics do not say what its rows do: older releases count them as written only."""
    counted = stat.num_inserts > 0 or stat.num_update_writes > 0 or stat.num_deletes > 0
    return stat.log_version is not None and not counted


def _planned(contents: Contents, instant: Instant) -> Touched | None:
    if instant.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        operations = contents.compaction_plan(instant).operations
        groups = frozenset((operation.partition_path or "", operation.file_id or "") for operation in operations)
        kind = Kind.COMPACTION if instant.action is Action.COMPACTION else Kind.LOG_COMPACTION
        return Touched(instant=instant, kind=kind, groups=groups, with_base=groups)
    if instant.action in (Action.CLUSTERING, Action.REPLACE_COMMIT):
        # An overwrite of layout 1 looks for conflicts itself before it completes.
        if not contents.is_clustering(instant):
            return None
        plan = contents.requested_replace(instant).clustering_plan
        groups = frozenset() if plan is None else plan.file_groups
        return Touched(instant=instant, kind=Kind.CLUSTERING, groups=groups, with_base=groups)
    content = contents.store.read(instant)  # of a write that is planned, if its writer tells
    return touched_by(instant, contents.commit(instant)) if content else None
