"""Errors of commands with ``--json``: one document on standard output, whatever went wrong."""

import pytest

from hudi_py import errors
from hudi_py.inspection.options import print_json

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
    for part in error["kind"] * (error["kind"] != "UsageError"), error["message"]:
        assert part in as_json.err.replace("\\n", "\n")


def test_a_document_that_was_begun_is_followed_by_no_other(run, places, monkeypatch):
    """Whoever reads standard output never finds two documents there, not even if a command fails late."""

    def fails_late(document):
        print_json(document)
        raise errors.StorageError("the disk is full; make space")

    monkeypatch.setattr("hudi_py.inspection.cli.print_json", fails_late)
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
        assert "advice" in vars(kind) or kind.__base__ is errors.StorageError
