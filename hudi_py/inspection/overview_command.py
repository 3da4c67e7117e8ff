"""The command ``hudi-py overview``."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from hudi_py.inspection import complete, render
from hudi_py.inspection.failure import print_json
from hudi_py.inspection.options import Common, command
from hudi_py.inspection.say import say
from hudi_py.model.words import human_span

if TYPE_CHECKING:
    from hudi_py.snapshot.overview import Amount, ColumnRange, Overview
    from hudi_py.table import Table

_NOT_LISTED = "not listed by the metadata table; hudi-py du counts them"


@click.command()
@click.argument("table", shell_complete=complete.tables)
@click.option("--columns/--no-columns", default=None, help="Always or never show the value range of each column.")
@command
def overview(common: Common, table: str, columns: bool | None) -> None:
    """
    Show a summary of a table. Lists its type, files, instants and metadata table.

    The value ranges of columns come from the column statistics in the metadata table. By default they are shown if the
    latest snapshot has at most 1000 files, and all of these have statistics.
    """
    opened = common.open(table)
    # No option: the limit that the library has by default.
    limits: dict[bool | None, dict[str, int | None]] = {
        None: {},
        True: {"columns_files_max": None},
        False: {"columns_files_max": -1},
    }
    found = opened.overview(**limits[columns])
    if common.as_json:
        print_json(overview_entry(opened, found))
    else:
        _print(opened, found)


def overview_entry(opened: Table, found: Overview) -> dict[str, Any]:
    """Return the document that ``hudi-py overview --json`` prints; bytes in Base64, ages in seconds, None unknown."""
    from hudi_py.inspection.instant_entry import instant_entry

    config, uncommitted = opened.config, found.files.uncommitted
    return {
        "name": config.name,
        "type": config.table_type.value,
        "version": config.version,
        "layout_version": config.layout_version,
        "record_key_fields": list(config.record_key_fields),
        "partition_fields": list(config.partition_fields),
        "ordering_fields": list(config.ordering_fields),
        "partitions": found.files.partitions,
        "file_groups": found.files.file_groups,
        "files": {
            "latest": _amount(found.files.latest),
            "older": _amount(found.files.older),
            "uncommitted": None if uncommitted is None else _amount(uncommitted),
        },
        "instants": found.instants,
        "last": {name: {**instant_entry(instant), "age_seconds": age} for name, (instant, age) in found.last.items()},
        "pending": [instant_entry(instant) for instant in found.pending],
        "savepoints": list(found.savepoints),
        "metadata_table": {name: _amount(amount) for name, amount in found.metadata_partitions.items()},
        "columns": ranges_entry(found.columns),
    }


def ranges_entry(columns: Sequence[ColumnRange] | None) -> dict[str, Any] | None:
    """Return the ranges of columns as ``hudi-py overview --json`` prints them."""
    return None if columns is None else {column.column: _range(column) for column in columns}


def _amount(amount: Amount) -> dict[str, int]:
    return {"files": amount.files, "bytes": amount.bytes}


def _range(column: ColumnRange) -> dict[str, Any]:
    return {
        "kind": column.kind,
        "min": _plain(column.minimum, column.kind),
        "max": _plain(column.maximum, column.kind),
        "nulls": column.null_count,
    }


def _plain(value: Any, kind: str | None) -> Any:
    from hudi_py.snapshot.overview import plain_bound

    plain = plain_bound(value, kind)
    if isinstance(plain, bytes):
        # JSON has no bytes.
        return base64.b64encode(plain).decode("ascii")
    # JSON has no NaN and no infinity.
    return str(plain) if isinstance(plain, float) and not math.isfinite(plain) else plain


def _print(opened: Table, found: Overview) -> None:
    config, files = opened.config, found.files
    lines = [
        (
            "type",
            f"{config.table_type.value}, version {config.version}, timeline layout {config.layout_version}",
        ),
        ("record key", ", ".join(config.record_key_fields) or "-"),
        ("partitioned by", ", ".join(config.partition_fields) or "-"),
        ("ordered by", ", ".join(config.ordering_fields) or "-"),
        ("partitions", f"{files.partitions:,}"),
        ("file groups", f"{files.file_groups:,}"),
        ("latest files", _size(files.latest)),
        ("older files", _size(files.older)),
        ("uncommitted files", _NOT_LISTED if files.uncommitted is None else _size(files.uncommitted)),
    ]
    for action, states in found.instants.items():
        counts = ", ".join(f"{number:,} {state.lower()}" for state, number in states.items())
        lines.append((f"{action} instants", counts))
    for name, (instant, age) in found.last.items():
        lines.append((f"last {name}", f"{instant.requested_time} ({instant.action.value}), {human_span(age)} ago"))
    lines += [("pending", str(instant)) for instant in found.pending]
    lines += [("savepoint", savepoint) for savepoint in found.savepoints]
    lines += [(f"metadata: {name}", _size(amount)) for name, amount in found.metadata_partitions.items()]
    if not found.metadata_partitions:
        lines.append(("metadata table", "none"))
    render.table(f"{config.name} at {opened.storage.root}", ("", ""), lines)
    if found.columns is not None:
        rows = [
            (column.column, column.kind or "-", _text(column.minimum, column.kind), _text(column.maximum, column.kind),
             "?" if column.null_count is None else f"{column.null_count:,}")
            for column in found.columns
        ]  # fmt: skip
        say()
        render.table("columns of the latest snapshot", ("column", "kind", "min", "max", "nulls"), rows, right=(4,))


def _size(amount: Amount) -> str:
    return f"{amount.files:,}, {render.human_bytes(amount.bytes)}"


def _text(value: Any, kind: str | None) -> str:
    return "-" if value is None else str(_plain(value, kind))
