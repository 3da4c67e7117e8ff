"""The command ``hudi-py approve``, and the option ``--list`` of commands that remove files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.deletion_command import warn_if_forbidden
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.output_file import check_outside
from hudi_py.inspection.say import say
from hudi_py.model.words import counted, human_bytes, shell_word, why_unread

if TYPE_CHECKING:
    from hudi_py.model.removal_list import RemovalList
    from hudi_py.services.approval.asked import ApprovedRemoval

# A terminal is for people; scripts have --json.
_FILES_SHOWN_MAX: Final = 500


def list_option(function: Callable[..., None]) -> Callable[..., None]:
    """Add the option ``--list`` to a command."""
    text = "Write what would be removed into FILE, for a person to approve (hudi-py approve); remove nothing."
    return click.option("--list", "list_to", metavar="FILE", type=click.Path(), help=text)(function)


def write_list(common: Common, asked: RemovalList, target: str) -> None:
    """
    Write a list for approval, and say what to do with it.

    Raises:
        ConfigError: The file cannot be written, or is there already: somebody may be deciding about it. Or it is
            inside of the table, as a file that no instant knows.
    """
    check_outside(target, asked.table, "--list")
    try:
        with Path(target).open("x", encoding="utf-8") as file:
            try:
                file.write(asked.text())
                file.flush()
            except BaseException:  # a part of a list would be taken for one, and keep the next run from writing it
                Path(target).unlink()
                raise
    except FileExistsError as error:
        raise ConfigError(f"{target} exists already; give another file") from error
    except OSError as error:
        raise ConfigError(f"--list {target}: {error.strerror}; give a place that can be written") from error
    size = sum(max(each.size_bytes, 0) for each in asked.files)
    if common.as_json:
        print_json({"list": target, "kind": asked.kind, "files": len(asked.files), "bytes": size})
        return
    say(f"listed     {counted(len(asked.files), 'file')}, {human_bytes(size)}, in {target}; nothing was removed")
    say(
        "approve    delete the lines of files that shall stay, then: hudi-py approve "
        f"{shell_word(asked.table)} {shell_word(target)} --by NAME"
    )


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("file", type=click.Path())
@click.option("--by", metavar="NAME", help="Who approves the list, if its first line does not say so.")
@click.option(
    "--delete", is_flag=True, help="For orphans: delete them for good instead of moving them into quarantine."
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed and what would stay; nothing is written.")
@command
def approve(common: Common, table: str, file: str, by: str | None, delete: bool, dry_run: bool) -> None:
    r"""
    Remove the files of a list that hudi-py clean --list or hudi-py orphans --list has written.

    Exactly these files go, after every check is made again. A file that something needs by now, or that is not the
    file of the list any more, stays and is named.

    \b
    Examples:
      hudi-py clean TABLE --list files.jsonl
      hudi-py approve TABLE files.jsonl --by ann --dry-run
      hudi-py approve TABLE files.jsonl --by ann
    """
    from hudi_py.model.removal_list import RemovalList

    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {why_unread(error)}; nothing was removed") from error
    asked = RemovalList.parse(text, file)
    opened = common.open(table)
    if dry_run:
        opened = opened.rehearsal()
    if by is not None or dry_run:
        asked = attrs.evolve(asked, approved_by=by or asked.approved_by or "a dry run")
    now = common.deletion_time(opened, dry_run=dry_run)
    report = opened.remove_approved(asked, dry_run=dry_run, delete=delete, now=now)
    if common.as_json:
        print_json(approval_entry(report))
    else:
        _print(report)
    if dry_run:
        warn_if_forbidden(opened, "the removal")
    if report.failed:
        path, why = next(iter(report.failed.items()))
        say(f"hudi-py: {counted(len(report.failed), 'file')} could not be removed, as {path}: {why}", file=sys.stderr)
        raise SystemExit(1)


def approval_entry(report: ApprovedRemoval) -> dict[str, Any]:
    """Return the document that ``hudi-py approve --json`` prints."""
    return {
        "kind": report.asked.kind,
        "approved_by": report.asked.approved_by,
        "removed": list(report.removed),
        "kept": [{"path": path, "reason": why} for path, why in report.kept.items()],
        "failed": dict(report.failed),
        "cleans": [each.instant for each in report.cleans],
        "quarantine": None if report.orphans is None else report.orphans.quarantine,
        "dry_run": report.is_dry_run,
    }


def _print(report: ApprovedRemoval) -> None:
    rows = list(report.kept.items())[:_FILES_SHOWN_MAX]
    if rows:
        render.table(f"kept: {counted(len(report.kept), 'file')}", ("file", "why"), rows)
        if len(rows) < len(report.kept):
            say(f"and {counted(len(report.kept) - len(rows), 'file')} more; --json lists all")
    word = "would be removed (nothing was written)" if report.is_dry_run else "removed"
    say(f"{word}: {len(report.removed)} of {counted(len(report.asked.files), 'approved file')}")
    for clean in report.cleans:
        say(f"clean {clean.instant} records it, approved by {report.asked.approved_by}")
    if report.orphans is not None and report.orphans.quarantine:
        name = report.orphans.quarantine.rpartition("/")[2]
        say(f"undo       hudi-py undo {shell_word(report.asked.table)} {name}")
