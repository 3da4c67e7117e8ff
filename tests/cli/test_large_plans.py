"""Plans of many files: the text stays readable, the document is written in pieces."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.inspection import clean_command
from hudi_py.inspection.json_stream import Streamed, json_chunks

LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers(), max_size=3)
PLAIN = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(PLAIN)
def test_the_pieces_are_the_text_of_json(document):
    """Indented like every document of ours."""
    assert "".join(json_chunks(document)) == json.dumps(document, indent=1, ensure_ascii=False)


@given(st.dictionaries(st.text(), PLAIN), st.lists(PLAIN), st.text(), st.text())
def test_streamed_parts_read_like_held_ones(rows, values, first, second):
    """An object or a list made entry by entry, on any level of objects."""
    held = {first: {"rows": rows, second: values}, "last": 1}
    streamed = {first: {"rows": Streamed(iter(rows.items()), is_object=True)}, "last": 1}
    streamed[first][second] = Streamed(iter(values))
    if second == "rows":
        held[first], streamed[first] = {"rows": values}, {"rows": Streamed(iter(values))}
    if first == "last":
        held, streamed = held[first], streamed[first]
    assert "".join(json_chunks(streamed)) == json.dumps(held, indent=1, ensure_ascii=False)


@pytest.mark.parametrize(("total", "each"), [(500, 50), (3, 50), (500, 1), (3, 1), (1, 1)])
def test_a_dry_run_shows_some_files_and_says_how_many_more(run, table, monkeypatch, total, each):
    """Nothing is hidden without a word; the totals are those of the whole plan."""
    monkeypatch.setattr(clean_command, "_FILES_SHOWN_MAX", total)
    monkeypatch.setattr(clean_command, "_PARTITION_FILES_SHOWN_MAX", each)
    arguments = ("clean", table("cow_mixed-1.1.1"), "--commits-retained", 1, "--dry-run")
    document = run(*arguments, "--json").json
    paths = [file["path"] for file in document["files"]]
    text = run(*arguments).out
    shown = [path for path in paths if f"  {path}  " in f"  {text}".replace("\n", "\n  ")]
    of_partition = [path.rpartition("/")[0] for path in shown]
    assert 1 <= len(shown) <= min(total, len(paths))
    assert max(map(of_partition.count, of_partition)) <= each
    assert f"total      {len(paths)} files" in text
    more = [line for line in text.splitlines() if line.startswith("and ")]
    assert [line.split()[1] for line in more] == ([str(len(paths) - len(shown))] if len(shown) < len(paths) else [])
