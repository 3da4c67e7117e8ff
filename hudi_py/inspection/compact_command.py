"""``hudi-py compact``."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.engine_options import chosen_engine, engine_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import ONE_OF_MANY, Common, at_most_one, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted, shell_word

if TYPE_CHECKING:
    from hudi_py.services.compaction.plan import Outlook
    from hudi_py.services.compaction.service import CompactionService
    from hudi_py.services.log_compaction.service import LogCompactionService
    from hudi_py.table import Table

_SHOWN_MAX = 50


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--dry-run", is_flag=True, help="Show the plan; write nothing.")
@click.option("--schedule-only", is_flag=True, help="Store the plan; any process can carry it out later.")
@click.option("--logs", is_flag=True, help="Merge log files into fewer log files, and leave base files as they are.")
@click.option("--execute", metavar="INSTANT", help="Carry out only this pending compaction.")
@click.option("--cancel", metavar="INSTANT", help="Withdraw the plan of this pending compaction.")
@click.option("--exit-code", is_flag=True, help="Exit with 7 if a limit of the plan left file groups for the next one.")
@engine_options("Write base files on threads (local), or on Spark executors; auto: on Spark under spark-submit.")
@command
def compact(
    common: Common,
    table: str,
    dry_run: bool,
    schedule_only: bool,
    execute: str | None,
    cancel: str | None,
    logs: bool,
    exit_code: bool,
    engine: str,
    master: str | None,
) -> None:
    """
    Compact a merge-on-read table. Log files become part of new base files; pending compactions are finished first.

    A compaction is due after hoodie.compact.inline.max.delta.commits delta commits (5); see
    hoodie.compact.inline.trigger.strategy. With --logs a log compaction: small log blocks of a file group become one
    once there are hoodie.log.compaction.blocks.threshold of them (5).
    """
    given = {"--dry-run": dry_run, "--schedule-only": schedule_only, "--execute": execute, "--cancel": cancel}
    at_most_one(given | {"--exit-code": exit_code})
    opened = common.open(table)
    now = common.planning_time(opened)
    if ONE_OF_MANY.get() and not opened.is_merge_on_read and execute is None and cancel is None:
        # Alone it is refused: whoever names this one table is mistaken. Of a lake most tables may be of this kind.
        from hudi_py.inspection.report import rewrite_report

        empty = {"would_schedule": False, "plan": {"operations": []}}
        found = empty if dry_run else rewrite_report((), f"{_word(logs=False)}s", ())
        print_json({**found, "reason": "a copy-on-write table has no log files to compact"})
    elif dry_run:
        opened = opened.rehearsal()
        _dry_run(common, opened, _service(opened, now, logs=logs), logs=logs)
    elif cancel is not None:
        from hudi_py.inspection.rewrite_output import show_cancelled

        cancelled = opened.resolve_time(cancel, exact=True)
        if logs:
            opened.cancel_log_compaction(cancelled)
        else:
            opened.cancel_compaction(cancelled)
        show_cancelled(common, cancelled, _word(logs=logs))
    elif schedule_only:
        time = opened.schedule_log_compaction(now=now) if logs else opened.schedule_compaction(now=now)
        _schedule(common, opened, time, now, logs=logs)
    else:
        from hudi_py.inspection.rewrite_output import exit_if_left, show_rewrites, told

        time = None if execute is None else opened.resolve_time(execute, exact=True)
        chosen = chosen_engine(engine, master, "hudi-py compact")
        run = opened.compact_logs if logs else opened.compact
        results = run(now=now, instant=time, engine=chosen, on_group=told("compacting"))
        service = _service(opened, now, logs=logs)
        show_rewrites(
            common,
            results,
            _word(logs=logs),
            # Planned again, but only if nothing was done: an empty list of results does not say why it is empty.
            lambda: f"nothing to do: {service.plan().reason}",
            service.left_pending(opened.timeline),
        )
        exit_if_left(results, exit_code=exit_code)


def _word(*, logs: bool) -> str:
    return "log compaction" if logs else "compaction"


def _service(opened: Table, now: datetime | None, *, logs: bool) -> CompactionService | LogCompactionService:
    return opened.services.log_compaction(now=now) if logs else opened.services.compaction(now=now)


def _outlook(opened: Table, now: datetime | None, *, logs: bool) -> Outlook:
    return _service(opened, now, logs=logs).plan()


def _dry_run(common: Common, opened: Table, service: CompactionService | LogCompactionService, *, logs: bool) -> None:
    outlook = service.plan()
    left = service.left_pending(opened.timeline)
    stay = {each.instant for each in left}
    pending = [each.requested_time for each in opened.timeline.pending(service.action) if each not in stay]
    if common.as_json:
        from hudi_py.inspection.report import compaction_report

        print_json(compaction_report(outlook, pending, service.expected(outlook), left))
        return
    # A real run begins with these, so a dry run has to show them.
    for time in pending:
        say(f"{_word(logs=logs)} {time} is pending: it would be carried out first")
    from hudi_py.inspection.rewrite_output import show_expected, show_left_pending
    from hudi_py.model.records import LOG_BYTES

    show_left_pending(left)

    operations = outlook.plan.operations
    rows = [
        (
            operation.partition_path or "",
            operation.file_id or "",
            operation.data_file_path or "",
            str(len(operation.delta_file_paths)),
            render.human_bytes(int((operation.metrics or {}).get(LOG_BYTES, 0))),
        )
        for operation in operations[:_SHOWN_MAX]
    ]
    title = "would be compacted (nothing was written)"
    if rows:
        render.table(title, ("partition", "file id", "base file", "log files", "size of logs"), rows, right=(3, 4))
    else:
        say(f"{title}: none")
    if len(operations) > len(rows):
        say(f"and {counted(len(operations) - len(rows), 'more file group')}; --json lists all")
    for each in outlook.left[:_SHOWN_MAX]:
        say(f"left       {each.partition_path}/{each.file_id}: {each.reason}")
    if len(outlook.left) > _SHOWN_MAX:
        say(f"and {len(outlook.left) - _SHOWN_MAX} more are left; --json lists all")
    if outlook.would_schedule:
        size = render.human_bytes(outlook.bytes_to_read)
        kind = "log" if logs else "base"
        say(
            f"total      {counted(len(operations), 'file group')}, {size} to read, become "
            f"{counted(len(operations), f'{kind} file')}"
        )
        show_expected(service.expected(outlook), _word(logs=logs))
    else:
        say(f"nothing    would be scheduled: {outlook.reason}")


def _schedule(common: Common, opened: Table, time: str | None, now: datetime | None, *, logs: bool) -> None:
    if common.as_json:
        from hudi_py.inspection.instant_entry import instant_entry

        # From the timeline, so that the document shows what is stored.
        found = None if time is None else opened.timeline.find(time)
        print_json({"instant": time, "scheduled": None if found is None else instant_entry(found)})
    elif time is None:
        say(f"nothing was scheduled: {_outlook(opened, now, logs=logs).reason}")
    else:
        how = " --logs" if logs else ""
        say(
            f"scheduled {_word(logs=logs)} {time}; run it with: "
            f"hudi-py compact {shell_word(opened.storage.root)}{how} --execute {time}"
        )
