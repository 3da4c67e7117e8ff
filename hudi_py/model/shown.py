"""How values show themselves: in one line for a prompt, as a small table for a notebook. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Final

_ROWS_MAX: Final = 20
"""Of the list below the facts, in a notebook."""


class Shown:
    """A value that tells the `_facts` about itself; a long one never prints everything that it holds."""

    __slots__ = ()

    def _facts(self) -> Mapping[str, object]:
        """Name to value, the most telling first; cheap: nothing is read for it."""
        raise NotImplementedError

    def _listed(self) -> Iterable[Sequence[object]]:
        """Rows to show below the facts in a notebook, the newest or most telling first."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._facts().items())})"

    def _repr_html_(self) -> str:
        facts = [(name.replace("_", " "), value) for name, value in self._facts().items()]
        rows = list(islice(self._listed(), _ROWS_MAX + 1))
        if len(rows) > _ROWS_MAX:
            rows[_ROWS_MAX:] = [("…",)]
        tables = "".join(f"<table>{''.join(map(_row, each))}</table>" for each in (facts, rows) if each)
        return f"<div><b>{escape(type(self).__name__)}</b>{tables}</div>"


def _row(cells: Sequence[object]) -> str:
    return f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"
