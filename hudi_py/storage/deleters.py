"""
How files are taken out of a table: one class for each way, all behind one protocol.

Whatever removes data files (cleans, searches for orphans, lists that a person approved) says once which of them it
uses, and calls only `remove`. They are small values that executors can be sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from hudi_py.model.files import join_path
from hudi_py.model.tag import Tag
from hudi_py.storage.base import Deletion, Storage, StorageFailure


class Deleter(Protocol):
    """A way to take files out of a table."""

    @property
    def undoable_from(self) -> str:
        """Folder where the files lie afterwards, relative to the table; ``""`` if they are gone for good."""

    def remove(self, storage: Storage, paths: Iterable[str]) -> Mapping[str, Deletion]:
        """
        Take files out of the table; afterwards none that was removed is in its folders. Repeatable.

        Returns:
            One result per path, as `Storage.delete_many`.
        """


class Unlink(NamedTuple):
    """Deletes files for good, in bulk where the storage can."""

    @property
    def undoable_from(self) -> str:
        return ""

    def remove(self, storage: Storage, paths: Iterable[str]) -> Mapping[str, Deletion]:
        return storage.delete_many(paths)


class Quarantine(NamedTuple):
    """
    Moves files below another folder of the table, where no reader looks.

    Args:
        folder: Relative to the table.
    """

    folder: str

    @property
    def undoable_from(self) -> str:
        return self.folder

    def remove(self, storage: Storage, paths: Iterable[str]) -> Mapping[str, Deletion]:
        return storage.move_many(paths, "", self.folder)


class LeftToTheStore(NamedTuple):
    """
    Moves files as `Quarantine` does, and tags them there, so that the store deletes them by a rule of its own.

    Not tagged at their place in the table: until the store deletes them, which may take days, they would be files of
    the table that its timeline calls deleted, and readers of folders would take replaced ones for rows.

    Args:
        folder: Relative to the table.
        tag: What the rule of the store looks for.
    """

    folder: str
    tag: Tag

    @property
    def undoable_from(self) -> str:
        return self.folder

    def remove(self, storage: Storage, paths: Iterable[str]) -> Mapping[str, Deletion]:
        moved = storage.move_many(paths, "", self.folder)
        # Those that were not there, too: an interrupted run may have moved them and not tagged them. What cannot be
        # tagged is out of the table all the same; it is tried again when the quarantine is emptied.
        there = [join_path(self.folder, path) for path, each in moved.items() if not isinstance(each, StorageFailure)]
        storage.tag_many(there, self.tag)
        return moved


def quarantine_in(folder: str, tag: Tag | None) -> Deleter:
    """Return the deleter that moves files to *folder*, and tags them there if a tag is given."""
    return Quarantine(folder) if tag is None else LeftToTheStore(folder, tag)
