"""The command ``hudi-py undo``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted, human_bytes

if TYPE_CHECKING:
    from hudi_py.services.undo.result import UndoReport

# A terminal is for people; scripts have --json.
_FILES_SHOWN_MAX: Final = 500


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.argument("clean", shell_complete=complete.instants)
@click.option("--dry-run", is_flag=True, help="Show what would be put back; nothing is written.")
@command
def undo(common: Common, table: str, clean: str, dry_run: bool) -> None:
    r"""
    Put back the files of a clean that ran with --quarantine, or of a search for orphans.

    CLEAN is the requested time of the clean, or the name that hudi-py orphans printed. The metadata table lists the
    files of a clean again, and the timeline is as if it had never run: the next clean plans them again, unless it
    retains more.

    \b
    Examples:
      hudi-py clean TABLE --quarantine
      hudi-py undo TABLE 20261101120000000 --dry-run
    """
    opened = common.open(table)
    if dry_run:
        opened = opened.read_only()
    report = opened.undo(clean, dry_run=dry_run)
    if common.as_json:
        print_json(undo_entry(report))
        return
    rows = [(path, human_bytes(size)) for path, size in list(report.files.items())[:_FILES_SHOWN_MAX]]
    word = "would be put back (nothing was written)" if dry_run else "put back"
    render.table(f"{word}: {counted(len(report.files), 'file')}", ("file", "size"), rows, right=(1,))
    if len(rows) < len(report.files):
        say(f"and {counted(len(report.files) - len(rows), 'file')} more; --json lists all")
    if report.rollback is not None:
        say(f"clean {report.name} is undone; rollback {report.rollback} records it")


def undo_entry(report: UndoReport) -> dict[str, Any]:
    """Return the document that ``hudi-py undo --json`` prints."""
    by = f"clean {report.name} removed it" if report.kind == "clean" else "it was removed as an orphan"
    return {
        "removal": report.name,
        "kind": report.kind,
        "files": [
            {"path": path, "size_bytes": size, "reason": report.reasons.get(path, by)}
            for path, size in report.files.items()
        ],
        "files_moved": len(report.restored),
        "rollback": report.rollback,
        "dry_run": report.is_dry_run,
    }
