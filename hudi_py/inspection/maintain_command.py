"""The command ``hudi-py maintain``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.config import keys
from hudi_py.inspection import complete, render
from hudi_py.inspection.clean_options import size
from hudi_py.inspection.failure import print_json, print_json_line, tell
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.runtime.clock import SystemClock

if TYPE_CHECKING:
    from hudi_py.services.maintenance.service import ChoreReport, MaintenanceReport

_FILES_SHOWN_MAX: Final = 50


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--dry-run", is_flag=True, help="Show, step by step, what would be done and why; nothing is written.")
@click.option(
    "--max-deletes",
    type=click.IntRange(min=1),
    metavar="N",
    help="All steps together stop at N files; the clean as with its own --max-files.",
)
@click.option("--max-bytes", type=size, metavar="SIZE", help="All steps together stop at SIZE (500MB, 2GiB), likewise.")
@click.option("--max-duration", metavar="SPAN", help="Begin no step and no deletion after SPAN (90s, 15m).")
@click.option("--watch", metavar="SPAN", help="Run again SPAN after the end of each run (15m, 1h), until a signal.")
@command
def maintain(common: Common, table: str, dry_run: bool, watch: str | None, **limits: Any) -> None:
    r"""
    Do everything that is due: failed writes, expired tags, dead leases, clean, archival, quarantine; report orphans.
    Where settings or the policy ask for it: tags, expired partitions, compaction, log compaction, clustering.

    For writers with hoodie.table.services.enabled=false, which leave this to another process. Pending writes are rolled
    back if their heartbeat has expired, those without one only where hoodie.clean.failed.writes.policy is LAZY, as for
    several writers; others that may have failed are named. A step that fails does
    not stop the others; the exit code is then that of the first failure. With --watch it runs again and again, and
    SIGTERM or Ctrl-C ends it between two runs, with the exit code of the last one; --json prints a line for each run.
    What a limit leaves is due in the next run.

    \b
    Examples:
      hudi-py maintain TABLE --dry-run
      hudi-py maintain --tables s3://lake --parallel 4 --within 2h
      hudi-py maintain TABLE --watch 15m --max-duration 10m --max-bytes 50GB
    """
    if watch is None:
        report = _run(common, table, dry_run=dry_run, **limits)
        if common.as_json:
            print_json(maintenance_entry(report))
        else:
            print_maintenance(table, report)
        _tell_failures(report)
        code = _exit_code(report)
    else:
        from hudi_py.inspection.watching import watch as run_until_signal
        from hudi_py.inspection.watching import watch_span
        from hudi_py.services.maintenance.budget import run_budget

        span = watch_span(watch)
        # What is wrong with the command or the table is wrong in every run.
        common.looks_then(common.open(table), dry_run=dry_run)
        run_budget(SystemClock(), **limits)
        code = run_until_signal(span, lambda: _one_of_many(common, table, dry_run=dry_run, **limits))
    if code:
        raise SystemExit(code)


def _one_of_many(common: Common, table: str, *, dry_run: bool, **limits: Any) -> int:
    """One run of ``--watch``, whose failure is reported and does not end the others; its exit code."""
    try:
        report = _run(common, table, dry_run=dry_run, **limits)
    except Exception as error:
        # A fault of ours, too: nobody looks when it happens, and the next run begins from what the table then is.
        if click.get_current_context().params["debug"]:
            raise
        return tell(error, as_json=common.as_json)
    if common.as_json:
        print_json_line(maintenance_entry(report))
    else:
        print_maintenance(table, report)
        sys.stdout.flush()  # read by a log, not by a person who waits for the end
    _tell_failures(report)
    return _exit_code(report)


def _run(common: Common, table: str, *, dry_run: bool, **limits: Any) -> MaintenanceReport:
    opened = common.open(table)
    # The setting tells writers to leave the services to us, and may come from a file that is shared with them.
    opened.settings = opened.settings.without(keys.TABLE_SERVICES_ENABLED)
    return common.looks_then(opened, dry_run=dry_run).maintain(dry_run=dry_run, **limits)


def _tell_failures(report: MaintenanceReport) -> None:
    for each in report.failed:
        say(f"hudi-py: {each.step.value}: {each.error}", file=sys.stderr)


def _exit_code(report: MaintenanceReport) -> int:
    return next((each.error.exit_code for each in report.failed if each.error is not None), 0)


def maintenance_entry(report: MaintenanceReport) -> dict[str, Any]:
    """Return the document that ``hudi-py maintain --json`` prints."""
    return {"dry_run": report.is_dry_run, "steps": [_step(step) for step in report.steps]}


def _step(report: ChoreReport) -> dict[str, Any]:
    found = report.found
    return {
        "step": report.step.name.lower(),
        "due": found is not None and found.is_due,
        "done": report.is_done,
        "why": str(report.error) if found is None else found.why,
        "files": [] if found is None else [{"path": path, "reason": why} for path, why in found.files.items()],
        "deleted": 0 if found is None else found.deleted,
        "error": None if report.error is None else type(report.error).__name__,
    }


def _heading(report: MaintenanceReport) -> str:
    if not report.is_dry_run:
        return "maintenance"
    failed = any(step.error for step in report.steps)
    due = any(step.found is not None and step.found.is_due for step in report.steps)
    what = "what is due" if due or failed else "nothing is due"
    return f"{what} (dry run: nothing was written)"


def print_maintenance(table: str, report: MaintenanceReport) -> None:
    """Print a run for people."""
    rows = []
    for step in report.steps:
        word = "done" if step.is_done else ("due" if step.found is not None and step.found.is_due else "-")
        why = str(step.error) if step.found is None else step.found.why
        count = 0 if step.found is None else len(step.found.files)
        rows.append((step.step.value, "failed" if step.error else word, f"{count:,}", why))
    title = f"{table}: {_heading(report)}"
    render.table(title, ("step", "state", "files", "why"), rows, right=(2,))
    for each in report.steps:
        files = {} if each.found is None else each.found.files
        for path, why in list(files.items())[:_FILES_SHOWN_MAX]:
            say(f"{each.step.value}: {path}: {why}")
        if len(files) > _FILES_SHOWN_MAX:
            say(f"{each.step.value}: and {len(files) - _FILES_SHOWN_MAX:,} more; --json lists all")
