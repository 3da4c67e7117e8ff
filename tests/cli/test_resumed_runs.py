"""``--resume``: what a run over many tables has done is left out by the next one."""

from __future__ import annotations

import json
import shutil

import pytest

from hudi_py.inspection import many_tables
from hudi_py.inspection.options import Common
from hudi_py.inspection.termination import Terminated
from support.cli_runner import lines_of_tables

ALONE = ("--parallel", "1")


@pytest.mark.parametrize(
    ("noted", "then"),
    [
        ("clean --dry-run", "clean"),
        ("check", "clean"),
        ("savepoint create", "clean"),
        ("check", "check --contents"),
        ("orphans", "orphans --delete"),
    ],
)
def test_a_journal_of_another_command_is_refused(run, lake, tmp_path, noted, then):
    """A dry run above all: all tables would be left out, and nothing would be cleaned, with exit code 0."""
    journal, words = tmp_path / "journal", noted.split()
    assert run(*words, "--tables", tmp_path / "list.txt", "--resume", journal, *ALONE).code == 6
    before = journal.read_bytes()
    result = run(*then.split(), "--tables", tmp_path / "list.txt", "--resume", journal, *ALONE)
    assert (result.code, result.out) == (2, "")
    assert f"is of hudi-py {noted}, not of hudi-py {then}" in result.err
    assert journal.read_bytes() == before
    older = [
        {key: value for key, value in json.loads(line).items() if key != "command"} for line in before.splitlines()
    ]
    journal.write_text("\n".join(map(json.dumps, older)))
    same = run(*then.split(), "--quiet", "--tables", tmp_path / "list.txt", "--resume", journal, *ALONE)
    assert "3 done before" in same.err


def test_a_run_goes_on_where_another_stopped(run, lake, tmp_path):
    """``--resume``: what is done is left out, what failed is tried again; half a line of a killed run does no harm."""
    journal, listed = tmp_path / "journal", tmp_path / "list.txt"
    first = run("check", "--tables", listed, "--resume", journal, "--json", *ALONE)
    assert set(lines_of_tables(first)) == {*lake, str(tmp_path / "none")}
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:1]) + '{"table": "/half')
    second = run("check", "--tables", listed, "--resume", journal, "--json", *ALONE)
    assert set(lines_of_tables(second)) == {*lake[1:], str(tmp_path / "none")}
    third = run("check", "--tables", listed, "--resume", journal, "--json", *ALONE)
    assert set(lines_of_tables(third)) == {str(tmp_path / "none")}
    assert "3 done before" in third.err


def test_a_journal_names_places(run, lake, tmp_path, monkeypatch):
    """The same word is another table in another folder, and the same table has other words in another run."""
    journal = tmp_path / "journal"
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        shutil.copytree(lake[0], tmp_path / folder / "t")
        monkeypatch.chdir(tmp_path / folder)
        result = run("check", "--tables", "t*", "--resume", journal, "--json", *ALONE)
        assert set(lines_of_tables(result)) == {"t"}, folder
    again = run("check", "--tables", tmp_path / "one", "--resume", journal, "--json", *ALONE)
    assert (again.code, again.out) == (0, "")
    assert "1 done before" in again.err


@pytest.mark.parametrize(("signal", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_signal_ends_the_run_and_not_one_table(run, lake, tmp_path, monkeypatch, signal, code):
    """Also where the tables are worked on in this process, one after the other."""
    opened = []

    def interrupted(self, table):
        opened.append(table)
        raise signal

    monkeypatch.setattr(Common, "open", interrupted)
    result = run("clean", "--tables", tmp_path / "list.txt", "--resume", tmp_path / "journal", *ALONE)
    assert (result.code, opened) == (code, lake[:1])
    assert result.out.startswith(f"failed  {lake[0]}")
    assert "stopped" in result.err
    assert (tmp_path / "journal").read_text() == ""


@pytest.mark.parametrize(
    "text", ["{list}", "# tables\n", "[1]\n", '{"name": "t"}\n', '{"table": "/a", "exit_code": 0}\nx\n']
)
def test_a_file_of_another_kind_is_no_journal(run, lake, tmp_path, text):
    """``--resume`` with the list of tables, say, is refused before anything is done, and stays as it is."""
    other = tmp_path / "other"
    other.write_text(text.replace("{list}", "\n".join(lake)))
    before = other.read_bytes()
    result = run("check", "--tables", tmp_path / "list.txt", "--resume", other, *ALONE)
    assert (result.code, result.out) == (2, "")
    assert f"--resume {other}: line " in result.err
    assert other.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(("signal", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_tables_that_a_signal_lets_finish_are_done(run, lake, tmp_path, monkeypatch, signal, code):
    """Each has its line and its place in the journal, as the next run finds; none is begun after the signal."""

    def waits(running, **_):
        assert len(running) == 2
        raise signal

    with monkeypatch.context() as patched:
        patched.setattr(many_tables, "wait", waits)
        words = ("check", "--tables", tmp_path / "list.txt", "--resume", tmp_path / "journal", "--parallel", "2")
        stopped = run(*words, "--json")
    assert stopped.code == code
    assert set(lines_of_tables(stopped)) == set(lake[:2])
    rest = run(*words, "--json")
    assert "2 done before" in rest.err
    assert set(lines_of_tables(rest)) == {lake[2], str(tmp_path / "none")}
