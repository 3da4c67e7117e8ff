"""The command ``hudi-py deletion``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command, done, dry_run_option, tried
from hudi_py.inspection.say import say
from hudi_py.inspection.sentences import Sentences

if TYPE_CHECKING:
    from hudi_py.table import Table


def warn_if_forbidden(opened: Table, what: str) -> None:
    """Say on standard error that a removal that is only shown would be refused, where deletion is forbidden."""
    why = opened.deletion_forbidden
    if why is not None:
        say(f"warning: {what} would be refused, no data is deleted from this table: {why}", file=sys.stderr)


@click.group(cls=Sentences)
def deletion() -> None:
    """
    Forbid or allow the deletion of data from a table.

    While it is forbidden, cleans, searches for orphans, rollbacks of completed commits and restores are refused, and
    commits leave out their clean, in every process of hudi-py. Apache Hudi does not know this switch.
    """


@deletion.command()
@click.argument("table")
@dry_run_option
@command
def forbid(common: Common, table: str, dry_run: bool) -> None:
    r"""
    Forbid all deletion of data in the table, until "hudi-py deletion allow".

    \b
    Example:
      hudi-py deletion forbid s3://lake/trips
    """
    opened = common.open_to_change(table, dry_run=dry_run)
    _show(common, table, is_forbidden=True, changed=opened.forbid_deletion(), dry_run=dry_run)


@deletion.command()
@click.argument("table")
@dry_run_option
@command
def allow(common: Common, table: str, dry_run: bool) -> None:
    """Allow the deletion of data again."""
    opened = common.open_to_change(table, dry_run=dry_run)
    _show(common, table, is_forbidden=False, changed=opened.allow_deletion(), dry_run=dry_run)


@deletion.command()
@click.argument("table")
@command
def show(common: Common, table: str) -> None:
    """Show whether data may be deleted, and why not."""
    why = common.open(table).read_only().deletion_forbidden
    if common.as_json:
        print_json({"forbidden": why is not None, "why": why})
    else:
        say(f"no data is deleted from {table}: {why}" if why else f"data may be deleted from {table}")


def _show(common: Common, table: str, *, is_forbidden: bool, changed: bool, dry_run: bool) -> None:
    if common.as_json:
        print_json({"forbidden": is_forbidden, "changed": changed and not dry_run, **tried(changed, dry_run=dry_run)})
        return
    word = "forbidden" if is_forbidden else "allowed"
    if not changed:
        say(f"deletion was {word} already; nothing was changed")
    elif dry_run:
        say(f"deletion of data in {table} {done(word, dry_run=True)}")
    else:
        say(f"deletion of data is {word} in {table}")
    if is_forbidden:
        say("Apache Hudi does not know this: where it writes the table, set hoodie.clean.automatic=false")
