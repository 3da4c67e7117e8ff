"""An option with one value has one: a second value, which would replace the first in silence, is wrong usage."""

from __future__ import annotations

import click
import pytest

from hudi_py.inspection.cli import main
from hudi_py.inspection.tables_options import OPTIONS, is_for_many


def walk(group, words=()):
    """All commands with the words that name them."""
    for name, each in group.commands.items():
        if isinstance(each, click.Group):
            yield from walk(each, (*words, name))
        else:
            yield (*words, name), each


COMMANDS = dict(walk(main))


def takes_one_value(param):
    """Whether an option has a value, and one alone."""
    return isinstance(param, click.Option) and not (param.is_flag or param.count or param.multiple)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_second_value_is_refused(run, words):
    """Before anything else is looked at, whatever the option is about."""
    for param in filter(takes_one_value, COMMANDS[words].params):
        for option in param.opts:
            result = run(*words, option, "1", option, "2")
            assert (result.code, result.out) == (2, "")
            assert "given twice" in result.err, (words, option)


def test_the_same_value_twice_is_one(run, table):
    """Scripts add options of their own."""
    path = table("cow_cleaned-1.1.1")
    once = run("timeline", path, "--limit", 2, "--json")
    assert once.code == 0
    assert run("timeline", path, "--limit", 2, "--json", "--limit", 2) == once


def test_options_of_a_command_under_a_lease_are_its_own(run, table, capfd):
    """What stands behind ``--`` is another command line."""
    path = table("cow_cleaned-1.1.1")
    result = run("lease", "run", "--ttl", "1h", path, "--", "echo", "--ttl", "3h", "--ttl", "4h", "--tables", "x")
    assert result.code == 0, result.err
    assert "--ttl 3h --ttl 4h --tables x" in capfd.readouterr().out


@pytest.mark.parametrize("words", [words for words, each in COMMANDS.items() if is_for_many(each)], ids=" ".join)
def test_what_is_for_many_tables_is_refused_with_one(run, words):
    """A budget for all tables that one table does not heed would let it delete more than was allowed."""
    command = COMMANDS[words]
    arguments = ["TABLE", *("x" for each in command.params if isinstance(each, click.Argument) and each.required)]
    takes = {each.name.replace("_", "-") for each in command.params if isinstance(each, click.Option)}
    for option in takes & set(OPTIONS) - {"tables"}:
        result = run(*words, *arguments[: len(arguments) - 1], f"--{option}", "1")
        assert (result.code, result.out) == (2, "")
        assert f"'--{option}' is for many tables" in result.err, (words, option, result.err)
