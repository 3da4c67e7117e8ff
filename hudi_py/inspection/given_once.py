"""Refuses an option with one value that is given twice, of which the last would count and nothing would tell."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import click


def refuse_repeated(command: click.Command, name: str, arguments: Sequence[str], parent: click.Context | None) -> None:
    """
    Check that each option of one value has one.

    Args:
        command: The command.
        name: How it was called.
        arguments: What stands behind its name.
        parent: Context of its group.

    Raises:
        click.UsageError: An option was given twice with different values. The same value twice is harmless, as scripts
            add options of their own.
    """
    context = click.Context(command, info_name=name, parent=parent, **command.context_settings)
    single = [each for each in command.params if isinstance(each, click.Option) and _has_one_value(each)]
    lists = [copy.copy(each) for each in single]
    for each in lists:
        each.multiple = True  # the parser then keeps all values; by itself it forgets all but the last
    others = [each for each in command.params if each not in single]
    try:
        values, _, _ = click.Command(name, params=[*lists, *others]).make_parser(context).parse_args([*arguments])
    except click.UsageError:
        return  # the command itself finds the same, and says it
    for each in single:
        if len(set(values.get(each.name or "") or ())) > 1:
            option = max(each.opts, key=len)
            raise click.UsageError(f"Option '{option}' is given twice with different values; keep one.", ctx=context)


def _has_one_value(option: click.Option) -> bool:
    return not (option.is_flag or option.count or option.multiple)
