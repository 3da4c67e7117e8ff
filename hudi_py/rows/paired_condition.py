"""
Conditions on a row of a table and a row of a source, as the clauses of a merge have them. Pure.

``source.c`` is a column of the source, ``c`` and ``target.c`` one of the table. Besides what conditions compare anyway,
two columns, or fields of them, are compared with each other: ``source.ts >= ts``. NaN is as everywhere in conditions:
equal to NaN, and larger than all else.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import compute
from hudi_py.rows.condition import Comparison, Condition, IsIn, Path, Where, Word, map_leaves, name_of
from hudi_py.rows.predicate import filters_of, names_in
from hudi_py.rows.where import conditions_of

_COMPARED: Final = "_hudi_py_compared_"


def rows_met(where: Where, seen: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """
    Return which rows meet all conditions; all of them where there is none.

    Args:
        where: As users give conditions.
        seen: n rows. Columns of the two sides are called ``source.c`` and ``target.c``.

    Returns:
        Shape (n,).

    Raises:
        ConfigError: A condition is invalid, or there is no such column.
    """
    met = np.ones(seen.num_rows, dtype=np.bool_)
    for condition in conditions_of(where):
        found, rows = _with_compared_columns(condition, seen)
        for each in filters_of([found], rows.schema, names_in(rows.schema)):
            # Null is not true, so such a row does not meet the condition.
            met &= each.mask(rows).fill_null(False).to_numpy(zero_copy_only=False)
    return met


def _with_compared_columns(condition: Condition, seen: pa.RecordBatch) -> tuple[Condition, pa.RecordBatch]:
    """Return a condition without comparisons of two columns: these become columns of true, false and null."""
    names, known = frozenset(seen.schema.names), frozenset(names_in(seen.schema))
    compared: list[Any] = []

    def with_path(leaf: Any) -> Condition:
        path = _path(leaf, leaf.path, names)
        for value in leaf.values if isinstance(leaf, IsIn) else (getattr(leaf, "value", None),):
            _refuse_misspelled(leaf, value, known)
        if not isinstance(leaf, Comparison) or not isinstance(leaf.value, Word) or leaf.value.text not in known:
            changed: Condition = attrs.evolve(leaf, path=path)
            return changed
        other = _path(leaf, tuple(leaf.value.text.split(".")), names)
        compared.append(_compare(_values(seen, path), leaf.operator, _values(seen, other), str(leaf)))
        return Comparison((f"{_COMPARED}{len(compared)}",), "=", value=True)

    changed = map_leaves(condition, with_path)
    for number, column in enumerate(compared, 1):
        seen = seen.append_column(f"{_COMPARED}{number}", column)
    return changed, seen


def _refuse_misspelled(leaf: Condition, value: object, known: frozenset[str]) -> None:
    """Raise for a word that would name a column if there were one, or in this case: as text it chooses other rows."""
    if not isinstance(value, Word) or value.text in known:
        return
    word = value.text.lower()
    if word.startswith(("source.", "target.")) or word in {name.lower() for name in known}:
        raise ConfigError(f"{leaf}: there is no column {value.text}; a text is written in quotes")


def _values(seen: pa.RecordBatch, path: Path) -> Any:
    column = seen.column(path[0])
    return compute.struct_field(column, list(path[1:])) if len(path) > 1 else column


def _path(leaf: Condition, path: Path, names: frozenset[str]) -> Path:
    """Return a path whose first part is a column: ``source.c.d`` is the field ``d`` of the column ``source.c``."""
    # The longest name first: ``source.c`` is a column whose name has a dot.
    for parts in range(len(path), 0, -1):
        if ".".join(path[:parts]) in names:
            return (".".join(path[:parts]), *path[parts:])
    known = ", ".join(sorted(name for name in names if not name.startswith("_")))
    raise ConfigError(f"{leaf}: there is no column {name_of(path)}; there are {known}")


def _compare(left: Any, operator: str, right: Any, text: str) -> Any:
    try:
        equal, less = compute.equal(left, right), compute.less(left, right)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConfigError(f"{text}: {left.type} and {right.type} are not compared; cast one of them") from error
    # To Arrow NaN is neither equal to nor less than anything.
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        left_nan, right_nan = (compute.is_nan(side.cast(pa.float64())) for side in (left, right))
        equal = compute.or_(equal, compute.and_(left_nan, right_nan))
        less = compute.or_(less, compute.and_not(right_nan, left_nan))
    at_most = compute.or_(less, equal)
    results = {"=": equal, "!=": compute.invert(equal), "<": less, "<=": at_most}
    found = results.get(operator)
    return compute.invert(at_most if operator == ">" else less) if found is None else found
