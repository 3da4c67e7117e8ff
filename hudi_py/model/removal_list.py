"""
Files that somebody is asked about before they are removed: JSON, one line for the list and one for each file.

A person reads it, takes out lines of files that shall stay, and writes their name into the first line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.errors import ConfigError
from hudi_py.model.files import is_data_file, is_partition_path
from hudi_py.model.json_document import parse_json

CLEAN: Final = "clean"
ORPHANS: Final = "orphans"
_FORMAT: Final = 1


class ListedFile(NamedTuple):
    """
    One file that would be removed.

    Args:
        path: Relative to the table.
        size_bytes: Its size; a file of another size is not the one that was approved.
        reason: Why it would be removed, for the person who is asked.
    """

    path: str
    size_bytes: int
    reason: str


@attrs.frozen(kw_only=True)
class RemovalList:
    """
    What would be removed from one table.

    Args:
        kind: ``clean`` or ``orphans``.
        table: Location of the table.
        made: When it was made, ISO 8601 in UTC.
        options: The options of the clean or search, which hold for the removal too.
        settings: The settings that it was made under, as far as they decide what goes, and where to.
        files: The files.
        approved_by: Who approved it; ``""`` if nobody has.
    """

    kind: str
    table: str
    made: str
    options: Mapping[str, Any] = attrs.field(factory=dict)
    settings: Mapping[str, str] = attrs.field(factory=dict)
    files: tuple[ListedFile, ...] = ()
    approved_by: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        """Path of each file to its size in bytes."""
        return {each.path: each.size_bytes for each in self.files}

    def text(self) -> str:
        """Return the content of the file."""
        head = {
            "hudi_py": "files to remove; nothing was removed. Delete the lines of files that shall stay, and approve",
            "format": _FORMAT,
            "approved_by": self.approved_by,
            "kind": self.kind,
            "table": self.table,
            "made": self.made,
            "options": dict(self.options),
            **({"settings": dict(self.settings)} if self.settings else {}),
        }
        lines = [{"path": each.path, "size_bytes": each.size_bytes, "reason": each.reason} for each in self.files]
        return "".join(f"{json.dumps(line)}\n" for line in (head, *lines))

    @classmethod
    def parse(cls, text: str, source: str) -> RemovalList:
        """
        Read a list that a person may have edited.

        Args:
            text: Content of the file.
            source: Name of the file, for messages.

        Raises:
            ConfigError: It is not such a list; nothing of it may be removed.
        """
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        number = 1
        try:
            if not lines:
                raise ValueError("it is empty")
            number, head = lines[0][0], parse_json(lines[0][1].encode())
            if head.get("format") != _FORMAT or head.get("kind") not in (CLEAN, ORPHANS):
                raise ValueError("it is no list of files to remove")
            files = []
            for each, line in lines[1:]:
                number = each
                files.append(_file(parse_json(line.encode())))
            return cls(
                kind=head["kind"],
                table=str(head["table"]),
                made=str(head["made"]),
                options=dict(head["options"]),
                settings=dict(head.get("settings") or {}),
                files=tuple(files),
                approved_by=str(head.get("approved_by") or "").strip(),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(f"{source}, line {number}: {error}; nothing was removed") from error


def _file(line: Any) -> ListedFile:
    path = str(line["path"])
    folder, _, name = path.rpartition("/")
    if not is_partition_path(folder) or not is_data_file(name):
        raise ValueError(f"{path!r} is not the path of a data file")
    return ListedFile(path, int(line["size_bytes"]), str(line.get("reason", "")))


def unlisted(approved: Mapping[str, int], files: Iterable[tuple[str, int | None]]) -> str | None:
    """Return the first of *files* (path and size) that is not approved; None if all are."""
    return next((path for path, size in files if path not in approved or approved[path] != size), None)
