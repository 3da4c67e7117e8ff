"""The command ``hudi-py orphans``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.config import keys
from hudi_py.errors import ConfigError
from hudi_py.inspection import complete, render
from hudi_py.inspection.approve_command import list_option, write_list
from hudi_py.inspection.clean_options import tag_option
from hudi_py.inspection.deletion_command import warn_if_forbidden
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, at_most_one, command
from hudi_py.inspection.say import say
from hudi_py.model.instant_time import iso_utc
from hudi_py.model.words import counted, human_bytes, shell_word

if TYPE_CHECKING:
    from hudi_py.services.orphans.facts import OrphanReport

# A terminal is for people; scripts have --json.
_FILES_SHOWN_MAX: Final = 500


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--older-than", metavar="D", help="Remove only files of at least this age (36h, 7d). Default: 3d.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed and why; nothing is written.")
@list_option
@click.option("--quarantine", is_flag=True, help="Move the files aside, so that undo puts them back. The default.")
@tag_option
@click.option("--delete", is_flag=True, help="Delete the files for good.")
@click.option("--max-deletes", type=click.IntRange(min=0), metavar="N", help="Remove at most N files, oldest first.")
@click.option(
    "--inventory",
    type=click.Path(),
    help="CSV or Parquet with path, size, mtime, or manifest.json of Amazon S3, in place of listings.",
)
@command
def orphans(
    common: Common,
    table: str,
    older_than: str | None,
    dry_run: bool,
    list_to: str | None,
    quarantine: bool,
    tag: str | None,
    delete: bool,
    max_deletes: int | None,
    inventory: str | None,
) -> None:
    r"""
    Remove data files that no instant knows: of writes that were undone, of retried tasks, of failed deletions.

    A file is removed only if it is old enough, and if timeline, archive, metadata table, savepoints, pending plans,
    markers and heartbeats all say that nothing needs it. If something about the table is in doubt, nothing is removed.

    \b
    Examples:
      hudi-py orphans TABLE --dry-run
      hudi-py orphans TABLE --older-than 7d
      hudi-py orphans s3://lake/trips --inventory s3://lists/trips/manifest.json
      hudi-py undo TABLE orphans-20261101120000000
    """
    chosen = [name for name, is_given in (("--quarantine", quarantine or tag), ("--delete", delete)) if is_given]
    if len(chosen) > 1 or (dry_run and quarantine):
        raise ConfigError("--dry-run, --quarantine (--tag) and --delete exclude each other; give one of them")
    opened = common.open(table)
    opened.settings = opened.settings.merged({keys.QUARANTINE_TAG.name: tag})
    if list_to is not None:
        at_most_one(
            {"--list": True, "--dry-run": dry_run, "--quarantine": quarantine, "--tag": tag, "--delete": delete}
        )
        asked = opened.read_only().list_for_approval(
            "orphans",
            now=common.planning_time(opened),
            older_than=older_than,
            max_deletes=max_deletes,
            inventory=inventory,
        )
        write_list(common, asked, list_to)
        warn_if_forbidden(opened, "the removal")
        return
    # On a view that refuses every change, so that a mistake cannot delete anything.
    if dry_run:
        opened = opened.read_only()
    report = opened.orphans(
        older_than=older_than,
        dry_run=dry_run,
        delete=delete,
        max_deletes=max_deletes,
        inventory=inventory,
        now=common.deletion_time(opened, dry_run=dry_run),
    )
    if common.as_json:
        print_json(orphan_entry(report))
    else:
        _print(table, report, is_dry_run=dry_run)
    if dry_run:
        warn_if_forbidden(opened, "the removal")
    if report.failed:
        path, why = next(iter(report.failed.items()))
        say(f"hudi-py: {counted(len(report.failed), 'file')} could not be removed, as {path}: {why}", file=sys.stderr)
        # After the report, which says what was removed all the same.
        raise SystemExit(1)


def orphan_entry(report: OrphanReport) -> dict[str, Any]:
    """Return the document that ``hudi-py orphans --json`` prints."""
    done = frozenset(report.done)
    return {
        "action": report.action.value,
        "older_than": iso_utc(report.older_than_ms),
        "files_seen": report.files_seen,
        "orphans": [
            {
                "path": verdict.file.path,
                "size_bytes": verdict.file.size_bytes,
                "modified": None if verdict.file.modified_ms is None else iso_utc(verdict.file.modified_ms),
                "verdict": verdict.fate.value,
                "reason": verdict.reason,
                "kept_because": verdict.why_kept or None,
                "removed": verdict.file.path in done,
            }
            for verdict in report.verdicts
        ],
        "files_to_remove": len(report.to_remove),
        "bytes_to_remove": report.bytes_to_remove,
        "left": report.left,
        "failed": dict(report.failed),
        "empty_folders": list(report.empty_folders),
        "removed_folders": list(report.removed_folders),
        "quarantine": report.quarantine,
        "doubts": list(report.doubts),
        "other_tables": list(report.other_tables),
    }


def _print(table: str, report: OrphanReport, *, is_dry_run: bool) -> None:
    if report.verdicts:
        rows = [
            (
                verdict.file.path,
                human_bytes(verdict.file.size_bytes),
                verdict.fate.value,
                verdict.why_kept or verdict.reason,
            )
            for verdict in report.verdicts[:_FILES_SHOWN_MAX]
        ]
        title = f"{table}: {counted(len(report.verdicts), 'file')} that no instant knows"
        render.table(title, ("file", "size", "verdict", "why"), rows, right=(1,))
        if len(report.verdicts) > len(rows):
            say(f"and {counted(len(report.verdicts) - len(rows), 'file')} more; --json lists all")
    else:
        say(f"no orphans among {counted(report.files_seen, 'data file')}")
    for path in report.other_tables:
        say(f"other      {path} is another table and was not examined")
    for doubt in report.doubts:
        say(f"doubt      {doubt}")
    what = f"{counted(len(report.to_remove), 'file')}, {human_bytes(report.bytes_to_remove)}"
    folders = f", {counted(len(report.empty_folders), 'empty folder')}" if report.empty_folders else ""
    if is_dry_run:
        word = "nothing would be removed" if report.doubts else f"would be removed: {what}{folders}"
        say(f"total      {word} (nothing was written)")
        return
    if report.done:
        where = f"moved to {report.quarantine}" if report.quarantine else "deleted for good"
        say(f"total      {counted(len(report.done), 'file')} {where}")
    if report.removed_folders:
        say(f"folders    {counted(len(report.removed_folders), 'empty folder')} removed")
    if report.left:
        say(f"left       {counted(report.left, 'file')}; the limit of this run leaves them for the next one")
    if report.quarantine:
        say(f"undo       hudi-py undo {shell_word(table)} {report.quarantine.rpartition('/')[2]}")
