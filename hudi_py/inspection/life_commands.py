"""The commands about the past of a table: ``hudi-py history``, ``diff``, ``simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.clean_options import retention_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.instant_entry import instant_entry
from hudi_py.inspection.options import Common, action_named, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted, human_bytes, human_span

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.simulation.plan import Simulation
    from hudi_py.snapshot.difference import Difference
    from hudi_py.snapshot.history import Event, Numbers

_ROWS_MAX: Final = 30
_WHO: Final = {"hudi_py.run_by": "run by", "hudi_py.approved_by": "approved by"}
"""Parameters that name a person or process, and the words before them."""


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--limit", type=click.IntRange(min=0), help="Show only the newest N.")
@click.option("--archived", is_flag=True, help="Include archived instants.")
@click.option("--action", help="Show only this action (commit, clean, ...).")
@command
def history(common: Common, table: str, limit: int | None, archived: bool, action: str | None) -> None:
    r"""
    Show who did what to a table, oldest first. Each action with its duration, numbers and parameters.

    Who ran a clean is on record where a retention policy is in force (hudi-py policy), and who approved a list; all
    other cleans are like those of Apache Hudi, which do not say.

    \b
    Examples:
      hudi-py history s3://lake/trips --limit 20
      hudi-py history TABLE --action clean --archived --json
    """
    opened = common.open(table).read_only()
    # Checked before the table is read: a misspelled action must not look like an empty history.
    wanted = None if action is None else action_named(action)
    events = [e for e in opened.history(archived=archived) if wanted is None or e.instant.action is wanted]
    if limit is not None:
        # Not `[-limit:]`: a limit of 0 would show all.
        events = events[len(events) - min(limit, len(events)) :]
    if common.as_json:
        print_json({"events": [event_entry(event) for event in events]})
        return
    if not events:
        say(f"{table}: no actions to show" if wanted is None else f"{table}: no {wanted.value}")
        return
    rows = [
        (
            event.instant.requested_time,
            # The operation is recorded when a write completes; before that only the action is known.
            event.operation.lower() if event.instant.is_completed else event.instant.action.value,
            event.instant.state.name,
            "-" if event.seconds is None else human_span(event.seconds),
            _sentence(event),
        )
        for event in events
    ]
    render.table(f"history of {opened.config.name}", ("requested time", "operation", "state", "took", "what"), rows)


def event_entry(event: Event) -> dict[str, Any]:
    """Return an event as ``hudi-py history --json`` prints it."""
    return {
        **instant_entry(event.instant),
        "archived": event.is_archived,
        "operation": event.operation,
        "seconds": event.seconds,
        **numbers_entry(event.numbers),
        "partitions": list(event.partitions),
        "parameters": dict(event.parameters),
        **({} if event.problem is None else {"problem": event.problem}),
    }


def numbers_entry(numbers: Numbers) -> dict[str, int]:
    """Return what actions wrote and deleted, by name."""
    return attrs.asdict(numbers)


def _sentence(event: Event) -> str:
    if event.problem is not None:
        return f"unreadable: {event.problem}"
    numbers = event.numbers
    parts = [
        f"{counted(number, 'row')} {word}"
        for number, word in (
            (numbers.rows_inserted, "inserted"),
            (numbers.rows_updated, "updated"),
            (numbers.rows_deleted, "deleted"),
            (numbers.rows_rewritten, "rewritten"),
        )
        if number
    ]
    if numbers.files_written:
        parts.append(f"{counted(numbers.files_written, 'file')} written, {human_bytes(numbers.bytes_written)}")
    if numbers.groups_replaced:
        parts.append(f"{counted(numbers.groups_replaced, 'file group')} replaced")
    if numbers.files_deleted:
        parts.append(f"{counted(numbers.files_deleted, 'file')} deleted")
    parts += [f"{words} {event.parameters[name]}" for name, words in _WHO.items() if event.parameters.get(name)]
    # Three are enough for a line; --json has all.
    others = [(name, value) for name, value in event.parameters.items() if name not in _WHO]
    # An empty text says nothing: Apache Hudi 0.15 archives one with each commit (ROLLING_STAT).
    parts += [f"{name}={value}" for name, value in others if not isinstance(value, (dict, list)) and value != ""][:3]
    return "; ".join(parts)


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("start", metavar="T1")
@click.argument("end", metavar="T2", required=False)
@command
def diff(common: Common, table: str, start: str, end: str | None) -> None:
    r"""
    Show what differs between two times of a table: files, rows that were written in between, columns.

    T1 and T2 are instants, ISO 8601, durations before now or names of savepoints; without T2 the latest snapshot.

    \b
    Examples:
      hudi-py diff s3://lake/trips 2026-11-01 2026-11-02
      hudi-py diff TABLE 36h --json
    """
    opened = common.open(table).read_only()
    found = opened.diff(start, end)
    if common.as_json:
        print_json(difference_entry(found))
    else:
        _print_difference(table, found)


def difference_entry(found: Difference) -> dict[str, Any]:
    """Return the document that ``hudi-py diff --json`` prints."""

    def listed(files: Mapping[str, int | None]) -> list[dict[str, Any]]:
        return [{"path": path, "bytes": size} for path, size in files.items()]

    def typed(columns: Mapping[str, str]) -> list[dict[str, str]]:
        return [{"name": name, "type": kind} for name, kind in columns.items()]

    numbers = found.numbers
    return {
        "from": found.start,
        "to": found.end,
        "commits": list(found.commits),
        "files": {"added": listed(found.added), "removed": listed(found.removed)},
        "rows": {
            "inserted": numbers.rows_inserted,
            "updated": numbers.rows_updated,
            "deleted": numbers.rows_deleted,
            "rewritten": numbers.rows_rewritten,
        },
        "schema": {
            "added": typed(found.columns_added),
            "removed": typed(found.columns_removed),
            "changed": [
                {"name": name, "from": before, "to": after} for name, (before, after) in found.columns_changed.items()
            ],
        },
    }


def _print_difference(table: str, found: Difference) -> None:
    numbers = found.numbers
    say(f"{table} from {found.start} to {found.end}")
    say(f"commits    {len(found.commits):,}")
    say(
        f"rows       {numbers.rows_inserted:,} inserted, {numbers.rows_updated:,} updated, "
        f"{numbers.rows_deleted:,} deleted"
    )
    columns = [
        *(f"+ {name} {kind}" for name, kind in found.columns_added.items()),
        *(f"- {name} {kind}" for name, kind in found.columns_removed.items()),
        *(f"~ {name} {before} -> {after}" for name, (before, after) in found.columns_changed.items()),
    ]
    say(f"columns    {', '.join(columns) or 'the same'}")
    files = [("+", path, size) for path, size in found.added.items()]
    files += [("-", path, size) for path, size in found.removed.items()]
    if not files:
        say("files      the same")
        return
    rows = [(sign, path, human_bytes(size)) for sign, path, size in files[:_ROWS_MAX]]
    title = f"{counted(len(found.added), 'file')} added, {counted(len(found.removed), 'file')} removed"
    render.table(title, ("", "file", "size"), rows, right=(2,))
    if len(files) > _ROWS_MAX:
        say(f"and {counted(len(files) - _ROWS_MAX, 'file')} more; --json lists all")


@click.command()
@click.argument("table", shell_complete=complete.tables)
@retention_options
@command
def simulate(common: Common, table: str, options: CleanOptions) -> None:
    r"""
    Replay the commits of a table as if each had been followed by a clean with these settings. Changes nothing.

    Shows the bytes over time, the retention window and what each clean would have deleted. It reads what commits
    recorded, archived ones too, and no files.

    \b
    Examples:
      hudi-py simulate s3://lake/trips --commits-retained 5
      hudi-py simulate TABLE --policy KEEP_LATEST_BY_HOURS --hours-retained 24
    """
    # Nothing is listed: what commits recorded is enough, and keeps the answer the same whatever cleans have deleted.
    found = common.open(table).read_only().simulate(**options)
    if common.as_json:
        print_json(simulation_entry(found))
    else:
        _print_simulation(table, found)


def simulation_entry(found: Simulation) -> dict[str, Any]:
    """Return the document that ``hudi-py simulate --json`` prints."""
    last = found.steps[-1] if found.steps else None
    return {
        "retention": found.retention,
        "totals": {
            "commits": len(found.steps),
            "cleans": sum(step.files_deleted > 0 for step in found.steps),
            "files_deleted": len(found.deleted),
            "bytes_deleted": found.bytes_deleted,
            "bytes_max": found.bytes_max,
            "files_end": 0 if last is None else last.files,
            "bytes_end": 0 if last is None else last.bytes,
        },
        "steps": [
            {
                "commit": step.time,
                "earliest_instant_to_retain": step.earliest,
                "files_deleted": step.files_deleted,
                "bytes_deleted": step.bytes_deleted,
                "files": step.files,
                "bytes": step.bytes,
            }
            for step in found.steps
        ],
    }


def _print_simulation(table: str, found: Simulation) -> None:
    if not found.steps:
        say(f"{table}: no commit is completed yet, so there is nothing to replay")
        return
    rows = [
        (
            s.time,
            s.earliest or "-",
            f"{s.files_deleted:,}",
            human_bytes(s.bytes_deleted),
            f"{s.files:,}",
            human_bytes(s.bytes),
        )
        for s in found.steps[-_ROWS_MAX:]
    ]
    columns = ("after commit", "window from", "deleted", "freed", "files", "size")
    render.table(f"{table}: {found.retention}", columns, rows, right=(2, 3, 4, 5))
    if len(found.steps) > _ROWS_MAX:
        # The newest steps are shown: the end is what the retention leads to.
        say(f"before that {counted(len(found.steps) - _ROWS_MAX, 'commit')}; --json lists all")
    # From the document, so that the text and --json never differ.
    totals = simulation_entry(found)["totals"]
    say()
    say(f"deleted    {counted(totals['files_deleted'], 'file')} by {counted(totals['cleans'], 'clean')}")
    say(f"size       {human_bytes(totals['bytes_end'])} in the end, {human_bytes(totals['bytes_max'])} at most")
