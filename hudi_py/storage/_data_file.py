"""Data files on a local disk while they are written, and what errors of the disk mean for the user."""

from __future__ import annotations

import contextlib
import errno
import io
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from hudi_py.errors import StorageError
from hudi_py.storage.base import spoken

_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_PASSING: Final = frozenset({errno.EAGAIN, errno.EBUSY, errno.ETIMEDOUT, errno.ESTALE, errno.EMFILE, errno.ENFILE})
"""Errors after which the same call may succeed: busy devices, stale handles of network disks, too many open files."""


def failure(verb: str, full: str, error: OSError) -> StorageError:
    """
    Return the error that tells a user what happened and what to do.

    Args:
        verb: The verb of the storage that failed.
        full: Path of the file or folder.
        error: What the system call raised.
    """
    where, why = f"{spoken(verb)} {full}", error.strerror or str(error)
    if error.errno in _FULL:
        advice = "the disk is full or over quota; nothing was lost, free space and run again"
        return StorageError(f"{where}: {advice} ({why})")
    if error.errno in _DENIED:
        return StorageError(f"{where}: {why}; give this user access to it, or run as its owner")
    return StorageError(f"{where}: {why}", error.errno in _PASSING)


class DataFile(io.BufferedWriter):
    """
    A data file being written: `close` makes it durable; after an exception it is closed without that.

    Args:
        raw: The open file.
        full: Its path, for messages.
        synchronise: Makes its name durable, by synchronising its folder.
    """

    def __init__(self, raw: io.FileIO, full: str, synchronise: Callable[[], None]) -> None:
        super().__init__(raw, 1 << 16)
        self._full, self._synchronise, self._is_torn = full, synchronise, False

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self._is_torn = True
            raise failure("open_write", self._full, error) from error

    def close(self) -> None:
        if self.closed:
            return
        try:
            if not self._is_torn:
                self.flush()
                # Content first, then the name: after a power failure a name without content would be a torn file.
                os.fsync(self.fileno())
                self._synchronise()
        except OSError as error:
            self._is_torn = True
            raise failure("open_write", self._full, error) from error
        finally:
            if self._is_torn:
                self._abandon()
            else:
                super().close()

    def _abandon(self) -> None:
        """Close without trying again to write the buffered data that failed."""
        with contextlib.suppress(OSError):
            self.raw.close()
        with contextlib.suppress(OSError, ValueError):
            super().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The rows are incomplete, so there is nothing that has to be durable.
        if kind is not None:
            self._is_torn = True
        self.close()
