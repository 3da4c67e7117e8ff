"""What exceptions of storage libraries mean."""

from __future__ import annotations

import asyncio
import errno

import pytest

from hudi_py.errors import StorageError
from hudi_py.storage.remote_faults import Meaning, classify
from hudi_py.storage.retry import Retry


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


@pytest.mark.parametrize("library", ["libjvm", "libhdfs"])
def test_what_hdfs_needs_is_said_in_our_words(library):
    """PyArrow names every file that it tried; people need to know what to install."""
    tried = f"dlopen(/usr/lib/{library}.so) failed: /usr/lib/{library}.so: cannot open shared object file"
    fault = classify(OSError(f"Unable to load {library} {tried} {tried}"))
    assert fault is not None
    assert fault.meaning is Meaning.REFUSED
    assert "dlopen" not in fault.message
    assert library in fault.text
    assert "JAVA_HOME" in fault.advice
    assert "HADOOP_HOME" in fault.advice


@pytest.mark.parametrize("error", [TypeError("x"), AttributeError("y"), ValueError("z"), StorageError("ours")])
def test_programming_errors_are_no_faults(error):
    """They must surface as they are."""
    assert classify(error) is None


class Sleeper:
    """A clock that only sleeping and working move on."""

    def __init__(self):
        self.now, self.slept = 0.0, []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def clock(self):
        return self.now


def test_delays_grow_to_a_cap():
    """Doubling with jitter, never above the maximum; the number of attempts is bounded."""
    time = Sleeper()
    attempts = Retry(6, delay_s_first=1, delay_s_max=4, sleep=time.sleep, clock=time.clock).begin("read x")
    assert [attempts.again("away") for _ in range(6)] == [True] * 5 + [False]
    assert all(full / 2 <= delay <= full for delay, full in zip(time.slept, (1, 2, 4, 4, 4), strict=True))


@pytest.mark.parametrize("attempt_s", [0.0, 7.0, 40.0, 61.0])
def test_no_attempt_begins_after_the_total_time(attempt_s):
    """A store that never answers is given up, however many attempts are left."""
    time = Sleeper()
    attempts = Retry(attempts_max=1_000, sleep=time.sleep, clock=time.clock, total_s=60).begin("read x")
    begun = [0.0]
    time.now += attempt_s
    while attempts.again("no answer"):
        begun.append(time.now)
        time.now += attempt_s
    assert max(begun) <= 60
    assert time.now + 8 + attempt_s > 60


def test_each_repetition_is_told(caplog):
    """Who waits is told for what, and why."""
    Retry(sleep=lambda _: None).begin("list s3://lake/trips").again("no answer")
    (told,) = (record.getMessage() for record in caplog.records)
    assert "list s3://lake/trips" in told
    assert "no answer" in told
