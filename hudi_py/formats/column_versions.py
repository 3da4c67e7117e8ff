"""
The next version of a table's columns, when a write adds columns or widens their types.

Source: rules/timeline 6.1a; Hudi ``InternalSchemaBuilder.refreshNewId``, ``SerDeHelper``. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final

import pyarrow as pa

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.column_history import parse_columns, parse_history

_NAMES: Final[Mapping[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp",
}


def next_version(
    latest: str,
    history: bytes,
    schema: pa.Schema,
    *,
    added: Collection[str],
    promoted: Collection[str],
    version: int,
    source: str,
) -> tuple[str, bytes]:
    """
    Return the columns with their ids, and the history, for a commit that adds columns or widens them.

    Args:
        latest: JSON of the columns before.
        history: JSON of all versions before.
        schema: Storage schema of the commit: the columns of before in order, then those that are added.
        added: Names of new columns.
        promoted: Names of columns with a wider type.
        version: Number of the new version, the time of the commit.
        source: The table's location, for messages.

    Raises:
        UnsupportedTable: A new column has a type whose form in Hudi's releases differs.
    """
    before = parse_columns(latest, source)
    ids = _Ids(int(before["max_column_id"]))
    fields = [
        {**field, "type": _NAMES[schema.field(field["name"]).type]} if field["name"] in promoted else field
        for field in before["fields"]
    ]
    for name in schema.names:
        if name in added:
            number = ids.next(1)
            arrow = _type(schema.field(name).type, ids, f"{source}: column {name!r}")
            fields.append({"id": number, "name": name, "optional": True, "type": arrow})
    now = {"max_column_id": ids.last, "version_id": version, "type": "record", "fields": fields}
    versions = [now, *parse_history(history, source)]
    return _dump(now), _dump({"schemas": versions}).encode()


class _Ids:
    """Gives out ids."""

    def __init__(self, last: int) -> None:
        self.last = last

    def next(self, count: int) -> int:
        """The first of that many ids in a row."""
        self.last += count
        return self.last - count + 1


def _type(arrow: Any, ids: _Ids, place: str) -> Any:
    """The type of a new column: all fields of a struct get their ids before those below them."""
    if isinstance(arrow, pa.StructType):
        first, fields = ids.next(arrow.num_fields), []
        for number, field in enumerate(arrow, start=first):
            below = _type(field.type, ids, place)
            fields.append({"id": number, "name": field.name, "optional": field.nullable, "type": below})
        return {"type": "record", "fields": fields}
    if isinstance(arrow, pa.ListType):
        number, element = ids.next(1), arrow.value_field
        below = _type(element.type, ids, place)
        return {"type": "array", "element_id": number, "element": below, "element_optional": element.nullable}
    if isinstance(arrow, pa.MapType):
        number, item = ids.next(2), arrow.item_field
        below = _type(item.type, ids, place)
        of_key = {"key_id": number, "key": "string"}
        return {"type": "map", **of_key, "value_id": number + 1, "value": below, "value_optional": item.nullable}
    try:
        return _NAMES[arrow]
    except KeyError:
        raise UnsupportedTable(
            f"{place} is new and of type {arrow}, and the table uses schema on read: releases of Apache Hudi record "
            "this type in different ways; add the column with ALTER TABLE of Apache Hudi first, then write to it"
        ) from None


def _dump(node: Any) -> str:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False)
