"""What values show of themselves: short in a prompt, escaped in a notebook, without a look into storage."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from hudi_py.model.shown import Shown
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.writes import CHANGES, OLD, create_table, open_table, upsert

EVIL = "<script>alert('x')</script> & \"y\""


class Cells(HTMLParser):
    """The texts and the tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = set(), []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)

    def handle_data(self, data):
        self.texts.append(data)


class Value(Shown):
    def __init__(self, count):
        self.count = count

    def _facts(self):
        return {"the_name": EVIL, "count": self.count}

    def _listed(self):
        return ((EVIL, number) for number in range(self.count))


@pytest.mark.parametrize("count", [0, 20, 21, 10**9])
def test_a_notebook_shows_text_as_text_and_no_more_than_a_page(count):
    """Names of columns, partitions and files are anybody's."""
    page = Cells(Value(count)._repr_html_())
    assert page.tags <= {"div", "b", "table", "tr", "td"}
    assert page.texts.count(EVIL) == 1 + min(count, 20)
    assert ("…" in page.texts) is (count > 20)
    assert repr(Value(count)) == f"Value(the_name={EVIL!r}, count={count})"


def test_public_values_show_themselves():
    """Table, snapshots, timeline, plan, rows and results, each by what it is, in one line."""
    storage = create_table(9)
    for rows in (OLD, CHANGES, CHANGES):
        upsert(storage, rows)
    table = open_table(storage)
    first = table.timeline.completed("commit")[0]
    rows = table.rows(where="ts > 1")
    told = [
        (table, "name='t', type='COPY_ON_WRITE', version=9, partitioned_by='region'"),
        (table.snapshot(), "requested_time='latest'"),
        (table.as_of(first.requested_time), f"requested_time='{first.requested_time}'"),
        (table.timeline, f"instants=3, pending=0, first='{first}'"),
        (table.plan_clean(commits_retained=1), "policy='KEEP_LATEST_COMMITS', files="),
        (rows, "columns=3, where=['ts > 1']"),
    ]
    for value, text in told:
        assert text in repr(value)
        assert "\n" not in repr(value)
        assert Cells(value._repr_html_()).texts[0] == type(value).__name__
    assert "ts" in rows._repr_html_() and "int64" in rows._repr_html_()
    (done,) = table.clean(commits_retained=1)
    assert f"instant='{done.instant}', deleted={done.deleted_count}, is_finished=True" in repr(done)
    assert (
        repr(table.archive())
        == "ArchiveResult(instants=0, bound='the number of active commits is within the settings', merges=0)"
    )
    upserted = open_table(storage)
    assert "instants=4" in repr(upserted.timeline)


def test_an_empty_timeline_shows_itself():
    """There is no first instant."""
    storage: MemoryStorage = create_table(6)
    assert repr(Table(storage).timeline) == "Timeline(instants=0, pending=0)"
