"""Tables on a terminal: what stands in a cell can be copied, at every width."""

from __future__ import annotations

import time

import pytest
from rich.cells import cell_len

from hudi_py.inspection import render

PATH = "region=europe/a905b52f-aaa9-4fe2-ba1d-d211de8040a4-0_0-0-0_20261126182215830.parquet"
COLUMNS = ("file", "size", "why")
ROWS = [(PATH, "434.6 kB", "older than the retention window"), (PATH.replace("europe", "asia"), "1 B", "")]


@pytest.fixture
def shown(monkeypatch, capsys):
    """Prints a table on a terminal of some width; the lines."""
    monkeypatch.setattr(render, "is_terminal", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")

    def show(width, *arguments, **more):
        monkeypatch.setenv("COLUMNS", str(width))
        render.table(*arguments, **more)
        return capsys.readouterr().out.splitlines()

    return show


@pytest.mark.parametrize("width", [40, 80, 100, 120, 160, 300])
def test_no_word_is_broken(shown, width):
    """A path that does not fit beside the other cells has a line of its own; nothing else is too wide."""
    lines = shown(width, "title", COLUMNS, ROWS, right=(1,))
    for row in ROWS:
        for word in " ".join(row).split():
            assert any(word in line.split() or f"{word}," in line.split() for line in lines), word
    assert [line for line in lines if len(line.rstrip()) > width and line not in {row[0] for row in ROWS}] == []


def test_cells_that_fit_stand_in_columns(shown):
    """Long sentences are wrapped between words."""
    lines = shown(60, "title", ("code", "what"), [("mdt-ghost", "the metadata table lists a missing file " * 3)])
    assert lines[1].split() == ["code", "what"]
    assert all(line.startswith((" " * 11, "mdt-ghost  ")) for line in lines[2:])
    assert " ".join(" ".join(lines[2:]).split()) == "mdt-ghost " + " ".join(
        ["the metadata table lists a missing file"] * 3
    )


def test_rows_that_fit_are_those_of_a_pipe(shown, monkeypatch, capsys):
    """Wide letters and columns to the right included; and as fast, for tables of a hundred thousand files."""
    rows = [(f"region=日本/{number}", f"{number} B", "latest" if number % 3 else "") for number in range(20_000)]
    begun = time.process_time()
    lines = shown(80, "title", ("file", "size", ""), rows, right=(1,))
    assert time.process_time() - begun < 3  # a grid of rich takes ten times as long, and more with each column
    assert len(lines) == len(rows) + 2
    assert {cell_len(line.rpartition(" B")[0]) for line in lines[2:]} == {cell_len("region=日本/19999") + 2 + 5}
    narrow = [(path.replace("日本", "jp"), size, note) for path, size, note in rows]
    on_terminal = shown(80, "title", ("file", "size", ""), narrow, right=(1,))
    monkeypatch.setattr(render, "is_terminal", lambda: False)
    render.table("title", ("file", "size", ""), narrow, right=(1,))
    assert capsys.readouterr().out.splitlines() == on_terminal


def test_states_have_their_colours_in_rows_that_fit(shown, monkeypatch):
    """And headings are bold; nothing else has an escape sequence."""
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    heading, done, begun = shown(80, "t", ("state", "what"), [("COMPLETED", "x"), ("INFLIGHT", "\x1b[31m")])[1:]
    assert heading == "\x1b[1mstate\x1b[0m      \x1b[1mwhat\x1b[0m"
    assert done == "\x1b[32mCOMPLETED\x1b[0m  x"
    assert begun == "\x1b[33mINFLIGHT\x1b[0m   \\x1b[31m"


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize(
    ("title", "said"),
    [("leases of trips, 0", "leases of trips: none"), ("archived, 0 instants", "archived: none"), ("t", "t")],
)
def test_no_rows_are_said_in_words(monkeypatch, capsys, is_terminal, title, said):
    """No names of columns above nothing."""
    monkeypatch.setattr(render, "is_terminal", lambda: is_terminal)
    render.table(title, COLUMNS, [])
    assert capsys.readouterr().out == f"{said}\n"


def test_a_title_is_not_broken(shown):
    """However narrow the table below it is."""
    title = "would be archived (nothing was written), 1 instant of /lake/warehouse/trips"
    assert shown(80, title, ("a",), [("b",)])[0] == title
