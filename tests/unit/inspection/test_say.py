"""What is printed from a table has its control characters escaped and means what it meant."""

from __future__ import annotations

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.inspection import render
from hudi_py.inspection.json_stream import json_chunks
from hudi_py.inspection.say import say, show_traceback, visible, visible_json
from hudi_py.runtime.log import Log
from support.laws import examples

CONTROLS = [
    *map(chr, range(32)),
    *map(chr, range(0x7F, 0xA0)),
    "\u202e",
    "\u2066",
    "\u2028",
    "\u200f",
    "\U000e0041",
    "\ud800",
    "\udcff",
]
HOSTILE = f"a{''.join(CONTROLS)}[red]b[/red]"
ANY_TEXT = st.text(st.one_of(st.sampled_from(CONTROLS), st.characters(exclude_categories=[])))


@examples(50)
@given(ANY_TEXT)
def test_shown_text_is_one_line_without_controls(text):
    """Nothing that moves a cursor, ends a line or turns the direction of text is left; other text is as it was."""
    shown = visible(text)
    assert not set(shown) & set(CONTROLS)
    assert len((shown + "x").splitlines()) == 1
    if not set(text) & set(CONTROLS) and "\ufeff" not in text and text.isprintable():
        assert shown == text


@examples(20)
@given(st.recursive(ANY_TEXT, lambda below: st.lists(below) | st.dictionaries(ANY_TEXT, below), max_leaves=4))
def test_json_means_the_same_and_shows_no_controls(document):
    """The document reads back as it was; only the line ends of its layout are controls."""
    text = "".join(map(visible_json, json_chunks(document)))
    assert json.loads(text) == document
    assert not set(text.replace("\n", "")) & set(CONTROLS)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_tables_escape_cells_and_titles(capsys, monkeypatch, is_terminal):
    """On a terminal too, where words in brackets are no orders to colour what follows."""
    monkeypatch.setattr(render, "is_terminal", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "2000")
    render.table(HOSTILE, ("name",), [(HOSTILE,)])
    printed = capsys.readouterr().out
    assert not set(printed.replace("\n", "")) & set(CONTROLS)
    assert printed.count("[red]b[/red]") == 2
    assert printed.count("\\x1b") == 2
    assert len(printed.splitlines()) == 3


def test_lines_tracebacks_and_events_escape_what_they_quote(capsys, caplog):
    """Messages on both outputs, what --debug shows, and structured events."""
    say(HOSTILE)
    say(ValueError(HOSTILE), file=sys.stderr)
    try:
        raise ValueError(HOSTILE)
    except ValueError as error:
        show_traceback(type(error), error, error.__traceback__)
    with caplog.at_level(logging.INFO, "hudi_py"):
        Log().info("files.deleted", path=HOSTILE, paths=[HOSTILE])
    printed = capsys.readouterr()
    assert "files.deleted" in caplog.text
    for text in (printed.out, printed.err, caplog.records[0].getMessage()):
        assert "\\x1b" in text
        assert not set(text.replace("\n", "")) & set(CONTROLS)
