"""What exceptions of storage libraries mean."""

from __future__ import annotations

import asyncio
import errno

import pytest

from hudi_py.errors import StorageError
from hudi_py.storage.remote import Retry
from hudi_py.storage.remote_faults import Meaning, classify


class ClientError(Exception):
    """Like botocore's."""

    def __init__(self, code: str) -> None:
        super().__init__(f"An error occurred ({code})")
        self.response = {"Error": {"Code": code, "Message": "text"}}


class EndpointConnectionError(Exception):
    """Like botocore's."""


class NoCredentialsError(Exception):
    """Like botocore's."""


def translated(code: str) -> OSError:
    """As s3fs raises it: an OSError caused by the answer."""
    error = OSError(errno.EINVAL, "pre-conditions")
    error.__cause__ = ClientError(code)
    return error


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (translated("PreconditionFailed"), Meaning.TAKEN),
        (ClientError("412"), Meaning.TAKEN),
        (FileExistsError(), Meaning.TAKEN),
        (translated("NoSuchKey"), Meaning.MISSING),
        (FileNotFoundError("x"), Meaning.MISSING),
        (translated("NoSuchBucket"), Meaning.REFUSED),
        (ClientError("AccessDenied"), Meaning.REFUSED),
        (PermissionError("no"), Meaning.REFUSED),
        (NoCredentialsError("none"), Meaning.REFUSED),
        (OSError(errno.EIO, "what"), Meaning.REFUSED),
        (ClientError("SomethingNew"), Meaning.REFUSED),
        (ClientError("SlowDown"), Meaning.NOT_DONE),
        (ClientError("ConditionalRequestConflict"), Meaning.NOT_DONE),
        (EndpointConnectionError("host"), Meaning.NOT_DONE),
        (ConnectionRefusedError(), Meaning.NOT_DONE),
        (ClientError("InternalError"), Meaning.UNKNOWN),
        (ConnectionResetError(), Meaning.UNKNOWN),
        (TimeoutError(), Meaning.UNKNOWN),
        (asyncio.TimeoutError(), Meaning.UNKNOWN),
    ],
    ids=repr,
)
def test_meaning(error, meaning):
    """Only what was surely not executed counts as such."""
    fault = classify(error)
    assert fault is not None
    assert fault.meaning is meaning
    assert fault.is_retryable is (meaning in (Meaning.NOT_DONE, Meaning.UNKNOWN))
    assert fault.message


@pytest.mark.parametrize("error", [TypeError("x"), AttributeError("y"), ValueError("z"), StorageError("ours")])
def test_programming_errors_are_no_faults(error):
    """They must surface as they are."""
    assert classify(error) is None


def test_delays_grow_to_a_cap():
    """Doubling with jitter, never above the maximum."""
    slept: list[float] = []
    retry = Retry(delay_s_first=1, delay_s_max=4, sleep=slept.append)
    for attempt in range(5):
        retry.wait(attempt)
    assert all(full / 2 <= delay <= full for delay, full in zip(slept, (1, 2, 4, 4, 4), strict=True))
