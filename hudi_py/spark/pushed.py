"""
Filters that Spark 4.1 and later hand to a data source in Python, as conditions that choose files. Needs no Spark.

Spark applies all of them again, so a filter that is not understood here costs time only. Those on moments and numbers
with fractions are left to Spark, whose literals are not always of the type of the column.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any, Final

import attrs

from hudi_py.errors import ConfigError
from hudi_py.rows.condition import Comparison, Condition, IsIn, IsNull, Not
from hudi_py.snapshot.batches import Batches, Pieces
from hudi_py.snapshot.rows import Rows

_OPERATORS: Final = {"EqualTo": "=", "GreaterThan": ">", "GreaterThanOrEqual": ">=", "LessThan": "<",
                     "LessThanOrEqual": "<="}  # fmt: skip


def condition_of(pushed: Any) -> Condition | None:
    """
    The condition that stands for a filter of ``pyspark.sql.datasource``.

    Returns:
        None if there is none that no row of the answer fails.
    """
    kind, path = type(pushed).__name__, tuple(getattr(pushed, "attribute", ()))
    if kind == "Not":
        part = condition_of(pushed.child)
        return None if part is None else Not(part)
    if kind in ("IsNull", "IsNotNull"):
        return IsNull(path) if kind == "IsNull" else Not(IsNull(path))
    if kind in _OPERATORS and _is_exact(pushed.value):
        return Comparison(path, _OPERATORS[kind], pushed.value)
    if kind == "In" and all(map(_is_exact, pushed.value)):
        return IsIn(path, tuple(pushed.value))
    return None


def pieces_for(batches: Batches, pushed: Iterable[Any]) -> Pieces:
    """
    The pieces of an answer that may have rows which meet filters; each is still read as a whole.

    Args:
        batches: The answer.
        pushed: The filters, all of which rows have to meet.
    """
    found = batches.in_pieces()
    if not isinstance(batches, Rows):
        return found
    conditions: list[Condition] = []
    for each in map(condition_of, pushed):
        if each is None:
            continue
        try:
            batches.narrowed(None, each)
        except ConfigError:  # a column that the answer has and the table has not, or a type that conditions lack
            continue
        conditions.append(each)
    if not conditions:
        return found
    chosen = batches.narrowed(None, *conditions).in_pieces()
    return attrs.evolve(found, pieces=chosen.pieces, sizes=chosen.sizes)


def _is_exact(value: object) -> bool:
    return isinstance(value, (bool, int, str, date)) and not isinstance(value, datetime)
