"""Options shared by all commands, and the exit codes of errors."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from hudi_py.errors import ConfigError, CorruptMetadata, HudiError
from hudi_py.inspection.failure import fail, fail_unexpectedly, forget_output, is_lost_output, wrap_json
from hudi_py.inspection.metrics_file import check_writable, is_collecting, measured
from hudi_py.inspection.say import say
from hudi_py.inspection.still_running import still_running
from hudi_py.inspection.time_limit import time_limit
from hudi_py.runtime.clock import SystemClock

if TYPE_CHECKING:
    from hudi_py.inspection.open_metrics import Sample
    from hudi_py.model.instant import Action
    from hudi_py.table import Table


MORE_TO_DO: Final = 7
"""Exit code, on request, of a run that one of its limits ended early."""
ONE_OF_MANY: Final = ContextVar("ONE_OF_MANY", default=False)
"""Whether the table is one of a run over many, some of which are of another kind than the command is for."""
_LEVELS: Final = ("warning", "info", "debug")


@attrs.frozen
class Common:
    """The values of the shared options in this call."""

    as_json: bool
    storage_options: dict[str, str]
    settings: dict[str, str]
    now: str | None
    measures: list[Sample] = attrs.field(factory=list)
    """What the command found and ``--metrics-file`` is to have, beside the timeline."""
    is_measured: bool = False
    log_options: tuple[str, ...] = ()
    """Those about log events and tracebacks, as they are given to another command."""
    heeded: list[str] = attrs.field(factory=list)
    """Has an entry once the command has asked for the time of ``--now``; copies with other settings share it."""

    def open(self, location: str) -> Table:
        """Open the table at *location* with the options of this call."""
        # Imported when a table is opened: help and wrong usage must not wait for the library to load.
        from hudi_py.table import open_table

        return open_table(location, storage_options=self.storage_options, settings=self.settings)

    def measure(self, samples: Callable[[datetime], Iterable[Sample]]) -> None:
        """Add what the command found to its metrics, if there are to be any; *samples* gets the current time."""
        if self.is_measured:
            self.measures.extend(samples(SystemClock().now()))

    def as_arguments(self) -> tuple[str, ...]:
        """Return the options that another command needs to see tables in the same way."""
        self.heeded.append("--now")
        found = [f"--conf={name}={value}" for name, value in self.settings.items()]
        found += [f"--storage-option={name}={value}" for name, value in self.storage_options.items()]
        return (*found, *(() if self.now is None else (f"--now={self.now}",)), *self.log_options)

    def planning_time(self, opened: Table) -> datetime | None:
        """Return the time given with ``--now``, in the table's time zone; None if it was not given."""
        if self.now is None:
            return None
        self.heeded.append("--now")
        from hudi_py.model.instant_time import parse_instant_time

        text = opened.resolve_time(self.now, exact=True)
        try:
            return parse_instant_time(text, opened.zone)
        except ValueError as error:
            raise ConfigError(f"--now {self.now} is not a date; give a date and time") from error

    def deletion_time(self, opened: Table, *, dry_run: bool) -> datetime | None:
        """As `planning_time`, for a command that deletes what is old by that time: it warns, unless it only looks."""
        now = self.planning_time(opened)
        # With a wrong time everything is deleted that is older than it.
        if now is not None and not dry_run:
            say(
                f"warning: planning as if it were {self.now} (--now); deleted files cannot be brought back",
                file=sys.stderr,
            )
        return now

    def looks_then(self, opened: Table, *, dry_run: bool) -> Table:
        """
        Return the table for a command that plans by its clock alone: for a dry run one that refuses changes, and whose
        clock stands at the time given with ``--now``.

        Raises:
            ConfigError: The time was given for a real run, which would delete by it; or it is no time.
        """
        if dry_run:
            return opened.rehearsal(self.planning_time(opened))
        if self.now is not None:
            raise ConfigError("--now is for looking only here; add --dry-run, or leave it out")
        return opened

    def open_to_change(self, location: str, *, dry_run: bool) -> Table:
        """
        Open the table for a single small change; for a dry run, with what would be changed kept in memory.

        Raises:
            ConfigError: The settings name an unknown lock provider, as a real run would be refused for.
        """
        opened = self.open(location)
        if not dry_run:
            return opened
        opened.rehearsal()
        return opened.rehearsed()

    @property
    def overlooks_now(self) -> bool:
        """Whether ``--now`` was given, and the command has not asked for it."""
        return self.now is not None and not self.heeded


dry_run_option: Final = click.option("--dry-run", is_flag=True, help="Show what would be changed; nothing is written.")


def tried(found: bool, *, dry_run: bool) -> dict[str, bool]:
    """What a dry run has in its JSON beside what a real one has: whether there is something to change."""
    return {"would_change": found} if dry_run else {}


def done(word: str, *, dry_run: bool) -> str:
    """What happened, as "released", in words that also tell a dry run."""
    return f"would be {word} (nothing was written)" if dry_run else word


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
        given: Name of each option, or words for several, to its value; what is false was not given, an empty text
            was.

    Raises:
        ConfigError: Two of them were given.
    """
    names = [name for name, value in given.items() if value or value == ""]
    if len(names) > 1:
        raise ConfigError(f"{' and '.join(names)} exclude each other; give one of them")


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Add the shared options to a command, and report errors in one or two lines and an exit code."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
    @click.option(
        "--json-envelope",
        is_flag=True,
        help='As --json, wrapped with the version of its form: {"schema_version", "command", "result"}.',
    )
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
        "--log-format",
        type=click.Choice(("text", "json")),
        default="text",
        envvar="HUDI_PY_LOG_FORMAT",
        help="Form of log events: text, or one JSON object per line (or HUDI_PY_LOG_FORMAT).",
    )
    @click.option("--log-json", is_flag=True, envvar="HUDI_PY_LOG_JSON", hidden=True)  # its name in earlier versions
    @click.option(
        "--timeout", metavar="SPAN", help="Stop after SPAN (30s, 15m, 2h) as Ctrl-C does, with exit code 124."
    )
    @click.option(
        "--metrics-file",
        metavar="FILE",
        help="Write what the run did, and what its table looks like, to FILE in the OpenMetrics text format.",
    )
    @functools.wraps(function)
    def wrapper(
        as_json: bool,
        json_envelope: bool,
        storage_option: tuple[str, ...],
        conf: tuple[str, ...],
        conf_file: str | None,
        allow_unknown_conf: bool,
        now: str | None,
        debug: bool,
        verbose: int,
        quiet: bool,
        log_level: str,
        log_format: str,
        log_json: bool,
        timeout: str | None,
        metrics_file: str | None,
        **arguments: Any,
    ) -> None:
        context = click.get_current_context()
        # Behind the name of the program, which is "python -m hudi_py" where it was started like that.
        name = context.command_path.removeprefix(context.find_root().command_path).strip()
        as_json = as_json or json_envelope
        if json_envelope:
            wrap_json(name)
        location = arguments.get("table")
        measures: list[Sample] = []
        is_measured = metrics_file is not None or is_collecting()
        level = _LEVELS[min(verbose, 2)] if verbose else ("error" if quiet else log_level)
        # Standard output is for the document alone, also with -v.
        is_json = log_json or log_format == "json"
        opens: list[Common] = []

        def look(moment: datetime) -> Iterator[Sample]:
            # Opened again, by a run whose settings were in order: the command has changed the table.
            for common in opens:
                from hudi_py.inspection.table_metrics import timeline_samples

                assert location is not None
                yield from timeline_samples(common.open(location).read_only(), location, moment)

        # Outermost, so that it learns the exit code of errors, too.
        with measured(metrics_file, name.removesuffix("-entry"), location, look, measures):
            try:
                settings = _settings(conf_file, pairs("--conf", conf))
                if allow_unknown_conf:
                    # As a setting, so that whatever opens the table later sees it as well.
                    settings |= {"hoodie_py.conf.allow.unknown": "true"}
                common = Common(
                    as_json, pairs("--storage-option", storage_option), settings, now, measures, is_measured,
                    _log_options(level, debug=debug, is_json=is_json),
                )  # fmt: skip
                opens.append(common)
                check_writable(metrics_file)
                from hudi_py.inspection.log_output import logging_to_stderr

                # The limit is outermost: it also counts what the others take to begin and to end.
                with (
                    time_limit(timeout),
                    logging_to_stderr(level, as_json=is_json),
                    still_running(name, is_wanted=not quiet),
                ):
                    function(common, **arguments)
                # Last, so that the warning stands below the output, where it is seen.
                _name_those_without_effect(pairs("--conf", conf))
                if common.overlooks_now:
                    say(f"hudi-py: --now has no effect on {name}", file=sys.stderr)
                sys.stdout.flush()  # so that a closed pipe raises here, and not when the interpreter exits
            # The reader has enough, as `head` has: no error, and nothing more to print.
            except BrokenPipeError:
                forget_output()
            except (click.exceptions.ClickException, click.exceptions.Exit, click.exceptions.Abort):
                raise
            except HudiError as error:
                # With --debug the traceback is wanted, and it has the same message.
                if debug:
                    raise
                fail(error, as_json=as_json)
            except Exception as error:
                # The output of one of many tables is kept in memory, and is never lost.
                if debug or (is_lost_output(error) and not ONE_OF_MANY.get()):
                    raise
                fail_unexpectedly(error, as_json=as_json)

    if function.__doc__ is not None:  # docstrings are raw, and click wants the character that the escape stands for
        wrapper.__doc__ = function.__doc__.replace("\\b\n", "\b\n")
    return wrapper


def _log_options(level: str, *, debug: bool, is_json: bool) -> tuple[str, ...]:
    # There is no level of that name: it is what -q means.
    shown = "-q" if level == "error" else f"--log-level={level}"
    return (shown, f"--log-format={'json' if is_json else 'text'}", *(("--debug",) if debug else ()))


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
