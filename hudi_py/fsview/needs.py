"""
The reasons to keep a file, and the possible judgements about a file. Pure.

`hudi_py.fsview.fate` decides between them.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, TypeAlias

import attrs

from hudi_py.model.instant import Action


class Rule(enum.Enum):
    """Why a file is not needed; values are texts for people."""

    SUPERSEDED = "a newer slice of its file group took its place"
    REPLACED = "its file group was replaced"

    __hash__ = object.__hash__


class Latest(NamedTuple):
    """The file has the newest rows."""

    def __str__(self) -> str:
        return "it holds the newest rows of its file group"


class Snapshot(NamedTuple):
    """The table as of a time shows it, and a clean promised that this time stays readable."""

    time: str

    def __str__(self) -> str:
        return f"the table as of {self.time} shows it"


class Savepoint(NamedTuple):
    """The savepoint of a time protects it."""

    time: str

    def __str__(self) -> str:
        return f"savepoint {self.time} holds it"


class Lease(NamedTuple):
    """A reader holds a lease at a time that shows it."""

    id: str
    holder: str
    until: str

    def __str__(self) -> str:
        return f"lease {self.id} of {self.holder} needs it until {self.until}"


class Pending(NamedTuple):
    """A pending action reads it, or undoes what superseded it."""

    action: Action
    time: str

    def __str__(self) -> str:
        return f"the pending {self.action.value} {self.time} needs it"


class Fallback(NamedTuple):
    """The newest file of its group is damaged or missing, so this file has the rows that are left."""

    why: str

    def __str__(self) -> str:
        return f"the newest file of its group is lost: {self.why}"


class OtherTable(NamedTuple):
    """It lies in the folder of another table below this one, whatever the metadata table lists."""

    folder: str

    def __str__(self) -> str:
        return f"it is a file of another table: {self.folder} has a .hoodie of its own"


Need: TypeAlias = Latest | Snapshot | Savepoint | Lease | Pending | Fallback | OtherTable


@attrs.frozen
class Needed:
    """
    The file must not be deleted.

    Args:
        by: Every need, the strongest first; never empty.
    """

    by: tuple[Need, ...]

    def __str__(self) -> str:
        return "; ".join(map(str, self.by))


@attrs.frozen
class Removable:
    """It belongs to a committed slice that is not needed."""

    rule: Rule

    def __str__(self) -> str:
        return self.rule.value


@attrs.frozen
class Failed:
    """It was written by an instant that is neither completed nor archived: a rollback deletes it, never a clean."""

    write: str

    def __str__(self) -> str:
        return f"{self.write}, which wrote it, is not completed"


@attrs.frozen
class Unknown:
    """It is not a data file, or not one of the judged files."""

    def __str__(self) -> str:
        return "nothing is known about it"


Fate: TypeAlias = Needed | Removable | Failed | Unknown
