"""
How long the paths of partitions may be.

A file system has a limit for each name, an object store for the whole key. What comes below a folder counts, too: names
of files, and of their markers in ``.hoodie/.temp``. A longer path would fail when the write has begun.
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.storage.base import Storage

_NAME_BYTES_MAX: Final = 255
_PATH_BYTES_MAX: Final = 4096
_KEY_BYTES_MAX: Final = 1024
_ROOM_BYTES: Final = 224
"""For ``.hoodie/.temp/INSTANT/`` before a partition, and the name of a file and its marker behind it."""


@attrs.frozen(kw_only=True)
class PathLengths:
    """
    Limits in bytes of UTF-8.

    Args:
        name_max: Of the name of a folder.
        path_max: Of the relative path of a partition.
    """

    name_max: int
    path_max: int

    @classmethod
    def of(cls, storage: Storage) -> PathLengths:
        """Return the limits of the storage on which a table lies."""
        whole = _PATH_BYTES_MAX if storage.capabilities.has_folders else _KEY_BYTES_MAX
        path_max = whole - _ROOM_BYTES - len(storage.root.encode())
        return cls(name_max=_NAME_BYTES_MAX if storage.capabilities.has_folders else path_max, path_max=path_max)

    def check(self, paths: Array, columns: str) -> None:
        """
        Raise if one of the paths is too long.

        Args:
            paths: Relative paths of partitions.
            columns: Names of the partition columns, for the message.

        Raises:
            WriteError: The message has the begin of the path, and both numbers.
        """
        sizes: Any = compute.binary_length(paths)
        if (compute.max(sizes).as_py() or 0) <= min(self.name_max, self.path_max):
            return
        found: list[str] = compute.drop_null(paths.unique()).to_pylist()
        for path in found:
            size, longest = len(path.encode()), max((len(name.encode()) for name in path.split("/")), default=0)
            what, number, limit = ("the name of a folder", longest, self.name_max)
            if size > self.path_max:
                what, number, limit = ("a path", size, self.path_max)
            if number > limit:
                raise WriteError(
                    f"the partition {path[:40]!r}… (made of {columns}) needs {what} of {number} bytes, and the storage "
                    f"has room for {limit}; shorten the values, or partition by another column"
                )
