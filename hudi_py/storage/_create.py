"""
Creates files in an open folder of a local disk: complete or not at all, and never over another one unless asked to.

A hard link appears atomically and never replaces a file. File systems without hard links get a rename that refuses to
replace.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from typing import BinaryIO, TypeAlias

from hudi_py.errors import CorruptMetadata
from hudi_py.runtime.randomness import new_uuid
from hudi_py.storage._rename import rename_noreplace

Before: TypeAlias = Callable[[], None] | None
_NO_HARD_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
_ATTEMPTS_MAX = 5  # if another process keeps creating the same file
_NAME_BYTES_MAX = 200  # longer names leave no room for the suffix of a temporary name (the limit is 255)
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


def open_regular(full: str) -> BinaryIO:
    """Open a regular file for reading; links are followed."""
    descriptor, _ = regular_descriptor(full)
    # Once it has the descriptor, it closes it. Interrupted there (Ctrl-C), both would, and the second time it may be
    # that of another thread's file.
    return open(descriptor, "rb")


def regular_descriptor(full: str) -> tuple[int, int]:
    """
    Open a regular file for reading; links are followed.

    Non-blocking, because opening a named pipe otherwise waits for a writer, perhaps for ever.

    Returns:
        Its descriptor, which the caller closes, and its size in bytes.
    """
    descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), full)
        if not stat.S_ISREG(found.st_mode):
            raise CorruptMetadata(f"{full} is not a regular file but a pipe, a socket or a device; remove it")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found.st_size


def create_empty(before: Before = None) -> Callable[[int, str], None]:
    """
    Return a function that creates an empty file; without content it cannot be half written, so that is atomic enough.

    Args:
        before: Called right before the file appears.
    """

    def create(folder: int, name: str) -> None:
        _refuse_taken(folder, name)
        remove_checksum(folder, name)
        if before is not None:
            before()
        os.close(os.open(name, _NEW_FILE, 0o666, dir_fd=folder))

    return create


def create_complete(data: bytes, before: Before = None) -> Callable[[int, str], None]:
    """
    Return a function that creates a file with this content: under a temporary name, then linked to its own.

    Args:
        data: Its content.
        before: Called right before the file appears: the content is durable by then, which may have taken seconds.
    """

    def create(folder: int, name: str) -> None:
        _refuse_taken(folder, name)
        with temporary_file(folder, name, data) as temporary:
            remove_checksum(folder, name)
            if before is not None:
                before()
            try:
                os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                # On NFS the reply to a successful link can be lost; the client repeats the call and gets "exists".
                # Two links to our temporary file prove that it was ours that succeeded.
                if os.stat(temporary, dir_fd=folder).st_nlink != 2:
                    raise
            except OSError as error:
                if error.errno not in _NO_HARD_LINKS:
                    raise
                rename_noreplace(folder, temporary, name)

    return create


def _refuse_taken(folder: int, name: str) -> None:
    """Fail early if the name is taken. This only saves work: the atomic step that follows decides."""
    with contextlib.suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)


def open_again(folder: int, name: str) -> io.FileIO:
    """
    Create a new file, deleting an existing one first.

    Never truncated in place: the old content may be in use under a hard link (a copy of the table made with links).
    """
    remove_checksum(folder, name)
    for _ in range(_ATTEMPTS_MAX):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        with contextlib.suppress(FileExistsError):
            return io.FileIO(os.open(name, _NEW_FILE, 0o666, dir_fd=folder), "wb")
    return io.FileIO(os.open(name, _NEW_FILE, 0o666, dir_fd=folder), "wb")


@contextlib.contextmanager
def temporary_file(folder: int, name: str, data: bytes) -> Iterator[str]:
    """Write a complete, durable file ``<name>.<uuid>`` beside *name*; delete it at the end unless it was renamed."""
    if len(os.fsencode(name)) > _NAME_BYTES_MAX:
        name = name[:40]
    temporary = f"{name}.{new_uuid()}"
    try:
        with open(os.open(temporary, _NEW_FILE, 0o666, dir_fd=folder), "wb", buffering=0) as stream:
            view = memoryview(data)
            while view:
                view = view[stream.write(view) :]
            os.fsync(stream.fileno())
        yield temporary
    finally:
        with contextlib.suppress(OSError):  # it was renamed, or an error is being raised that matters more
            os.unlink(temporary, dir_fd=folder)


def remove_checksum(folder: int, name: str) -> None:
    """Delete the checksum that Hadoop keeps of a file, before new data appears under its name."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f".{name}.crc", dir_fd=folder)
