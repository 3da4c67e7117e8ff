"""The command ``hudi-py du``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.clean_options import retention_options
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.inspection.table_metrics import usage_samples
from hudi_py.model.words import counted, human_bytes

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.usage.facts import Holder, Share, Usage

_ROWS_MAX: Final = 50


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--by-reason", is_flag=True, help="Show what keeps the files, with the rule that decides. The default.")
@click.option("--by-partition", is_flag=True, help="Show sums for each partition.")
@click.option("--by-commit", is_flag=True, help="Show, for each commit, the files that it wrote and that still exist.")
@retention_options
@command
def du(common: Common, table: str, by_reason: bool, by_partition: bool, by_commit: bool, options: CleanOptions) -> None:
    r"""
    Show where the bytes of a table are, and what keeps them. Changes nothing.

    Every file in the table's folder counts once, so all sums add up to the total; hidden temporary files and checksum
    files are left out. The retention options show the same for another retention.

    \b
    Examples:
      hudi-py du s3://lake/trips
      hudi-py du TABLE --by-partition --json
      hudi-py du TABLE --commits-retained 3
    """
    opened = common.open(table).read_only()
    # The same present as a clean's, so that both agree about what the next clean deletes.
    usage = opened.usage(now=common.planning_time(opened), **options)
    common.measure(lambda _now: usage_samples(usage, table))
    # One table is enough unless more are asked for.
    if not by_partition and not by_commit:
        by_reason = True
    if common.as_json:
        print_json(usage_entry(usage, by_reason=by_reason, by_partition=by_partition, by_commit=by_commit))
        return
    if by_reason:
        _print_reasons(table, usage)
    if by_partition:
        _print_shares("partition", "(outside of partitions)", usage.by_partition)
    if by_commit:
        _print_shares("commit", "(no commit)", usage.by_commit)


def usage_entry(usage: Usage, *, by_reason: bool, by_partition: bool, by_commit: bool) -> dict[str, Any]:
    """Return the document that ``hudi-py du --json`` prints."""
    return {
        "total": _share(usage.total),
        **({"by_reason": _reasons(usage)} if by_reason else {}),
        **({"by_partition": _shares("partition", usage.by_partition)} if by_partition else {}),
        **({"by_commit": _shares("commit", usage.by_commit)} if by_commit else {}),
    }


def _reasons(usage: Usage) -> list[dict[str, Any]]:
    return [
        {"reason": holder.value, "rule": rule, **_share(share)} for (holder, rule), share in usage.by_reason.items()
    ]


def _shares(name: str, shares: Mapping[str | None, Mapping[Holder, Share]]) -> list[dict[str, Any]]:
    from hudi_py.services.usage.facts import total_of

    return [
        {
            name: key,
            **_share(total_of(held.values())),
            "reasons": {holder.value: _share(share) for holder, share in held.items()},
        }
        for key, held in shares.items()
    ]


def _share(share: Share) -> dict[str, int]:
    return {"files": share.files, "bytes": share.bytes}


def _print_reasons(table: str, usage: Usage) -> None:
    rows = [
        (holder.value.replace("_", " "), f"{share.files:,}", human_bytes(share.bytes), rule)
        for (holder, rule), share in usage.by_reason.items()
    ]
    title = f"{table}: {counted(usage.total.files, 'file')}, {human_bytes(usage.total.bytes)}"
    render.table(title, ("reason", "files", "size", "rule"), rows, right=(1, 2))
    if not usage.total.files:
        say("the table's folder has no files")


def _print_shares(name: str, nothing: str, shares: Mapping[str | None, Mapping[Holder, Share]]) -> None:
    """The largest first."""
    from hudi_py.services.usage.facts import WASTED, Holder, total_of

    sums = sorted(
        ((total_of(held.values()), key, held) for key, held in shares.items()), key=lambda each: -each[0].bytes
    )
    rows = []
    for share, key, held in sums[:_ROWS_MAX]:
        live = held[Holder.LIVE].bytes if Holder.LIVE in held else 0
        waste = total_of(each for holder, each in held.items() if holder in WASTED).bytes
        # None is what lies outside of partitions; an empty path is the only partition of a table without partitions.
        shown = nothing if key is None else key or "(none)"
        rows.append((shown, f"{share.files:,}", human_bytes(share.bytes), human_bytes(live), human_bytes(waste)))
    render.table(
        counted(sum(key is not None for key in shares), name),
        (name, "files", "size", "newest rows", "not needed"),
        rows,
        right=(1, 2, 3, 4),
    )
    if len(sums) > _ROWS_MAX:
        say(f"and {counted(len(sums) - _ROWS_MAX, name)} more; --json lists all")
