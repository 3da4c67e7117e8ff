"""
Conditions on rows without a partition value, of which Apache Hudi and the files hold different values. Pure.

A condition is met by what meets its parts, once each ``not`` is moved down to single columns: so one that is met under
neither reading can be left out of the question, and one that may be met under one of them decides unless something
else rules these rows out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import pyarrow as pa

from hudi_py.model.files import DEFAULT_PARTITION
from hudi_py.rows.condition import And, Condition, IsIn, IsNull, Like, Not, Or
from hudi_py.rows.predicate import Filter, Leaf

_OTHERWISE: Final = ("", DEFAULT_PARTITION)
"""What the files hold where Hudi reads null, besides null."""
_NEVER: Final = "never"
_ALIKE: Final = "alike"


def depends_on(filters: Iterable[Filter], columns: Collection[str]) -> Leaf | None:
    """
    The first condition that decides whether rows without a value in *columns* are met, and may be read in two ways.

    Args:
        columns: Partition columns, with dots where they are nested.

    Returns:
        None where all of *filters* are met by the same of these rows under both readings.
    """
    found: Leaf | None = None
    for each in filters:
        told = _told(each.tree, columns, negated=False)
        if told == _NEVER:
            return None
        if isinstance(told, Leaf) and found is None:
            found = told
    return found


def _told(tree: Condition, columns: Collection[str], *, negated: bool) -> str | Leaf:
    """That no such row meets it, that the same ones do under both readings, or the leaf that decides."""
    if isinstance(tree, Not):
        return _told(tree.part, columns, negated=not negated)
    if isinstance(tree, (And, Or)):
        parts = [_told(part, columns, negated=negated) for part in tree.parts]
        needs_all = isinstance(tree, And) is not negated
        if any(part == _NEVER for part in parts) if needs_all else all(part == _NEVER for part in parts):
            return _NEVER
        return next((part for part in parts if isinstance(part, Leaf)), _ALIKE)
    assert isinstance(tree, Leaf)
    if ".".join(tree.path) not in columns or not pa.types.is_string(tree.arrow):
        return _ALIKE  # only a text can be empty: of another type the files hold null, as Hudi reads it
    return _NEVER if _is_never_met(tree, negated=negated) else tree


def _is_never_met(leaf: Leaf, *, negated: bool) -> bool:
    """Whether no value that is read for these rows meets it: null, an empty text, the folder's own name."""
    condition = leaf.condition
    if isinstance(condition, IsNull):
        return False
    if isinstance(condition, Like):
        return leaf.pattern is None
    if isinstance(condition, IsIn):
        is_exact = all(operand.value not in _OTHERWISE for operand in leaf.operands)
        return None in condition.values if negated else is_exact
    if not leaf.operands:  # compared with null
        return True
    return condition.operator == ("!=" if negated else "=") and leaf.operands[0].value not in _OTHERWISE
