"""What a run over many tables tells of each of them."""

from __future__ import annotations

import logging

import pytest

from hudi_py.errors import StorageError
from hudi_py.inspection.options import Common
from support.cli_runner import lines_of_tables

ALONE = ("--parallel", "1")


def fails(self, location):
    logging.getLogger("hudi_py").info("looked at %s", location)
    raise StorageError(f"{location} cannot be reached")


@pytest.mark.parametrize("command", ["check", "fleet"])
def test_log_events_of_tables_that_failed_are_shown(run, lake, tmp_path, monkeypatch, command):
    """They are asked for because of those; what the line of the table says is not said twice."""
    monkeypatch.setattr(Common, "open", fails)
    result = run(command, "--tables", tmp_path / "list.txt", "-v", *ALONE)
    assert result.code == 6
    for table in lake:
        assert f"{table}: looked at {table}" in result.err
    quiet = run(command, "--tables", tmp_path / "list.txt", "-q", *ALONE)
    assert "looked" not in quiet.err
    assert (quiet.out + quiet.err).count(f"{lake[0]} cannot be reached") == 1


@pytest.mark.parametrize("command", ["check", "fleet"])
def test_tracebacks_of_some_tables_do_not_end_the_run(run, lake, tmp_path, command):
    """``--debug`` shows where an error came from, and the other tables get their lines."""
    result = run(command, "--tables", tmp_path / "list.txt", "--debug", "--json", *ALONE)
    assert result.code == 6
    assert f"{tmp_path / 'none'}: Traceback" in result.err
    if command == "check":
        lines = lines_of_tables(result)
        assert {table for table, line in lines.items() if "error" in line} == {str(tmp_path / "none")}
        assert set(lake) < set(lines)


def test_an_unexpected_error_is_that_of_its_table(run, lake, tmp_path, monkeypatch):
    """As with one table, it has a kind and a code, and the others go on."""
    whole = Common.open

    def opened(self, location):
        if location == lake[0]:
            raise OSError(28, "No space left on device")
        return whole(self, location)

    monkeypatch.setattr(Common, "open", opened)
    lines = lines_of_tables(run("check", "--tables", tmp_path / "list.txt", "--json", *ALONE))
    assert (lines[lake[0]]["exit_code"], lines[lake[0]]["error"]["kind"]) == (1, "OSError")
    assert "result" in lines[lake[1]]
