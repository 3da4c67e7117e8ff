"""
Which rows cannot meet conditions, by what is known of their columns. Pure.

Of each condition two things are told: whether a row may make it true, and whether one may make it false; ``not`` swaps
them, ``and`` may be true where all sides may, ``or`` where one may. Whatever is unknown rules nothing out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

import pyarrow as pa

from hudi_py.rows.condition import And, Comparison, Condition, IsIn, IsNull, Not, Or, Path
from hudi_py.rows.operand import Operand
from hudi_py.rows.pattern import Pattern
from hudi_py.rows.predicate import Bounds, Filter, Leaf, RowFilter

BoundsOf: TypeAlias = Callable[[Path, pa.DataType], Sequence[Bounds]]
"""What is known of a column, given with its type today: each value lies within one of these bounds."""

_OPPOSITE: Final = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class May(NamedTuple):
    """Whether some row may make a condition true, and whether one may make it false."""

    be_true: bool
    be_false: bool


_NEITHER: Final = May(be_true=False, be_false=False)


def may_match(filters: Iterable[RowFilter], bounds_of: BoundsOf) -> bool:
    """Whether a row may meet all of *filters*."""
    return all(
        _may(each.tree, bounds_of).be_true
        if isinstance(each, Filter)
        else any(map(each.may_match, bounds_of((each.column,), each.arrow)))
        for each in filters
    )


def paths_of(filters: Iterable[RowFilter]) -> frozenset[Path]:
    """The columns that `may_match` asks for."""
    return frozenset(
        path
        for each in filters
        for path in ((leaf.path for leaf in each.leaves) if isinstance(each, Filter) else ((each.column,),))
    )


def _may(tree: Condition, bounds_of: BoundsOf) -> May:
    if isinstance(tree, And):
        parts = [_may(part, bounds_of) for part in tree.parts]
        return May(all(part.be_true for part in parts), any(part.be_false for part in parts))
    if isinstance(tree, Or):
        parts = [_may(part, bounds_of) for part in tree.parts]
        return May(any(part.be_true for part in parts), all(part.be_false for part in parts))
    if isinstance(tree, Not):
        part = _may(tree.part, bounds_of)
        return May(part.be_false, part.be_true)
    assert isinstance(tree, Leaf)
    found = [leaf_may(tree, bounds) for bounds in bounds_of(tree.path, tree.arrow)]
    return (
        found[0] if len(found) == 1 else May(any(each.be_true for each in found), any(each.be_false for each in found))
    )


def leaf_may(leaf: Leaf, bounds: Bounds) -> May:
    """What rows within *bounds* may make of a condition on one column."""
    condition = leaf.condition
    if isinstance(condition, IsNull):
        return May(bounds.has_nulls, not bounds.has_only_nulls)
    if isinstance(condition, IsIn) and not condition.values:
        return May(be_true=False, be_false=True)
    if bounds.has_only_nulls:
        return _NEITHER
    if isinstance(condition, Comparison) and leaf.operands:
        operand, operator = leaf.operands[0], condition.operator
        return May(_compares(operand, operator, leaf, bounds), _compares(operand, _OPPOSITE[operator], leaf, bounds))
    if isinstance(condition, IsIn):
        return May(
            any(_compares(each, "=", leaf, bounds) for each in leaf.operands),
            None not in condition.values and all(_compares(each, "!=", leaf, bounds) for each in leaf.operands),
        )
    return _NEITHER if leaf.pattern is None else _has_form(leaf.pattern, bounds)


def _compares(operand: Operand, operator: str, leaf: Leaf, bounds: Bounds) -> bool:
    """Whether a value within *bounds* may compare so."""
    if bounds.minimum is None or bounds.maximum is None:
        return True
    value = operand.value
    if pa.types.is_floating(leaf.arrow) and operator in ("!=", ">", ">="):
        return True  # bounds do not tell of a NaN
    if isinstance(value, float) and math.isnan(value):
        return True
    low, high = operand.range_of(bounds.minimum, bounds.maximum)
    verdicts = {
        "=": low <= value <= high,
        "!=": not low == value == high,
        "<": low < value,
        "<=": low <= value,
        ">": high > value,
        ">=": high >= value,
    }
    return bool(verdicts[operator])


def _has_form(pattern: Pattern, bounds: Bounds) -> May:
    if bounds.minimum is None or bounds.maximum is None:
        return May(be_true=True, be_false=True)
    return May(pattern.may_match(bounds.minimum, bounds.maximum), pattern.may_differ(bounds.minimum, bounds.maximum))
