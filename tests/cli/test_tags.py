"""Tags: savepoints with a name, on the command line; and examples in help texts."""

from __future__ import annotations

import click
import pytest

from hudi_py.inspection.cli import main


def test_a_tag_is_a_savepoint_with_a_name(run, table):
    """Created with a name, it is listed, read and deleted by it, as tag and savepoint; a dry run creates none."""
    path = table("cow_nomdt-1.1.1")
    assert run("tag", "create", path, "--name", "daily", "--dry-run").code == 0
    assert run("tag", "list", path, "--json").json == []
    rows = run("read", path, "--json").json
    created = run("tag", "create", path, "--name", "daily", "--ttl", "30d", "--json").json
    assert "daily" == created["name"]
    listed = run("tag", "list", path, "--json").json
    assert listed == run("savepoint", "list", path, "--json").json
    assert ["daily"] == [each["name"] for each in listed]
    assert rows == run("read", path, "--savepoint", "daily", "--json").json
    assert run("tag", "delete", path, "daily", "--json").json["deleted"]
    assert run("tag", "list", path, "--json").json == []


def test_a_tag_needs_a_name(run, table):
    """Without one it would be a savepoint that nobody finds by name."""
    path = table("cow_nomdt-1.1.1")
    refused = run("tag", "create", path)
    assert 2 == refused.code
    assert "--name" in refused.err
    assert run("tag", "list", path, "--json").json == []


@pytest.mark.parametrize("name", sorted(main.commands))
def test_examples_stand_on_lines_of_their_own(name):
    """So that each can be copied."""
    help_text = main.commands[name].get_help(click.Context(main.commands[name], info_name=name))
    assert "\\b" not in help_text
    lines = [line.strip() for line in help_text.splitlines()]
    assert not [line for line in lines if "Examples:" in line and line != "Examples:"]


def test_due_tags_are_shown_created_and_read_by_name(run, table):
    """A dry run creates none; a second run finds nothing to do; without a number there is nothing to schedule."""
    path = table("cow_nomdt-1.1.1")
    asked = ("tag", "schedule", path, "--monthly", "1200", "--json")
    due = run(*asked, "--dry-run").json
    assert run("tag", "list", path, "--json").json == []
    assert due
    assert due == run(*asked).json
    assert run(*asked).json == []
    name = due[-1]["name"]
    by_name = run("read", path, "--as-of", name, "--json").json
    assert by_name == run("read", path, "--savepoint", name, "--json").json
    assert 2 == run("tag", "schedule", path).code
