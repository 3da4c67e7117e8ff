"""
The record keys that rows can have that meet conditions. Pure.

Asked for by the column of keys itself, or by the fields that the key is made of where the table's key generator is one
of Hudi's: the text of one field, or ``a:1,b:2``. Of a single field releases differ (``1`` or ``a:1``), so both count.
Only fields of text and of whole numbers are taken: the texts of others are not the same in all of Hudi's writers.

Source: Hudi 0.15.0, 1.0.2, 1.1.1 ``KeyGenUtils``, ``CustomAvroKeyGenerator``, ``TimestampBasedAvroKeyGenerator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final, TypeAlias

import pyarrow as pa

from hudi_py.config.key_generators import KEY_GENERATOR_PACKAGE
from hudi_py.rows.condition import And, Comparison, Condition, IsIn, Or, Path
from hudi_py.rows.keys import EMPTY_KEY_PART
from hudi_py.rows.predicate import Filter, Leaf

KEY_COLUMN: Final = "_hoodie_record_key"
KEYS_MAX: Final = 10_000
"""More of them are not looked up: they lie in most files anyway."""

Values: TypeAlias = frozenset[str] | None
"""Texts of which a column has one in every row that meets a condition; None where that is not known."""

_TYPES: Final = frozenset({"SIMPLE", "COMPLEX", "NON_PARTITION", "CUSTOM", "TIMESTAMP"})
_CLASSES: Final = frozenset(
    f"{name}{avro}KeyGenerator" for name in ("Simple", "Complex", "Nonpartitioned", "Custom", "TimestampBased")
    for avro in ("", "Avro")
)  # fmt: skip


def asked_keys(filters: Sequence[Filter], key_fields: Sequence[str]) -> Mapping[str, str] | None:
    """
    The keys of which a row has one that meets all of *filters*; None where they are not known, or too many.

    Each with what it stands for: two forms of one key stand for the same.

    Args:
        filters: Bound to the columns of the table.
        key_fields: Of which keys are made, see `key_fields_of`; none where that is not known.
    """
    tree = And(tuple(each.tree for each in filters))
    found = _values(tree, (KEY_COLUMN,))
    if found is not None:
        keys = {text: text for text in found - {""}}
    else:
        fields = {name: _values(tree, tuple(name.split("."))) for name in key_fields}
        if not fields or any(each is None for each in fields.values()):
            return None
        parts = [[(name, text) for text in each or ()] for name, each in fields.items()]
        if prod(map(len, parts)) > KEYS_MAX:
            return None
        keys = {_joined(each): _joined(each) for each in product(*parts)}
        if len(parts) == 1:
            keys |= {text: _joined([(name, text)]) for name, text in parts[0] if text}
    return keys if len(keys) <= 2 * KEYS_MAX else None


def key_fields_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The fields that the keys of a table are made of; none where its key generator is not one of Hudi's."""
    kind = properties.get("hoodie.table.keygenerator.type", "").removesuffix("_AVRO")
    name = properties.get("hoodie.table.keygenerator.class", "").removeprefix(KEY_GENERATOR_PACKAGE)
    if kind not in _TYPES and (kind or name not in _CLASSES):
        return ()
    fields = properties.get("hoodie.table.recordkey.fields", "").split(",")
    return tuple(field.strip() for field in fields if field.strip())


def _joined(parts: Iterable[tuple[str, str]]) -> str:
    return ",".join(f"{name}:{text or EMPTY_KEY_PART}" for name, text in parts)


def _values(tree: Condition, path: Path) -> Values:
    if isinstance(tree, And):
        known = [each for each in (_values(part, path) for part in tree.parts) if each is not None]
        return frozenset.intersection(*known) if known else None
    if isinstance(tree, Or):
        parts = [_values(part, path) for part in tree.parts]
        return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
    return _values_of_leaf(tree) if isinstance(tree, Leaf) and tree.path == path else None


def _values_of_leaf(leaf: Leaf) -> Values:
    condition = leaf.condition
    is_equality = isinstance(condition, IsIn) or (isinstance(condition, Comparison) and condition.operator == "=")
    wanted = int if pa.types.is_integer(leaf.arrow) else str if pa.types.is_string(leaf.arrow) else None
    if not is_equality or any(type(each.value) is not wanted for each in leaf.operands):
        return None
    return frozenset(str(each.value) for each in leaf.operands)
