"""
Folders of a local table, opened so that what is written or deleted in them lies in the table.

A path is walked from the root folder by folder, each opened inside the one before and none through a symbolic link;
what happens in the last one happens by its descriptor. So a link that another process puts in the place of a folder
at any moment is either seen, and refused, or has no effect. Only the root itself may be a link: it is the user's word.

Links that stay inside of the table are refused too. They give a file two paths, and what is judged by path (which
files a query needs, which a savepoint holds) would delete it by one while it is needed by the other. Hard links do no
harm, because no file is ever written in place; a mounted folder cannot be told from others, and is one.

Reading is not walked like that: a table whose partitions are links to other disks can still be read.
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
_DEPTH_MAX = 200  # of folders inside of a folder that is deleted: one descriptor is held for each


class LinkInTheWay(OSError):
    """A folder on the way is a symbolic link."""

    def __init__(self, link: str, target: str) -> None:
        super().__init__(errno.ELOOP, f"{link} is a symbolic link to {target}; {_WAY_OUT}")


_WAY_OUT = (
    "inside a table nothing is written, deleted or found twice through a link, and nothing was: put the folder itself "
    "there (a bind mount is one), or remove the link, then run again"
)


@contextlib.contextmanager
def folder_beneath(root: str, folder: str, *, create: bool = False) -> Iterator[int]:
    """
    Descriptor of *folder*, good for ``dir_fd`` and nothing else.

    Args:
        root: Absolute path; may be a link.
        folder: Clean relative path, ``""`` for the root.
        create: Durably create what is missing of it, the root too.

    Raises:
        LinkInTheWay: It, or a folder above it and below the root, is a link.
        FileNotFoundError, NotADirectoryError: It is not there and *create* is false, or a file is in its place.
    """
    if create:
        _make_root(root)
    descriptor = os.open(root, FOLDER_ONLY)
    try:
        walked = root
        for part in folder.split("/") if folder else ():
            walked = f"{walked}/{part}"
            inner = _enter(descriptor, part, walked, create=create)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def in_folder(root: str, path: str, action: Callable[[int, str], T]) -> T:
    """Do *action* with the descriptor of the folder of *path* and the name in it; the folder is created if missing."""
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


def remove_folder(root: str, folder: str) -> None:
    """
    Delete a folder with everything in it; links in it go, what they point to stays. Absent, or a file: nothing happens.

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
    Refuse to list through a link to a folder that would show the table's files twice, or go round in circles.

    Reading follows a link that leads out of the table, once: not back into it, and no further link behind it.

    Raises:
        LinkInTheWay: It is another one.
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
            names = [(item.name, item.is_dir(follow_symlinks=False)) for item in found]
        for each, is_folder in names:
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                if is_folder:
                    _remove_tree(inner, each, f"{full}/{each}", depth + 1)
                else:
                    os.unlink(each, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=descriptor)
