"""Groups of commands whose help has whole sentences; click would cut them off, however wide the terminal is."""

from __future__ import annotations

import click


class Sentences(click.Group):
    """A group that says what each of its commands does to the end of the sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        commands = {name: self.commands[name] for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(each)) for name, each in commands.items() if not each.hidden])


def _first_sentence(command: click.Command) -> str:
    # Examples may be part of it; broken between two lines, an option could not be read.
    text, example, _ = command.get_short_help_str(limit=1000).partition(": --")
    return f"{text}." if example else text
