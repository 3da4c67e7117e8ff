"""Streams over a remote object: reading by ranges, and an upload that is discarded after an exception."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn

from hudi_py.errors import StorageError

FailureOf = Callable[[Exception], Exception]


class RangeReader(io.RawIOBase):
    """
    A seekable stream that requests exactly the bytes asked for; wrap it in a buffer.

    Args:
        fetch: Takes start and end offset, returns the bytes between them.
        size_bytes: Size of the object.
        where: URL of the object, for messages.
    """

    def __init__(self, fetch: Callable[[int, int], bytes], size_bytes: int, where: str) -> None:
        super().__init__()
        self._fetch, self._size, self._where, self._position = fetch, size_bytes, where, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        end = min(self._position + len(view), self._size)
        wanted = end - self._position
        if wanted <= 0:
            return 0
        data = self._fetch(self._position, end)
        if len(data) != wanted:
            raise StorageError(
                f"read {self._where}: {len(data)} bytes instead of {wanted}; the object was replaced meanwhile", True
            )
        view[:wanted] = data
        self._position = end
        return wanted


class Upload(io.RawIOBase):
    """
    A data file being uploaded: visible and durable once closed.

    After an exception, or if the stream is never closed, the upload is discarded. fsspec's own files would publish an
    incomplete object in both cases.

    Args:
        target: fsspec's file, open for writing.
        failure_of: Converts an exception of the library to one of ours.
    """

    def __init__(self, target: Any, failure_of: FailureOf) -> None:
        super().__init__()
        self._target, self._failure_of = target, failure_of

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return int(self._target.tell())

    def write(self, data: Any, /) -> int:
        try:
            return int(self._target.write(data))
        except Exception as error:
            self._give_up(error)

    def close(self) -> None:
        if self.closed:
            return
        try:
            self._target.close()
        except Exception as error:
            self._give_up(error)
        super().close()

    def abort(self) -> None:
        """Close and discard the upload."""
        if self.closed:
            return
        # A failure to clean up must not hide the first error. Parts left over are invisible; a life-cycle rule of the
        # bucket can delete them.
        with contextlib.suppress(Exception):
            self._target.discard()
        try:
            self._target.closed = True  # else the finaliser of fsspec's file would publish it
        except AttributeError:
            with contextlib.suppress(Exception):
                self._target.close()
        super().close()

    def _give_up(self, error: Exception) -> NoReturn:
        self.abort()
        raise self._failure_of(error) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()

    def __del__(self) -> None:
        # Only if the constructor finished: a half-made stream has nothing to abort.
        if hasattr(self, "_failure_of"):
            self.abort()
