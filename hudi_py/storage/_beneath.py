"""
Opens folders of a local table so that writes and deletions cannot leave the table through a symbolic link.

A path is walked from the root one folder at a time: each folder is opened relative to its parent's descriptor, never
through a symbolic link, and the file operation uses the last descriptor. So if another process replaces a folder by a
link at any moment, the link is either detected and refused, or has no effect. Only the root itself may be a link,
because the user named it.

Links to another folder of the same table are refused too. They give a file two paths, and code that decides by path
(which files a query needs, which a savepoint holds) would delete the file under one path while it is needed under the
other. Hard links are harmless, because no file is ever written in place. A mounted folder looks like any other folder
and is treated as one.

Reading does not walk paths this way: a table whose partitions are links to other disks can still be read.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

_ATTEMPTS_MAX = 5  # against another process that removes a folder while we fill it, or fills it while we remove it
FOLDER_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_DEPTH_MAX = 200  # nested folders in a folder that is deleted: one open descriptor is held per level


class LinkInTheWay(OSError):
    """A folder on the path is a symbolic link."""

    def __init__(self, link: str, target: str) -> None:
        super().__init__(errno.ELOOP, f"{link} is a symbolic link to {target}; {_WAY_OUT}")


_WAY_OUT = (
    "inside a table nothing is written, deleted or found twice through a link, and nothing was: put the folder itself "
    "there (a bind mount is one), or remove the link, then run again"
)


@contextlib.contextmanager
def folder_beneath(root: str, folder: str, *, create: bool = False) -> Iterator[int]:
    """
    Open *folder* and yield its descriptor, to be used as ``dir_fd`` only.

    Args:
        root: Absolute path; may be a link.
        folder: Clean relative path, ``""`` for the root.
        create: Durably create missing folders, including the root.

    Raises:
        LinkInTheWay: *folder*, or a folder between it and the root, is a link.
        FileNotFoundError, NotADirectoryError: It does not exist and *create* is false, or a file has its name.
    """
    if create:
        _make_root(root)
    descriptor = os.open(root, FOLDER_ONLY)
    try:
        walked = root
        for part in folder.split("/") if folder else ():
            walked = f"{walked}/{part}"
            inner = _enter(descriptor, part, walked, create=create)
            # Forgotten before it is closed: interrupted between the two (Ctrl-C), it would be closed twice, the second
            # time perhaps as that of another thread's file.
            outer, descriptor = descriptor, inner
            os.close(outer)
        yield descriptor
    finally:
        os.close(descriptor)


def in_folder(root: str, path: str, action: Callable[[int, str], T]) -> T:
    """Call *action* with the descriptor of the folder of *path* and the file name; create missing folders."""
    folder, _, name = path.rpartition("/")
    for _ in range(_ATTEMPTS_MAX - 1):
        with contextlib.suppress(FileNotFoundError), folder_beneath(root, folder, create=True) as descriptor:
            return action(descriptor, name)
    with folder_beneath(root, folder, create=True) as descriptor:
        return action(descriptor, name)


def synchronise(descriptor: int) -> None:
    """Make the names in a folder durable."""
    opened = os.open(".", _LISTED, dir_fd=descriptor)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that has no such notion
            raise
    finally:
        os.close(opened)


def regular_in(descriptor: int) -> dict[str, bool]:
    """Names in a folder, each with whether it is a regular file."""
    opened = os.open(".", _LISTED, dir_fd=descriptor)
    try:
        with os.scandir(opened) as found:
            return {item.name: item.is_file(follow_symlinks=False) for item in found}
    finally:
        os.close(opened)


def remove_folder(root: str, folder: str) -> None:
    """
    Delete a folder with everything in it. Links are deleted, not what they point to; nothing happens if it is absent.

    Raises:
        LinkInTheWay: As `folder_beneath`.
        OSError: Part of it could not be deleted.
    """
    parent, _, name = folder.rpartition("/")
    for attempt in range(_ATTEMPTS_MAX):
        try:
            with folder_beneath(root, parent) as descriptor:
                return _remove_tree(descriptor, name, f"{root}/{folder}", 0)
        except FileNotFoundError:
            if attempt == _ATTEMPTS_MAX - 1 or not os.path.lexists(f"{root}/{folder}"):
                return None
        except NotADirectoryError:
            return None
        except OSError as error:  # another process added a file: look again
            if error.errno != errno.ENOTEMPTY or attempt == _ATTEMPTS_MAX - 1:
                raise
    return None


def refuse_entangled(root: str, link: str) -> None:
    """
    Raise if listing through *link* could show files of the table twice, or never end.

    Reading follows a link that leads out of the table, but not one that leads back into it, nor a link behind a link.

    Raises:
        LinkInTheWay: The link must not be followed.
    """
    real_root, target = os.path.realpath(root), os.path.realpath(link)
    above = os.path.dirname(link)
    is_behind_another = os.path.realpath(above) != os.path.normpath(real_root + above[len(root) :])
    if is_behind_another or os.path.commonpath((real_root, target)) in (real_root, target):
        raise LinkInTheWay(link, os.readlink(link))


def _enter(descriptor: int, part: str, walked: str, *, create: bool) -> int:
    for _ in range(_ATTEMPTS_MAX):
        try:
            return os.open(part, FOLDER_ONLY | os.O_NOFOLLOW, dir_fd=descriptor)
        except FileNotFoundError:
            if not create:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, dir_fd=descriptor)
            # Also if another process created the folder: it may have died before it made the name durable.
            synchronise(descriptor)
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                _refuse_link(descriptor, part, walked)
            raise
    return os.open(part, FOLDER_ONLY | os.O_NOFOLLOW, dir_fd=descriptor)


def _refuse_link(descriptor: int, part: str, walked: str) -> None:
    try:
        target = os.readlink(part, dir_fd=descriptor)
    except OSError:  # EINVAL: no link
        return
    raise LinkInTheWay(walked, target)


def _make_root(root: str) -> None:
    """Like ``makedirs``, and durable: each new folder is synchronised into its parent."""
    missing = []
    while not os.path.isdir(root):
        missing.append(root)
        parent = os.path.dirname(root)
        if parent == root:
            break
        root = parent
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(one)
        above = os.open(os.path.dirname(one), FOLDER_ONLY)
        try:
            synchronise(above)
        finally:
            os.close(above)


def _remove_tree(descriptor: int, name: str, full: str, depth: int) -> None:
    if depth > _DEPTH_MAX:
        raise OSError(errno.ENAMETOOLONG, f"{full} lies in more than {_DEPTH_MAX} folders; remove it by hand")
    try:
        inner = os.open(name, _LISTED | os.O_NOFOLLOW, dir_fd=descriptor)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            _refuse_link(descriptor, name, full)
        raise
    try:
        with os.scandir(inner) as found:
            children = [(item.name, item.is_dir(follow_symlinks=False)) for item in found]
        for child, is_folder in children:
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                if is_folder:
                    _remove_tree(inner, child, f"{full}/{child}", depth + 1)
                else:
                    os.unlink(child, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=descriptor)
