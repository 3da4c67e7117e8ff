"""
What a shell offers when a word of a command line is completed: tables, instants, partitions, savepoints, leases.

Only from local tables: a key press must not wait for an object store. Whatever goes wrong, nothing is offered, because
an error here would be printed into the line that is being typed. Names with line ends and other characters that cannot
be shown are left out: shells take offers line by line, and what follows would be one of its own.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem, split_arg_string

from hudi_py.inspection.say import visible
from hudi_py.inspection.shell_quoting import LINE

if TYPE_CHECKING:
    from hudi_py.table import Table

_PROPERTIES: Final = ".hoodie/hoodie.properties"
_OFFERED_MAX: Final = 200  # more cannot be looked through, and a shell asks before it shows them
Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def tables(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Offer the tables in the folder that was typed; the shell's own completion of folders where there is none."""
    folder, start = os.path.split(begun)
    found = []
    with suppress(OSError):
        for entry in sorted(os.scandir(folder or os.curdir), key=lambda entry: entry.name):
            is_begun = entry.name.startswith(start) and entry.name.isprintable()
            if is_begun and os.path.isfile(os.path.join(entry.path, _PROPERTIES)):
                found.append(CompletionItem(os.path.join(folder, entry.name)))
    return found or [CompletionItem(begun, type="dir")]


def _of_table(offer: Callable[[Table], Iterator[tuple[str, str]]]) -> Completer:
    """Complete with what *offer* yields of the table that was typed: words, and what each is."""

    @functools.wraps(offer)
    def complete(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
        table = _typed_table(context)
        if table is None:
            return []
        from hudi_py.table import open_table

        found: list[CompletionItem] = []
        with suppress(Exception):
            for word, help_text in offer(open_table(table).read_only()):
                if word.startswith(begun) and word.isprintable():
                    found.append(CompletionItem(word, help=visible(help_text)))
                if len(found) == _OFFERED_MAX:
                    break
        return found

    return complete


def _typed_table(context: click.Context) -> str | None:
    """Return the local table in the line that is being typed."""
    typed = context.params.get("table")
    # Behind an option whose value is being typed, nothing was parsed; the words are left.
    words = [typed] if typed is not None else split_arg_string(os.environ.get(LINE) or os.environ.get("COMP_WORDS", ""))
    return next((word for word in words if os.path.isfile(os.path.join(word, _PROPERTIES))), None)


@_of_table
def instants(opened: Table) -> Iterator[tuple[str, str]]:
    """Newest first: what is wrong with a table is usually recent."""
    for instant in reversed(opened.timeline.instants):
        yield instant.requested_time, f"{instant.action.value} {instant.state.name.lower()}"


@_of_table
def partitions(opened: Table) -> Iterator[tuple[str, str]]:
    """In order of their paths."""
    for path in opened.partitions():
        yield path, ""


@_of_table
def savepoints(opened: Table) -> Iterator[tuple[str, str]]:
    """Names first, then instants, newest first."""
    found = opened.services.savepoint().savepoints()
    for instant, content in reversed(found):
        if content.name:
            yield content.name, instant.requested_time
    for instant, content in reversed(found):
        yield instant.requested_time, content.name or content.comments


@_of_table
def leases(opened: Table) -> Iterator[tuple[str, str]]:
    """Those that are in force, and those that have expired."""
    for lease in opened.leases():
        yield lease.id, f"{lease.holder} {lease.instant}"
