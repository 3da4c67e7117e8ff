"""Prints tables for people: with rich on a terminal, as plain aligned columns elsewhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from hudi_py.inspection.say import say, visible
from hudi_py.model.words import human_bytes

__all__ = ["human_bytes", "is_terminal", "table"]


def is_terminal() -> bool:
    """Return whether standard output is a terminal that can show more than plain text."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """
    Print a table.

    Args:
        title: Line above the table.
        columns: Headings.
        rows: Cells of each row.
        right: Indexes of the columns to align right.
    """
    # Before the widths are measured: an escaped character is wider.
    rows = [[visible(cell) for cell in row] for row in rows]
    # Pipes get plain columns: colours and frames would be part of the text.
    if is_terminal():
        _rich_table(title, columns, rows, right)
        return
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    say(title)
    for row in (columns, *rows):
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        say("  ".join(cells).rstrip())


def _rich_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    grid = RichTable(title=Text(visible(title)), title_justify="left", header_style="bold", box=None, pad_edge=False)
    for position, name in enumerate(columns):
        grid.add_column(name, justify="right" if position in right else "left", overflow="fold")
    for row in rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console().print(grid)


_STYLES = {"COMPLETED": "green", "INFLIGHT": "yellow", "REQUESTED": "yellow"}
