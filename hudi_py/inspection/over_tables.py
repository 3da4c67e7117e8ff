"""``--tables`` in place of TABLE: finds the command, separates its options, prints one line for each table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

import attrs
import click

from hudi_py.config.parse import whole
from hudi_py.errors import ConfigError
from hudi_py.inspection.brief import brief
from hudi_py.inspection.failure import SCHEMA_VERSION, WRAPPED, forget_output
from hudi_py.inspection.fleet_budget import BUDGETS, Budget, budget_of
from hudi_py.inspection.given_once import refuse_repeated
from hudi_py.inspection.json_stream import json_text
from hudi_py.inspection.many_tables import SOME_FAILED, Outcome, Plan
from hudi_py.inspection.metrics_file import OPTION as METRICS
from hudi_py.inspection.metrics_file import check_writable, code_of, run_samples, write_metrics
from hudi_py.inspection.open_metrics import Sample
from hudi_py.inspection.options import MORE_TO_DO
from hudi_py.inspection.say import say, visible, visible_json
from hudi_py.inspection.table_lists import tables_of
from hudi_py.inspection.tables_options import OPTIONS, PARALLEL_DEFAULT, PLACEHOLDER, is_for_many
from hudi_py.model.words import counted
from hudi_py.runtime.clock import MONOTONIC, SystemClock

_WORDS: Final = {0: "ok", 3: "found", MORE_TO_DO: "more"}
_ONE_TOO_MANY: Final = "unexpected extra argument"
"""How click begins to say it, in every release."""

_TOLD: Final = frozenset(
    {"--json", "--json-envelope", "--debug", "--quiet", "--log-json", "--allow-unknown-conf", "--exit-code", "--codes"}
)
"""Flags that change what is told of a run, and not what it does."""
_ONE_FILE: Final = {"output": "-o", "list_to": "--list"}
"""Parameters of commands that name a file to write, and their options."""


def run_over_tables(
    group: click.Group,
    arguments: Sequence[str],
    seconds: Callable[[], float],
) -> int:
    """
    Run a command line with ``--tables`` and print its lines.

    Args:
        group: The program.
        arguments: The command line without the program's name.
        seconds: Clock for ``--within``.

    Returns:
        Exit code: 0, 6 if some tables failed, else 7 if some have more to do and were asked to tell.

    Raises:
        click.UsageError: The command does not take ``--tables``, or another argument is wrong.
        ConfigError: There are no tables, or an option has an invalid value.
    """
    names, command, rest = _find(group, list(arguments))
    try:
        return _run(names, command, rest, seconds)
    except click.UsageError as error:
        if command is not None and error.ctx is None:  # so that the message names the command's own help
            root = click.Context(group, info_name="hudi-py")
            error.ctx = click.Context(command, info_name=" ".join(names), parent=root)
        raise


def _run(names: list[str], command: click.Command | None, rest: list[str], seconds: Callable[[], float]) -> int:
    if command is None or not is_for_many(command):
        takers = "one table" if command is not None else "no --tables"
        raise click.UsageError(f"{' '.join(names) or 'hudi-py'} takes {takers}; leave --tables out")
    given, rest = _split(rest)
    if any(each == "--watch" or each.startswith("--watch=") for each in rest):
        raise click.UsageError("--watch is for one table, which it never leaves; start one process for each")
    head: dict[str, Any] = {}
    if WRAPPED in rest:
        # The line of a table is the wrapping; its document needs none.
        head = {"schema_version": SCHEMA_VERSION, "command": " ".join(names)}
        rest = ["--json" if word == WRAPPED else word for word in rest]
    # Before the first table: a misspelled option would otherwise fail once for each of them.
    checked = _checked(command, names, rest)
    for flag in (flag for name, flag in _ONE_FILE.items() if checked.get(name) is not None):
        raise click.UsageError(f"{flag} names one file, which each table would replace; run the command for one table")
    storage_options = _storage_options(checked)
    path = checked.get("metrics_file")
    # For the run as a whole: every table would replace the file of the one before.
    rest = _without(rest, [METRICS])
    budgets = tuple(budget_of(name, _amount(name, given[name]), command, checked) for name in BUDGETS if name in given)
    # Each share contains the limit for one table.
    rest = _without(rest, [each.flag for each in budgets])
    check_writable(path)
    started, samples, code = MONOTONIC(), list[Sample](), 1
    try:
        plan = _plan(names, given, rest, storage_options, seconds, budgets, measures=path is not None)
        plan = attrs.evolve(plan, kinds=_kinds(command, checked))
        code = _run_all(plan, head, samples, as_json="--json" in rest)
    except BaseException as error:
        code = code_of(error)
        raise
    finally:
        if path is not None:
            of_run = run_samples(" ".join(names), None, code, MONOTONIC() - started, SystemClock().now())
            write_metrics(path, [*samples, *of_run])
    return code


def _plan(
    names: Sequence[str],
    given: Mapping[str, str],
    rest: Sequence[str],
    storage_options: Mapping[str, str],
    seconds: Callable[[], float],
    budgets: tuple[Budget, ...],
    *,
    measures: bool,
) -> Plan:
    deadline = None if given.get("within") is None else seconds() + _span(given["within"])
    return Plan(
        command=tuple(names),
        arguments=tuple(rest),
        tables=tables_of(given["tables"], storage_options),
        parallel=_parallel(given.get("parallel")),
        journal=given.get("resume"),
        is_over=lambda: deadline is not None and seconds() > deadline,
        measures=measures,
        budgets=budgets,
    )


def _run_all(plan: Plan, head: Mapping[str, Any], samples: list[Sample], *, as_json: bool) -> int:
    """Run a plan, print its lines, add what was measured to *samples* and return the exit code."""
    told: set[str] = set()
    codes: list[int] = []
    failed = 0

    def tell(outcome: Outcome) -> None:
        nonlocal failed
        _print(outcome, head, told, as_json=as_json)
        # Of its document nothing is kept: there may be hundreds of tables.
        samples.extend(outcome.samples)
        codes.append(outcome.exit_code)
        failed += outcome.has_failed

    plan.run(tell)
    count, unfinished = len(codes), codes.count(MORE_TO_DO)
    skipped = len(plan.tables) - count
    words = [counted(count, "table"), f"{failed} failed"]
    words += [f"{unfinished} with more to do"] if unfinished else []
    say(", ".join([*words, *([f"{skipped} done before"] if skipped else [])]), file=sys.stderr)
    return SOME_FAILED if failed else MORE_TO_DO if unfinished else 0


def _find(group: click.Group, arguments: list[str]) -> tuple[list[str], click.Command | None, list[str]]:
    """Names of the command and its groups, the command, and the arguments behind them."""
    names: list[str] = []
    current: click.Command = group
    while isinstance(current, click.Group):
        if not arguments or arguments[0] not in current.commands:
            return names, None, arguments
        names.append(arguments[0])
        current, arguments = current.commands[arguments[0]], arguments[1:]
    return names, current, arguments


def _split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Our options and their values, and all other arguments."""
    given: dict[str, str] = {}
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        # Options of the command itself are passed on as they stand, unread.
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or name not in OPTIONS:
            rest.append(word)
            continue
        if not equals:
            following = next(words, None)
            if following is None:
                raise click.UsageError(f"Option '--{name}' requires an argument.")
            value = following
        # Unlike --conf these have one value, and the last one winning would hide a mistake.
        if name in given:
            raise click.UsageError(f"Option '--{name}' is given twice.")
        given[name] = value
    return given, rest


def _without(arguments: Sequence[str], options: Collection[str]) -> list[str]:
    """The arguments without some options that have values."""
    found: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in options:
            next(words, None)
        elif word.partition("=")[0] not in options:
            found.append(word)
    return found


def _amount(option: str, text: str) -> int:
    from hudi_py.inspection.clean_options import size

    if option == "total-bytes":
        return size(text)
    return _count(option, text, "files")


def _count(option: str, text: str, what: str) -> int:
    try:
        return whole(1)(text)
    except ValueError as error:
        raise ConfigError(f"--{option} {text} is not a number of {what}; give {error}") from None


def _checked(command: click.Command, names: Sequence[str], rest: Sequence[str]) -> dict[str, Any]:
    """Parse the arguments once with a table in its place, so that wrong usage ends before the first table."""
    # A parent of the same name, so that messages read as those of the command alone.
    parent = click.Context(click.Group("hudi-py"), info_name="hudi-py")
    refuse_repeated(command, " ".join(names), [PLACEHOLDER, *rest], parent)
    try:
        context = command.make_context(" ".join(names), [PLACEHOLDER, *rest], parent=parent)
    except click.UsageError as error:
        if _ONE_TOO_MANY in error.message:
            text = f"{error.message.removesuffix('.')}: give TABLE or --tables, not both"
            raise click.UsageError(text, ctx=error.ctx) from None
        raise
    with context:
        return dict(context.params)


def _kinds(command: click.Command, checked: Mapping[str, Any]) -> tuple[str, ...]:
    """The flags that are given and make another kind of run."""
    flags = [each for each in command.params if isinstance(each, click.Option) and each.is_flag]
    given = (max(each.opts, key=len) for each in flags if checked.get(each.name) is True)
    return tuple(sorted(set(given) - _TOLD))


def _storage_options(params: dict[str, Any]) -> dict[str, str]:
    from hudi_py.inspection.options import pairs

    return pairs("--storage-option", tuple(params.get("storage_option") or ()))


def _parallel(text: str | None) -> int:
    return PARALLEL_DEFAULT if text is None else _count("parallel", text, "tables")


def _span(text: str) -> float:
    from hudi_py.model.instant_time import parse_duration

    span = parse_duration(text)
    if span is None:
        raise ConfigError(f"--within {text} is not a span of time; give one such as 90m or 6h")
    return span.total_seconds()


def _print(outcome: Outcome, head: Mapping[str, Any], told: set[str], *, as_json: bool) -> None:
    """Print the line of a table as soon as it is done, and what it warned of that no table before it did."""
    outcome.tell_notes(told)
    if as_json:
        line = visible_json(json_text({**head, **outcome.entry}, ensure_ascii=False))
    else:
        # Exit code 3 of a check is a result, and no failure.
        word = "failed" if outcome.has_failed else _WORDS[outcome.exit_code]
        line = visible(f"{word:<7} {outcome.table}  {brief(outcome.document)}".rstrip())
    try:
        sys.stdout.write(line + "\n")
        # At once, so that a program that reads the lines sees how far the run is.
        sys.stdout.flush()
    except BrokenPipeError:
        # The work is for the tables, not for who reads about it: the others get theirs, and the exit code tells.
        forget_output()
