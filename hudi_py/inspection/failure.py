"""Prints JSON documents, and errors in one line or as a document of their own, with their exit codes."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, Final, NoReturn

import attrs
import click

from hudi_py.errors import HudiError
from hudi_py.inspection.json_stream import json_chunks, json_text
from hudi_py.inspection.say import say, visible_json

_BEGUN: Final = "hudi_py.json.begun"
"""Key in the context of a command: printing of its JSON document has begun."""
_ENVELOPE: Final = "hudi_py.json.envelope"
"""Key in the context of a command: its document is wrapped; the value is the command's name."""
WRAPPED: Final = "--json-envelope"
"""The option that asks for the wrapping."""
SCHEMA_VERSION: Final = 1
"""Of all JSON documents. It grows when a key goes or changes its meaning, not when one is added."""


_LOST: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})
"""Error numbers of a standard output that takes no more."""


@attrs.frozen
class Failure:
    """An error as ``--json`` prints it."""

    kind: str
    message: str
    fix: str
    exit_code: int


def print_json(document: Any) -> None:
    """Print a JSON document to standard output."""
    context = click.get_current_context(silent=True)
    if context is not None:
        # Before the first byte: an error in the middle must not append a second document.
        context.meta[_BEGUN] = True
    sys.stdout.writelines(map(visible_json, json_chunks(_enveloped(document, context))))
    sys.stdout.write("\n")


def print_json_line(document: Any) -> None:
    """Print one of several JSON documents, on a line of its own and at once, for a program that follows them."""
    document = _enveloped(document, click.get_current_context(silent=True))
    sys.stdout.write(visible_json(json_text(document, ensure_ascii=False)) + "\n")
    sys.stdout.flush()


def wrap_json(command: str) -> None:
    """Wrap the document of the current command: ``{"schema_version", "command", "result"}``, or with ``error``."""
    click.get_current_context().meta[_ENVELOPE] = command


def _enveloped(document: Any, context: click.Context | None) -> Any:
    """The document, wrapped if the command was asked for that."""
    if context is None or _ENVELOPE not in context.meta:
        return document
    inner = document if _is_error(document) else {"result": document}
    return {"schema_version": SCHEMA_VERSION, "command": context.meta[_ENVELOPE], **inner}


def _is_error(document: Any) -> bool:
    return isinstance(document, dict) and set(document) == {"error"}


def fail(error: HudiError, *, as_json: bool) -> NoReturn:
    """Print the error and exit with its exit code."""
    exit_with(_sentence(error), _failure(error), as_json=as_json)


def tell(error: Exception, *, as_json: bool) -> int:
    """Print the error of one of several runs, which does not end the others; its exit code."""
    failure = failure_of(error)
    line = _sentence(error) if isinstance(error, HudiError) else _unexpected(error)[0]
    say(f"hudi-py: {line}", file=sys.stderr)
    if as_json:
        print_json_line({"error": attrs.asdict(failure)})
    return failure.exit_code


def failure_of(error: Exception) -> Failure:
    """An error as ``--json`` prints it."""
    return _failure(error) if isinstance(error, HudiError) else _unexpected(error)[1]


def _sentence(error: HudiError) -> str:
    """What is wrong, and what to do. Its kind is for programs."""
    text = str(error)
    return text if text.endswith(error.fix) else f"{text}; {error.fix}"


def _failure(error: HudiError) -> Failure:
    return Failure(type(error).__name__, str(error), error.fix, error.exit_code)


def fail_unexpectedly(error: Exception, *, as_json: bool) -> NoReturn:
    """Print an unexpected error in one line and exit with code 1."""
    line, failure = _unexpected(error)
    exit_with(line, failure, as_json=as_json)


def _unexpected(error: Exception) -> tuple[str, Failure]:
    """The line that says what happened, and the same for programs."""
    kind = type(error).__name__
    text = f"unexpected {kind}: {' '.join(str(error).split())}"
    fix = "--debug shows where"
    return f"{text}; {fix}", Failure(kind, text, fix, 1)


def is_lost_output(error: BaseException) -> bool:
    """Whether an error is that of standard output on a full disk: a write to a stream that has no name."""
    return isinstance(error, OSError) and error.filename is None and error.errno in _LOST


def fail_without_output(error: OSError) -> NoReturn:
    """Say that standard output could not be written, and exit with code 1."""
    forget_output()
    text = f"the output could not be written ({error.strerror}); what the command did stands"
    exit_with(text, Failure("OutputLost", text, "", 1), as_json=False)


def forget_output() -> None:
    """Discard further output, also what is buffered, which would fail again when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_with(line: str, failure: Failure, *, as_json: bool) -> NoReturn:
    """Print an error, on stdout too if that has no document yet and *as_json* asks for one, and exit."""
    say(f"hudi-py: {line}", file=sys.stderr)
    context = click.get_current_context(silent=True)
    if as_json and not (context is not None and context.meta.get(_BEGUN)):  # stdout holds one document, never two
        print_json({"error": attrs.asdict(failure)})
    raise SystemExit(failure.exit_code)
