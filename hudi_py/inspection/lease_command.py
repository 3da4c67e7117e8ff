"""The command ``hudi-py lease``, and ``--force`` of commands that delete what leases need."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import attrs
import click

from hudi_py.config import keys
from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command, done, dry_run_option, tried
from hudi_py.inspection.say import say
from hudi_py.inspection.sentences import Sentences
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from datetime import datetime

    from hudi_py.model.lease import Lease

force_option = click.option(
    "--force", is_flag=True, help="Ignore leases of readers; a warning names each lease that is ignored."
)


def forced(common: Common) -> Common:
    """Return the options of a call that goes on in spite of leases; the log names each lease when it is passed over."""
    # As a setting, so that it holds for all services that the command starts.
    return attrs.evolve(common, settings={**common.settings, keys.LEASES_IGNORED.name: "true"})


@click.group(cls=Sentences)
def lease() -> None:
    """
    Keep a commit readable while a job reads it. A lease expires by itself, so a killed job leaves nothing behind.

    Cleans, rollbacks, restores and archival of hudi-py keep what leases need. Apache Hudi does not know them: where it
    cleans the table, add --savepoint, which its cleaner respects.
    """


_ttl = click.option("--ttl", required=True, metavar="SPAN", help="How long the lease is valid from now (90m, 3h).")
_at = click.option("--at", metavar="TIME", help="Time to keep readable. Default: the latest commit.")
_holder = click.option("--holder", metavar="NAME", help="Who reads. Default: user, host and process.")
_savepoint = click.option(
    "--savepoint",
    is_flag=True,
    help="Keep a savepoint of the commit for as long, which Apache Hudi's cleaner respects.",
)


@lease.command()
@click.argument("table", shell_complete=complete.tables)
@_ttl
@_at
@_holder
@_savepoint
@dry_run_option
@command
def create(
    common: Common, table: str, ttl: str, at: str | None, holder: str | None, savepoint: bool, dry_run: bool
) -> None:
    r"""
    Create a lease, which expires by itself. Prints its id.

    \b
    Examples:
      hudi-py lease create s3://lake/trips --ttl 3h --holder nightly-report
      hudi-py lease create TABLE --ttl 90m --at 2026-11-01 --json
      hudi-py lease create TABLE --ttl 3h --savepoint
    """
    opened = common.open_to_change(table, dry_run=dry_run)
    taken = opened.take_lease(ttl=ttl, at=at, holder=holder, savepoint=savepoint)
    if dry_run:
        _show_trial(common, taken)
    else:
        _show(common, taken)


@lease.command("list")
@click.argument("table", shell_complete=complete.tables)
@command
def list_leases(common: Common, table: str) -> None:
    """List leases, oldest first, expired ones too."""
    opened = common.open(table).read_only()
    found, now = opened.leases(), opened.contents.store.clock.now()
    if common.as_json:
        print_json([{**lease_entry(each), "is_expired": not each.is_usable(now)} for each in found])
        return
    rows = [(each.id, each.holder, each.instant, _until(each, now)) for each in found]
    render.table(
        f"leases of {opened.config.name}, {counted(len(rows), 'lease')}", ("id", "holder", "instant", "expires"), rows
    )


@lease.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("lease_id", metavar="ID", shell_complete=complete.leases)
@_ttl
@dry_run_option
@command
def renew(common: Common, table: str, lease_id: str, ttl: str, dry_run: bool) -> None:
    """Extend a lease. An expired one cannot be renewed, because a clean may have deleted its files."""
    renewed = common.open_to_change(table, dry_run=dry_run).renew_lease(lease_id, ttl)
    if dry_run and not common.as_json:
        say(f"{renewed} {done('set', dry_run=True)}")
    else:
        _show(common, renewed)


@lease.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("lease_id", metavar="ID", shell_complete=complete.leases)
@dry_run_option
@command
def release(common: Common, table: str, lease_id: str, dry_run: bool) -> None:
    """Delete a lease, even one whose file is damaged."""
    found = common.open_to_change(table, dry_run=dry_run).release_lease(lease_id)
    if common.as_json:
        print_json({"id": lease_id, "released": found and not dry_run, **tried(found, dry_run=dry_run)})
        return
    word = done("released", dry_run=dry_run)
    say(f"lease {lease_id} {word}" if found else f"there is no lease {lease_id}")


@lease.command(context_settings={"allow_interspersed_args": True})
@click.argument("table", shell_complete=complete.tables)
@click.argument("words", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@_ttl
@_at
@_holder
@_savepoint
@click.option("--dry-run", is_flag=True, help="Show the lease that would be taken; the command is not run.")
@command
def run(
    common: Common,
    table: str,
    words: tuple[str, ...],
    ttl: str,
    at: str | None,
    holder: str | None,
    savepoint: bool,
    dry_run: bool,
) -> None:
    r"""
    Run a command under a lease, which is renewed while the command runs.

    The command finds the lease in HUDI_PY_LEASE_ID, HUDI_PY_LEASE_INSTANT (the commit that stays readable) and
    HUDI_PY_LEASE_TABLE. The exit code is that of the command, or 4 if the command succeeded and the lease was lost
    meanwhile. With --json its output goes to stderr.

    \b
    Examples:
      hudi-py lease run --ttl 3h s3://lake/trips -- spark-submit report.py
      hudi-py lease run --ttl 1h TABLE -- \
        sh -c 'hudi-py read TABLE --as-of $HUDI_PY_LEASE_INSTANT -o rows.parquet'
    """
    from hudi_py.inspection.lease_child import run_child

    if dry_run:
        opened = common.open_to_change(table, dry_run=True)
        _show_trial(common, opened.take_lease(ttl=ttl, at=at, holder=holder, savepoint=savepoint))
        return
    # Released also if the child fails; if this process is killed, the lease expires.
    with common.open(table).kept_lease(ttl=ttl, at=at, holder=holder, savepoint=savepoint) as taken:
        names = {"ID": taken.id, "INSTANT": taken.instant, "TABLE": table}
        code = run_child(words, {f"HUDI_PY_LEASE_{name}": value for name, value in names.items()}, quiet=common.as_json)
        if code:
            # In here: that the lease was lost, too, is in the log, and must not hide how the command failed.
            _end(common, taken, code)
    _end(common, taken, code)


def _end(common: Common, taken: Lease, code: int) -> NoReturn:
    """End as the command did that ran under a lease."""
    if common.as_json:
        print_json({**lease_entry(taken), "command_exit_code": code})
    # Before the exit code of the child ends this process, or a full pipe could swallow the document.
    sys.stdout.flush()
    click.get_current_context().exit(code)


@click.group(cls=Sentences)
def consumer() -> None:
    """
    Note how far incremental readers have read. Cleaning and archival keep the changes that they have not read.

    The progress of a consumer expires unless it is set again, so that an abandoned one does not keep files for ever.
    """


@consumer.command("set")
@click.argument("table", shell_complete=complete.tables)
@click.argument("name")
@click.argument("instant", shell_complete=complete.instants)
@click.option(
    "--ttl", default="7d", show_default=True, metavar="SPAN", help="How long it is valid unless it is set again."
)
@dry_run_option
@command
def set_consumer(common: Common, table: str, name: str, instant: str, ttl: str, dry_run: bool) -> None:
    r"""
    Note the time up to which a consumer has read: where its next range begins.

    \b
    Example:
      hudi-py consumer set s3://lake/trips job-7 20261101120000000
    """
    progress = common.open_to_change(table, dry_run=dry_run).consumer(name).at(instant, ttl=ttl)
    if common.as_json:
        print_json(consumer_entry(progress))
    else:
        say(f"{progress} {done('set', dry_run=True)}" if dry_run else progress)


@consumer.command("list")
@click.argument("table", shell_complete=complete.tables)
@command
def list_consumers(common: Common, table: str) -> None:
    """
    List consumers, the one that has read least first, expired ones too.

    It also says which of them have read commits that a restore or rollback has undone since.
    """
    opened = common.open(table).read_only()
    found, now = opened.consumers(), opened.contents.store.clock.now()
    undone = [opened.consumer(each.holder).undone for each in found]
    if common.as_json:
        print_json(
            [
                {**consumer_entry(each), "is_expired": not each.is_usable(now), "undone": why}
                for each, why in zip(found, undone, strict=True)
            ]
        )
        return
    rows = [
        (each.holder, each.instant, _until(each, now), "" if why is None else f"has rows of {why}")
        for each, why in zip(found, undone, strict=True)
    ]
    render.table(
        f"consumers of {opened.config.name}, {counted(len(rows), 'consumer')}",
        ("name", "has read up to", "expires", "undone since"),
        rows,
    )


@consumer.command("delete")
@click.argument("table", shell_complete=complete.tables)
@click.argument("name")
@dry_run_option
@command
def delete_consumer(common: Common, table: str, name: str, dry_run: bool) -> None:
    """Forget a consumer. What only it needs is deleted by the next clean."""
    found = common.open_to_change(table, dry_run=dry_run).consumer(name).delete()
    if common.as_json:
        print_json({"name": name, "deleted": found and not dry_run, **tried(found, dry_run=dry_run)})
        return
    word = done("deleted", dry_run=dry_run)
    say(f"consumer {name} {word}" if found else f"there is no consumer {name}")


def consumer_entry(progress: Lease) -> dict[str, Any]:
    """Return the progress of a consumer as the commands print it with ``--json``."""
    from hudi_py.model.lease import iso

    return {"name": progress.holder, "instant": progress.instant, "expires": iso(progress.expires)}


def lease_entry(lease: Lease) -> dict[str, Any]:
    """Return a lease as the commands print it with ``--json``."""
    from hudi_py.model.lease import iso

    return {
        "id": lease.id,
        "holder": lease.holder,
        "instant": lease.instant,
        "created": iso(lease.created),
        "expires": iso(lease.expires),
    }


def _show(common: Common, lease: Lease) -> None:
    if common.as_json:
        print_json(lease_entry(lease))
    else:
        say(lease)


def _show_trial(common: Common, lease: Lease) -> None:
    # Without the id, which nothing could be done with.
    if common.as_json:
        print_json({**lease_entry(lease), "id": None})
    else:
        say(f"a {str(lease).replace(f' {lease.id}', '', 1)} {done('taken', dry_run=True)}")


def _until(lease: Lease, now: datetime) -> str:
    from hudi_py.model.lease import iso

    return iso(lease.expires) + ("" if lease.is_usable(now) else ", expired")
