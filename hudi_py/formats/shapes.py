"""A small table language that says which field on disk is which attribute of a frozen value, for both directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Kind(NamedTuple):
    """How one field turns from its value on disk into an attribute, and back."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]


class Shape(Generic[T]):
    """
    Ties a class to a record.

    Args:
        cls: The attrs class.
        fields: Attribute name to the name on disk, or to (name on disk, `Kind`).
    """

    def __init__(self, cls: type[T], **fields: str | tuple[str, Kind]) -> None:
        self._cls = cls
        pairs = {attribute: (field, PLAIN) if isinstance(field, str) else field for attribute, field in fields.items()}
        self._fields = tuple((attribute, name, kind) for attribute, (name, kind) in pairs.items())

    def decode(self, value: dict[str, Any]) -> T:
        """Build the frozen value from a record that has all fields of our schema."""
        return self._cls(**{attribute: kind.decode(value[name]) for attribute, name, kind in self._fields})

    def encode(self, record: T) -> dict[str, Any]:
        """Build the record; nothing is lost on the way back."""
        return {name: kind.encode(getattr(record, attribute)) for attribute, name, kind in self._fields}


def default(value: Any) -> Kind:
    """A plain value that reads as *value* when it is null: Java's ``new Record()`` does not apply schema defaults."""
    return Kind(lambda found: value if found is None else found, _same)


def optional(kind: Kind) -> Kind:
    """The same, or None."""
    return Kind(
        lambda value: None if value is None else kind.decode(value),
        lambda value: None if value is None else kind.encode(value),
    )


def one(shape: Shape[Any]) -> Kind:
    """A nested record."""
    return Kind(shape.decode, shape.encode)


def many(kind: Kind) -> Kind:
    """An array, as a tuple; null reads as empty."""
    return Kind(
        lambda values: tuple(map(kind.decode, values or ())),
        lambda values: list(map(kind.encode, values)),
    )


def by_name(kind: Kind) -> Kind:
    """A map with text keys; null reads as empty."""
    return Kind(
        lambda values: {key: kind.decode(value) for key, value in (values or {}).items()},
        lambda values: {key: kind.encode(value) for key, value in values.items()},
    )


def _same(value: Any) -> Any:
    return value


PLAIN: Final = Kind(_same, _same)
TEXTS: Final = many(PLAIN)
MAPPING: Final = by_name(PLAIN)
