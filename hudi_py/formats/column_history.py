"""
Schemas with column ids, which Hudi's schema on read keeps in commits (``latest_schema``) and in ``.hoodie/.schema``.

Source: rules/timeline 6 (``.schema/``); Hudi ``InternalSchema``, ``SerDeHelper``. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hudi_py.errors import CorruptMetadata
from hudi_py.model.json_document import parse_json

HISTORY_FOLDER: Final = ".hoodie/.schema"
_HISTORY_FILE: Final = re.compile(r"(\d+)(?:_\d+)?\.schemacommit")


def newest_history(names: Iterable[str]) -> str | None:
    """Return the newest completed file of the folder, None if there is none; every file contains all versions."""
    found = [(match[1], name) for name in names if (match := _HISTORY_FILE.fullmatch(name))]
    return max(found)[1] if found else None


def renamed_columns(latest: str, history: bytes, source: str) -> tuple[str, ...]:
    """
    Find columns that cannot be read by name: renamed ones, and new ones with the name of a dropped column.

    Args:
        latest: JSON of the current schema.
        history: JSON of all versions of the schema; empty if none was recorded yet.
        source: Path of the history, for messages.

    Returns:
        Sentences for people; empty if all columns have kept their names.

    Raises:
        CorruptMetadata: The JSON does not contain such schemas.
    """
    try:
        in_force = parse_json(latest)
        versions = parse_json(history)["schemas"] if history else []
        until = int(in_force["version_id"])
        known = [dict(_columns(in_force))]
        known += [dict(_columns(version)) for version in versions if int(version["version_id"]) <= until]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptMetadata(f"{source}: not a history of schemas: {error!r}") from error
    # By id: the current name of each column; for columns that were dropped since, a name that they had.
    names = {number: name for columns in known for number, name in columns.items()} | known[0]
    moved = {
        f"{names[number]} was {name}"
        for columns in known
        for number, name in columns.items()
        if names[number] != name and number in known[0]
    }
    numbers = {name: number for number, name in known[0].items()}
    reused = {
        f"{name} is another column than before"
        for columns in known
        for number, name in columns.items()
        if numbers.get(name, number) != number
    }
    return tuple(sorted(moved | reused))


def _columns(node: Any, path: str = "") -> Iterator[tuple[int, str]]:
    """Id and dotted name of every field below; list elements and map values have no names of their own."""
    if not isinstance(node, dict):
        return
    for field in node.get("fields") or ():
        name = f"{path}{field['name']}"
        yield int(field["id"]), name
        yield from _columns(field["type"], f"{name}.")
    for part in ("element", "key", "value"):
        yield from _columns(node.get(part), f"{path}{part}.")
