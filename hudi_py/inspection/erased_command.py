"""The command ``hudi-py erased``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.inspection import complete
from hudi_py.inspection.clean_options import retention_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import counted, human_bytes

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.erasure.facts import ErasureReport, HeldFile

# A terminal is for people; scripts have --json.
_FILES_SHOWN_MAX: Final = 100
_KEYS_SHOWN_MAX: Final = 5
_PROBLEMS_FOUND: Final = 3


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--partition", metavar="PATH", help="Path of the partition whose rows should be gone.")
@click.option("--key", "keys", multiple=True, help="Record key whose rows should be gone; may be repeated.")
@retention_options
@command
def erased(common: Common, table: str, partition: str | None, keys: tuple[str, ...], options: CleanOptions) -> None:
    r"""
    Prove that the bytes of a partition or of record keys are gone, or show which files still hold them.

    Every file is looked at: newest rows, older versions, log files, those of writes that failed or are running,
    quarantine, and the indexes of the metadata table. With --key the keys in all of them are read. Exits with code 3
    unless the bytes are gone. Copies outside of the table (backups, versions that the store keeps) are not looked at.

    \b
    Examples:
      hudi-py erased TABLE --partition 2024/01/01
      hudi-py erased TABLE --key u-4711 --key u-4712 --json
    """
    from hudi_py.services.erasure.facts import ErasureVerdict

    opened = common.open(table).read_only()
    partition = None if partition is None else partition.rstrip("/")  # as a shell completes a folder
    report = opened.erased(partition=partition, keys=keys, now=common.planning_time(opened), **options)
    if common.as_json:
        print_json(erasure_entry(report))
    else:
        _print(report)
    if report.verdict is not ErasureVerdict.GONE:
        raise SystemExit(_PROBLEMS_FOUND)


def erasure_entry(report: ErasureReport) -> dict[str, Any]:
    """Return the document that ``hudi-py erased --json`` prints."""
    last = report.last_removal
    return {
        "verdict": report.verdict.value,
        "partition": report.partition,
        "keys": list(report.keys),
        "looked_at": report.looked_at,
        "files_seen": report.files_seen,
        "gone_since": None if last is None else {"at": last.at, "by": last.by},
        "doubts": list(report.doubts),
        "files": [_entry(each) for each in report.held],
    }


def _entry(file: HeldFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "place": file.place.value,
        "bytes": file.size_bytes,
        "holds": file.trace.holds.value,
        "certain": file.is_certain,
        "why_unsure": file.trace.why_unsure or None,
        "keys": list(file.trace.keys),
        "why_kept": list(file.why_kept),
        "deleted_when": list(file.until),
    }


def _print(report: ErasureReport) -> None:
    say(f"verdict    {_verdict(report)}")
    say(f"looked at  {counted(report.files_seen, 'file')}, at {report.looked_at}")
    for doubt in report.doubts:
        say(f"doubt      {doubt}")
    for file in report.held[:_FILES_SHOWN_MAX]:
        say()
        holds = f"holds {file.trace.holds.value}" if file.is_certain else f"may hold them: {file.trace.why_unsure}"
        say(f"{file.path}  {human_bytes(file.size_bytes or 0)}, {holds}{_of(file.trace.keys)}")
        say(f"  why         {'; '.join(file.why_kept)}")
        say(f"  deleted     {' and '.join(file.until) or 'by the next clean that is due'}")
    if len(report.held) > _FILES_SHOWN_MAX:
        say(f"and {counted(len(report.held) - _FILES_SHOWN_MAX, 'file')} more; --json lists all")


def _verdict(report: ErasureReport) -> str:
    if report.held:
        size = human_bytes(sum(each.size_bytes or 0 for each in report.held))
        word = "holds" if len(report.held) == 1 else "hold"
        return f"{report.verdict.value}: {counted(len(report.held), 'file')}, {size}, {word} them or may hold them"
    last = report.last_removal
    if last is None:
        return report.verdict.value
    return (
        f"gone since {last.at} at the latest: {last.by}" if last.at else f"gone now; since when is unknown: {last.by}"
    )


def _of(keys: tuple[str, ...]) -> str:
    shown = ", ".join(keys[:_KEYS_SHOWN_MAX])
    more = len(keys) - _KEYS_SHOWN_MAX
    return f" of {shown}{f' and {more} more' if more > 0 else ''}" if keys else ""
