"""Moves files between folders of a local table, by renames that stay inside the table."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable

from hudi_py.storage._beneath import folder_beneath
from hudi_py.storage.base import StorageFailure


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
            for path in group:
                try:
                    outcomes[path] = _moved(source, target, path.rpartition("/")[2])
                except OSError as error:
                    outcomes[path] = refused(path, error)
    except (FileNotFoundError, NotADirectoryError):
        outcomes.update({path: False for path in group if path not in outcomes})
    except OSError as error:
        outcomes.update({path: refused(path, error) for path in group if path not in outcomes})
    return outcomes


def _moved(source: int, target: int, name: str) -> bool:
    """
    Rename one file, then the checksum file that Hadoop keeps beside it.

    An old checksum at the target is deleted first: Hadoop refuses data that does not match it, and accepts data
    without one, which is all that a crash in between leaves.
    """
    side = f".{name}.crc"
    try:
        found = os.stat(name, dir_fd=source, follow_symlinks=False)
    except FileNotFoundError:
        return False
    # What is not a regular file was not written by a Hudi writer.
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file; it was left where it is")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(side, dir_fd=target)
    os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
    # A checksum that stays behind belongs to no file, and harms nobody.
    with contextlib.suppress(OSError):
        os.rename(side, side, src_dir_fd=source, dst_dir_fd=target)
    return True
