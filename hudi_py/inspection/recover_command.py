"""The command ``hudi-py recover``."""

from __future__ import annotations

import sys

import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--dry-run", is_flag=True, help="Only show what is wrong and what would be done.")
@command
def recover(common: Common, table: str, dry_run: bool) -> None:
    """
    Repair a table after a crash. Stop all writers first. Only steps that are proven to be safe are taken.

    Exits with code 1 if a step failed, with code 3 if a finding needs your decision.
    """
    from hudi_py.inspection.report import recovery_entry

    outcomes = common.open(table).recover(dry_run=dry_run)
    if common.as_json:
        print_json([recovery_entry(outcome) for outcome in outcomes])
    elif not outcomes:
        say("nothing to recover")
    else:
        word = "would be done (nothing was written)" if dry_run else "done"
        rows = [
            (
                str(outcome.finding.instant or outcome.finding.requested_time or "-"),
                outcome.finding.problem.value,
                outcome.finding.step.value,
                "failed" if outcome.error else ("yes" if outcome.done else "no"),
            )
            for outcome in outcomes
        ]
        count = sum(each.finding.is_settled_by_us if dry_run else each.done for each in outcomes)
        how = word if count == len(rows) else f"{count} of them {word}" if count else f"nothing {word}"
        render.table(f"{counted(len(rows), 'finding')}, {how}", ("what", "problem", "step", "done"), rows)
        for outcome in outcomes:
            finding = outcome.finding
            # Evidence below the table: it is what a person decides by.
            for line in (*finding.evidence, *finding.paths[:5], *([outcome.error] if outcome.error else [])):
                say(f"{finding.instant or finding.requested_time or finding.problem.value}: {line}")
    if dry_run:
        return
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    for outcome in failed:
        say(f"hudi-py: {outcome.finding.step.value}: {outcome.error}", file=sys.stderr)
    # A failed step goes before an open question: whatever the user decides, that has to be looked at first.
    if failed:
        raise SystemExit(1)
    if any(outcome.is_open for outcome in outcomes):
        raise SystemExit(3)
