"""The command ``hudi-py recover``."""

from __future__ import annotations

import sys

import click

from hudi_py.inspection import render
from hudi_py.inspection.options import Common, command, print_json
from hudi_py.inspection.say import say


@click.command()
@click.argument("table")
@click.option("--dry-run", is_flag=True, help="Only tell what is wrong and what would be done; nothing is written.")
@command
def recover(common: Common, table: str, dry_run: bool) -> None:
    """
    Find what a crash left, and put right what is proven to be safe. Let no writer be at work meanwhile.

    Ends with 1 where a step could not be taken, with 3 where something needs you.
    """
    from hudi_py.inspection.report import recovery_entry

    outcomes = common.open(table).recover(dry_run=dry_run)
    if common.as_json:
        print_json([recovery_entry(each) for each in outcomes])
    elif not outcomes:
        say("nothing to recover")
    else:
        word = "would be done (nothing was written)" if dry_run else "done"
        rows = [
            (
                str(each.finding.instant or each.finding.requested_time or "-"),
                each.finding.problem.value,
                each.finding.step.value,
                "failed" if each.error else ("yes" if each.done else "no"),
            )
            for each in outcomes
        ]
        render.table(f"{len(rows)} findings, {word}", ("what", "problem", "step", "done"), rows)
        for each in outcomes:
            for line in (*each.finding.evidence, *each.finding.paths[:5], *([each.error] if each.error else [])):
                say(f"{each.finding.instant or each.finding.requested_time or each.finding.problem.value}: {line}")
    if dry_run:
        return
    failed = [each for each in outcomes if each.error is not None]
    for each in failed:
        say(f"hudi-py: {each.finding.step.value}: {each.error}", file=sys.stderr)
    if failed:
        raise SystemExit(1)
    if any(each.is_open for each in outcomes):
        raise SystemExit(3)
