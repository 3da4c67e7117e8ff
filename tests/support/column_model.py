"""A model of columns that know their ids: versions of a schema, rows by id, and what each version shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pyarrow as pa
from hypothesis import strategies as st

_PRIMITIVES = ("int", "string", "double")
_ARROW = {"int": pa.int32(), "string": pa.string(), "double": pa.float64()}
_VALUES = {"int": st.integers(-9, 9), "string": st.text("xy", max_size=2), "double": st.sampled_from([0.5, 1.5])}


@attrs.frozen
class Column:
    """
    Args:
        number: Its id.
        kind: A primitive type, ``record``, ``array`` or ``map``.
        below: Fields of a struct; the one element of a list or value of a map.
        key: Id of the keys of a map.
    """

    number: int
    name: str
    kind: str
    below: tuple[Column, ...] = ()
    key: int = 0


class Columns:
    """Gives out ids, in the order in which Hudi does: fields of a struct first, then what is below each."""

    def __init__(self) -> None:
        self.last = 0

    def next(self) -> int:
        self.last += 1
        return self.last

    def draw(self, data: Any, names: Any) -> list[Column]:
        chosen = data.draw(st.lists(names, min_size=1, max_size=3, unique=True))
        return [self.column(data, name, names) for name in chosen]

    def column(self, data: Any, name: str, names: Any, depth: int = 0) -> Column:
        return self._filled(data, Column(self.next(), name, ""), names, depth)

    def _filled(self, data: Any, column: Column, names: Any, depth: int) -> Column:
        kinds = (*_PRIMITIVES, "record", "array", "map") if depth < 2 else _PRIMITIVES
        kind = data.draw(st.sampled_from(kinds))
        if kind == "record":
            chosen = data.draw(st.lists(names, min_size=1, max_size=2, unique=True))
            numbered = [Column(self.next(), each, "") for each in chosen]
            below = tuple(self._filled(data, each, names, depth + 1) for each in numbered)
            return attrs.evolve(column, kind=kind, below=below)
        if kind == "array":
            return attrs.evolve(
                column, kind=kind, below=(self._filled(data, Column(self.next(), "element", ""), names, depth + 1),)
            )
        if kind == "map":
            key = self.next()
            value = self._filled(data, Column(self.next(), "value", ""), names, depth + 1)
            return attrs.evolve(column, kind=kind, below=(value,), key=key)
        return attrs.evolve(column, kind=kind)


def changed(data: Any, columns: Columns, version: Sequence[Column], names: Any, depth: int = 0) -> list[Column]:
    """One change: a column renamed, dropped, added or moved, or the same below one of them."""
    what = data.draw(st.sampled_from(("rename", "drop", "add", "order", "below", "swap")))
    found = list(version)
    place = data.draw(st.integers(0, len(found) - 1))
    free = data.draw(names)
    is_free = free not in {each.name for each in found}
    if what == "rename" and is_free:
        found[place] = attrs.evolve(found[place], name=free)
    elif what == "swap" and len(found) > 1:
        other = (place + 1) % len(found)
        one, two = found[place].name, found[other].name
        found[place], found[other] = attrs.evolve(found[place], name=two), attrs.evolve(found[other], name=one)
    elif what == "drop" and len(found) > 1:
        gone = found.pop(place)
        if data.draw(st.booleans()):  # and another one comes under its name
            found.append(columns.column(data, gone.name, names, depth))
    elif what == "add" and is_free:
        found.insert(place, columns.column(data, free, names, depth))
    elif what == "order":
        found = data.draw(st.permutations(found))
    elif what == "below":
        found[place] = _changed_below(data, columns, found[place], names, depth)
    return found


def _changed_below(data: Any, columns: Columns, column: Column, names: Any, depth: int) -> Column:
    if column.kind == "record":
        return attrs.evolve(column, below=tuple(changed(data, columns, column.below, names, depth + 1)))
    if column.kind in ("array", "map"):
        return attrs.evolve(column, below=(_changed_below(data, columns, column.below[0], names, depth + 1),))
    return column


def document(version: Sequence[Column], number: int, columns: Columns) -> dict[str, Any]:
    """A version as Hudi writes it."""
    return {"max_column_id": columns.last, "version_id": number, **_record(version)}


def _record(fields: Sequence[Column]) -> dict[str, Any]:
    return {
        "type": "record",
        "fields": [{"id": f.number, "name": f.name, "optional": True, "type": _type(f)} for f in fields],
    }


def _type(column: Column) -> Any:
    if column.kind == "record":
        return _record(column.below)
    if column.kind == "array":
        (element,) = column.below
        return {
            "type": "array",
            "element_id": element.number,
            "element": _type(element),
            "element_optional": True,
        }
    if column.kind == "map":
        (value,) = column.below
        return {
            "type": "map",
            "key_id": column.key,
            "key": "string",
            "value_id": value.number,
            "value": _type(value),
            "value_optional": True,
        }
    return column.kind


def arrow_of(version: Sequence[Column]) -> pa.Schema:
    """Its columns in Arrow."""
    return pa.schema([pa.field(each.name, _arrow(each)) for each in version])


def _arrow(column: Column) -> pa.DataType:
    if column.kind == "record":
        return pa.struct([pa.field(each.name, _arrow(each)) for each in column.below])
    if column.kind == "array":
        return pa.list_(pa.field("element", _arrow(column.below[0])))
    if column.kind == "map":
        return pa.map_(pa.string(), _arrow(column.below[0]))
    return _ARROW[column.kind]


def rows_of(version: Sequence[Column]) -> Any:
    """Lists of rows: id to value; structs are rows again."""
    return st.lists(_struct(version), max_size=3)


def _struct(fields: Sequence[Column]) -> Any:
    return st.fixed_dictionaries({each.number: st.none() | _value(each) for each in fields})


def _value(column: Column) -> Any:
    if column.kind == "record":
        return _struct(column.below)
    if column.kind == "array":
        return st.lists(st.none() | _value(column.below[0]), max_size=2)
    if column.kind == "map":
        return st.dictionaries(st.sampled_from("kl"), st.none() | _value(column.below[0]), max_size=2)
    return _VALUES[column.kind]


def shown(version: Sequence[Column], row: dict[int, Any]) -> dict[str, Any]:
    """What a version of the schema shows of a row that was written with any version."""
    return {each.name: _shown(each, row.get(each.number)) for each in version}


def _shown(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.kind == "record":
        return shown(column.below, value)
    if column.kind == "array":
        return [_shown(column.below[0], each) for each in value]
    if column.kind == "map":
        return {key: _shown(column.below[0], each) for key, each in value.items()}
    return value
