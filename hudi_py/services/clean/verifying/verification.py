"""Compares a plan with that of the second planner before anything is stored. Reads, never writes."""

from __future__ import annotations

from datetime import timedelta, tzinfo

from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.config.table import TableConfig, TableType
from hudi_py.errors import RefusedError
from hudi_py.fsview.held import HeldFiles
from hudi_py.fsview.listing import FolderListing, Listing
from hudi_py.fsview.loader import load_clustered_files, load_savepoints
from hudi_py.model.files import PARTITION_METAFILE, join_path
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import time_before
from hudi_py.services.clean.planning.plan import CleanPlan
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.services.clean.verifying.verify import Disagreement, More, PendingCompaction, Roots, garbage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def load_roots(
    contents: Contents,
    table: TableConfig,
    config: CleanConfig,
    timeline: Timeline,
    limit: str,
    more: More | None = None,
) -> Roots:
    """
    Collect the roots, from which files are reached.

    Args:
        contents: Reads the table's instants.
        table: The table's properties.
        config: The settings of the clean.
        timeline: The active timeline.
        limit: The instant time at which the window by hours begins; unused otherwise.
        more: Further roots besides the policy's.

    Raises:
        CorruptMetadata: An instant does not decode; then nothing is known to be garbage.
    """
    savepointed = dict(HeldFiles(*load_savepoints(timeline, contents).values()))
    # What a pending clustering reads is kept as firmly as what a savepoint names.
    for path, name in load_clustered_files(timeline, contents):
        savepointed[path] = savepointed.get(path, frozenset()) | {name}
    compactions = {
        (operation.partition_path or "", operation.file_id or ""): PendingCompaction(
            instant.requested_time,
            operation.base_instant_time or "",
            instant.action is Action.LOG_COMPACTION,
            frozenset(
                name.rpartition("/")[2] for name in (operation.data_file_path, *operation.delta_file_paths) if name
            ),
        )
        for instant in timeline.pending(Action.COMPACTION, Action.LOG_COMPACTION)
        for operation in contents.compaction_plan(instant).operations
    }
    replaced: dict[tuple[str, str], str] = {}
    for instant in timeline.completed(Action.REPLACE_COMMIT):
        for path, file_ids in (contents.commit(instant).partition_to_replace_file_ids or {}).items():
            replaced.update(((path, file_id), instant.requested_time) for file_id in file_ids)
    actions = {Action.COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING}
    if table.table_type is TableType.MERGE_ON_READ:
        actions.add(Action.DELTA_COMMIT)
    return Roots(
        log_naming=table.format.log_naming,
        instants=timeline.instants,
        table_actions=frozenset(actions),
        policy=config.policy.value,
        retained={
            CleanPolicy.KEEP_LATEST_COMMITS: config.commits_retained,
            CleanPolicy.KEEP_LATEST_BY_HOURS: config.hours_retained,
            CleanPolicy.KEEP_LATEST_FILE_VERSIONS: config.file_versions_retained,
        }[config.policy],
        limit=limit,
        savepointed=savepointed,
        compactions=compactions,
        replaced=replaced,
        more=more or More(),
    )


def _more(config: CleanConfig, seen: Situation, zone: tzinfo) -> More:
    beside = config.age_beside
    spans = (config.changes_retained, config.floor if config.max_old_bytes is not None else None)
    return More(
        cut_off=config.older_than,
        limit=None if beside is None else time_before(seen.now, beside, zone),
        is_patient=config.age_retained is not None,
        spans=tuple(time_before(seen.now, span, zone) for span in spans if span is not None),
        shortened=seen.shortened,
        floor=config.min_commits or 0,
        ceiling=config.max_commits or 0,
        versions=config.min_file_versions or 0,
        times=seen.whole_times,
        daily=config.keep_daily,
        weekly=config.keep_weekly,
        monthly=config.keep_monthly,
        read=tuple((lease.instant, frozenset(lease.pending)) for lease in seen.leases if not lease.is_consumer),
        since=tuple((each.instant, frozenset(each.pending)) for each in seen.leases if each.is_consumer),
    )


def compare(
    contents: Contents,
    table: TableConfig,
    config: CleanConfig,
    seen: Situation,
    plan: CleanPlan,
    partitions: tuple[str, ...] | None,
) -> Disagreement:
    """
    The files on which *plan* and the second planner disagree.

    It lists the folders themselves: a metadata table with wrong entries must not cost a file.

    Args:
        contents: Reads the table's instants.
        table: The table's properties.
        config: The settings of the clean.
        seen: The situation that the plan was made from.
        plan: The plan to compare.
        partitions: The partitions that the plan examined; None for all.
    """
    zone = contents.store.zone
    span = config.age_retained or timedelta(hours=min(config.hours_retained, 24 * 366 * 9999))  # all the calendar has
    limit = time_before(seen.now, span, zone)
    roots = load_roots(contents, table, config, seen.timeline, limit, _more(config, seen, zone))
    folders = FolderListing(contents.store.storage)
    walked = (
        folders.walk(named=plan.files)
        if partitions is None
        else ((path, folders.partition(path)) for path in partitions)
    )
    going = _going(contents, seen.timeline)
    reached: list[str] = []
    missed: list[str] = []
    examined: set[str] = set()
    for path, entries in walked:
        examined.add(path)
        names = frozenset(entry.name for entry in entries)
        planned = frozenset(file.path.rpartition("/")[2] for file in plan.files.get(path, ()))
        unreached = garbage(roots, path, names | going.get(path, frozenset()))
        # Only files that exist: to plan a file that was deleted meanwhile costs nothing.
        reached += [join_path(path, name) for name in sorted((planned & names) - unreached)]
        if not plan.is_partial:  # a partial plan leaves garbage on purpose
            # A file that the metadata table does not list is in no plan, and the planner is not wrong about it.
            listed = names if seen.listing.is_fresh else _listed(seen.listing, path)
            missed += [join_path(path, name) for name in sorted((unreached & listed) - planned)]
        if path in plan.partitions_to_delete:
            # The partition is deleted with all that is in its folder, planned or not.
            left = sorted(name for name in names - planned if not name.startswith(PARTITION_METAFILE))
            reached += [join_path(path, name) for name in left]
    # Planned in partitions that no walk has found: nothing can be said for deleting those.
    strangers = (set(plan.files) | set(plan.partitions_to_delete)) - examined
    reached += [file.path for path in sorted(strangers) for file in plan.files.get(path, ())]
    return Disagreement(tuple(reached), tuple(missed))


def check(disagreement: Disagreement, root: str) -> None:
    """
    Raises:
        RefusedError: The planners disagree; nothing was written.
    """
    if disagreement:
        raise RefusedError(
            f"{root}: two independent planners disagree, so nothing was planned and nothing was deleted: "
            f"{disagreement}. Please report it with the output of hudi-py timeline --contents; "
            "hoodie_py.clean.verify=false cleans without the second planner"
        )


def _going(contents: Contents, timeline: Timeline) -> dict[str, frozenset[str]]:
    """Files of pending cleans, by partition. Some may be deleted already, but still count as versions."""
    going: dict[str, frozenset[str]] = {}
    for instant in timeline.pending(Action.CLEAN):
        for path, files in contents.clean_plan(instant).files_to_delete.items():
            going[path] = going.get(path, frozenset()) | frozenset(file.name for file in files)
    return going


def _listed(listing: Listing, path: str) -> frozenset[str]:
    return frozenset(entry.name for entry in listing.partition(path))
