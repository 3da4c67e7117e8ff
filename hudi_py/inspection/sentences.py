"""
Groups of commands. Their help has whole sentences, which click would cut off, however wide the terminal is; and an
option with one value that is given twice is wrong usage in them.
"""

from __future__ import annotations

import click

from hudi_py.inspection.given_once import refuse_repeated


class Sentences(click.Group):
    """A group that says what each of its commands does to the end of the sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = {name: self.commands[name] for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(each)) for name, each in commands.items() if not each.hidden])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name."""
        name, command, rest = super().resolve_command(ctx, args)
        # A shell that completes words has only the beginning of a command line.
        if name is not None and command is not None and not ctx.resilient_parsing:
            refuse_repeated(command, name, rest, ctx)
        return name, command, rest


def _first_sentence(command: click.Command) -> str:
    # Examples may be part of it; broken between two lines, an option could not be read.
    text, example, _ = command.get_short_help_str(limit=1000).partition(": --")
    return f"{text}." if example else text
