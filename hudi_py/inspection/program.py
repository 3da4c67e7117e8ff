"""The program as a whole: its streams, wrong usage, Ctrl-C and SIGTERM, and the command lines over many tables."""

from __future__ import annotations

import codecs
import io
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import click

from hudi_py.errors import HudiError
from hudi_py.inspection.failure import (
    WRAPPED,
    Failure,
    exit_with,
    fail,
    fail_without_output,
    forget_output,
    is_lost_output,
)
from hudi_py.inspection.say import say, show_traceback
from hudi_py.inspection.sentences import Sentences
from hudi_py.inspection.tables_options import asks_for_many
from hudi_py.inspection.termination import EXIT_CODE as TERMINATED
from hudi_py.inspection.termination import INTERRUPTED, Terminated, ended_by_sigterm
from hudi_py.inspection.time_limit import EXIT_CODE as TIMED_OUT
from hudi_py.inspection.time_limit import TimedOut
from hudi_py.runtime.clock import MONOTONIC


class Program(Sentences):
    """A group of commands that reports wrong usage in one line, like other errors."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command named in the arguments and exit with its exit code (in standalone mode)."""
        # Not in standalone mode: click would print errors in its own form, and exit with its own codes.
        run: Callable[..., Any] = super().main
        _replace_closed_streams()
        _escape_what_the_output_cannot_show()
        if "_HUDI_PY_COMPLETE" in os.environ:
            from hudi_py.inspection.shell_quoting import register

            register()
        if not standalone_mode:
            return run(*arguments, standalone_mode=False, **extra)
        sys.excepthook = show_traceback
        given = _given(arguments, extra)
        code: Any = 0
        try:
            with ended_by_sigterm():
                # These two have an option of the same name, and list the tables themselves.
                if asks_for_many(given) and given[0] not in ("fleet", "serve"):
                    from hudi_py.inspection.over_tables import run_over_tables

                    code = run_over_tables(self, given, MONOTONIC)
                else:
                    code = run(*arguments, standalone_mode=False, **extra)
                sys.stdout.flush()  # help and completion, too, fail here and not when the interpreter exits
        except BrokenPipeError:  # the reader has enough, as `head` has
            forget_output()
        except OSError as error:
            if "--debug" in given or not is_lost_output(error):
                raise
            fail_without_output(error)
        except HudiError as error:
            if "--debug" in given:
                raise
            fail(error, as_json=_wants_json(given))
        except click.UsageError as error:
            text = in_plain_words(error.format_message())
            if "\n" in text:  # no command was given: the text is the help
                error.show()
            else:
                names = error.ctx.command_path.removeprefix(error.ctx.find_root().command_path) if error.ctx else ""
                text, fix = text.removesuffix("."), f"see hudi-py{names} --help{_how_to_name(error)}"
                failure = Failure("UsageError", text, fix, error.exit_code)
                # "Did you mean 'timeline'?" is a sentence of its own.
                line = f"{text} {fix.capitalize()}" if text.endswith("?") else f"{text}; {fix}"
                exit_with(line, failure, as_json=_wants_json(given))
            raise SystemExit(error.exit_code) from None
        except (click.Abort, KeyboardInterrupt) as stop:
            _stopped(stop, as_json=_wants_json(given))
        raise SystemExit(code if isinstance(code, int) else 0)


def _how_to_name(error: click.UsageError) -> str:
    """How to give a table or partition whose name was taken for an option."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return ""
    has_names = any(isinstance(each, click.Argument) for each in error.ctx.command.params)
    return "; put -- before names that begin with a dash" if has_names else ""


def in_plain_words(text: str) -> str:
    """
    Say what click's texts name in Python's terms as a person would.

    ``'x' is not a valid integer range`` becomes ``'x' is not a whole number``, and ``0 is not in the range x>=1``
    becomes ``0 is not at least 1``.
    """
    text = re.sub(r"is not a valid int(?:eger)?(?: range)?\b", "is not a whole number", text)
    # Python reads no more digits than this into a number.
    text = re.sub(r"'[+-]?[0-9]{4301,}' is not a whole number", "the number has too many digits", text)
    text = re.sub(r"is not a valid float(?: range)?\b", "is not a number", text)
    text = re.sub(r"is not in the range x>=([-\d.]*\d)", r"is not at least \1", text)
    text = re.sub(r"is not in the range x>([-\d.]*\d)", r"is not above \1", text)
    text = re.sub(r"is not in the range x<=([-\d.]*\d)", r"is not at most \1", text)
    return re.sub(r"is not in the range ([-\d.]*\d)<(=?)x<(=?)([-\d.]*\d)", _between, text)


def _between(found: re.Match[str]) -> str:
    low, with_low, with_high, high = found.groups()
    return f"is not {'from' if with_low else 'above'} {low} {'to' if with_high else 'and below'} {high}"


def _wants_json(given: Sequence[str]) -> bool:
    return "--json" in given or WRAPPED in given


def _stopped(stop: BaseException, *, as_json: bool) -> NoReturn:
    """Say that the command was stopped by Ctrl-C, by SIGTERM or by its time limit, and exit."""
    # Click raises its own error, from that which it got.
    causes = (stop, stop.__cause__, stop.__context__)  # the last in click before 8.2
    limit = next((each for each in causes if isinstance(each, TimedOut)), None)
    fix = "a change that it had begun stays pending, and hudi-py recover TABLE shows it"
    if limit is None:
        say(f"hudi-py: stopped; {fix}", file=sys.stderr)
        is_terminated = any(isinstance(each, Terminated) for each in causes)
        raise SystemExit(TERMINATED if is_terminated else INTERRUPTED) from None
    text = f"stopped after {limit} (--timeout)"
    exit_with(f"{text}; {fix}", Failure("TimedOut", text, fix, TIMED_OUT), as_json=as_json)


def _given(arguments: tuple[Any, ...], extra: dict[str, Any]) -> list[str]:
    """Return the words of the command line; `click.Group.main` takes them as its first argument, if at all."""
    given = arguments[0] if arguments else extra.get("args")
    return list(sys.argv[1:] if given is None else given)


def _replace_closed_streams() -> None:
    """Replace streams that were closed before the start (``>&-``), for which Python has None, by the null device."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - for as long as the process lives


def _escape_what_the_output_cannot_show() -> None:
    """
    Print characters that the output's encoding does not have as JSON escapes.

    Partition values may contain any character, and not every terminal uses UTF-8. JSON documents stay valid this way.
    """
    codecs.register_error("hudi_py.escapes", _escaped)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="hudi_py.escapes")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
