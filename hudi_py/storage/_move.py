"""Moves files between folders of a local table, by renames that stay inside the table."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from hudi_py.storage._beneath import folder_beneath, regular_in
from hudi_py.storage.base import StorageFailure

_LISTED_FROM: Final = 8  # so many files of a folder: to list both folders costs less than to ask for each file


class _Names(NamedTuple):
    """Names in both folders, and which of those at the source are regular files."""

    source: frozenset[str]
    regular: frozenset[str]
    target: frozenset[str]

    @classmethod
    def listed(cls, source: int, target: int) -> _Names:
        found = regular_in(source)
        regular = frozenset(name for name, is_regular in found.items() if is_regular)
        return cls(frozenset(found), regular, frozenset(regular_in(target)))

    @classmethod
    def asked(cls, source: int, name: str) -> _Names:
        """As if the folders had this file alone, and might have its checksum."""
        side = frozenset((_side_of(name),))
        try:
            found = os.stat(name, dir_fd=source, follow_symlinks=False)
        except FileNotFoundError:
            return cls(side, frozenset(), side)
        there = frozenset((name,))
        # Otherwise a folder, a link, a pipe.
        return cls(there | side, there if stat.S_ISREG(found.st_mode) else frozenset(), side)


def move_beneath(
    root: str,
    old: str,
    new: str,
    paths: Iterable[str],
    refused: Callable[[str, OSError], StorageFailure],
) -> dict[str, bool | StorageFailure]:
    """
    Rename files of one folder into another; missing folders are created. Links are not followed.

    Not synchronised: after a loss of power a file may be back at its old place, never at neither of the two.

    Args:
        root: Absolute path of the table.
        old: Folder where the files are, relative to *root*.
        new: Folder where they shall be.
        paths: Their paths; only the names count.
        refused: Makes a failure of an error.

    Returns:
        Path to True (moved), False (absent) or why it was not moved.
    """
    group = list(paths)
    outcomes: dict[str, bool | StorageFailure] = {}
    try:
        with folder_beneath(root, old) as source, folder_beneath(root, new, create=True) as target:
            listed = _Names.listed(source, target) if len(group) >= _LISTED_FROM else None
            for path in group:
                name = path.rpartition("/")[2]
                try:
                    outcomes[path] = _moved(source, target, name, listed or _Names.asked(source, name))
                except OSError as error:
                    outcomes[path] = refused(path, error)
    except (FileNotFoundError, NotADirectoryError):
        outcomes.update({path: False for path in group if path not in outcomes})
    except OSError as error:
        outcomes.update({path: refused(path, error) for path in group if path not in outcomes})
    return outcomes


def _side_of(name: str) -> str:
    return f".{name}.crc"


def _moved(source: int, target: int, name: str, names: _Names) -> bool:
    """
    Rename one file, then the checksum file that Hadoop keeps beside it.

    An old checksum at the target is deleted first: Hadoop refuses data that does not match it, and accepts data
    without one, which is all that a crash in between leaves.
    """
    if name not in names.source:
        return False
    # What is not a regular file was not written by a Hudi writer.
    if name not in names.regular:
        raise OSError(errno.EINVAL, "it is not a regular file; it was left where it is")
    side = _side_of(name)
    if side in names.target:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(side, dir_fd=target)
    try:
        os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    except FileNotFoundError:  # another process has moved it since the folder was listed
        return False
    if side in names.source:
        # A checksum that stays behind belongs to no file, and harms nobody.
        with contextlib.suppress(OSError):
            os.rename(side, side, src_dir_fd=source, dst_dir_fd=target)
    return True
