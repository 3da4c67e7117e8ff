"""The command ``hudi-py expire-partitions``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.config.expiry import ExpiryOptions
    from hudi_py.services.expiry.plan import ExpiryReport


@click.command("expire-partitions")
@click.argument("table", shell_complete=complete.tables)
@click.option("--days", type=click.IntRange(min=1), metavar="N", help="Age from which a partition expires.")
@click.option(
    "--by",
    type=click.Choice(("last-change", "creation", "value")),
    help="What the age is counted from. Default: last-change, or value with --format.",
)
@click.option("--format", "value_format", metavar="FORMAT", help="Time in the partition's value, as %Y-%m-%d.")
@click.option("--field", "value_field", metavar="COLUMN", help="Partition column with that time. Default: the path.")
@click.option("--partition", "partitions", multiple=True, metavar="PATH", help="Only this one; may be repeated.")
@click.option("--max-partitions", type=click.IntRange(min=1), metavar="N", help="Drop at most N, the oldest first.")
@click.option("--dry-run", is_flag=True, help="Show which partitions expire and why; nothing is written.")
@command
def expire_partitions(
    common: Common,
    table: str,
    dry_run: bool,
    **options: Unpack[ExpiryOptions],
) -> None:
    r"""
    Delete all rows of partitions that have reached an age, in one commit.

    Earlier times, savepoints and leases keep what they show; cleans delete the files when nothing needs them any more.

    \b
    Examples:
      hudi-py expire-partitions TABLE --days 400 --format %Y/%m/%d --dry-run
      hudi-py expire-partitions TABLE --days 90 --by last-change
    """
    opened = common.open(table)
    # As a shell completes the folder of a partition, and as the other commands take it.
    options["partitions"] = [path.rstrip("/") for path in options["partitions"] or ()] or None
    # A view that refuses every change, in case the plan has a mistake.
    report = (opened.read_only() if dry_run else opened).expire_partitions(
        dry_run=dry_run,
        now=common.deletion_time(opened, dry_run=dry_run),
        **options,
    )
    if common.as_json:
        print_json(expiry_entry(report))
    else:
        _print(report)


def expiry_entry(report: ExpiryReport) -> dict[str, Any]:
    """Return the document that ``hudi-py expire-partitions --json`` prints."""
    return {
        "rule": report.plan.rule,
        "dry_run": report.is_dry_run,
        "commit": report.commit,
        "expired": list(report.plan.expired),
        "partitions": [
            {
                "path": verdict.path,
                "expires": verdict.expires,
                "reason": verdict.reason,
                "since": None if verdict.since is None else verdict.since.isoformat(),
            }
            for verdict in report.plan.verdicts
        ],
    }


def _print(report: ExpiryReport) -> None:
    rows = [
        (
            verdict.path,
            "-" if verdict.since is None else f"{verdict.since:%Y-%m-%d %H:%M}",
            "expires" if verdict.expires else "stays",
            verdict.reason,
        )
        for verdict in report.plan.verdicts
    ]
    word = " (nothing was written)" if report.is_dry_run else ""
    render.table(f"{report.plan.rule}{word}", ("partition", "age from", "", "why"), rows)
    count = counted(len(report.plan.expired), "partition")
    if report.commit is not None:
        say(f"{count} dropped by commit {report.commit}; a clean deletes the files")
    else:
        say(f"{count} would be dropped" if report.is_dry_run else "nothing was dropped")
