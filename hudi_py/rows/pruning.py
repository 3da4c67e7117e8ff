"""
Rules out rows that cannot meet conditions, by the bounds of their columns. Pure.

For each condition the question is whether a row may make it true, or (below a ``not``) false: an ``and`` may be true
if all its parts may, an ``or`` if one of them may. Unknown bounds rule nothing out. This runs for every file of a
table, so bounds are computed only when a condition needs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa

from hudi_py.rows.condition import And, Comparison, Condition, IsIn, IsNull, Not, Or, Path
from hudi_py.rows.operand import Operand
from hudi_py.rows.pattern import Pattern
from hudi_py.rows.predicate import Bounds, Filter, Leaf, RowFilter

BoundsOf: TypeAlias = Callable[[Path, pa.DataType], Sequence[Bounds]]
"""Returns bounds of a column, given its path and its type today; every value is within one of them."""

_OPPOSITE: Final = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_VERDICTS: Final[Mapping[str, Callable[[Any, Any, Any], bool]]] = {
    "=": lambda low, high, value: low <= value <= high,
    "!=": lambda low, high, value: not low == value == high,
    "<": lambda low, _, value: low < value,
    "<=": lambda low, _, value: low <= value,
    ">": lambda _, high, value: high > value,
    ">=": lambda _, high, value: high >= value,
}
"""Whether the comparison may be true for a value between *low* and *high*."""


def may_match(filters: Iterable[RowFilter], bounds_of: BoundsOf) -> bool:
    """Whether a row may meet all of *filters*."""
    return all(
        _may(each.tree, bounds_of, wanted=True)
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


def _may(tree: Condition, bounds_of: BoundsOf, *, wanted: bool) -> bool:
    """Whether some row may make *tree* true, or false where *wanted* is false."""
    if isinstance(tree, Leaf):
        return any(leaf_may(tree, bounds, wanted=wanted) for bounds in bounds_of(tree.path, tree.arrow))
    if isinstance(tree, Not):
        return _may(tree.part, bounds_of, wanted=not wanted)
    assert isinstance(tree, (And, Or))
    # An or is false only where all its parts are, so below a not the two change places.
    has_to_be_all = isinstance(tree, And) is wanted
    for part in tree.parts:
        if _may(part, bounds_of, wanted=wanted) is not has_to_be_all:
            return not has_to_be_all
    return has_to_be_all


def leaf_may(leaf: Leaf, bounds: Bounds, *, wanted: bool) -> bool:
    """Whether rows within *bounds* may make a condition on one column true, or false where *wanted* is false."""
    condition = leaf.condition
    if isinstance(condition, IsNull):
        return bounds.has_nulls if wanted else not bounds.has_only_nulls
    if isinstance(condition, IsIn) and not condition.values:
        return not wanted
    # A comparison with null is null, neither true nor false, so no such row is selected either way.
    if bounds.has_only_nulls:
        return False
    if isinstance(condition, Comparison) and leaf.operands:
        operator = condition.operator if wanted else _OPPOSITE[condition.operator]
        return _compares(leaf.operands[0], operator, leaf, bounds)
    if isinstance(condition, IsIn):
        if wanted:
            return any(_compares(operand, "=", leaf, bounds) for operand in leaf.operands)
        # With a null among the values "not in" is never true.
        return None not in condition.values and all(_compares(each, "!=", leaf, bounds) for each in leaf.operands)
    return leaf.pattern is not None and _has_form(leaf.pattern, bounds, wanted=wanted)


def _compares(operand: Operand, operator: str, leaf: Leaf, bounds: Bounds) -> bool:
    """Whether the comparison may be true for a value within *bounds*."""
    if bounds.minimum is None or bounds.maximum is None:
        return True
    value = operand.value
    if isinstance(bounds.minimum, float) or isinstance(value, float):
        if pa.types.is_floating(leaf.arrow) and operator in ("!=", ">", ">="):
            return True  # a NaN, which is larger than all numbers, is not within the bounds
        if isinstance(value, float) and math.isnan(value):
            return True
    low, high = operand.range_of(bounds.minimum, bounds.maximum)
    return bool(_VERDICTS[operator](low, high, value))


def _has_form(pattern: Pattern, bounds: Bounds, *, wanted: bool) -> bool:
    if bounds.minimum is None or bounds.maximum is None:
        return True
    may = pattern.may_match if wanted else pattern.may_differ
    return may(bounds.minimum, bounds.maximum)
