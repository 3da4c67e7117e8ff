"""Streams over a remote object: reading by ranges, and an upload that an exception does not publish."""

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
    A seekable stream that asks for exactly the bytes it needs; wrap it into a buffer.

    Args:
        fetch: Takes start and end, returns the bytes between.
        size_bytes: Of the object.
        where: For messages.
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
                f"read {self._where}: {len(data)} bytes instead of {wanted}; it was replaced meanwhile", True
            )
        view[:wanted] = data
        self._position = end
        return wanted


class Upload(io.RawIOBase):
    """
    A data file being uploaded: visible and durable once closed.

    Leaving by an exception, or dropping the stream, throws the upload away. fsspec's own files would publish a torn
    object then.

    Args:
        target: fsspec's file, open for writing.
        failure_of: Turns an exception of the library into ours.
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
        """Close without publishing."""
        if self.closed:
            return
        # A failure to clean up must not hide why; parts left over are invisible and a life-cycle rule removes them.
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
        if hasattr(self, "_failure_of"):
            self.abort()
