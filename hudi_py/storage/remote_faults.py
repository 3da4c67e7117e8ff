"""Classifies exceptions of storage libraries: object missing, name taken, refused, or worth another attempt."""

from __future__ import annotations

import asyncio
import enum
import re
from typing import NamedTuple

from hudi_py.storage.base import StorageFailure


class Meaning(enum.Enum):
    """What a fault means for the caller. The order of the members has no meaning."""

    MISSING = "there is no such object"
    TAKEN = "the condition of a conditional create or replace was not met"
    REFUSED = "repeating the call will fail again"
    NOT_DONE = "was certainly not executed, may work later"
    UNKNOWN = "may or may not have been executed, may work later"


class Fault(NamedTuple):
    """A classified exception; *text* says what happened, *advice* what to do about it."""

    meaning: Meaning
    text: str
    advice: str = ""

    @property
    def is_retryable(self) -> bool:
        """Whether the same call may succeed later."""
        return self.meaning in (Meaning.NOT_DONE, Meaning.UNKNOWN)

    @property
    def message(self) -> str:
        """Text and advice on one line."""
        return f"{self.text}; {self.advice}" if self.advice else self.text


_ACCESS = "check the credentials and what they allow"
_CODES = {
    "NoSuchKey": Meaning.MISSING,
    "404": Meaning.MISSING,
    "NotFound": Meaning.MISSING,
    "PreconditionFailed": Meaning.TAKEN,
    "412": Meaning.TAKEN,
    # Another conditional request for the same key is in progress; S3 documents that this one was not executed.
    "ConditionalRequestConflict": Meaning.NOT_DONE,
    "OperationAborted": Meaning.NOT_DONE,
    "SlowDown": Meaning.NOT_DONE,
    "Throttling": Meaning.NOT_DONE,
    "ThrottlingException": Meaning.NOT_DONE,
    "RequestLimitExceeded": Meaning.NOT_DONE,
    "TooManyRequests": Meaning.NOT_DONE,
    "BandwidthLimitExceeded": Meaning.NOT_DONE,
    "429": Meaning.NOT_DONE,
    "RequestTimeout": Meaning.UNKNOWN,
    "InternalError": Meaning.UNKNOWN,
    "ServiceUnavailable": Meaning.UNKNOWN,
    "500": Meaning.UNKNOWN,
    "502": Meaning.UNKNOWN,
    "503": Meaning.UNKNOWN,
    "504": Meaning.UNKNOWN,
}
_ADVICE = {
    "NoSuchBucket": "the bucket does not exist, check the URL and the endpoint",
    "AccessDenied": _ACCESS,
    "403": _ACCESS,
    "InvalidAccessKeyId": _ACCESS,
    "SignatureDoesNotMatch": _ACCESS,
    "ExpiredToken": "the credentials have expired, renew them",
    "RequestTimeTooSkewed": "the clock of this machine is wrong",
    "NotImplemented": "this server does not support the request",
}
# Exceptions are matched by name, because the libraries that define them are optional.
# These are raised before anything was sent:
_NEVER_SENT = frozenset(
    {"EndpointConnectionError", "ConnectTimeoutError", "ProxyConnectionError", "ClientConnectorError"}
)
_NO_CREDENTIALS = frozenset({"NoCredentialsError", "PartialCredentialsError", "TokenRetrievalError"})
_HADOOP = re.compile(r"Unable to load (lib(?:jvm|hdfs))")
_SILENT = frozenset({"ReadTimeoutError"})
_LOST = frozenset({"HTTPClientError", "ResponseStreamingError", "ResponseParserError", "ClientError", "HttpError"})


def classify(error: Exception) -> Fault | None:
    """
    Classify *error*, an exception of fsspec or of a library that it uses.

    Returns:
        The fault, or None if the exception looks like a programming error and must not be treated as a fault.
    """
    # The server's own code first: it is exact, and the class of an exception may be the same for many answers.
    code, text = _service_answer(error)
    if code is not None:
        return classify_code(code, text)
    if isinstance(error, FileNotFoundError):
        return Fault(Meaning.MISSING, "no such object")
    if isinstance(error, FileExistsError):
        return Fault(Meaning.TAKEN, "exists already")
    if isinstance(error, PermissionError):
        return Fault(Meaning.REFUSED, _brief(error), _ACCESS)
    missing = _HADOOP.match(str(error))
    if missing is not None:  # PyArrow goes on with every path that it tried
        return Fault(
            Meaning.REFUSED,
            f"HDFS is reached through Hadoop's own client, which needs Java, and {missing[1]}.so was not found",
            "install Java and Hadoop's client, and set JAVA_HOME, HADOOP_HOME and "
            "CLASSPATH=$($HADOOP_HOME/bin/hadoop classpath --glob)",
        )
    names = {kind.__name__ for kind in type(error).__mro__}
    if names & _NO_CREDENTIALS:
        return Fault(Meaning.REFUSED, _brief(error), "set credentials for this storage")
    if names & _NEVER_SENT or isinstance(error, ConnectionRefusedError):
        return Fault(Meaning.NOT_DONE, _brief(error), "check the endpoint and the network")
    if names & _SILENT or isinstance(error, TimeoutError | asyncio.TimeoutError | ConnectionError | EOFError):
        return Fault(Meaning.UNKNOWN, _brief(error), "the storage did not answer in time; check the endpoint")
    if names & _LOST:
        return Fault(Meaning.UNKNOWN, _brief(error), "the connection broke, try again")
    if isinstance(error, OSError) or type(error).__module__ not in ("builtins", "hudi_py.errors"):
        return Fault(Meaning.REFUSED, _brief(error))
    return None


def classify_code(code: str, text: str) -> Fault:
    """Classify an error code of the S3 protocol."""
    return Fault(_CODES.get(code, Meaning.REFUSED), f"{code}: {text}" if text else code, _ADVICE.get(code, ""))


def as_failure(fault: Fault, where: str) -> StorageFailure:
    """Return the fault as the result for one path of a bulk call."""
    return StorageFailure(f"{where}: {fault.message}", fault.is_retryable)


def _service_answer(error: BaseException) -> tuple[str | None, str]:
    """Return code and text of the service's response, which s3fs keeps as the cause of the OSError that it raises."""
    seen: BaseException | None = error
    for _ in range(5):
        if seen is None:
            break
        response = getattr(seen, "response", None)
        if isinstance(response, dict) and isinstance(response.get("Error"), dict):
            answer = response["Error"]
            return str(answer.get("Code", "")), str(answer.get("Message", ""))
        seen = seen.__cause__
    return None, ""


def _brief(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__
