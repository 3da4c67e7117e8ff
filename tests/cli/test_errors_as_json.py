"""Errors of commands with ``--json``: one document on standard output, whatever went wrong."""

import json

import pytest

from hudi_py import errors
from hudi_py.inspection.failure import print_json

WRONG = {
    "not a table": ["timeline", "{empty}"],
    "unknown setting": ["clean", "{table}", "--conf", "hoodie.cleaner.commits.retaned=3"],
    "two options that exclude each other": ["read", "{table}", "--as-of", "20990101", "--from", "0"],
    "not a number": ["timeline", "{table}", "--limit", "x"],
    "no such instant": ["instant", "{table}", "19990101000000000"],
    "damaged properties": ["files", "{damaged}"],
    "no such command": ["cleen", "{table}"],
    "no such option": ["clean", "{table}", "--dryrun"],
    "no table": ["clean"],
}


@pytest.fixture
def places(table, tmp_path):
    empty, damaged = tmp_path / "empty", tmp_path / "damaged"
    empty.mkdir()
    (damaged / ".hoodie").mkdir(parents=True)
    (damaged / ".hoodie/hoodie.properties").write_bytes(b"hoodie.table.version=8\nhoodie.table.checksum=1\n")
    return {"empty": empty, "damaged": damaged, "table": table("cow_cleaned-1.1.1")}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_one_document_that_says_what_to_do(run, places, name):
    """Kind, message, way out and exit code stand in the document; the exit code is that of the process."""
    arguments = [each.format(**places) for each in WRONG[name]]
    as_text, as_json = run(*arguments), run(*arguments, "--json")
    assert as_text.code == as_json.code > 0
    assert as_text.out == "", "text for people goes to standard error"
    assert as_text.err == as_json.err, "the text is printed in any case"
    assert list(as_json.json) == ["error"]
    error = as_json.json["error"]
    assert list(error) == ["kind", "message", "fix", "exit_code"]
    assert error["exit_code"] == as_json.code
    assert error["fix"]
    assert error["message"] in as_json.err.replace("\\n", "\n")
    assert error["kind"] not in as_json.err, "people read no names of classes"


def test_a_document_that_was_begun_is_followed_by_no_other(run, places, monkeypatch):
    """Whoever reads standard output never finds two documents there, not even if a command fails late."""

    def fails_late(document):
        print_json(document)
        raise errors.StorageError("the disk is full; make space")

    monkeypatch.setattr("hudi_py.inspection.timeline_commands.print_json", fails_late)
    result = run("files", places["table"], "--json")
    assert result.code == 1
    assert "partitions" in result.json
    assert "disk is full" in result.err


def test_each_class_of_errors_says_what_to_do():
    """An error whose message does not say it has the advice of its class; none has an empty one."""
    for name in errors.__all__:
        kind = getattr(errors, name)
        assert kind("it failed").fix == kind.advice
        assert kind("it failed; try again later").fix == "try again later"
        assert kind("it failed; nothing was changed. Try again later").fix == "Try again later"
        assert kind("it failed; nothing was changed").fix == kind.advice
        assert "advice" in vars(kind) or kind.__base__ is errors.StorageError


@pytest.mark.parametrize("name", WRONG)
def test_a_wrapped_error_stands_beside_the_version(run, places, name):
    """Same error, same exit code; only wrong usage, which ends before there is a command, is not wrapped."""
    arguments = [each.format(**places) for each in WRONG[name]]
    plain, wrapped = run(*arguments, "--json"), run(*arguments, "--json-envelope")
    assert wrapped.code == plain.code
    assert wrapped.json["error"] == plain.json["error"]
    if plain.json["error"]["kind"] != "UsageError":
        assert {**wrapped.json, **plain.json} == {"schema_version": 1, "command": arguments[0], **plain.json}


@pytest.mark.parametrize("arguments", [("timeline",), ("files",), ("check",), ("savepoint", "list"), ("clean",)])
def test_a_wrapped_document_is_the_plain_one(run, table, arguments):
    """Whether it is an object, a list or a stream; the command has its whole name."""
    path = table("cow_cleaned-1.1.1")
    plain = run(*arguments, path, "--json").json
    wrapped = run(*arguments, path, "--json-envelope").json
    assert wrapped == {"schema_version": 1, "command": " ".join(arguments), "result": plain}


def test_lines_of_many_tables_have_the_version(run, table, tmp_path):
    """Each line once, and the document in it is the plain one."""
    path = table("cow_cleaned-1.1.1")
    (tmp_path / "tables").write_text(f"{path}\n{tmp_path}/none\n")
    asked = ("timeline", "--tables", tmp_path / "tables", "--parallel", 1)
    plain, wrapped = (run(*asked, option).out.splitlines() for option in ("--json", "--json-envelope"))
    assert [{"schema_version": 1, "command": "timeline", **json.loads(line)} for line in plain] == [
        json.loads(line) for line in wrapped
    ]
    assert len(wrapped) == 2
