"""Runs the command of a hook, and sends to its address; both within a time limit."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final
from urllib.parse import urlsplit

from hudi_py.config.hooks import Address
from hudi_py.runtime.clock import MONOTONIC

_SUCCESS_BELOW: Final = 300
_ERRORS_FROM: Final = 400
_SHOWN_MAX: Final = 300
_KEPT_BYTES: Final = 4 * _SHOWN_MAX
_READ_BYTES: Final = 65536
_LOOK_SECONDS: Final = 0.05


class HookFailed(Exception):
    """A hook did not do what it was called for; the message says why, without secrets."""


def run_command(words: Sequence[str], document: Mapping[str, Any], seconds: float) -> None:
    """
    Run a program, without a shell, with the document on its standard input.

    Its standard output is discarded: that of this process may be a JSON document.

    Args:
        words: Program and arguments.
        document: What has completed.
        seconds: After this the program and all that it started are killed.

    Raises:
        HookFailed: It could not be started, ended with an error or was killed.
    """
    told = {
        "HUDI_PY_TABLE": document["table"],
        "HUDI_PY_ACTION": document["action"],
        "HUDI_PY_KIND": document["kind"],
        "HUDI_PY_INSTANT": document["requested_time"] or "",
    }
    try:
        # As a file: a program that reads nothing must not keep the one waiting that writes.
        with tempfile.TemporaryFile() as given:
            given.write(json.dumps(document, default=str).encode())
            given.seek(0)
            process = subprocess.Popen(
                list(words), stdin=given, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                env={**os.environ, **told}, start_new_session=True,
            )  # fmt: skip
    except OSError as error:
        raise HookFailed(f"it cannot be started: {error.strerror or error}") from error
    with process.stderr as errors:  # type: ignore[union-attr]
        try:
            said = _last_words(process, errors, MONOTONIC() + seconds)
            code = process.wait(0)
        except BaseException as error:
            _kill(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise HookFailed(f"it took longer than {seconds:g} s and was killed") from error
            raise
    if code:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise HookFailed(f"it {how}" + (f": {said}" if said else ""))


def _last_words(process: subprocess.Popen[bytes], errors: IO[bytes], until: float) -> str:
    """
    Return the end of what a program says on its standard error, once it has ended or its time is over.

    Only the end is kept: a program may write gigabytes. What the program started and left running may keep the stream
    open for days, so the end of the program counts, not that of the stream.
    """
    end, has_ended, is_open = b"", False, True
    # Not select: it takes no file number above 1023, which a server with many connections has.
    ready = select.poll()
    ready.register(errors, select.POLLIN)
    while MONOTONIC() < until:
        # Asked before reading: what it wrote last is there when it has ended.
        has_ended = process.poll() is not None
        if is_open and ready.poll(0 if has_ended else _LOOK_SECONDS * 1000):
            data = os.read(errors.fileno(), _READ_BYTES)
            end, is_open = (end + data)[-_KEPT_BYTES:], bool(data)
        elif has_ended:
            break
        elif not is_open:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_LOOK_SECONDS)
    return end.decode("utf-8", "replace").strip()[-_SHOWN_MAX:]


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started, and wait for the program alone: others may have left its group."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def send(address: Address, document: Mapping[str, Any]) -> None:
    """
    Send a document by HTTP POST.

    Args:
        address: Where to, and for how long at most.
        document: What has completed.

    Raises:
        HookFailed: The answer was an error or a redirection, or did not come in time.
    """
    body = json.dumps(document, default=str).encode()
    found: list[BaseException | int] = []

    def run() -> None:
        try:
            found.append(_post(address, body))
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            found.append(error)

    # In a thread, because time-outs of sockets are for each single wait: an answer that comes byte by byte has none.
    thread = threading.Thread(target=run, name="hudi-py-hook", daemon=True)
    thread.start()
    thread.join(address.seconds)
    if not found:
        raise HookFailed(f"there was no answer within {address.seconds:g} s")
    [outcome] = found
    if isinstance(outcome, BaseException):
        raise HookFailed(f"it cannot be reached: {type(outcome).__name__}: {outcome}") from outcome
    # Never followed, as by Apache Hudi's callback: the headers have secrets, which are for this address alone.
    if _SUCCESS_BELOW <= outcome < _ERRORS_FROM:
        raise HookFailed(
            f"it answered with status {outcome}, a redirection, and those are not followed: nobody received the "
            "document; set the address that it leads to"
        )
    if outcome >= _ERRORS_FROM:
        raise HookFailed(f"it answered with status {outcome}")


def _post(address: Address, body: bytes) -> int:
    parts = urlsplit(address.url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    assert parts.hostname is not None
    connection = kind(parts.hostname, parts.port, timeout=address.seconds)
    headers = {"Content-Type": "application/json", "User-Agent": "hudi-py", **address.headers}
    if parts.username is not None:
        import base64
        from urllib.parse import unquote

        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    try:
        connection.request("POST", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""), body, headers)
        return connection.getresponse().status
    finally:
        connection.close()
