"""Runs a command of the user as a child process, and passes signals on to it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hudi_py.errors import ConfigError

_STDERR: Final = 2  # the number, because sys.stderr may be replaced by something without one
_SIGNALLED: Final = 128
"""Shells report the end of a process by a signal as this number plus that of the signal."""


def run_child(words: Sequence[str], environment: Mapping[str, str], *, quiet: bool) -> int:
    """
    Run a command until it ends; returns its exit code as a shell reports it.

    Signals that ask this process to end are passed on, so that the child ends first and the caller can tidy up. Ctrl-C
    reaches the child without help, because it belongs to the same group of processes.

    Args:
        words: The command and its arguments.
        environment: Variables in addition to those of this process.
        quiet: Send its output to stderr, because stdout is for a JSON document.

    Raises:
        ConfigError: There is no such command, or it cannot be run.
    """
    output = _STDERR if quiet else None
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, _: Any) -> None:
        if started:
            started[0].send_signal(number)
        else:
            early.append(number)

    def leave_to_child(number: int, _: Any) -> None:
        if not started:  # it was not there yet to get it from the terminal
            early.append(number)

    # Before the child starts: a signal in between would end this process, and leave the child and the lease behind.
    former = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    former[signal.SIGINT] = signal.signal(signal.SIGINT, leave_to_child)
    try:
        try:
            child = subprocess.Popen(words, env={**os.environ, **environment}, stdout=output)
        except OSError as error:
            raise ConfigError(f"the command {words[0]!r} cannot be run: {error.strerror}") from error
        started.append(child)
        for number in early:
            child.send_signal(number)
        try:
            code = child.wait()
        except KeyboardInterrupt:
            # The time limit of this process, of which the child knows nothing; Ctrl-C does not come here.
            child.terminate()
            child.wait()
            raise
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
    return code if code >= 0 else _SIGNALLED - code
