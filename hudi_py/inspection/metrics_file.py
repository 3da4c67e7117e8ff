"""``--metrics-file``: what a run did and what its tables look like, for a collector that reads files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final

import attrs
import click

from hudi_py.errors import ConfigError, HudiError
from hudi_py.inspection.open_metrics import Sample, metrics_text, samples_in
from hudi_py.inspection.output_file import is_stream, table_around, whole_file
from hudi_py.inspection.say import say
from hudi_py.inspection.termination import EXIT_CODE as TERMINATED
from hudi_py.inspection.termination import INTERRUPTED, Terminated
from hudi_py.inspection.time_limit import EXIT_CODE as TIMED_OUT
from hudi_py.inspection.time_limit import TimedOut
from hudi_py.runtime.clock import MONOTONIC, SystemClock

OPTION: Final = "--metrics-file"
_SUCCESS: Final = "hudi_py_command_success_timestamp_seconds"
_CODE: Final = "hudi_py_command_exit_code"
# Findings of a check (3) and work that is left over (7) are results, not failures.
_SUCCEEDED: Final = frozenset({0, 3, 7})


@attrs.define
class Collected:
    """What is known of one run of a command: `samples` of its table."""

    samples: list[Sample] = attrs.field(factory=list)


_collecting: list[Collected] = []
"""Where samples go while a command runs as one of many; the innermost is the last."""


@contextmanager
def collected() -> Iterator[Collected]:
    """Collect what the commands of the body measure, in place of a file."""
    found = Collected()
    _collecting.append(found)
    try:
        yield found
    finally:
        _collecting.pop()


def is_collecting() -> bool:
    """Return whether a command that runs now is measured as one of many."""
    return bool(_collecting)


@contextmanager
def measured(
    path: str | None,
    command: str,
    location: str | None,
    look: Callable[[datetime], Iterable[Sample]],
    known: Iterable[Sample],
) -> Iterator[None]:
    """
    Measure the body, a command, and write or collect what there is to say, whether it succeeds or not.

    Args:
        path: Given with ``--metrics-file``; None for none.
        command: Name of the command.
        location: Its table; None if it has none.
        look: Returns what the table shows after the command.
        known: What the command itself found, read at the end.
    """
    if path is None and not _collecting:
        yield
        return
    started = MONOTONIC()
    code = 1
    try:
        yield
        code = 0
    except BaseException as error:
        code = code_of(error)
        raise
    finally:
        now = SystemClock().now()
        samples = list(known)
        if location is not None:
            try:
                samples += look(now)
            # A table that cannot be opened must not hide the exit code of the command, which alarms need most.
            except HudiError:
                samples.append(Sample("hudi_py_table_up", {"table": location}, 0))
        samples += run_samples(command, location, code, MONOTONIC() - started, now)
        if path is None:
            _collecting[-1].samples += samples
        else:
            write_metrics(path, samples)


def run_samples(command: str, location: str | None, code: int, seconds: float, now: datetime) -> Iterator[Sample]:
    """
    Yield what there is to say of a run.

    Args:
        command: Name of the command.
        location: Its table; None if it has none, or many.
        code: Its exit code.
        seconds: How long it took.
        now: When it ended.
    """
    labels = {"command": command, **({} if location is None else {"table": location})}
    yield Sample(_CODE, labels, code)
    yield Sample("hudi_py_command_duration_seconds", labels, seconds)
    yield Sample("hudi_py_command_timestamp_seconds", labels, now.timestamp())
    if code in _SUCCEEDED:
        yield Sample(_SUCCESS, labels, now.timestamp())


def write_metrics(path: str, samples: list[Sample]) -> None:
    """
    Replace the file at once; a file that cannot be written is a warning, because the work is done.

    The time of the last success stays in the file when a run fails: it is what alarms are about.
    """
    if table_around(path) is not None:  # refused before the work began, and that is measured, too
        return
    try:
        text = metrics_text([*_former_successes(path, samples), *samples])
        # Written aside and renamed: a collector that reads meanwhile must not see half a file.
        with whole_file(path) as file:
            file.write(text.encode())
    except ConfigError as error:
        say(f"hudi-py: {OPTION}: {str(error).removeprefix('-o ')}", file=sys.stderr)


def _former_successes(path: str, samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield the times of successes in the file of the last run, for the commands and tables of this one."""
    ran = [sample.labels for sample in samples if sample.family == _CODE]
    if is_stream(path):  # reading a pipe would wait for somebody who writes
        return
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            text = file.read()
    except OSError:
        return
    # Only of the same commands and tables: those that run no more would look alive for ever.
    yield from (sample for sample in samples_in(text, _SUCCESS) if sample.labels in ran)


def code_of(error: BaseException) -> int:
    """Return the exit code of a command that ended with an error."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, TimedOut):
        return TIMED_OUT
    if isinstance(error, Terminated):
        return TERMINATED
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    return error.exit_code if isinstance(error, (HudiError, click.ClickException)) else 1


def check_writable(path: str | None) -> None:
    """
    Refuse, before the work begins, a metrics file inside of a table, or in a folder that does not exist.

    Raises:
        ConfigError: It would be among the files of a table, one of which it may replace; or there is no such folder.
    """
    folder = None if path is None else os.path.dirname(path) or os.curdir
    if folder is not None and not os.path.isdir(folder):
        raise ConfigError(f"{OPTION} {path}: there is no folder {folder}")
    if path is not None and table_around(path) is not None:
        raise ConfigError(f"{OPTION} {path}: this is inside a table and could replace one of its files")
