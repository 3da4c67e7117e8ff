"""
Conditions on rows without a partition value, which Apache Hudi and the files show with different values. Pure.

Hudi reads null, the files hold null, an empty text or the name of the default partition. Once each ``not`` is moved
down to single columns, a condition is met if its parts are. A part that is met under neither reading excludes these
rows; a part that may be met under one of them makes the answer depend on the reading.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import pyarrow as pa

from hudi_py.model.files import DEFAULT_PARTITION
from hudi_py.rows.condition import And, Condition, IsIn, IsNull, Like, Not, Or
from hudi_py.rows.predicate import Filter, Leaf

_OTHERWISE: Final = ("", DEFAULT_PARTITION)
"""Values in the files, besides null, that Hudi reads as null."""
_NEVER: Final = "never"
_ALIKE: Final = "alike"


def depends_on(filters: Iterable[Filter], columns: Collection[str]) -> Leaf | None:
    """
    The first condition whose answer for rows without a value in *columns* depends on the reading.

    Args:
        columns: Partition columns, with dots where they are nested.

    Returns:
        None if the same of these rows meet all of *filters* under both readings.
    """
    found: Leaf | None = None
    for each in filters:
        verdict = _judged(each.tree, columns, negated=False)
        if verdict == _NEVER:  # all filters have to be met, so none of these rows is returned
            return None
        if isinstance(verdict, Leaf) and found is None:
            found = verdict
    return found


def _judged(tree: Condition, columns: Collection[str], *, negated: bool) -> str | Leaf:
    """`_NEVER` if no such row meets it, `_ALIKE` if both readings agree, else the leaf that depends on the reading."""
    if isinstance(tree, Not):
        return _judged(tree.part, columns, negated=not negated)
    if isinstance(tree, (And, Or)):
        parts = [_judged(part, columns, negated=negated) for part in tree.parts]
        # Below a not, and and or change places.
        needs_all = isinstance(tree, And) is not negated
        if any(part == _NEVER for part in parts) if needs_all else all(part == _NEVER for part in parts):
            return _NEVER
        return next((part for part in parts if isinstance(part, Leaf)), _ALIKE)
    assert isinstance(tree, Leaf)
    if ".".join(tree.path) not in columns or not pa.types.is_string(tree.arrow):
        return _ALIKE  # only a text can be empty: of another type the files hold null, as Hudi reads it
    return _NEVER if _is_never_met(tree, negated=negated) else tree


def _is_never_met(leaf: Leaf, *, negated: bool) -> bool:
    """Whether no possible value of these rows meets it: null, an empty text, the name of the default partition."""
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
