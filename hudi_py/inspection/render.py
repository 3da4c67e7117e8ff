"""Prints tables for people: with rich on a terminal, as plain aligned columns elsewhere."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hudi_py.inspection.say import say, visible
from hudi_py.model.words import human_bytes

if TYPE_CHECKING:
    from rich.console import Console

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
    # In words: names of columns above nothing look as if something was lost.
    if not rows:
        say(_NO_ROWS.sub(": none", title))
        return
    # Pipes get plain columns: colours and frames would be part of the text.
    if is_terminal():
        _rich_table(title, columns, rows, right)
        return
    widths = [max(len(row[i]) for row in (columns, *rows)) for i in range(len(columns))]
    say(title)
    for row in (columns, *rows) if any(columns) else rows:
        cells = [c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        say("  ".join(cells).rstrip())


def _rich_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    console = Console()
    console.print(Text(visible(title), style="italic"), soft_wrap=True)
    whole = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    if sum(whole) + _GAP * (len(whole) - 1) <= console.width:
        _print_lines(columns, rows, whole, right, console)
        return
    widths = _widths([columns, *rows], whole, console.width)
    if widths is None:
        _print_stacked(columns, rows, console.width)
        return
    # A table whose columns need no names has no line for them either.
    grid = RichTable(header_style="bold", box=None, pad_edge=False, show_header=any(columns))
    for position, (name, width) in enumerate(zip(columns, widths, strict=True)):
        grid.add_column(name, justify="right" if position in right else "left", overflow="fold", width=width)
    for row in rows:
        grid.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console.print(grid)


def _print_lines(
    columns: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], right: Sequence[int], console: Console
) -> None:
    """Rows that need no wrapping, a line each: rich takes a minute and a gigabyte for the files of a large table."""
    from rich.cells import cell_len
    from rich.text import Text

    def around(style: str) -> tuple[str, str]:
        with console.capture() as shown:
            console.print(Text("|", style=style), end="")
        before, _, after = shown.get().partition("|")
        return before, after

    def line(cells: Sequence[str], styles: Sequence[str]) -> str:
        found = []
        for position, (cell, width, style) in enumerate(zip(cells, widths, styles, strict=True)):
            space = " " * (width - cell_len(cell))
            before, after = painted[style]
            found.append(f"{space}{before}{cell}{after}" if position in right else f"{before}{cell}{after}{space}")
        return "  ".join(found).rstrip()

    painted = {style: around(style) for style in ("", "bold", *_STYLES.values())}
    heading = [line(columns, ["bold" if name else "" for name in columns])] if any(columns) else []
    for each in (*heading, *(line(row, [_STYLES.get(cell, "") for cell in row]) for row in rows)):
        # Not with say, which would escape the styles; cells have no control characters any more.
        console.file.write(f"{each}\n")


def _widths(lines: Sequence[Sequence[str]], whole: Sequence[int], most: int) -> list[int] | None:
    """Widths of the columns so that no word is broken; None where they do not fit into *most* together."""
    from rich.cells import cell_len

    columns = list(zip(*lines, strict=True))
    words = [max((cell_len(word) for cell in column for word in cell.split()), default=0) for column in columns]
    room = most - _GAP * (len(columns) - 1)
    if sum(words) > room:
        return None
    # What the words leave goes to the columns that have more to say, the narrow ones first: they are read most.
    spare = room - sum(words)
    widths = words[:]
    for position in sorted(range(len(columns)), key=lambda each: whole[each]):
        more = min(whole[position] - widths[position], spare)
        widths[position] += more
        spare -= more
    return widths


def _print_stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], most: int) -> None:
    """One row after the other: what it is about on a line of its own, whole, so that it can be copied."""
    single = [n for n in range(len(columns)) if all(len(row[n].split()) == 1 for row in rows)]
    lead = max(single, key=lambda n: max(len(row[n]) for row in rows), default=0)
    last = None
    for row in rows:
        # What several rows are about is said once.
        if row[lead] != last:
            last = row[lead]
            say(last)
        cells = [(name, cell) for n, (name, cell) in enumerate(zip(columns, row, strict=True)) if n != lead and cell]
        # Spaces that do not break: a name stays with its value, unless that alone fills a line.
        rest = [
            _JOINED.join(f"{name} {cell}".split()) if len(cell) < most // 2 else f"{name}: {cell}"
            for name, cell in cells
        ]
        for line in textwrap.wrap(", ".join(rest), most - 2, break_long_words=False, break_on_hyphens=False):
            say(f"  {line.replace(_JOINED, ' ')}")


_NO_ROWS = re.compile(r", 0(?: [a-z ]+)?$")
_JOINED = "\0"  # no cell has one: it would be escaped
_GAP = 2  # between two columns
_STYLES = {"COMPLETED": "green", "INFLIGHT": "yellow", "REQUESTED": "yellow"}
