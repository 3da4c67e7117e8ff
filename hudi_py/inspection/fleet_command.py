"""The command ``hudi-py fleet``: many tables on one page, the worst first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.many_tables import SOME_FAILED, Outcome, Plan
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.inspection.table_lists import tables_of_all
from hudi_py.inspection.table_metrics import examined_samples
from hudi_py.inspection.tables_options import PARALLEL_DEFAULT
from hudi_py.model.words import counted, human_bytes

if TYPE_CHECKING:
    from hudi_py.services.doctor.service import Examined
    from hudi_py.table import Table

# By their codes, which are part of the interface; messages are not.
_STUCK: Final = frozenset({"instant-stuck", "clean-unfinished", "clean-blocked"})
_OVERDUE: Final = frozenset({"clean-overdue", "clean-overtaken"})
_ROWS_MAX: Final = 20


@click.command()
@click.argument("locations", nargs=-1, metavar="[TABLE|FOLDER|PATTERN|URL]...")
@click.option(
    "--tables",
    "source",
    metavar="SOURCE",
    help="File with one location per line, folder, pattern, URL or glue://DATABASE.",
)
@click.option(
    "--parallel",
    type=click.IntRange(min=1),
    default=PARALLEL_DEFAULT,
    help=f"Number of tables at the same time. Default {PARALLEL_DEFAULT}.",
)
@command
def fleet(common: Common, locations: tuple[str, ...], source: str | None, parallel: int) -> None:
    r"""
    Examine many tables and rank them: wasted bytes, stuck instants, overdue cleans, risks. Changes nothing.

    Wasted bytes are those that the next clean frees, those that no clean looks at, and orphans. Exits with code 6 if
    some tables could not be examined; the others are shown all the same.

    \b
    Examples:
      hudi-py fleet s3://lake/warehouse
      hudi-py fleet --tables tables.txt --parallel 8 --json
    """
    sources = (*locations, *(() if source is None else (source,)))
    if not sources:
        raise ConfigError("give tables, a folder with tables in it, or --tables FILE")
    tables = tables_of_all(sources, common.storage_options)
    # A hidden command for each table, so that it runs in a process of its own, with its own errors.
    plan = Plan(command=("fleet-entry",), arguments=common.as_arguments(), tables=tables, parallel=parallel,
                measures=common.is_measured)  # fmt: skip
    outcomes: list[Outcome] = []
    told: set[str] = set()

    def note(outcome: Outcome) -> None:
        outcome.tell_notes(told)
        outcomes.append(outcome)

    plan.run(note)
    # They come as they are done; by name, two runs can be compared.
    outcomes.sort(key=lambda each: each.table)
    common.measures.extend(sample for outcome in outcomes for sample in outcome.samples)
    done = [{"table": outcome.table, **outcome.document} for outcome in outcomes if not outcome.has_failed]
    failed = [each for each in outcomes if each.has_failed]
    if common.as_json:
        print_json(fleet_document(done, failed))
    else:
        _print(done, failed)
    if failed:
        # Last: the tables that could be examined are shown in any case.
        raise SystemExit(SOME_FAILED)


@click.command("fleet-entry", hidden=True)
@click.argument("table", shell_complete=complete.tables)
@command
def fleet_entry(common: Common, table: str) -> None:
    """Examine one table for ``hudi-py fleet``."""
    opened = common.open(table).read_only()
    # Doctor includes check and usage, which otherwise would each list the table again.
    examined = opened.services.doctor(now=common.planning_time(opened)).run()
    common.measure(lambda now: examined_samples(examined, table, now))
    print_json(table_entry(opened, examined))


def table_entry(opened: Table, examined: Examined) -> dict[str, Any]:
    """Return what a fleet shows of one table."""
    from hudi_py.services.check.findings import Severity
    from hudi_py.services.usage.facts import WASTED, Holder

    health = examined.health
    usage = None if health is None else health.usage
    trigger = None if health is None else health.trigger
    codes: dict[str, int] = {}
    for each in examined.findings:
        codes[each.code] = codes.get(each.code, 0) + 1
    problems = [each for each in examined.findings if each.severity is not Severity.INFO]
    sizes: dict[str, int] | None = None
    if usage is not None:
        wasted = usage.of(*WASTED)
        sizes = {
            "total": usage.total.bytes,
            "live": usage.of(Holder.LIVE).bytes,
            "wasted": wasted.bytes,
            **{h.value: usage.of(h).bytes for h in (Holder.RETAINED, Holder.SAVEPOINT, Holder.UNCOMMITTED)},
        }
    return {
        "name": opened.config.name,
        "type": opened.config.table_type.value,
        "version": opened.config.version,
        "files": None if usage is None else usage.total.files,
        "bytes": sizes,
        "pending": 0 if health is None else len(health.timeline.pending()),
        "stuck": [finding.where for finding in examined.findings if finding.code in _STUCK],
        "commits_since_clean": None if trigger is None else trigger.commits,
        "clean_overdue": any(code in _OVERDUE for code in codes),
        "errors": sum(problem.severity is Severity.ERROR for problem in problems),
        "warnings": sum(each.severity is Severity.WARNING for each in problems),
        "findings": codes,
    }


def _wasted(table: dict[str, Any]) -> int:
    return table["bytes"]["wasted"] if table["bytes"] is not None else 0


_RANKS: Final[dict[str, Callable[[dict[str, Any]], Any]]] = {
    "wasted_bytes": _wasted,
    "stuck_instants": lambda table: len(table["stuck"]),
    "overdue_cleans": lambda table: (table["commits_since_clean"] or 0) if table["clean_overdue"] else 0,
    "risks": lambda table: (table["errors"], table["warnings"]) if table["errors"] or table["warnings"] else 0,
}


def fleet_document(done: Sequence[dict[str, Any]], failed: Sequence[Outcome]) -> dict[str, Any]:
    """Return the document that ``hudi-py fleet --json`` prints; tables with more wasted bytes first."""
    return {
        "totals": {
            "tables": len(done) + len(failed),
            "failed": len(failed),
            "files": sum(each["files"] or 0 for each in done),
            "bytes": sum(each["bytes"]["total"] for each in done if each["bytes"] is not None),
            "wasted_bytes": sum(map(_wasted, done)),
        },
        "ranking": {name: [each["table"] for each in _ranked(done, name)] for name in _RANKS},
        "tables": sorted(done, key=_wasted, reverse=True),
        "failed": [each.entry for each in failed],
    }


def _ranked(done: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """Those that have something of it, the most first."""
    key = _RANKS[name]
    # A table with nothing of a kind has no rank in it.
    return sorted((each for each in done if key(each)), key=key, reverse=True)


def _print(done: Sequence[dict[str, Any]], failed: Sequence[Outcome]) -> None:
    rows = []
    # Errors first: lost rows matter more than wasted bytes.
    ranked = sorted(done, key=lambda each: (each["errors"], _wasted(each), each["warnings"]), reverse=True)
    for each in ranked[:_ROWS_MAX]:
        sizes = each["bytes"] or {}
        problems = [code for code in each["findings"] if code in _problem_codes()]
        rows.append(
            (
                each["table"],
                human_bytes(sizes.get("total")),
                human_bytes(sizes.get("wasted")),
                str(len(each["stuck"])),
                "-" if each["commits_since_clean"] is None else str(each["commits_since_clean"]),
                ", ".join(problems) or "-",
            )
        )
    columns = ("table", "size", "wasted", "stuck", "commits since clean", "problems")
    render.table(f"{counted(len(done), 'table')}, the worst first", columns, rows, right=(1, 2, 3, 4))
    if len(ranked) > _ROWS_MAX:
        say(f"and {counted(len(ranked) - _ROWS_MAX, 'table')} more; --json lists all")
    totals = fleet_document(done, failed)["totals"]
    say()
    say(f"total      {human_bytes(totals['bytes'])}, {counted(totals['files'], 'file')}")
    say(f"wasted     {human_bytes(totals['wasted_bytes'])}; hudi-py du TABLE shows what it is")
    for outcome in failed:
        message = outcome.entry.get("error", {}).get("message", "")
        say(f"hudi-py: {outcome.table}: {message}", file=sys.stderr)


def _problem_codes() -> frozenset[str]:
    from hudi_py.services.check.findings import Severity
    from hudi_py.services.doctor.findings import RULES

    return frozenset(code for code, rule in RULES.items() if rule.severity is not Severity.INFO)
