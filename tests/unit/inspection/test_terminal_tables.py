"""Tables on a terminal: what stands in a cell can be copied, at every width."""

from __future__ import annotations

import pytest

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
