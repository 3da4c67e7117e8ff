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
    heading, *_ = run("tag", "list", path).out.splitlines()
    assert heading.startswith("tags of ")
    assert heading.endswith(", 1 tag")
    assert run("savepoint", "list", path).out.startswith("savepoints of ")
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


def test_files_and_differences_of_a_name_after_a_clean(run, table):
    """The files that the tag holds, where its time alone is refused because a clean took others of that time."""
    path = table("cow_nomdt-1.1.1")
    times = [each["requested_time"] for each in run("timeline", path, "--json").json["instants"]]
    then, before = times[-3], run("files", path, "--as-of", times[-3], "--json", "--sizes").json
    assert 0 == run("tag", "create", path, then, "--name", "before").code
    assert 0 == run("clean", path, "--commits-retained", "1").code
    assert 1 == run("files", path, "--as-of", then).code
    named = run("files", path, "--as-of", "before", "--json", "--sizes").json
    assert newest(before) == newest(named)
    assert 0 == run("diff", path, "before").code


def newest(document):
    """Base file and size of the newest slice of each group in a document of files."""
    slices = [each["slices"][0] for part in document["partitions"].values() for each in part["file_groups"]]
    sizes = {name: size for each in document["sizes"].values() for name, size in each.items()}
    return {each["base_file"]: sizes[each["base_file"]] for each in slices}


def test_a_dry_run_leaves_out_what_cannot_be_tagged(run, table):
    """A period whose last commit a clean of Apache Hudi has passed gets no tag, and is not due in a dry run, either."""
    path = table("cow_cleaned-1.1.1")
    asked = ("tag", "schedule", path, "--daily", "9999", "--json")
    due = run(*asked, "--dry-run").json
    steps = run("maintain", path, "--conf", "hoodie_py.tags.daily=9999", "--dry-run", "--json").json["steps"]
    (named,) = ([each["path"] for each in step["files"]] for step in steps if step["step"] == "due_tags")
    made = run(*asked).json
    assert due == made
    assert named == [each["instant"] for each in made]
    readable = [
        each["requested_time"] for each in run("timeline", path, "--action", "commit", "--json").json["instants"]
    ]
    # The table has commits of three days, of which the clean left two readable.
    assert len(made) == 2 < len({time[:8] for time in readable})
