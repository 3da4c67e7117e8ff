"""Streams over remote objects, without a remote."""

from __future__ import annotations

import io

import pytest

from hudi_py.errors import StorageError
from hudi_py.storage.remote_streams import RangeReader, Upload


class Target(io.BytesIO):
    """A file of fsspec: publishes when closed, also by its finaliser unless it is marked as closed."""

    closed = False  # fsspec's is an attribute that can be set

    def __init__(self, failing: str = "") -> None:
        super().__init__()
        self.events: list[str] = []
        self.failing = failing

    def write(self, data) -> int:
        if self.failing == "write":
            raise OSError("no")
        return super().write(data)

    def discard(self) -> None:
        self.events.append("discard")

    def close(self) -> None:
        if self.failing == "close":
            raise OSError("no")
        self.events.append("publish")


def upload(target: Target) -> Upload:
    return Upload(target, lambda error: StorageError(f"ours: {error}"))


def test_closed_upload_is_published_once():
    """However often it is closed."""
    target = Target()
    with upload(target) as stream:
        stream.write(b"x")
    stream.close()
    del stream
    assert target.events == ["publish"]


@pytest.mark.parametrize("how", ["exception", "abort", "drop", "write", "close"])
def test_upload_that_fails_is_discarded_and_cannot_publish_later(how):
    """Whatever ends it, fsspec's file is told to throw it away and marked, so that its finaliser does nothing."""
    target = Target(how)
    stream = upload(target)
    if how == "exception":
        with pytest.raises(KeyError), stream:
            raise KeyError
    elif how == "abort":
        stream.abort()
    elif how == "drop":
        del stream
    else:
        with pytest.raises(StorageError, match="ours: no"):
            stream.write(b"x") if how == "write" else stream.close()
    assert target.events == ["discard"]
    assert target.closed


def test_short_answer_is_an_error():
    """An object replaced by a shorter one must not look like its end."""
    reader = RangeReader(lambda start, end: b"x", 10, "place")
    with pytest.raises(StorageError, match="replaced meanwhile"):
        reader.read(5)
    with pytest.raises(ValueError, match="negative"):
        reader.seek(-1)
