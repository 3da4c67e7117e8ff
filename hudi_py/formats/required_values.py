"""
Nulls where a schema requires a value, at any depth.

Only columns whose type requires something are looked into, so that rows of the usual kind cost nothing. Parquet and
Avro have no room for such a null.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, Field
from hudi_py.model.words import counted


def requires_values(field: Field) -> bool:
    """Return whether a column, or something in it, may not be null. Keys of maps never are, in any Arrow array."""
    return not field.nullable or _requires_below(field.type)


def count_missing(column: Array, field: Field) -> Iterator[tuple[str, int]]:
    """
    Yield the paths at which values are missing, with their numbers.

    What is below a null is not missing: a struct that is null has no fields.

    Args:
        column: Values of a type from which `hudi_py.formats.schema_evolution` makes that of *field*.
        field: Says what is required; its name begins the paths.
    """
    yield from _missing(column, field, field.name)


def refuse_missing(counts: Mapping[str, int]) -> None:
    """
    Raise for the first path with missing values.

    Raises:
        WriteError: There is one; the message names it and the number of values.
    """
    for path, count in counts.items():
        if count:
            raise WriteError(f"column {path!r} is null in {counted(count, 'place')}, but the schema requires a value")


def _requires_below(arrow: Any) -> bool:
    if isinstance(arrow, pa.MapType):
        return requires_values(arrow.item_field)
    return any(requires_values(arrow.field(at)) for at in range(arrow.num_fields))


def _missing(array: Any, field: Field, path: str) -> Iterator[tuple[str, int]]:
    if not field.nullable and array.null_count:
        yield path, array.null_count
    arrow: Any = field.type
    if not _requires_below(arrow):
        return
    if array.null_count:
        array = array.drop_null()
    if isinstance(array, pa.StructArray):
        children = dict(zip((each.name for each in array.type), array.flatten(), strict=True))
        for child in arrow:
            if child.name in children:
                yield from _missing(children[child.name], child, f"{path}.{child.name}")
    elif isinstance(array, pa.MapArray):
        # A slice keeps the entries of the whole.
        start, end = array.offsets[0].as_py(), array.offsets[-1].as_py()
        yield from _missing(array.items.slice(start, end - start), arrow.item_field, f"{path}.value")
    else:
        yield from _missing(array.flatten(), arrow.value_field, f"{path}.element")
