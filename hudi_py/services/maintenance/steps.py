"""The steps of a maintenance run, by the methods of the opened table that do them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Protocol

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.model.instant import Action
from hudi_py.model.words import counted
from hudi_py.services.clean.executing.outlook import outlook, plans_too
from hudi_py.services.maintenance.budget import RunBudget
from hudi_py.services.maintenance.service import Chore, ChoreResult, Work
from hudi_py.services.maintenance.tags_ahead import left_by
from hudi_py.timeline.timeline import Timeline


class Maintained(Protocol):
    """What a run asks of an opened table; see `hudi_py.Table`."""

    @property
    def timeline(self) -> Timeline: ...
    @property
    def run_clean(self) -> Callable[..., Any]: ...
    @property
    def archive(self) -> Callable[..., Any]: ...
    @property
    def orphans(self) -> Callable[..., Any]: ...
    @property
    def deletion_forbidden(self) -> str | None: ...

    settings: Settings

    @property
    def is_merge_on_read(self) -> bool: ...
    @property
    def create_due_tags(self) -> Callable[..., Any]: ...
    @property
    def expire_partitions(self) -> Callable[..., Any]: ...
    @property
    def compact(self) -> Callable[..., Any]: ...
    @property
    def compact_logs(self) -> Callable[..., Any]: ...
    @property
    def services(self) -> Any: ...
    @property
    def empty_quarantine(self) -> Callable[..., Any]: ...
    @property
    def roll_back_dead_writes(self) -> Callable[..., Any]: ...
    @property
    def remove_expired_savepoints(self) -> Callable[..., Any]: ...


def works(table: Maintained, budget: RunBudget) -> list[Work]:
    """
    All steps, in order.

    Args:
        table: The opened table.
        budget: What the run may delete, and how long it may take.
    """
    settings = table.settings
    tags = any(settings[key] for key in (keys.TAGS_HOURLY, keys.TAGS_DAILY, keys.TAGS_WEEKLY, keys.TAGS_MONTHLY))

    def forbidden() -> ChoreResult | None:
        why = table.deletion_forbidden
        return None if why is None else ChoreResult(f"left out, no data is deleted: {why}", is_due=False)

    # Also where deletion is forbidden: no reader was ever shown what they wrote.
    def failed_writes() -> ChoreResult:
        due = table.services.failed_writes().due_with_maintenance()
        return _failed(due.dead, due.left, "a failed write, which would be rolled back")

    def roll_back() -> ChoreResult:
        undone, left = table.roll_back_dead_writes()
        deleted = sum(each.total_files_deleted for each in undone)
        budget.spend(deleted, 0)  # counts for the clean, too; bytes are not known
        times = [time for each in undone for time in each.commits_rollback]
        return attrs.evolve(_failed(times, left, "a failed write, rolled back"), deleted=deleted)

    def plan_clean() -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        services = table.services
        service = services.clean(services.clean_config(**budget.limits(table.settings)))
        pending = [outlook(service.contents, each, service.policy) for each in table.timeline.pending(Action.CLEAN)]
        files = {path: f"{each.instant} is pending and would be finished" for each in pending for path in each.files}
        whys = [] if all(each.is_withdrawn for each in pending) else ["a pending clean"]
        if plans_too(pending, service.config):
            plan = service.plan()
            # As the step before will have made them by then.
            due = services.savepoint().creatable_tags(services.tag_schedule) if plan.would_schedule and tags else {}
            left = left_by(due.values(), plan.files) if due else plan.files
            if plan.would_schedule and (left or not due):
                whys = whys or ["files that the retention does not keep"]
                files |= {file.path: file.reason.value for group in left.values() for file in group}
            elif due and not whys:
                return ChoreResult("nothing to delete but what the tags that are due keep", is_due=False)
            elif not whys:
                idle = "nothing to delete" if plan.needs_cleaning else "too few commits since the last clean"
                return ChoreResult(idle, is_due=False)
        return ChoreResult(", ".join(whys), files)

    def clean() -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        # Sizes are read for whoever hears of the progress.
        hears = {} if budget.size_bytes is None else {"on_progress": lambda _: None}
        config = table.services.clean_config(**budget.limits(table.settings))
        service = table.services.clean(config, **hears)
        # A step of its own does that, within what is left of the budget.
        results = table.run_clean(attrs.evolve(service, empties_quarantine=False), failed_writes=False)
        for each in results:
            budget.spend(each.deleted_count, each.bytes_freed)
        files = {path: f"clean {each.instant} removed it" for each in results for path in each.deleted_files}
        if not results:
            return ChoreResult("nothing to delete", is_due=False)
        deleted = sum(each.deleted_count for each in results)
        return ChoreResult(", ".join(f"clean {result.instant}" for result in results), files, deleted=deleted)

    def due_tags() -> ChoreResult:
        due = table.services.savepoint().creatable_tags(table.services.tag_schedule)
        files = {each.requested_time: "the last commit of a period" for each in due}
        return ChoreResult("tags by the schedule" if files else "none is due", files, is_due=bool(files))

    def create_tags() -> ChoreResult:
        files = {tag.requested_time: "the last commit of a period" for tag in table.create_due_tags()}
        return ChoreResult("tags by the schedule" if files else "none is due", files, is_due=bool(files))

    def expire(*, dry_run: bool) -> ChoreResult:
        report = table.expire_partitions(dry_run=dry_run)
        files = {verdict.path: verdict.reason for verdict in report.plan.verdicts if verdict.expires}
        return ChoreResult(report.plan.rule, files, is_due=bool(files))

    def plan_compaction(*, logs: bool) -> ChoreResult:
        service = table.services.log_compaction() if logs else table.services.compaction()
        stay = {each.instant for each in service.left_pending(table.timeline)}
        pending = table.timeline.pending(service.action)
        files = {each.requested_time: "pending" for each in pending if each not in stay}
        planned = service.plan()
        is_due = bool(files) or planned.would_schedule
        return ChoreResult("log files to compact" if is_due else planned.reason, files, is_due=is_due)

    def plan_clustering(every: int) -> ChoreResult:
        service = table.services.clustering()
        stay = {each.instant for each in service.left_pending(table.timeline)}
        files = {each.requested_time: "pending" for each in service.pending(table.timeline) if each not in stay}
        is_due = bool(files) or (service.is_due(every) and bool(service.plan().groups))
        return ChoreResult("files to cluster" if is_due else "nothing to do", files, is_due=is_due)

    def rewrite(rewriting: Callable[..., Any]) -> Callable[[], ChoreResult]:
        def act() -> ChoreResult:
            files = {done.instant: "carried out" for done in rewriting()}
            return ChoreResult("carried out" if files else "nothing to do", files, is_due=bool(files))

        return act

    def compact_logs() -> ChoreResult:
        stay = {each.instant for each in table.services.log_compaction().left_pending(table.timeline)}
        pending = [each.requested_time for each in table.timeline.pending(Action.LOG_COMPACTION) if each not in stay]
        files = {done.instant: "carried out" for done in table.compact_logs()}
        files = {time: "withdrawn, others changed its file slices" for time in pending if time not in files} | files
        return ChoreResult("carried out" if files else "nothing to do", files, is_due=bool(files))

    def quarantine(*, dry_run: bool) -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        gone = table.empty_quarantine(dry_run=dry_run) if dry_run else table.empty_quarantine(may=budget.take)
        files = dict.fromkeys(gone, "the time to put it back is over")
        # After the run as well: what did not fit into the budget must not look like nothing.
        left = () if dry_run else table.empty_quarantine(dry_run=True)
        if left:
            room = f"left for the next run with room for them, each as a whole: {', '.join(left)}"
            return ChoreResult(f"removals; {room}" if files else room, files, is_left=not files)
        return ChoreResult("removals" if files else "nothing is over", files, is_due=bool(files))

    def expired_tags() -> ChoreResult:
        expired = table.services.savepoint().expired(table.timeline)
        files = {
            each.requested_time: "its time to live is over" for each, stays_because in expired if not stays_because
        }
        return ChoreResult("expired savepoints" if files else "none has expired", files, is_due=bool(files))

    def remove_tags() -> ChoreResult:
        gone = table.remove_expired_savepoints()
        files = {each.requested_time: "its time to live was over" for each in gone}
        return ChoreResult("expired savepoints" if gone else "none has expired", files, is_due=bool(gone))

    changes_before: list[str] = []

    def plan_archive() -> ChoreResult:
        # As the table is now: to know more, a dry run would have to carry the steps before it out in memory.
        files = {str(instant): "old" for instant in table.services.archive().plan().instants}
        why = "old instants" if files else "nothing to archive"
        if changes_before:
            why += f", as the table is now: what is due before may let more go ({', '.join(changes_before)})"
        return ChoreResult(why, files, is_due=bool(files))

    def noted(work: Work) -> Work:
        """Remember whether the step is due, in a dry run, for what is planned after it."""

        def find() -> ChoreResult:
            found = work.find()
            changes_before.extend([work.step.value] if found.is_due else [])
            return found

        return attrs.evolve(work, find=find)

    # Without arguments: the limits of the settings count, as after a write.
    def archive() -> ChoreResult:
        done = table.archive()
        files = {str(instant): "moved to the archive" for instant in done.instants}
        return ChoreResult("old instants" if files else "nothing to archive", files, is_due=bool(files))

    def orphans() -> ChoreResult:
        # Never removed from here: a file that no instant knows may belong to a writer that is not known either, so a
        # person has to look at the list first.
        report = table.orphans(dry_run=True)
        files = {verdict.file.path: verdict.why_kept or verdict.reason for verdict in report.verdicts}
        why = "; ".join(report.doubts) or ("hudi-py orphans removes them" if files else "none")
        return ChoreResult(why, files, is_due=bool(report.to_remove))

    found = [Work(Chore.FAILED_WRITES, failed_writes, roll_back), Work(Chore.TAGS, expired_tags, remove_tags)]
    if tags:
        # Before the clean, which may delete files of the commits to tag.
        found.append(Work(Chore.DUE_TAGS, due_tags, create_tags))
    found.append(Work(Chore.CLEAN, plan_clean, clean, deletes=True))
    if settings[keys.PARTITION_TTL_DAYS] > 0:
        # After the clean: their commit would move its window past what a dry run has shown.
        found.append(Work(Chore.PARTITIONS, partial(expire, dry_run=True), partial(expire, dry_run=False)))
    if settings[keys.COMPACT_INLINE] and table.is_merge_on_read:
        found.append(Work(Chore.COMPACTION, partial(plan_compaction, logs=False), rewrite(table.compact)))
    if settings[keys.LOG_COMPACTION_INLINE] and table.is_merge_on_read:  # after the compaction, as in Hudi (G-5)
        found.append(Work(Chore.LOG_COMPACTION, partial(plan_compaction, logs=True), compact_logs))
    if settings[keys.CLUSTERING_INLINE]:
        every = settings[keys.CLUSTERING_INLINE_COMMITS]  # as after a commit; `Table.cluster` plans at any time
        found.append(
            Work(
                Chore.CLUSTERING,
                partial(plan_clustering, every),
                rewrite(lambda: table.services.clustering().run(every)),
            )
        )
    return [
        *map(noted, found),
        Work(Chore.ARCHIVAL, plan_archive, archive),
        Work(Chore.QUARANTINE, partial(quarantine, dry_run=True), partial(quarantine, dry_run=False), deletes=True),
        Work(Chore.ORPHANS, orphans),
    ]


def _failed(dead: Collection[str], left: Mapping[str, str], why: str) -> ChoreResult:
    """What is done about pending writes; those that are left are told, and are nothing to do."""
    told = ["failed writes"] if dead else []
    told += [f"{counted(len(left), 'pending write')} left alone"] if left else []
    return ChoreResult(", ".join(told) or "none", {**dict.fromkeys(sorted(dead), why), **left}, is_due=bool(dead))
