"""Notes of one clean for the next, in small files of hudi_py that Apache Hudi does not read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import attrs

from hudi_py.errors import NotFound
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.json_document import parse_json
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage

T = TypeVar("T")
_FOLDER = f"{OWN_FOLDER}/clean"


@attrs.frozen(kw_only=True)
class Note(Generic[T]):
    """
    One such file, a JSON object.

    Args:
        name: Name of the file, without folder and extension.
        parse: Converts the object; raises ValueError, KeyError, TypeError or AttributeError if it is not valid.
        absent: The value if there is no file.
        damaged: The value if the file cannot be parsed.
    """

    name: str
    parse: Callable[[Any], T]
    absent: T
    damaged: T

    @property
    def path(self) -> str:
        """Path of the file, relative to the table."""
        return f"{_FOLDER}/{self.name}.json"

    def load(self, storage: Storage) -> T:
        """Read the note."""
        try:
            return self.parse(parse_json(storage.read(self.path)))
        except NotFound:
            return self.absent
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning(f"clean.{self.name}.unreadable", path=self.path, reason=str(error))
            # A note only saves work, so a damaged one must not stop a clean.
            return self.damaged

    def store(self, storage: Storage, document: dict[str, Any] | None) -> None:
        """Replace the note; None deletes it. Raises `StorageError`."""
        if document is None:
            storage.delete(self.path)
        else:
            storage.replace(self.path, json.dumps(document).encode())
