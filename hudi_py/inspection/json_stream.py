"""Writes JSON documents that do not fit into memory: their long parts are generated while writing. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple


class Streamed(NamedTuple):
    """
    A list or an object in a document whose entries are generated one by one.

    Args:
        entries: Values of the list, or pairs of key and value of the object.
        is_object: Whether *entries* are pairs.
    """

    entries: Iterable[Any]
    is_object: bool = False


def json_chunks(document: Any, level: int = 0) -> Iterator[str]:
    """Yield the text of ``json.dumps(document, indent=1)`` in pieces; only objects may contain `Streamed` parts."""
    below: Callable[[Any, int], Iterator[str]] = json_chunks
    if isinstance(document, Streamed):
        # Entries of a stream are written as a whole: they are small, and only their number is large.
        below = _whole
        entries, is_object = document.entries, document.is_object
    # Keys of other types are turned to text by `json.dumps` alone, and rarely occur.
    elif isinstance(document, dict) and all(isinstance(key, str) for key in document):
        entries, is_object = document.items(), True
    else:
        yield from _whole(document, level)
        return
    opening, closing = "{}" if is_object else "[]"
    yield opening
    separator, indent = "", "\n" + (level + 1) * " "
    for entry in entries:
        key, value = entry if is_object else ("", entry)
        yield f"{separator}{indent}{json.dumps(key, ensure_ascii=False)}: " if is_object else f"{separator}{indent}"
        yield from below(value, level + 1)
        separator = ","
    yield f"\n{level * ' '}{closing}" if separator else closing


def _whole(value: Any, level: int) -> Iterator[str]:
    yield json_text(value, indent=1, ensure_ascii=False).replace("\n", "\n" + level * " ")


def json_text(value: Any, **form: Any) -> str:
    """
    Return JSON text. JSON has no NaN and no infinity, which Avro has: they become their names, as text.

    Args:
        value: Plain data; other values become their text.
        form: As for ``json.dumps``.
    """
    try:
        return json.dumps(value, default=str, allow_nan=False, **form)
    except ValueError:  # rare, so nothing else pays for it
        return json.dumps(_finite(value), default=str, allow_nan=False, **form)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {_finite(key): _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value
