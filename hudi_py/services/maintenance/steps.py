"""The steps of a maintenance run, by the methods of the opened table that do them."""

from __future__ import annotations

from collections.abc import Callable
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
    storage: Any

    @property
    def rehearsed(self) -> Callable[..., Any]: ...
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


def works(table: Maintained, budget: RunBudget, *, rehearses: bool = False) -> list[Work]:
    """
    All steps, in order.

    Args:
        table: The opened table; for a rehearsal one that forgets what is changed.
        budget: What the run may delete, and how long it may take.
        rehearses: Whether the steps are those of a dry run: they tell what would be done, and rows are not rewritten.
    """
    settings = table.settings
    tags = any(settings[key] for key in (keys.TAGS_HOURLY, keys.TAGS_DAILY, keys.TAGS_WEEKLY, keys.TAGS_MONTHLY))
    left_open: list[str] = []  # steps of a rehearsal that are due and were not carried out

    def forbidden() -> ChoreResult | None:
        why = table.deletion_forbidden
        return None if why is None else ChoreResult(f"left out, no data is deleted: {why}", is_due=False)

    # Also where deletion is forbidden: no reader was ever shown what they wrote.
    def roll_back() -> ChoreResult:
        undone, left = table.roll_back_dead_writes()
        deleted = sum(each.total_files_deleted for each in undone)
        budget.spend(deleted, 0)  # counts for the clean, too; bytes are not known
        times = [time for each in undone for time in each.commits_rollback]
        told = ["failed writes"] if times else []
        told += [f"{counted(len(left), 'pending write')} left alone"] if left else []
        why = "a failed write, which would be rolled back" if rehearses else "a failed write, rolled back"
        files = {**dict.fromkeys(sorted(times), why), **left}  # those that are left are told, and are nothing to do
        return ChoreResult(", ".join(told) or "none", files, is_due=bool(times), deleted=deleted)

    def clean_ahead() -> ChoreResult:
        """What the clean would do, with the reason for each file; it may name more than then goes."""
        services = table.services
        service = services.clean(services.clean_config(**budget.limits(table.settings)))
        pending = [outlook(service.contents, each, service.policy) for each in table.timeline.pending(Action.CLEAN)]
        files = {path: f"{each.instant} is pending and would be finished" for each in pending for path in each.files}
        whys = [] if all(each.is_withdrawn for each in pending) else ["a pending clean"]
        if plans_too(pending, service.config):
            plan = service.plan()
            if plan.would_schedule:
                whys = whys or ["files that the retention does not keep"]
                files |= {file.path: file.reason.value for group in plan.files.values() for file in group}
            elif not whys:
                whys = ["nothing to delete" if plan.needs_cleaning else "too few commits since the last clean"]
        return ChoreResult(", ".join(whys), files)

    def clean() -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        ahead = clean_ahead() if rehearses else None
        # Sizes are read for whoever hears of the progress.
        hears = {} if budget.size_bytes is None else {"on_progress": lambda _: None}
        config = table.services.clean_config(**budget.limits(table.settings))
        service = table.services.clean(config, **hears)
        # A step of its own does that, within what is left of the budget.
        results = table.run_clean(attrs.evolve(service, empties_quarantine=False), failed_writes=False)
        for each in results:
            budget.spend(each.deleted_count, each.bytes_freed)
        if not results:
            return ChoreResult("nothing to delete" if ahead is None else ahead.why, is_due=False)
        gone = [(path, f"clean {each.instant} removed it") for each in results for path in each.deleted_files]
        deleted = sum(each.deleted_count for each in results)
        if ahead is None:
            return ChoreResult(", ".join(f"clean {each.instant}" for each in results), dict(gone), deleted=deleted)
        files = {path: ahead.files.get(path, "the clean would remove it") for path, _ in gone}
        return ChoreResult(ahead.why, files, deleted=deleted)

    def create_tags() -> ChoreResult:
        files = {tag.requested_time: "the last commit of a period" for tag in table.create_due_tags()}
        return ChoreResult("tags by the schedule" if files else "none is due", files, is_due=bool(files))

    def expire() -> ChoreResult:
        plan = table.expire_partitions().plan
        files = {verdict.path: verdict.reason for verdict in plan.verdicts if verdict.expires}
        return ChoreResult(plan.rule, files, is_due=bool(files))

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

    def rewrite(rewriting: Callable[..., Any]) -> ChoreResult:
        files = {done.instant: "carried out" for done in rewriting()}
        return ChoreResult("carried out" if files else "nothing to do", files, is_due=bool(files))

    def compact_logs() -> ChoreResult:
        stay = {each.instant for each in table.services.log_compaction().left_pending(table.timeline)}
        pending = [each.requested_time for each in table.timeline.pending(Action.LOG_COMPACTION) if each not in stay]
        files = {done.instant: "carried out" for done in table.compact_logs()}
        files = {time: "withdrawn, others changed its file slices" for time in pending if time not in files} | files
        return ChoreResult("carried out" if files else "nothing to do", files, is_due=bool(files))

    def quarantine() -> ChoreResult:
        left_out = forbidden()
        if left_out is not None:
            return left_out
        files = dict.fromkeys(table.empty_quarantine(may=budget.take), "the time to put it back is over")
        # After the run as well: what did not fit into the budget must not look like nothing.
        left = table.empty_quarantine(dry_run=True)
        if left:
            room = f"left for the next run with room for them, each as a whole: {', '.join(left)}"
            return ChoreResult(f"removals; {room}" if files else room, files, is_left=not files)
        return ChoreResult("removals" if files else "nothing is over", files, is_due=bool(files))

    def remove_tags() -> ChoreResult:
        gone = table.remove_expired_savepoints()
        files = {each.requested_time: "its time to live is over" for each in gone}
        return ChoreResult("expired savepoints" if gone else "none has expired", files, is_due=bool(gone))

    # Without arguments: the limits of the settings count, as after a write.
    def archive() -> ChoreResult:
        done = table.archive()
        files = {str(instant): "old" if rehearses else "moved to the archive" for instant in done.instants}
        return ChoreResult("old instants" if files else "nothing to archive", files, is_due=bool(files))

    def orphans() -> ChoreResult:
        # Never removed from here: a file that no instant knows may belong to a writer that is not known either, so a
        # person has to look at the list first.
        report = table.orphans(dry_run=True)
        files = {verdict.file.path: verdict.why_kept or verdict.reason for verdict in report.verdicts}
        why = "; ".join(report.doubts) or ("hudi-py orphans removes them" if files else "none")
        return ChoreResult(why, files, is_due=bool(report.to_remove))

    def planned_only(
        step: Chore, plan: Callable[[], ChoreResult], act: Callable[[], ChoreResult], service: str
    ) -> Work:
        """A step that reads and writes rows: too much for memory, so a rehearsal plans it, and says so behind it."""

        def planned() -> ChoreResult:
            found = plan()
            # It raises what speaks against it, on another rehearsal: this one goes on as if nothing had been planned.
            # What is pending, here or before, and not rehearsed may yet take that out of the way, or bring it about.
            if found.is_due and not found.files and not left_open:
                getattr(table.rehearsed().services, service)().schedule()
            if found.is_due:
                left_open.append(step.value)
            return found

        return told(Work(step, planned if rehearses else act))

    def told(work: Work) -> Work:
        """Say with what is found which steps before it were due and not rehearsed, or not to their end."""

        def act() -> ChoreResult:
            before = list(left_open)
            found = work.act()
            before += [f"{path} is written" for path in table.storage.too_large] if rehearses else []
            if not before:
                return found
            why = f"{found.why}; as far as is known before {', '.join(before)}, not rehearsed here"
            return attrs.evolve(found, why=why)

        return attrs.evolve(work, act=act)

    found = [Work(Chore.FAILED_WRITES, roll_back), Work(Chore.TAGS, remove_tags)]
    if tags:
        # Before the clean, which may delete files of the commits to tag.
        found.append(Work(Chore.DUE_TAGS, create_tags))
    found.append(Work(Chore.CLEAN, clean, deletes=True))
    if settings[keys.PARTITION_TTL_DAYS] > 0:
        # After the clean: so what the clean shows is what it takes of the table that was looked at.
        found.append(Work(Chore.PARTITIONS, expire))
    if settings[keys.COMPACT_INLINE] and table.is_merge_on_read:
        plan = partial(plan_compaction, logs=False)
        found.append(planned_only(Chore.COMPACTION, plan, partial(rewrite, table.compact), "compaction"))
    if settings[keys.LOG_COMPACTION_INLINE] and table.is_merge_on_read:  # after the compaction, as in Hudi (G-5)
        plan = partial(plan_compaction, logs=True)
        found.append(planned_only(Chore.LOG_COMPACTION, plan, compact_logs, "log_compaction"))
    if settings[keys.CLUSTERING_INLINE]:
        every = settings[keys.CLUSTERING_INLINE_COMMITS]  # as after a commit; `Table.cluster` plans at any time
        act = partial(rewrite, lambda: table.services.clustering().run(every))
        found.append(planned_only(Chore.CLUSTERING, partial(plan_clustering, every), act, "clustering"))
    return [
        *found,
        told(Work(Chore.ARCHIVAL, archive)),
        Work(Chore.QUARANTINE, quarantine, deletes=True),
        Work(Chore.ORPHANS, orphans, reports=True),
    ]
