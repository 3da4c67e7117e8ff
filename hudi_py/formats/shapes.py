"""Declares once which field on disk is which attribute of a frozen value, for decoding and encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Kind(NamedTuple):
    """How a field on disk is converted to an attribute, and back."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], Any]


class Shape(Generic[T]):
    """
    Maps a record on disk to a class.

    Args:
        cls: The attrs class.
        fields: Name of the attribute to the name on disk, or to (name on disk, `Kind`).
    """

    def __init__(self, cls: type[T], **fields: str | tuple[str, Kind]) -> None:
        self._cls = cls
        pairs = {attribute: (field, PLAIN) if isinstance(field, str) else field for attribute, field in fields.items()}
        self._fields = tuple((attribute, name, kind) for attribute, (name, kind) in pairs.items())

    def decode(self, value: dict[str, Any]) -> T:
        """Return the frozen value for a record with all fields of our schema."""
        return self._cls(**{attribute: kind.decode(value[name]) for attribute, name, kind in self._fields})

    def encode(self, record: T) -> dict[str, Any]:
        """Return the record for a frozen value; decoding it gives the same value again."""
        return {name: kind.encode(getattr(record, attribute)) for attribute, name, kind in self._fields}


def default(value: Any) -> Kind:
    """A plain value; null is read as *value*, because Java's ``new Record()`` leaves fields null despite defaults."""
    return Kind(lambda found: value if found is None else found, _same)


def optional(kind: Kind) -> Kind:
    """A value of *kind*, or None."""
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
