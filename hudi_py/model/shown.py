"""How values are displayed: on one line at a prompt, as a small table in a notebook. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Final

_ROWS_MAX: Final = 20
"""Largest number of rows in the list that a notebook shows."""


class Shown:
    """Base class of values with a short ``repr``: it shows the value's `_facts`, never all of a large content."""

    __slots__ = ()

    def _facts(self) -> Mapping[str, object]:
        """Return names and values to show, the most important first. Must be cheap and must not read storage."""
        raise NotImplementedError

    def _listed(self) -> Iterable[Sequence[object]]:
        """Return rows to show below the facts in a notebook, the newest or most important first."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        facts = [(name.replace("_", " "), value) for name, value in self._facts().items()]
        rows = list(islice(self._listed(), _ROWS_MAX + 1))
        if len(rows) > _ROWS_MAX:
            rows[_ROWS_MAX:] = [("…",)]
        tables = "".join(f"<table>{''.join(map(_row, table))}</table>" for table in (facts, rows) if table)
        return f"<div><b>{escape(type(self).__name__)}</b>{tables}</div>"


def _row(cells: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"
