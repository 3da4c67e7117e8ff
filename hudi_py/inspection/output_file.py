"""Files that commands write with ``-o``: never inside of a table, and complete or not there at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from hudi_py.errors import ConfigError


def check_outside(path: str, root: str, option: str = "-o") -> None:
    """
    Refuse a file inside of the table: the output replaces what has its name, which may be one of the table's files.

    Args:
        path: As given with the option.
        root: Base path or URL of the table.
        option: Its name.

    Raises:
        ConfigError: It is inside.
    """
    folder = os.path.realpath(os.path.dirname(path) or os.curdir)
    root = os.path.realpath(root)  # that of a table in an object store is a URL, below which no local folder lies
    if os.path.commonpath([folder, root]) == root:
        raise ConfigError(
            f"{option} {path}: this is inside the table and could replace one of its files; use another place"
        )


def table_around(path: str) -> str | None:
    """Return the folder of the table that a file would be in; None outside of all."""
    folder = os.path.realpath(os.path.dirname(path) or os.curdir)
    while not os.path.isdir(os.path.join(folder, ".hoodie")):
        folder, last = os.path.dirname(folder), folder
        if folder == last:
            return None
    return folder


def is_stream(path: str) -> bool:
    """Whether a path names a device, a pipe, or what a process has open, as ``/dev/stdout`` does: no file by name."""
    # A redirected /dev/stdout leads to an ordinary file, but its own name is a link that all processes share.
    if os.path.islink(path) and os.path.realpath(os.path.dirname(path)).startswith(("/dev", "/proc")):
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """
    Open a file for writing that appears under its name when the body ends, and never if the body raises.

    Devices and pipes are written to as they are: a file in their place would take them away from everyone.

    Raises:
        ConfigError: It cannot be written.
    """
    folder, name = os.path.split(path)
    # In the same folder, because a file can be renamed at once only within one file system. With the process number,
    # so that two runs with the same output do not write into one file.
    unfinished = os.path.join(folder, f".{name}.{os.getpid()}.unfinished")
    try:
        if is_stream(path):
            with open(path, "wb") as file:
                yield file
            return
        try:
            with open(unfinished, "wb") as file:
                yield file
            os.replace(unfinished, path)
        finally:
            with suppress(OSError):
                os.remove(unfinished)
    except OSError as error:
        raise ConfigError(f"-o {path}: {error.strerror or error}; give a place that can be written") from error
