"""Texts for a person in a hurry: whole sentences of help, numbers that agree, what to do behind every error."""

import click
import pytest

from hudi_py.inspection import render
from hudi_py.inspection.cli import main
from hudi_py.inspection.program import in_plain_words
from hudi_py.services.explain.explain import Awaited, Need
from support.cli_runner import RUNNER
from support.tables import TableBuilder, at, on_disk

GROUPS = ((), *((name,) for name in sorted(main.commands) if isinstance(main.commands[name], click.Group)))


@pytest.mark.parametrize("group", GROUPS, ids=" ".join)
def test_help_says_what_each_command_does_to_the_end(group):
    """No sentence is cut off, and no option is broken, on a terminal of 80 columns."""
    lines = RUNNER.invoke(main, [*group, "--help"], terminal_width=80).output.splitlines()[1:]
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line.endswith(("...", "-"))]


def test_a_file_of_another_kind_is_named(tmp_path):
    """And not what Python calls a list of names."""
    (tmp_path / "notes.txt").write_text("hi")
    named = ("--conf", "hoodie.table.name=trips", "--conf", "hoodie.datasource.write.recordkey.field=id")
    result = RUNNER.invoke(main, ["write", str(tmp_path / "trips"), str(tmp_path / "notes.txt"), *named])
    assert result.exit_code == 2, result.stderr
    assert not (tmp_path / "trips").exists()
    assert f"{tmp_path / 'notes.txt'}: not known as a file of rows; its name has to end in .parquet" in result.stderr


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (click.IntRange(min=1), "x", "'x' is not a whole number"),
        (click.INT, "1.5", "'1.5' is not a whole number"),
        (click.FLOAT, "x", "'x' is not a number"),
        (click.FloatRange(0, 1), "y", "'y' is not a number"),
        (click.IntRange(min=1), "-1", "-1 is not at least 1"),
        (click.IntRange(max=65535), "70000", "70000 is not at most 65535"),
        (click.FloatRange(min=0, min_open=True), "0", "0.0 is not above 0"),
        (click.IntRange(0, 9), "10", "10 is not from 0 to 9"),
        (click.FloatRange(0, 1, min_open=True), "2", "2.0 is not above 0 to 1"),
    ],
)
def test_numbers_out_of_range_are_told_without_formulas(kind, value, said):
    """By the texts of click itself, whatever its release calls them."""
    with pytest.raises(click.BadParameter) as raised:
        kind.convert(value, None, None)
    assert in_plain_words(raised.value.format_message()).endswith(f"{said}.")


def test_a_question_ends_its_sentence():
    """No semicolon behind the question mark; the oldest click asks none."""
    result = RUNNER.invoke(main, ["timelin", "trips"])
    assert result.exit_code == 2
    assert "timelin'" in result.stderr
    assert result.stderr.endswith(("? See hudi-py --help\n", "'; see hudi-py --help\n"))


@pytest.mark.parametrize("need", Need)
def test_what_is_awaited_agrees_with_its_number(need):
    """One commit is not "1 commits"; larger numbers stay as they are."""
    assert "1 more commits" not in str(Awaited(need, "1")).replace("completed ", "")
    assert "1 more versions" not in str(Awaited(need, "1"))
    assert str(Awaited(need, "2")) == need.value.format("2")


def test_an_error_says_what_to_do_even_where_its_message_does_not(tmp_path):
    """By its class; a message that has it already is left as it is."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"eu": ["a"]})
    path = on_disk(builder, tmp_path / "trips").storage.root
    torn = next((tmp_path / "trips" / ".hoodie" / "timeline").glob("*.commit"))
    torn.write_bytes(torn.read_bytes()[:30])
    result = RUNNER.invoke(main, ["read", path])
    assert result.exit_code == 1
    (line,) = [each for each in result.stderr.splitlines() if each.startswith("hudi-py: ")]
    assert torn.name in line
    assert line.endswith("; see what is damaged with hudi-py check")
    line = RUNNER.invoke(main, ["read", f"{path}/nothing"]).stderr
    assert line.count("check the path and the storage options") == 1


def test_a_narrow_terminal_names_once_what_several_rows_are_about(capsys):
    """A value stays on the line of its name, and long names are whole."""
    group = "7cf89a5c-87a0-467a-b807-7365ee72ea1d-0"
    rows = [(group, f"year=2022/month={n}", "20240401213815118", "436.1 kB") for n in range(3)]
    render._print_stacked(("file group", "partition", "base instant", "size"), rows, 60)
    lines = capsys.readouterr().out.splitlines()
    assert lines.count(group) == 1
    assert sum("size 436.1 kB" in line for line in lines) == 3
    assert max(map(len, lines)) <= 60


def test_who_names_a_partition_like_an_option_is_told_how(run, tmp_path):
    """A partition may be called ``-rf``; the help of a command that takes no names has no such advice."""
    for words in (("drop-partition", tmp_path, "-rf"), ("explain", tmp_path, "-rf"), ("timeline", "-t")):
        said = run(*words)
        assert said.code == 2
        assert "put -- before names that begin with a dash" in said.err
    assert "put --" not in run("--frobnicate").err


_HUGE = "9" * 5000
"""More digits than Python reads into a number."""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("clean", "--max-files", str(2**63)), "at most 9223372036854775807"),
        (("clean", "--commits-retained", "9" * 19), "at most 9223372036854775807"),
        (("clean", "--conf", f"hoodie_py.clean.max.files={_HUGE}"), "at most 9223372036854775807"),
        (("clean", "--max-files", _HUGE), "the number has too many digits"),
        (("maintain", "--max-deletes", str(2**63)), "at most 9223372036854775807"),
        (("orphans", "--max-deletes", str(2**63)), "at most 9223372036854775807"),
        (("lease", "create", "--ttl", f"{_HUGE}d"), "not a span of time up to ten years"),
        (("maintain", "--watch", f"{_HUGE}d"), "not a span of time up to a year"),
        (("maintain", "--watch", "367d"), "not a span of time up to a year"),
    ],
)
def test_what_is_too_large_is_called_so(run, table, given, said):
    """Not that it is no number, nor below the least; and nothing is begun."""
    result = run(*given, table("cow_cleaned-1.1.1"), "--dry-run")
    assert (result.code, said in result.err) == (2, True), result.err
    assert "at least" not in result.err


@pytest.mark.parametrize("option", ["--total-files", "--parallel"])
@pytest.mark.parametrize("number", [str(2**63), _HUGE, "٣"])
def test_numbers_of_a_run_over_many_tables_are_bounded_too(run, table, tmp_path, option, number):
    """Before the first table."""
    listed = tmp_path / "tables.txt"
    listed.write_text(str(table("cow_cleaned-1.1.1")))
    result = run("maintain", "--tables", listed, "--dry-run", option, number)
    assert result.code == 2
    assert ("at least 1" if number == "٣" else "at most 9223372036854775807") in result.err
    assert run("maintain", "--tables", listed, "--dry-run", "--within", f"{_HUGE}h").code == 0
