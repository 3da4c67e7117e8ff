"""
Schemas with column ids, which Hudi's schema on read keeps in commits (``latest_schema``) and in ``.hoodie/.schema``.

A column keeps its id whatever it is called, and a column that is added gets a new one even if a dropped column had its
name. So the ids say where the columns of an older file are today.

Source: rules/timeline 6.1a; Hudi ``InternalSchema``, ``SerDeHelper``, ``InternalSchemaMerger``. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Final

import attrs

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.model.json_document import parse_json
from hudi_py.model.moved import StoredNames

HISTORY_FOLDER: Final = ".hoodie/.schema"
_HISTORY_FILE: Final = re.compile(r"(\d+)(?:_\d+)?\.schemacommit(\.requested|\.inflight)?")


def history_time(name: str) -> str | None:
    """Return the time of the write that a file of the folder belongs to; None for a foreign file."""
    match = _HISTORY_FILE.fullmatch(name)
    return None if match is None else match[1]


def newest_history(names: Iterable[str], completed: Callable[[str], bool]) -> str | None:
    """
    Return the newest file of the folder that counts, None if there is none; every file contains all versions.

    Args:
        names: The files of the folder.
        completed: Whether the commit of a time is completed and on the active timeline. The files of others are left
            over from writes that failed or were rolled back.
    """
    matches = ((_HISTORY_FILE.fullmatch(name), name) for name in names)
    found = [(match[1], name) for match, name in matches if match and match[2] is None and completed(match[1])]
    return max(found)[1] if found else None


@attrs.frozen(kw_only=True)
class MovedColumns:
    """
    Where the columns of the files of a table are today, by the write that wrote a file.

    Args:
        by_commit: Requested times of commits that say which columns they wrote; None where all kept their names.
        versions: The versions of the columns in the history, ascending; a file has those of the last one before it.
        source: The table's location, for messages.
    """

    by_commit: Mapping[str, StoredNames | None]
    versions: tuple[tuple[int, StoredNames | None], ...]
    source: str

    def of(self, time: str) -> StoredNames | None:
        """
        Return where the columns are that the write of a time wrote; None where all of them have kept their names.

        Raises:
            UnsupportedTable: Nothing says which columns it wrote.
        """
        if time in self.by_commit:
            return self.by_commit[time]
        position = bisect_right(self.versions, int(time), key=lambda each: each[0])
        if not position:
            raise UnsupportedTable(
                f"{self.source} has columns that may have been renamed or dropped, and neither the commit {time} nor "
                f"the history in {HISTORY_FOLDER} says which columns its files have; bring the folder "
                "back from a copy of the table"
            )
        return self.versions[position - 1][1]


def moved_columns(latest: str, history: bytes, commits: Mapping[str, str], source: str) -> MovedColumns | None:
    """
    Return where the columns of the table's files are; None where all columns of all files have kept their names.

    Args:
        latest: JSON of the schema of today.
        history: JSON of all versions of the schema; empty if there is none.
        commits: Requested times of completed commits to the schema that each says it wrote.
        source: The table's location, for messages.

    Raises:
        CorruptMetadata: The JSON does not contain such schemas.
    """
    today = parse_columns(latest, source)
    known = {text: _moved(parse_columns(text, source), today) for text in set(commits.values())}
    parsed = parse_history(history, source)
    is_whole = is_history_of(parsed, today)
    # Of a history without the columns of today, nobody knows what else it lacks: then only the commits count.
    versions = sorted(
        ((int(each["version_id"]), _moved(each, today)) for each in parsed if is_whole), key=itemgetter(0)
    )
    # Columns that came after the time asked for say nothing of its files, and moved nothing for them.
    if is_whole and all(each is None for each in (*known.values(), *(moved for _, moved in versions))):
        return None
    by_commit = {time: known[text] for time, text in commits.items()}
    return MovedColumns(by_commit=by_commit, versions=tuple(versions), source=source)


def is_history_of(versions: Iterable[Mapping[str, Any]], today: Mapping[str, Any]) -> bool:
    """Whether the versions of a history reach up to the columns of today: else its newest file is lost or torn."""
    return int(today["version_id"]) in {int(each["version_id"]) for each in versions}


def parse_columns(text: str, source: str) -> dict[str, Any]:
    """
    Parse one version of a schema, as in ``latest_schema``.

    Raises:
        CorruptMetadata: It is none.
    """
    try:
        return _checked(parse_json(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptMetadata(f"{source}: latest_schema of a commit is no schema with ids: {error!r}") from error


def parse_history(history: bytes, source: str) -> list[dict[str, Any]]:
    """
    Parse a file of the folder: all versions, newest first; none if it is empty.

    Raises:
        CorruptMetadata: It is none.
    """
    try:
        found = parse_json(history) if history else {"schemas": []}
        # The first write that reconciles its columns leaves its one version alone.
        return [_checked(each) for each in found.get("schemas", [found])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptMetadata(f"{source}: {HISTORY_FOLDER} has no history of schemas: {error!r}") from error


def _checked(version: Any) -> dict[str, Any]:
    """The version, if it has the form of one at every depth."""
    int(version["version_id"])
    int(version["max_column_id"])
    numbers = [number for number, _ in _columns(version)]
    if len(numbers) != len(set(numbers)):
        raise ValueError("two columns have the same id")
    known: dict[str, Any] = version
    return known


def _columns(node: Any, path: str = "") -> Iterator[tuple[int, str]]:
    """Id and dotted name of every field below; list elements and map values have no names of their own."""
    if isinstance(node, str):
        return
    if node["type"] == "record":
        names = [field["name"] for field in node["fields"]]
        if len(names) != len(set(names)):
            raise ValueError(f"two fields of {path or 'the rows'} have the same name")
        for field in node["fields"]:
            yield int(field["id"]), f"{path}{field['name']}"
            yield from _columns(field["type"], f"{path}{field['name']}.")
    elif node["type"] == "array":
        yield int(node["element_id"]), f"{path}element"
        yield from _columns(node["element"], f"{path}element.")
    elif node["type"] == "map":
        yield int(node["key_id"]), f"{path}key"
        yield int(node["value_id"]), f"{path}value"
        yield from _columns(node["value"], f"{path}value.")
    else:
        raise ValueError(f"{path or 'the rows'}: {node['type']!r} is no type with fields")


def _moved(stored: Any, today: Any) -> StoredNames | None:
    """Where the fields below a node are today; None where all have kept their names."""
    if isinstance(stored, str) or isinstance(today, str) or stored["type"] != today["type"]:
        return None  # the values themselves are converted, or are not: that is not a matter of names
    before, now = _below(stored), _below(today)
    numbers = {number: name for name, (number, _) in now.items()}
    names: dict[str, str] = {}
    inside: dict[str, StoredNames] = {}
    for name, (number, arrow) in before.items():
        if number not in numbers:
            continue
        names[name] = numbers[number]
        below = _moved(arrow, now[numbers[number]][1])
        if below is not None:
            inside[name] = below
    is_reused = any(name in now and name not in names for name in before)
    if not inside and not is_reused and all(name == today_name for name, today_name in names.items()):
        return None
    return StoredNames(names, inside)


def _below(node: Any) -> dict[str, tuple[int, Any]]:
    """Name to id and type of the fields of a struct, the elements of a list or the values of a map."""
    if node["type"] == "array":
        return {"element": (int(node["element_id"]), node["element"])}
    if node["type"] == "map":
        return {"value": (int(node["value_id"]), node["value"])}
    return {field["name"]: (int(field["id"]), field["type"]) for field in node["fields"]}
