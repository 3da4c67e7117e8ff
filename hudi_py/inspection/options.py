"""Options shared by all commands, and the exit codes of errors."""

from __future__ import annotations

import codecs
import functools
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NoReturn

import attrs
import click

from hudi_py.errors import ConfigError, CorruptMetadata, HudiError
from hudi_py.inspection.json_stream import json_chunks
from hudi_py.inspection.over_tables import asks_for_many, run_over_tables
from hudi_py.inspection.say import say, show_traceback, visible_json
from hudi_py.runtime.clock import MONOTONIC

if TYPE_CHECKING:
    from hudi_py.model.instant import Action
    from hudi_py.table import Table


INTERRUPTED: Final = 130
"""Exit code after Ctrl-C: 128 and the number of the signal, as shells report it."""
_LEVELS: Final = ("warning", "info", "debug")
_BEGUN: Final = "hudi_py.json.begun"
"""Key in the context of a command: printing of its JSON document has begun."""


@attrs.frozen
class Common:
    """The values of the shared options in this call."""

    as_json: bool
    storage_options: dict[str, str]
    settings: dict[str, str]
    now: str | None

    def open(self, location: str) -> Table:
        """Open the table at *location* with the options of this call."""
        # Imported when a table is opened: help and wrong usage must not wait for the library to load.
        from hudi_py.table import open_table

        return open_table(location, storage_options=self.storage_options, settings=self.settings)

    def as_arguments(self) -> tuple[str, ...]:
        """Return the options that another command needs to see tables in the same way."""
        found = [f"--conf={name}={value}" for name, value in self.settings.items()]
        found += [f"--storage-option={name}={value}" for name, value in self.storage_options.items()]
        return (*found, *(() if self.now is None else (f"--now={self.now}",)))

    def planning_time(self, opened: Table) -> datetime | None:
        """Return the time given with ``--now``, in the table's time zone; None if it was not given."""
        if self.now is None:
            return None
        from hudi_py.model.instant_time import parse_instant_time

        text = opened.resolve_time(self.now)
        try:
            return parse_instant_time(text, opened.zone)
        except ValueError as error:
            raise ConfigError(f"--now {self.now} is not a date; give a date and time") from error


def pairs(option: str, values: tuple[str, ...]) -> dict[str, str]:
    """Parse ``KEY=VALUE`` options to a mapping. Error messages do not repeat values: they may be secrets."""
    result: dict[str, str] = {}
    for number, value in enumerate(values, 1):
        key, equals, text = value.partition("=")
        key = key.strip()
        if not equals or not key:
            raise ConfigError(f"{option} number {number} is not of the form KEY=VALUE")
        # The same value twice is harmless, as scripts add options of their own.
        if result.get(key, text) != text:
            raise ConfigError(f"{option} {key} is given twice with different values; keep one")
        result[key] = text
    return result


def action_named(name: str) -> Action:
    """Return the action that ``--action`` names."""
    from hudi_py.model.instant import Action

    try:
        return Action(name.lower())
    except ValueError as error:
        names = ", ".join(known.value for known in Action)
        raise ConfigError(f"--action {name}: unknown action; use one of {names}") from error


def at_most_one(given: Mapping[str, object]) -> None:
    """
    Refuse options that exclude each other.

    Args:
        given: Name of each option, or words for several, to its value; what is false was not given.

    Raises:
        ConfigError: Two of them were given.
    """
    names = [name for name, value in given.items() if value]
    if len(names) > 1:
        raise ConfigError(f"{' and '.join(names)} exclude each other; give one of them")


def print_json(document: Any) -> None:
    """Print a JSON document to standard output."""
    context = click.get_current_context(silent=True)
    if context is not None:  # before the first byte: an error in the middle must not append a second document
        context.meta[_BEGUN] = True
    sys.stdout.writelines(map(visible_json, json_chunks(document)))
    sys.stdout.write("\n")


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command, and report errors in one or two lines and an exit code."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
    @click.option(
        "--storage-option",
        "storage_option",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of the storage library (credentials, endpoint, ...). Repeatable.",
    )
    @click.option(
        "--conf", multiple=True, metavar="KEY=VALUE", help="Setting of Hudi, under its old or new name. Repeatable."
    )
    @click.option("--conf-file", type=click.Path(), help="Properties file with settings of Hudi.")
    @click.option("--allow-unknown-conf", is_flag=True, help="Ignore unknown settings; see docs/settings.md.")
    @click.option("--now", metavar="TIME", help="Plan as if it were this time.")
    @click.option("--debug", is_flag=True, help="Show tracebacks of errors.")
    @click.option("-v", "--verbose", count=True, help="Show log events of level info; twice: debug.")
    @click.option("-q", "--quiet", is_flag=True, help="Show no warnings of the log.")
    @click.option(
        "--log-level",
        type=click.Choice(("debug", "info", "warning")),
        default="warning",
        envvar="HUDI_PY_LOG_LEVEL",
        help="Lowest level of log events shown on stderr (or HUDI_PY_LOG_LEVEL).",
    )
    @click.option(
        "--log-json", is_flag=True, envvar="HUDI_PY_LOG_JSON", help="Log as JSON lines (or HUDI_PY_LOG_JSON=1)."
    )
    @functools.wraps(function)
    def wrapper(
        as_json: bool,
        storage_option: tuple[str, ...],
        conf: tuple[str, ...],
        conf_file: str | None,
        allow_unknown_conf: bool,
        now: str | None,
        debug: bool,
        verbose: int,
        quiet: bool,
        log_level: str,
        log_json: bool,
        **arguments: Any,
    ) -> None:
        try:
            settings = _settings(conf_file, pairs("--conf", conf))
            if allow_unknown_conf:
                # As a setting, so that whatever opens the table later sees it as well.
                settings |= {"hoodie_py.conf.allow.unknown": "true"}
            common = Common(as_json, pairs("--storage-option", storage_option), settings, now)
            from hudi_py.inspection.log_output import logging_to_stderr

            level = _LEVELS[min(verbose, 2)] if verbose else ("error" if quiet else log_level)
            # Standard output is for the document alone, also with -v.
            with logging_to_stderr(level, as_json=log_json):
                function(common, **arguments)
            # Last, so that the warning stands below the output, where it is seen.
            _name_those_without_effect(pairs("--conf", conf))
            sys.stdout.flush()  # so that a closed pipe raises here, and not when the interpreter exits
        # The reader has enough, as `head` has: no error, and nothing more to print.
        except BrokenPipeError:
            _forget_output()
        except (click.exceptions.ClickException, click.exceptions.Exit, click.exceptions.Abort):
            raise
        except HudiError as error:
            # With --debug the traceback is wanted, and it has the same message.
            if debug:
                raise
            fail(error, as_json=as_json)
        except Exception as error:
            if debug:
                raise
            fail_unexpectedly(error, as_json=as_json)

    if function.__doc__ is not None:  # docstrings are raw, and click wants the character that the escape stands for
        wrapper.__doc__ = function.__doc__.replace("\\b\n", "\b\n")
    return wrapper


_USES: Final = {
    "clean": "CLEAN", "explain": "CLEAN", "du": "CLEAN", "simulate": "CLEAN", "doctor": "WRITE SERVICES",
    "fleet": "WRITE SERVICES", "report": "WRITE SERVICES", "serve": "WRITE SERVICES",
    "read": "READ", "savepoint": "SAVEPOINT", "tag": "SAVEPOINT", "rollback": "ROLLBACK",
    "lease": "READ", "consumer": "READ",
    "restore": "ROLLBACK", "recover": "ROLLBACK CLEAN", "archive": "ARCHIVE",
    "orphans": "CLEAN ROLLBACK", "undo": "CLEAN ROLLBACK", "maintain": "SERVICES", "cluster": "REWRITE",
    "compact": "REWRITE",
    **dict.fromkeys(("write", "delete", "update", "merge", "drop-partition"), "WRITE SERVICES"),
}  # fmt: skip
"""Command to the names of its `Use` members; every command also has ``LOOK``."""
_TAKEN: Final = {"write": ("hoodie.datasource.write.operation",)}
"""Command to settings that nothing else takes: they stand for an option of it."""


def _name_those_without_effect(given: Iterable[str]) -> None:
    """Warn on stderr about settings given with ``--conf`` that have no effect on this command."""
    if not given:
        return
    from hudi_py.config.effects import without_effect
    from hudi_py.config.uses import Use

    context = click.get_current_context()
    # Up to the command itself: a subcommand has the settings of its group.
    while context.parent is not None and context.parent.parent is not None:
        context = context.parent
    command = context.info_name or ""
    use = Use.LOOK
    for name in _USES.get(command, "").split():
        use |= Use[name]
    taken = _TAKEN.get(command, ())
    for name, reason in without_effect([each for each in given if each not in taken], use):
        say(f"hudi-py: {name} has no effect on {command}: {reason}", file=sys.stderr)


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


class Program(click.Group):
    """A group of commands that reports wrong usage in one line, like other errors."""

    def main(self, *arguments: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run the command named in the arguments and exit with its exit code (in standalone mode)."""
        # Not in standalone mode: click would print errors in its own form, and exit with its own codes.
        run: Callable[..., Any] = super().main
        _replace_closed_streams()
        _escape_what_the_output_cannot_show()
        if not standalone_mode:
            return run(*arguments, standalone_mode=False, **extra)
        sys.excepthook = show_traceback
        given = _given(arguments, extra)
        code: Any
        try:
            # These two have an option of the same name, and list the tables themselves.
            if asks_for_many(given) and given[0] not in ("fleet", "serve"):
                code = run_over_tables(self, given, MONOTONIC)
            else:
                code = run(*arguments, standalone_mode=False, **extra)
        except HudiError as error:
            if "--debug" in given:
                raise
            fail(error, as_json="--json" in given)
        except click.UsageError as error:
            text = error.format_message()
            if "\n" in text:  # no command was given: the text is the help
                error.show()
            else:
                names = error.ctx.command_path.removeprefix(error.ctx.find_root().command_path) if error.ctx else ""
                text, fix = text.removesuffix("."), f"see hudi-py{names} --help"
                failure = Failure("UsageError", text, fix, error.exit_code)
                _exit(f"{text}; {fix}", failure, as_json="--json" in given)
            raise SystemExit(error.exit_code) from None
        except (click.Abort, KeyboardInterrupt):
            say("hudi-py: stopped; what was begun stays pending, and hudi-py recover TABLE shows it", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None
        raise SystemExit(code if isinstance(code, int) else 0)


def _given(arguments: tuple[Any, ...], extra: dict[str, Any]) -> list[str]:
    """Return the words of the command line; `click.Group.main` takes them as its first argument, if at all."""
    given = arguments[0] if arguments else extra.get("args")
    return list(sys.argv[1:] if given is None else given)


def fail(error: HudiError, *, as_json: bool) -> NoReturn:
    """Print the error and exit with its exit code."""
    kind = type(error).__name__
    _exit(f"{kind}: {error}", Failure(kind, str(error), error.fix, error.exit_code), as_json=as_json)


def fail_unexpectedly(error: Exception, *, as_json: bool) -> NoReturn:
    """Print an unexpected error in one line and exit with code 1."""
    kind = type(error).__name__
    text = f"unexpected {kind}: {' '.join(str(error).split())}"
    fix = "--debug shows where"
    _exit(f"{text}; {fix}", Failure(kind, text, fix, 1), as_json=as_json)


@attrs.frozen
class Failure:
    """An error as ``--json`` prints it."""

    kind: str
    message: str
    fix: str
    exit_code: int


def _exit(line: str, failure: Failure, *, as_json: bool) -> NoReturn:
    say(f"hudi-py: {line}", file=sys.stderr)
    context = click.get_current_context(silent=True)
    if as_json and not (context is not None and context.meta.get(_BEGUN)):  # stdout holds one document, never two
        print_json({"error": attrs.asdict(failure)})
    raise SystemExit(failure.exit_code)


def _forget_output() -> None:
    """Discard further output after the reader closed the pipe, as ``head`` does. This is not an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _settings(path: str | None, given: dict[str, str]) -> dict[str, str]:
    """Merge settings of the file and the command line, which wins even if the file uses another name of the setting."""
    if path is None:
        return given
    from hudi_py.config.keys import ALL_KEYS
    from hudi_py.config.settings import Settings

    # Names are resolved on both sides: the file may use the old name, and the command line the new one.
    over = Settings(given)
    settings = Settings(_file_settings(path))
    # By key, not by name: two names of one setting with different values would be an error below.
    for key in ALL_KEYS:
        if key in over:
            settings = settings.without(key)
    return {**settings.as_dict(), **given}


def _file_settings(path: str) -> dict[str, str]:
    from hudi_py.formats.properties import parse_properties

    try:
        with open(path, "rb") as file:
            return parse_properties(file.read(), path)
    except OSError as error:
        raise ConfigError(f"--conf-file {path}: {error.strerror}") from error
    except CorruptMetadata as error:
        raise ConfigError(f"--conf-file {error}") from error
