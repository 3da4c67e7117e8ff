"""The command ``hudi-py check``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.fix_commands import with_table
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.services.check.findings import Finding, Rule

_PROBLEMS_FOUND = 3


@click.command()
@click.argument("table", required=False, shell_complete=complete.tables)
@click.option("--codes", is_flag=True, help="List all codes with severity, meaning and fix (without TABLE).")
@click.option(
    "--contents",
    is_flag=True,
    help="Read the footers of base files and the blocks of log files, too: finds files that were swapped or damaged "
    "inside.",
)
@command
def check(common: Common, table: str | None, codes: bool, contents: bool) -> None:
    """
    Check a table for damage. Compares timeline, files and metadata table; changes nothing.

    Exits with code 3 if there are problems. Each finding has a stable code and says what to do; --codes lists all.
    """
    from hudi_py.services.check.findings import RULES

    look = partial(_findings, contents=contents)
    examine(common, table, codes, RULES, look, "timeline, files and metadata table agree")


def examine(
    common: Common,
    table: str | None,
    codes: bool,
    rules: Mapping[str, Rule],
    look: Callable[[Common, str], tuple[Finding, ...]],
    nothing: str,
) -> None:
    """
    Print the findings about a table, and exit with code 3 if there are problems; or the codes of all *rules*.

    Args:
        common, table, codes: As given to the command.
        rules: All that the command can find.
        look: Returns the findings about a table.
        nothing: The line for a table without findings.

    Raises:
        ConfigError: There is neither a table nor ``--codes``, or both.
    """
    if codes and table is not None:
        raise ConfigError("--codes lists the codes for any table; leave TABLE out")
    if codes:
        _print_codes(common, rules)
        return
    if table is None:
        raise ConfigError("TABLE is missing; only --codes works without it")
    _print_findings(common, table, look(common, table), nothing)


def _print_codes(common: Common, rules: Mapping[str, Rule]) -> None:
    if common.as_json:
        print_json(
            [
                {"severity": rule.severity.value, "code": code, "meaning": rule.meaning, "fix": rule.fix}
                for code, rule in rules.items()
            ]
        )
        return
    for code, rule in rules.items():
        say(f"{code} ({rule.severity.value}): {rule.meaning}")
        say(f"    {rule.fix}")


def _print_findings(common: Common, table: str, found: tuple[Finding, ...], nothing: str) -> None:
    from hudi_py.services.check.findings import Severity

    if common.as_json:
        print_json([finding_entry(finding, table) for finding in found])
    else:
        _print(table, found, nothing)
    # Notes are not problems, and must not fail a job that runs this.
    if any(finding.severity is not Severity.INFO for finding in found):
        raise SystemExit(_PROBLEMS_FOUND)


def finding_entry(finding: Finding, table: str) -> dict[str, Any]:
    """Return a finding about a table (path or URL) as ``hudi-py check --json`` prints it."""
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "where": finding.where,
        "message": finding.message,
        "fix": with_table(finding.fix, table),
    }


def _findings(common: Common, table: str, *, contents: bool) -> tuple[Finding, ...]:
    from hudi_py.services.check.findings import finding

    try:
        opened = common.open(table).read_only()
    except CorruptMetadata as error:  # without hoodie.properties or its backup nothing else can be checked
        return (finding("properties-damaged", ".hoodie/hoodie.properties", str(error)),)
    return opened.check(contents=contents)


def _print(table: str, found: tuple[Finding, ...], nothing: str) -> None:
    if not found:
        say(f"{table}: {nothing}")
        return
    rows = [(finding.severity.value, finding.code, finding.where, finding.message) for finding in found]
    render.table(f"{table}: {counted(len(rows), 'finding')}", ("severity", "code", "where", "what"), rows)
    # Once for each code: a damaged table may have thousands of findings of one kind.
    fixes = {finding.code: finding.fix for finding in found}
    say()
    for code, fix in fixes.items():
        say(f"{code}: {with_table(fix, table)}")
