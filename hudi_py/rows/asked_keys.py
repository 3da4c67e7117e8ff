"""
Finds the record keys that conditions ask for. Pure.

Conditions can be on the key column itself, or on the fields that the key is made of if the table's key generator is one
of Hudi's: the key is then the text of one field, or ``a:1,b:2``. For a single field releases differ (``1`` or ``a:1``),
so both forms are looked up; so are all texts that a value may have in a key, see `hudi_py.rows.key_texts`.

Source: Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0: ``KeyGenUtils``, ``CustomAvroKeyGenerator``,
``TimestampBasedAvroKeyGenerator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Final, TypeAlias

from hudi_py.config.key_generators import KEY_GENERATOR_PACKAGE
from hudi_py.rows.condition import And, Comparison, Condition, IsIn, Or, Path
from hudi_py.rows.key_texts import Forms, forms_of
from hudi_py.rows.keys import EMPTY_KEY_PART
from hudi_py.rows.predicate import Filter, Leaf

KEY_COLUMN: Final = "_hoodie_record_key"
KEYS_MAX: Final = 10_000
"""More keys are not looked up: they would be in most files anyway."""

Values: TypeAlias = frozenset[Forms] | None
"""The only values that a column can have in rows that meet a condition; None if unknown."""

_TYPES: Final = frozenset({"SIMPLE", "COMPLEX", "NON_PARTITION", "CUSTOM", "TIMESTAMP"})
_CLASSES: Final = frozenset(
    f"{name}{avro}KeyGenerator" for name in ("Simple", "Complex", "Nonpartitioned", "Custom", "TimestampBased")
    for avro in ("", "Avro")
)  # fmt: skip


def asked_keys(filters: Sequence[Filter], key_fields: Sequence[str]) -> Mapping[str, str] | None:
    """
    The only keys that rows meeting all of *filters* can have; None if they are unknown, or too many.

    Args:
        filters: Conditions, bound to the columns of the table.
        key_fields: Fields that keys are made of, see `key_fields_of`; empty if unknown.

    Returns:
        Possible stored form of a key to the key that it stands for: a key of a single field has two forms.
    """
    tree = And(tuple(each.tree for each in filters))
    found = _values(tree, (KEY_COLUMN,))
    if found is not None:
        keys = {text: text for (text,) in found if text}  # no row has an empty key
    else:
        fields = {name: _values(tree, tuple(name.split("."))) for name in key_fields}
        if not fields or any(field is None for field in fields.values()):
            return None
        parts = [list(each or ()) for each in fields.values()]
        # Asked before the keys are built: two lists of some thousand values would give millions of keys.
        forms = [sum(map(len, each)) for each in parts]
        if prod(map(len, parts)) > KEYS_MAX or prod(forms) > 2 * KEYS_MAX:
            return None
        keys = {}
        for values in product(*parts):
            key = _joined(fields, [forms[0] for forms in values])
            keys |= {_joined(fields, texts): key for texts in product(*values)}
            if len(values) == 1:
                keys |= {text: key for text in values[0] if text}
    return keys if len(keys) <= 2 * KEYS_MAX else None


def key_fields_of(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The fields that the keys of a table are made of; empty if its key generator is not one of Hudi's."""
    kind = properties.get("hoodie.table.keygenerator.type", "").removesuffix("_AVRO")
    name = properties.get("hoodie.table.keygenerator.class", "").removeprefix(KEY_GENERATOR_PACKAGE)
    if kind not in _TYPES and (kind or name not in _CLASSES):
        return ()
    fields = properties.get("hoodie.table.recordkey.fields", "").split(",")
    return tuple(field.strip() for field in fields if field.strip())


def _joined(names: Iterable[str], texts: Iterable[str]) -> str:
    return ",".join(f"{name}:{text or EMPTY_KEY_PART}" for name, text in zip(names, texts, strict=True))


def _values(tree: Condition, path: Path) -> Values:
    if isinstance(tree, And):  # a part that says nothing about the column narrows nothing
        known = [each for each in (_values(part, path) for part in tree.parts) if each is not None]
        return frozenset.intersection(*known) if known else None
    if isinstance(tree, Or):
        parts = [_values(part, path) for part in tree.parts]
        return None if None in parts else frozenset().union(*(part for part in parts if part is not None))
    return _values_of_leaf(tree) if isinstance(tree, Leaf) and tree.path == path else None


def _values_of_leaf(leaf: Leaf) -> Values:
    condition = leaf.condition
    is_equality = isinstance(condition, IsIn) or (isinstance(condition, Comparison) and condition.operator == "=")
    if not is_equality:
        return None
    found = [forms_of(operand.value, leaf.arrow) for operand in leaf.operands]
    return None if None in found else frozenset(filter(None, found))
