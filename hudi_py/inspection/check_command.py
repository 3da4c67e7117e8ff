"""``hudi-py check``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.inspection import render
from hudi_py.inspection.options import Common, command, print_json
from hudi_py.inspection.say import say

if TYPE_CHECKING:
    from hudi_py.services.check.findings import Finding

_PROBLEMS_FOUND = 3


@click.command()
@click.argument("table", required=False)
@click.option("--codes", is_flag=True, help="List what can be found, how bad it is and what to do about it; no TABLE.")
@command
def check(common: Common, table: str | None, codes: bool) -> None:
    """
    Hold timeline, files and metadata table against each other; nothing is changed.

    Exit code 3: problems. Each finding has a stable code and says what to do; --codes lists them all.
    """
    from hudi_py.services.check.findings import Severity

    if codes:
        if table is not None:
            raise ConfigError("--codes lists what can be found in any table; leave TABLE out")
        _print_codes(common)
        return
    if table is None:
        raise ConfigError("TABLE is missing; --codes alone needs none")
    found = _findings(common, table)
    if common.as_json:
        print_json([finding_entry(each) for each in found])
    else:
        _print(table, found)
    if any(each.severity is not Severity.INFO for each in found):
        raise SystemExit(_PROBLEMS_FOUND)


def _print_codes(common: Common) -> None:
    from hudi_py.services.check.findings import RULES

    if common.as_json:
        print_json(
            [
                {"severity": rule.severity.value, "code": code, "meaning": rule.meaning, "fix": rule.fix}
                for code, rule in RULES.items()
            ]
        )
        return
    for code, rule in RULES.items():
        say(f"{code} ({rule.severity.value}): {rule.meaning}")
        say(f"    {rule.fix}")


def finding_entry(each: Finding) -> dict[str, Any]:
    """One finding as the contract has it."""
    return {
        "severity": each.severity.value,
        "code": each.code,
        "where": each.where,
        "message": each.message,
        "fix": each.fix,
    }


def _findings(common: Common, table: str) -> tuple[Finding, ...]:
    from hudi_py.services.check.findings import finding

    try:
        opened = common.open(table).read_only()
    except CorruptMetadata as error:  # neither hoodie.properties nor its backup: nothing else can be told
        return (finding("properties-damaged", ".hoodie/hoodie.properties", str(error)),)
    return opened.check()


def _print(table: str, found: tuple[Finding, ...]) -> None:
    if not found:
        say(f"{table}: timeline, files and metadata table agree")
        return
    rows = [(each.severity.value, each.code, each.where, each.message) for each in found]
    render.table(f"{table}: {len(rows)} findings", ("severity", "code", "where", "what"), rows)
    fixes = {each.code: each.fix for each in found}
    say()
    for code, fix in fixes.items():
        say(f"{code}: {fix}")
