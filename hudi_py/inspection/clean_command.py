"""``hudi-py clean``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hudi_py.config import keys
from hudi_py.inspection import complete, render
from hudi_py.inspection.approve_command import list_option, write_list
from hudi_py.inspection.clean_options import clean_options, examine_everything, full_option, tag_option
from hudi_py.inspection.deletion_command import warn_if_forbidden
from hudi_py.inspection.engine_options import chosen_engine, engine_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.lease_command import force_option, forced
from hudi_py.inspection.options import MORE_TO_DO, Common, at_most_one, command
from hudi_py.inspection.progress_bar import clean_bar
from hudi_py.inspection.say import say
from hudi_py.model.words import counted, shell_word

if TYPE_CHECKING:
    from hudi_py.config.clean import CleanConfig
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.model.holes import Holes
    from hudi_py.model.instant import Instant
    from hudi_py.model.records import RollbackMetadata
    from hudi_py.services.clean.executing.outlook import PendingOutlook
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.clean.service import CleanService
    from hudi_py.table import Table

_FAILED_SHOWN_MAX = 20
_FILES_SHOWN_MAX = 500
_PARTITION_FILES_SHOWN_MAX = 50
_SWITCHED_OFF = f"{keys.TABLE_SERVICES_ENABLED.name}=false switches cleaning off"


@click.command()
@click.argument("table", shell_complete=complete.tables)
@clean_options
@full_option
@click.option("--verify", is_flag=True, help="Compare the plan with that of a second planner; if different, stop.")
@click.option("--no-breakers", is_flag=True, help="Clean even if a circuit breaker reports a suspicious plan.")
@force_option
@click.option("--quarantine", is_flag=True, help="Move the files aside, so that hudi-py undo can put them back.")
@tag_option
@click.option("--dry-run", is_flag=True, help="Show the plan; write and delete nothing.")
@list_option
@click.option("--schedule-only", is_flag=True, help="Store the plan; delete nothing yet.")
@click.option("--exit-code", is_flag=True, help="Exit with 7 if a limit of this run left files for the next clean.")
@engine_options("Delete on threads (local), on Spark executors, or on Spark only if there are many files (auto).")
@command
def clean(
    common: Common,
    table: str,
    options: CleanOptions,
    full: bool,
    verify: bool,
    no_breakers: bool,
    force: bool,
    quarantine: bool,
    tag: str | None,
    dry_run: bool,
    list_to: str | None,
    schedule_only: bool,
    exit_code: bool,
    engine: str,
    master: str | None,
) -> None:
    """Delete old files. Removes file slices that the retention does not keep; finishes pending cleans first."""
    # Neither of the two deletes anything, so neither can leave files.
    at_most_one(
        {
            "--dry-run": dry_run,
            "--schedule-only": schedule_only,
            "--exit-code": exit_code,
            "--list": list_to is not None,
        }
    )
    # How files are deleted is not part of a plan or a list: whoever carries it out would delete them for good.
    for option, value in (("--schedule-only", schedule_only), ("--list", list_to is not None)):
        at_most_one({option: value, "--quarantine": quarantine})
        at_most_one({option: value, "--tag": tag})
    opened = (forced(common) if force else common).open(table)
    if full:
        examine_everything(opened)
    opened.settings = opened.settings.merged(
        {
            keys.CLEAN_VERIFY.name: verify or None,
            keys.CLEAN_BREAKERS.name: False if no_breakers else None,
            keys.CLEAN_QUARANTINE.name: quarantine or tag is not None or None,
            keys.QUARANTINE_TAG.name: tag,
        }
    )
    if list_to is not None:
        opened = opened.rehearsal()
        now = common.planning_time(opened)
        write_list(common, opened.list_for_approval("clean", now=now, **options), list_to)
        warn_if_forbidden(opened, "the clean")
        return
    if dry_run:
        # In memory: what a real run would do first (expired savepoints, properties) shows in the plan, and is not
        # written.
        opened = opened.rehearsal()
    now = common.deletion_time(opened, dry_run=dry_run)
    config = opened.services.clean_config(now=now, **options)
    # Spark takes seconds to start, so it is not started when nothing can be deleted.
    deleter = None if dry_run or schedule_only else chosen_engine(engine, master, "hudi-py clean")
    with clean_bar() as on_progress:
        service = opened.services.clean(config, now=now, engine=deleter, on_progress=on_progress)
        plan = service.plan(sizes=True) if dry_run else None
        expired = () if dry_run else service.remove_expired_savepoints()
        scheduled = service.schedule() if schedule_only else None
        undone: list[RollbackMetadata] = []
        results = opened.run_clean(service, on_undone=undone.extend) if not dry_run and not schedule_only else []
    if plan is not None:
        _dry_run(common, opened, service, plan)
    elif schedule_only:
        _scheduled(common, opened, scheduled)
    else:
        _done(common, opened, results, service, expired, undone)
        if exit_code and any(result.has_more_to_do for result in results):
            click.get_current_context().exit(MORE_TO_DO)


def _dry_run(common: Common, opened: Table, service: CleanService, plan: CleanPlan) -> None:
    from hudi_py.inspection.report import plan_stream, readable_by
    from hudi_py.services.clean.executing.outlook import outlook

    # A real run would finish these first, so a dry run has to show them, too.
    pending = [outlook(service.contents, instant, service.policy) for instant in opened.timeline.pending("clean")]
    readable = readable_by(plan, opened)
    failed = sorted(opened.services.failed_writes().due_with_clean() or ())
    if common.as_json:
        document = plan_stream(plan, pending, readable, is_switched_off=not service.config.services_enabled)
        print_json({**document, "failed_writes": failed})
        return
    if failed:
        say(f"failed     {counted(len(failed), 'write')} would be rolled back first: {', '.join(failed)}")
    _print_plan(plan, service, pending, readable)


def _print_plan(plan: CleanPlan, service: CleanService, pending: list[PendingOutlook], readable: Holes) -> None:
    idle = _idle(plan, service.config)
    if service.config.services_enabled:
        _print_pending(pending)
    if service.config.services_enabled and any(not clean.is_withdrawn for clean in pending):
        say("the plan below is for the clean after that, which plans again")
    # Bounded for each partition and as a whole: a plan may have a million files, and a terminal does not.
    rows: list[tuple[str, str, str]] = []
    for partition in sorted(plan.files):
        shown = plan.files[partition][: min(_PARTITION_FILES_SHOWN_MAX, _FILES_SHOWN_MAX - len(rows))]
        rows += [(file.path, render.human_bytes(file.size_bytes), file.reason.value) for file in shown]
        if len(rows) == _FILES_SHOWN_MAX:
            break
    title = "would be deleted" if idle is None else "would be deleted if a clean were due"
    if rows:
        render.table(f"{title} (nothing was written)", ("file", "size", "why"), rows, right=(1,))
    else:
        say("no file would be deleted (nothing was written)")
    if len(rows) < plan.file_count:
        say(
            f"and {counted(plan.file_count - len(rows), 'more file')} in "
            f"{counted(len(plan.files), 'partition')}; --json lists all"
        )
    say()
    # The reasons with most slices first: they tell why a clean frees little.
    kept = [(reason.value, str(count)) for reason, count in sorted(plan.kept.items(), key=lambda item: -item[1])]
    if kept:
        render.table("slices kept", ("why", "slices"), kept, right=(1,))
        say()
    say(f"policy     {service.config.retention}")
    say(f"examined   {plan.scope.reason} ({plan.scope.cost})")
    if readable.window or readable.snapshots:
        at = f"at {', '.join(readable.snapshots)} only" if readable.snapshots else ""
        since = f"from {readable.window} on" if readable.window else "the newest snapshot"
        say(f"readable   {since}{at and f', before that {at}'}, afterwards")
    elif plan.file_count:
        say("readable   the newest snapshot and the savepoints, afterwards; older snapshots may lack files")
    else:
        say("readable   the same snapshots as before")
    say(f"total      {counted(plan.file_count, 'file')}, {render.human_bytes(plan.size_bytes)}")
    for warning in plan.warnings:
        say(f"warning    {warning}")
    for partition, why in plan.refused.items():
        say(f"refused    {counted(len(plan.files[partition]), 'file')} in {partition or 'the table'} would stay: {why}")
    for reason in plan.breakers:
        say(f"refused    {reason}")
    if plan.is_partial:
        say("partial    the limits of this run leave files for the next clean")
    for partition in plan.partitions_to_delete:
        say(f"partition  {partition} would be deleted as a whole")
    if idle is not None:
        say(f"nothing    {idle}")


def _print_pending(pending: list[PendingOutlook]) -> None:
    """Print what the run would delete first: the files of cleans that were planned before."""
    for clean in pending:
        head = f"clean {clean.instant.requested_time} is pending"
        if clean.is_withdrawn:
            say(f"{head}: its plan would be withdrawn, it has deleted nothing: {clean.why_spared}")
            continue
        say(f"{head}: a clean finishes it first and plans nothing new")
        files = list(clean.files.items())
        rows = [(path, render.human_bytes(size), "planned") for path, size in files[:_FILES_SHOWN_MAX]]
        if rows:
            render.table("would be deleted by it (nothing was written)", ("file", "size", "why"), rows, right=(1,))
        if len(files) > len(rows):
            say(f"and {counted(len(files) - len(rows), 'more file')}; --json lists all")
        say(f"pending    {counted(len(files), 'file')}, {render.human_bytes(clean.size_bytes)}")
        for partition, why in clean.refused.items():
            say(f"refused    its files in {partition or 'the table'} would be kept: {why}")
        if clean.spared_files:
            say(
                f"spared     {counted(len(clean.spared_files), 'planned file')} would be kept; the "
                f"first: {clean.why_spared}"
            )
        say()


def _idle(plan: CleanPlan, config: CleanConfig) -> str | None:
    """Return why a clean would do nothing; None if it would do something."""
    if config.services_enabled and plan.would_schedule:
        return None
    return _why_idle(config, is_due=plan.needs_cleaning)


def _why_idle(config: CleanConfig, *, is_due: bool) -> str:
    """Return the end of the sentence "nothing ...": a due clean found no files to delete, or no clean is due."""
    if not config.services_enabled:
        return f"to do: {_SWITCHED_OFF}"
    if is_due:
        return "to delete"
    required = config.trigger_max_commits
    if required == 1:
        return "to do: no commit since the last clean"
    return f"to do: fewer than {keys.CLEAN_TRIGGER_MAX_COMMITS.name}={required} commits since the last clean"


def _scheduled(common: Common, opened: Table, instant: Instant | None) -> None:
    from hudi_py.inspection.instant_entry import instant_entry

    if common.as_json:
        print_json({"scheduled": None if instant is None else instant_entry(instant)})
    elif instant is None:
        say("nothing was scheduled: there is nothing to delete, or a clean is already pending")
    else:
        say(f"scheduled clean {instant.requested_time}; run it with: hudi-py clean {shell_word(opened.storage.root)}")


def _done(
    common: Common,
    opened: Table,
    results: list[CleanResult],
    service: CleanService,
    expired: tuple[Instant, ...],
    undone: list[RollbackMetadata],
) -> None:
    from hudi_py.inspection.report import clean_contents, clean_report

    if common.as_json:
        print_json(clean_report(results, clean_contents(opened, results), expired, undone))
        return
    for each in undone:
        files = counted(each.total_files_deleted, "file")
        say(f"write {', '.join(each.commits_rollback)} had failed and was rolled back: {files} deleted")
    for instant in expired:
        say(f"savepoint {instant.requested_time} has expired and was deleted")
    for result in results:
        if result.withdrawn:
            say(f"clean {result.instant} was withdrawn, it has deleted nothing: {result.why_spared}")
            continue
        word = "was completed by another cleaner" if result.superseded else "completed"
        if result.is_partial:
            word = "completed; a limit of this run left files for the next clean"
        if not result.is_finished:
            word = "is not finished: the time limit was reached, the next clean continues it"
        missing = f", {len(result.missing_files)} had been deleted before" if result.missing_files else ""
        freed = "" if result.bytes_freed is None else f", {render.human_bytes(result.bytes_freed)} freed"
        say(f"clean {result.instant} {word}: {counted(result.deleted_count, 'file')} deleted{freed}{missing}")
        if result.spared_files:
            say(f"spared     {counted(len(result.spared_files), 'planned file')} kept; the first: {result.why_spared}")
        for path in result.failed_files[:_FAILED_SHOWN_MAX]:
            say(f"refused    {path}")
        if result.failed_files:
            say(
                f"           {counted(len(result.failed_files), 'file')} could not be deleted; the "
                "next clean tries them again"
            )
        if result.side_files_left:
            say(
                f"refused    {counted(len(result.side_files_left), 'checksum file')} of deleted files "
                "could not be deleted, such "
                f"as {result.side_files_left[0]}; the next clean tries them again"
            )
    # Which of three reasons it was: switched off, not due, or nothing to delete.
    if not results:
        is_due = service.config.services_enabled and service.planner.situation(to_read=True).trigger.is_due
        say(f"nothing {_why_idle(service.config, is_due=is_due)}")
