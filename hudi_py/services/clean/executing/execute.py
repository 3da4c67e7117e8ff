"""
Carries out a stored clean plan.

What a crash leaves after each step, and what the next clean does:

1. only ``.clean.requested``: the plan is carried out from the start;
2. ``.clean.inflight`` too, some files are deleted: it is carried out again; missing files are not an error;
3. all files are deleted, the metadata table may be updated, but the clean is not completed: the same;
4. the clean is completed: nothing is left to do.

The plan is always the one in ``.clean.requested``; a clean never plans twice. `recheck` checks whether the plan is
still right: under the table's lock before the clean becomes inflight, and again before each round of deletions.
Deletions run without the lock, because a million of them may take hours. That is safe because hudi_py does not undo
commits or create savepoints that need planned files beside an inflight clean. If a planned file is needed, a requested
plan is withdrawn; an inflight one is finished without that file, and only deleted files are recorded.

Source: rules/table-services A.7, A.8; docs/decisions/stale-clean-plans.md.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Final

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.engine.base import Engine
from hudi_py.errors import AlreadyExists, ConflictError, StorageError
from hudi_py.fsview.needs import Needed, Savepoint
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.holes import Holes, holes_of
from hudi_py.model.instant import Action, Instant, State, advance
from hudi_py.model.lease import floor_of
from hudi_py.model.records import CleanerPlan, CleanMetadata
from hudi_py.runtime.clock import Deadline
from hudi_py.runtime.log import log
from hudi_py.services.clean.executing.partitions import delete_partitions
from hudi_py.services.clean.executing.quarantined import deleter_of
from hudi_py.services.clean.executing.recheck import Recheck, covers, recheck_of
from hudi_py.services.clean.executing.tasks import delete_files, tasks_of
from hudi_py.services.clean.executing.watch import Reporter, WatchedEngine
from hudi_py.services.clean.memory.leftovers import LEFTOVERS, Leftovers, after_clean, remember_leftovers
from hudi_py.services.clean.planning.plan import SAVEPOINTED_TIMES
from hudi_py.services.clean.planning.stored_plan import Names, is_partial
from hudi_py.services.clean.result import CleanResult, Outcome, metadata_of, together
from hudi_py.storage.deleters import Deleter
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import Permit
from hudi_py.timeline.policy_file import PROPERTY
from hudi_py.timeline.properties_file import read_properties
from hudi_py.txn.commit import Begun, Requested

TASK_FILES_MAX_TIMED: Final = 500  # where the time is limited: it is looked at between rounds of tasks
_COMPLETIONS_MAX: Final = 10


def execute_clean(
    contents: Contents,
    engine: Engine,
    config: CleanConfig,
    metadata_table: MetadataTableKeeper,
    instant: Instant,
    deadline: Deadline,
    reporter: Reporter,
    *,
    partitions: frozenset[str] | None = None,
    is_held: bool = False,
    policy: str | None = None,
) -> CleanResult:
    """
    Carry out one pending clean.

    Args:
        contents, engine, config, metadata_table, reporter: As `CleanService`.
        instant: The clean.
        deadline: Time limit of the run.
        partitions: Paths of the partitions that the table still has; None for all.
        is_held: Whether its plan was just made, and the newest files of its groups were checked for it.
        policy: As `Recheck`.

    Raises:
        CorruptMetadata, RefusedError: The stored plan is damaged or points outside the table, an instant that decides
            about its files is damaged, or a commit is being undone; nothing more was deleted.
        StorageError: The storage fails, or refuses all files at the first attempt; the clean stays inflight and the
            next one tries again.
    """
    store = contents.store
    recheck = recheck_of(contents, instant, only=partitions, is_held=is_held, engine=engine, policy=policy)
    is_first_attempt = instant.state is State.REQUESTED
    engine = engine.prepared(store.storage, sum(map(len, recheck.names.values())))
    # After the engine was prepared: starting Spark may take long, and the judgement should be fresh.
    began = _begin(recheck)
    if isinstance(began, CleanResult):
        return began
    begun, permit = began
    instant, names = begun.instant, recheck.left()
    # What failed before is expected to fail again, and does not point to wrong access.
    known = LEFTOVERS.load(store.storage)
    if reporter.is_heard:
        reporter.begin("delete", instant=instant.requested_time, total=sum(map(len, names.values())))
        engine = WatchedEngine(engine, reporter)
    started = store.clock.now()
    deleter = deleter_of(store, config, instant, names, recheck.plan.partitions_to_delete)
    outcome = _delete(recheck, engine, config, names, deadline, permit, deleter)
    # Only at the first attempt: a later one completes without such files, or they would block all cleans for ever.
    if is_first_attempt:
        _check_access(outcome, names, known, store.storage.root)
    plan = _as_carried_out(recheck)
    # Folders last, and only when no file is left: a folder with its metafile deleted would hide remaining files.
    gone = {} if outcome.left else delete_partitions(contents, instant, plan.partitions_to_delete, permit, deleter)
    elapsed_ms = max(0, int((store.clock.now() - started).total_seconds() * 1000))
    metadata = metadata_of(instant, plan, outcome, frozenset(gone), config, elapsed_ms)
    log.info(
        "clean.files.deleted",
        instant=instant.requested_time,
        files_deleted=metadata.total_files_deleted,
        files_failed=len(outcome.failed),
        files_left=outcome.left,
        elapsed_ms=elapsed_ms,
    )
    result = CleanResult(
        instant=instant.requested_time,
        metadata=metadata,
        missing_files=tuple(sorted(outcome.missing)),
        failed_files=tuple(sorted(outcome.failed)),
        side_files_left=tuple(sorted(outcome.side_files)),
        is_finished=not outcome.left,
        why_spared=recheck.why,
        is_partial=is_partial(recheck.plan),
        deleted=together(outcome.deleted, gone),
        spared=recheck.spared,
        bytes_freed=reporter.freed(instant.requested_time, outcome.deleted),
    )
    if not outcome.left:
        result = _finish(contents, metadata_table, begun, result, outcome, names, known)
    if reporter.is_heard:
        reporter.finish()
    return result


def _finish(
    contents: Contents,
    metadata_table: MetadataTableKeeper,
    begun: Begun,
    result: CleanResult,
    outcome: Outcome,
    names: Names,
    known: Leftovers,
) -> CleanResult:
    """Remember files that could not be deleted, then publish the clean."""
    refused = {**outcome.failed, **outcome.side_files}
    for path, why in islice(refused.items(), 3):
        log.warning("clean.file.refused", instant=result.instant, path=path, reason=why)
    # First, because a completed clean is never looked at again: after a crash in between, no plan would name these
    # files.
    remember_leftovers(contents.store.storage, known, after_clean(known, names, refused))
    return _complete(contents, metadata_table, begun, result)


def _begin(recheck: Recheck) -> tuple[Begun, Permit] | CleanResult:
    """
    Judge the plan and make the clean inflight, both under the lock; a result if nothing is left to do.

    The listings for the judgement may take long, so they are done before; under the lock they are done again only if
    something has changed since.
    """
    contents, instant = recheck.contents, recheck.instant
    store = contents.store
    timeline = recheck.run()
    with store.lock.held(f"clean {instant.requested_time}"):
        if store.lock.is_used:
            timeline = recheck.run()
        found = timeline.find(instant.requested_time, Action.CLEAN)
        if found is not None and found.is_completed:
            return _result(instant, contents.clean(found), superseded=True)
        # Under the lock, as policy and switch are set: from then on, no clean begins.
        properties = read_properties(store.storage)
        if recheck.policy is not None:  # this process may know an older one
            recheck.policy = properties.get(PROPERTY, "")
        if found is None or (found.state is State.REQUESTED and not recheck.is_right):
            return _withdraw(recheck)
        permit = store.deletion.permit(f"clean {instant.requested_time}", properties)
        if not recheck.is_right:
            log.warning(
                "clean.plan.settled",
                instant=instant.requested_time,
                files_spared=recheck.spared_count,
                reason=recheck.why,
            )
        begun = _start(Requested(store, found)) if found.state is State.REQUESTED else Begun(store, found)
        return begun, permit


def _withdraw(recheck: Recheck) -> CleanResult:
    """
    Remove a plan that is no longer valid, and that has not deleted anything, from the timeline.

    That is one file, so a crash leaves either the plan or nothing. To Apache Hudi there was never such a clean.
    """
    store, instant = recheck.contents.store, recheck.instant
    Requested(store, attrs.evolve(instant, state=State.REQUESTED)).remove()
    why = recheck.why or "another process withdrew it"
    log.warning("clean.plan.withdrawn", instant=instant.requested_time, files_needed=recheck.spared_count, reason=why)
    nothing = CleanMetadata(start_clean_time=instant.requested_time, time_taken_ms=0, total_files_deleted=0)
    result = _result(instant, nothing, superseded=False)
    return attrs.evolve(result, is_finished=False, withdrawn=True, why_spared=why, spared=recheck.spared)


def _result(instant: Instant, metadata: CleanMetadata, *, superseded: bool) -> CleanResult:
    """Result of a clean by which this run deleted nothing."""
    return CleanResult(instant=instant.requested_time, metadata=metadata, missing_files=(), superseded=superseded)


def _as_carried_out(recheck: Recheck) -> CleanerPlan:
    """
    The plan as it was carried out, which may differ from the stored one.

    It records savepoints for which files were kept, as a plan made now would (rule A-34): when one is deleted, the next
    clean looks at all partitions again, Apache Hudi's too (rule A-33). A plan by file versions records the current last
    commit if the one it was made with is undone: earlier times may lack files.
    """
    plan = recheck.plan
    if recheck.is_undone and plan.earliest_instant_to_retain is None and recheck.timeline is not None:
        last = recheck.timeline.committed.instants[-1:]
        plan = attrs.evolve(plan, last_completed_commit_timestamp=last[0].requested_time if last else "")
    plan = _back_to_leases(recheck, plan)
    fates = [fate for names in recheck.spared.values() for fate in names.values()]
    held = {need.time for fate in fates if isinstance(fate, Needed) for need in fate.by if isinstance(need, Savepoint)}
    if not held:
        return plan
    known = filter(None, plan.extra_metadata.get(SAVEPOINTED_TIMES, "").split(","))
    times = ",".join(sorted(held.union(each.strip() for each in known)))
    return attrs.evolve(plan, extra_metadata={**plan.extra_metadata, SAVEPOINTED_TIMES: times})


def _back_to_leases(recheck: Recheck, plan: CleanerPlan) -> CleanerPlan:
    """
    The plan, reaching back to the leases that it was made without, as one made with them would.

    Their snapshots stay readable: files that they need were kept, or the plan names none. When they are released, the
    next clean looks at all changes since, Apache Hudi's too; and until then archival leaves what replaced their files
    active.
    """
    # Asked again: a lease that was taken since the last look has seen that this clean takes none of its files.
    leases = [each for each in recheck.contents.store.leases.in_force() if not covers(recheck.plan, each)]
    earliest, floor = plan.earliest_instant_to_retain, floor_of(leases)
    if earliest is None or floor is None:
        return plan
    known = holes_of(plan)
    window = known.window or earliest.requested_time  # of a consumer, only the moment of its progress is promised
    # Not the earliest: a plan that reaches back to one lease promises nothing between that one and its window.
    if floor >= window:
        return plan
    times = {*known.snapshots, *(lease.instant for lease in leases if lease.instant < window)}
    commits = () if recheck.timeline is None else recheck.timeline.commits.completed()
    start = max((commit.requested_time for commit in commits if commit.requested_time <= floor), default=floor)
    start = min(start, earliest.requested_time)
    extra = Holes(window, tuple(sorted(times))).as_extra_metadata(start)
    return attrs.evolve(
        plan,
        earliest_instant_to_retain=attrs.evolve(earliest, requested_time=start),
        extra_metadata={**plan.extra_metadata, **extra},
    )


def _start(requested: Requested) -> Begun:
    """
    Make the clean inflight, unless another process has just done so: deleting twice is harmless (rule A-73).

    The file gets a copy of the plan: 0.15 archival reads it in layout 1, layout 2 tolerates it (rules/timeline 9.4).
    """
    store, instant = requested.store, requested.instant
    plan = store.read_plan(instant)  # a conflict of its own: the clean was withdrawn, or has ended
    try:
        return requested.begin(plan)
    except ConflictError:
        return Begun(store, advance(instant))


def _complete(
    contents: Contents, metadata_table: MetadataTableKeeper, begun: Begun, result: CleanResult
) -> CleanResult:
    """
    Record the clean in the metadata table, then publish it, under the table's lock (rule A-67, F.1).

    Two cleaners may work on one plan (rule A-73). Without a lock they meet in the metadata table, where each continues
    what the other has begun; the one that completes the clean first wins.
    """
    instant = begun.instant
    for attempt in range(_COMPLETIONS_MAX):
        try:
            with begun.ready() as ready:
                ready.record(partial(metadata_table.record_clean, metadata=result.metadata)).publish(result.metadata)
                return result
        except (ConflictError, AlreadyExists) as error:
            done = contents.store.load().find(instant.requested_time, instant.action)
            if done is not None and done.is_completed:
                return attrs.evolve(result, metadata=contents.clean(done), superseded=True)
            if done is None or attempt + 1 == _COMPLETIONS_MAX:
                raise ConflictError(
                    f"{contents.store.storage.root}: {instant} could not be completed, another process is working on "
                    f"it: {error}. Its files are deleted; clean again"
                ) from error
    raise AssertionError("the last attempt returns or raises")


def _delete(
    recheck: Recheck,
    engine: Engine,
    config: CleanConfig,
    names: Names,
    deadline: Deadline,
    permit: Permit,
    deleter: Deleter,
) -> Outcome:
    """
    Delete all files in tasks of about equal size (rule A-64), round by round.

    A round limits the memory, and none begins after the time is up, except for the first. Before all others the
    timeline is read again, so that files that are needed since are kept, and whether deletion is still allowed.
    """
    storage, spared_before = recheck.contents.store.storage, recheck.spared_count
    total = sum(map(len, names.values()))
    # A task with few files costs more to start than it saves; more tasks than slots wait in line.
    width = max(1, min(-(-total // engine.files_min), config.parallelism, engine.slots))
    size_max = TASK_FILES_MAX_TIMED if deadline.is_limited else engine.files_max
    rounds = max(1, -(-total // (width * size_max)))
    size = -(-total // (width * rounds)) or 1
    tasks = tasks_of(storage, names, size, deleter)  # the last round is as wide as the others
    missing: set[str] = set()
    failed: dict[str, str] = {}
    side_files: dict[str, str] = {}
    tried: dict[str, list[str]] = {}
    count = 0
    while count < total and not (tried and deadline.is_over):
        done = count
        round_ = list(islice(tasks, width))
        count += sum(len(some) for task in round_ for _, some in task.files)
        if tried:
            recheck.run()
            permit.check(done=done, total=total)
            round_ = [recheck.without_spared(task) for task in round_]
        for result in engine.map(delete_files, round_, parallelism=width, description="clean: delete files"):
            missing.update(result.missing)
            failed.update(result.failed)
            side_files.update(result.side_files)
        for path, some in (part for task in round_ for part in task.files):
            tried.setdefault(path, []).extend(some)
    left = total - count
    is_whole = not left and recheck.spared_count == spared_before
    tried_files = names if is_whole else tried
    return Outcome(missing=frozenset(missing), failed=failed, left=left, tried=tried_files, side_files=side_files)


def _check_access(outcome: Outcome, names: Names, known: Leftovers, root: str) -> None:
    """
    Raises:
        StorageError: No file could be deleted, so access is probably wrong. If the next attempt finds the same, the
            clean is completed without them, so that it does not block later cleans.
    """
    total = sum(map(len, names.values()))
    expected = all(name in known.get(path, ()) for path, each in names.items() for name in each)
    if outcome.failed and len(outcome.failed) == total and not expected:
        path, why = next(iter(outcome.failed.items()))
        raise StorageError(
            f"none of {total} files could be deleted, the first is {root}/{path}: {why}; the clean stays inflight, "
            "correct the access and run clean again"
        )
