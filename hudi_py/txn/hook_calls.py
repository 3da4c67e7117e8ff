"""Runs the command of a hook, and sends to its address; both within a time limit."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

from hudi_py.config.hooks import Address

_SUCCESS_BELOW: Final = 300
_SHOWN_MAX: Final = 300


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
        process = subprocess.Popen(
            list(words), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env={**os.environ, **told}, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise HookFailed(f"it cannot be started: {error.strerror or error}") from error
    try:
        _, errors = process.communicate(json.dumps(document, default=str).encode(), timeout=seconds)
    except BaseException as error:
        _kill(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise HookFailed(f"it took longer than {seconds:g} s and was killed") from error
        raise
    if process.returncode:
        said = errors.decode("utf-8", "replace").strip()[-_SHOWN_MAX:]
        raise HookFailed(f"it ended with exit code {process.returncode}" + (f": {said}" if said else ""))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started; those would keep its streams open."""
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.communicate()


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
    # A redirection too: nobody would receive the message.
    if outcome >= _SUCCESS_BELOW:
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
