"""``--tables`` and what belongs to it: which commands take these options, and their help."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

import click

from hudi_py.inspection.fleet_budget import BUDGETS

PARALLEL_DEFAULT: Final = 4
PLACEHOLDER: Final = "TABLE"
_ONE_TABLE: Final = frozenset(
    {
        *("write", "delete", "update", "merge", "drop-partition", "restore", "rollback", "report", "serve", "fleet"),
        *("renew", "release", "run", "approve"),
    }
)
"""Commands whose arguments are about one table, so that running them on many would rarely be meant."""
_TABLES_HELP: Final = (
    "Many tables instead of TABLE: a file with one location per line, a folder, a pattern, a URL below which tables "
    "lie, or glue://DATABASE. Prints one line for each table; exit code 6 if some failed."
)
_HELPS: Final = (
    ("tables", "SOURCE", None, _TABLES_HELP),
    (
        "parallel",
        "N",
        click.IntRange(min=1),
        f"With --tables: number of tables at the same time. Default {PARALLEL_DEFAULT}.",
    ),
    ("resume", "FILE", None, "With --tables: leave out the tables that FILE names, and add to it those that are done."),
    ("within", "SPAN", None, "With --tables: start no further table after SPAN (90m, 6h)."),
)
_BUDGET_HELPS: Final = {
    "total-files": (
        "N",
        None,
        "With --tables: stop at N files in all tables together, each within its share as with a limit of its own.",
    ),
    "total-bytes": (
        "SIZE",
        None,
        "With --tables: stop at this much, deleted or rewritten, in all tables together: 500GB. As --total-files.",
    ),
}
OPTIONS: Final = (*(name for name, *_ in _HELPS), *_BUDGET_HELPS)


def is_for_many(command: click.Command) -> bool:
    """Whether a command takes ``--tables``."""
    first = next((param for param in command.params if isinstance(param, click.Argument)), None)
    return first is not None and first.name == "table" and command.name not in _ONE_TABLE


def add_options(command: click.Command) -> None:
    """Add ``--tables`` and what belongs to it to a command that takes it, and to those of a group."""
    if isinstance(command, click.Group):
        if command.name not in _ONE_TABLE:
            for each in command.commands.values():
                add_options(each)
        return
    if not is_for_many(command):
        return
    helps = [*_HELPS, *((name, *words) for name, words in _BUDGET_HELPS.items() if command.name in BUDGETS[name])]
    for name, metavar, kind, text in helps:
        command.params.append(
            click.Option(
                [f"--{name}"], metavar=metavar, type=kind, help=text, expose_value=False, callback=_only_with_tables
            )
        )


def _only_with_tables(context: click.Context, option: click.Parameter, value: object) -> None:
    """
    Refuse an option that is for many tables where a command has one: a budget would be passed over in silence.

    With ``--tables`` a command never gets them, because the run over many tables keeps them to itself.
    """
    if value is not None and not context.resilient_parsing and option.name != "tables":
        raise click.UsageError(f"Option '{option.opts[0]}' is for many tables; give it with --tables, not with TABLE.")


def asks_for_many(arguments: Iterable[str]) -> bool:
    """Whether a command line has ``--tables``; behind ``--`` words are no options, but those of another command."""
    own = itertools.takewhile(lambda argument: argument != "--", arguments)
    return any(argument == "--tables" or argument.startswith("--tables=") for argument in own)
