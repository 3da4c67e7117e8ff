"""``hudi-py serve FOLDER``: tables that come and go while the server runs."""

from __future__ import annotations

import json
import shutil
import threading
from http import HTTPStatus

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.inspection.served_tables import LOOK_SECONDS, ServedTables, Sources
from hudi_py.inspection.site import Request, Site
from hudi_py.inspection.site_actions import Actions

HOST = "127.0.0.1:8642"
TOKEN = "0123456789abcdefABCDEF"
SETTINGS = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}


def make(location):
    """A table with one commit."""
    hudi_py.write(str(location), pa.table({"id": ["a"]}), settings=SETTINGS)
    return location


@pytest.fixture
def clock():
    """Seconds that stand still until a test moves them."""
    return [0.0]


@pytest.fixture
def lake(tmp_path):
    """A folder with two tables."""
    for name in ("a", "b"):
        make(tmp_path / "lake" / name)
    return tmp_path / "lake"


def site_of(*sources, clock, actions=False):
    """As the command makes it."""
    found = Sources([str(each) for each in sources], {})
    return Site(
        ServedTables(found.tables, found.look, seconds=lambda: clock[0]),
        lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({HOST}),
        token=TOKEN if actions else None, actions=Actions(hudi_py.open_table, {}) if actions else None,
    )  # fmt: skip


def ask(site, target, method="GET", body=b""):
    """A request of this machine."""
    headers = {"host": HOST, "authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    return site.answer(Request(method, target, headers, body))


def listed(site):
    """Names by number, as the list has them."""
    return {each["number"]: each["table"].rpartition("/")[2] for each in json.loads(ask(site, "/tables").body)}


def test_a_table_that_is_made_later_appears(lake, clock):
    """In the list, on the page and in the metrics; numbers stay, and the folder is not listed at every request."""
    site = site_of(lake, clock=clock, actions=True)
    assert listed(site) == {0: "a", 1: "b"}
    make(lake / "above" / "c")
    assert listed(site) == {0: "a", 1: "b"}
    clock[0] += LOOK_SECONDS
    assert listed(site) == {0: "a", 1: "b", 2: "c"}
    assert b"/t/2/" in ask(site, "/").body
    assert ask(site, "/t/2/document").status == HTTPStatus.OK
    assert f'table="{lake}/above/c"' in ask(site, "/metrics").body.decode()
    assert json.loads(ask(site, "/healthz").body) == {"tables": 3}
    assert ask(site, "/t/2/do/clean", "POST", b'{"dry_run": true}').status == HTTPStatus.OK


@pytest.mark.parametrize("target", ["/", "/metrics"])
def test_each_page_about_all_tables_looks_again(lake, clock, target):
    """The front page, and what a monitor collects."""
    site = site_of(lake, clock=clock)
    make(lake / "c")
    clock[0] += LOOK_SECONDS
    assert f"{lake}/c" in ask(site, target).body.decode()


def test_a_table_that_is_removed_disappears_and_its_page_says_so(lake, clock):
    """Its number is given to no other; a monitor is told that it is down, not left without a word."""
    site = site_of(lake, clock=clock)
    assert ask(site, "/t/0/document").status == HTTPStatus.OK
    shutil.rmtree(lake / "a")
    make(lake / "c")
    gone = ask(site, "/t/0/")
    assert gone.status == HTTPStatus.NOT_FOUND
    assert f"{lake}/a" in json.loads(gone.body)["error"]["message"]
    clock[0] += LOOK_SECONDS
    assert listed(site) == {1: "b", 2: "c"}
    assert ask(site, "/t/0/document").status == HTTPStatus.NOT_FOUND
    assert f'hudi_py_table_up{{table="{lake}/a"}} 0' in ask(site, "/metrics").body.decode()
    make(lake / "a")
    clock[0] += LOOK_SECONDS
    assert listed(site) == {0: "a", 1: "b", 2: "c"}


def test_the_last_table_of_a_folder_may_go(tmp_path, clock):
    """The list is empty then, and full again later."""
    make(tmp_path / "lake" / "a")
    site = site_of(tmp_path / "lake", clock=clock)
    shutil.rmtree(tmp_path / "lake" / "a")
    clock[0] += LOOK_SECONDS
    assert listed(site) == {}
    make(tmp_path / "lake" / "b")
    clock[0] += LOOK_SECONDS
    assert listed(site) == {1: "b"}


def test_what_cannot_be_listed_keeps_its_tables(lake, clock, tmp_path):
    """A share that is away for a moment; other sources are looked through all the same."""
    make(tmp_path / "other" / "x")
    site = site_of(lake, tmp_path / "other", clock=clock)
    lake.rename(tmp_path / "away")
    make(tmp_path / "other" / "y")
    clock[0] += LOOK_SECONDS
    assert listed(site) == {0: "a", 1: "b", 2: "x", 3: "y"}


def test_a_table_that_is_named_itself_is_not_listed_again(lake, clock, monkeypatch):
    """Its folder may have a million files; and it stays in the list when it is gone."""
    asked = []
    monkeypatch.setattr("hudi_py.inspection.served_tables.tables_now", lambda source, _: asked.append(source) or ())
    site = site_of(lake / "a", f"{lake}/b/", clock=clock)
    clock[0] += LOOK_SECONDS
    assert listed(site) == {0: "a", 1: "b"}
    assert asked == []


def test_looking_takes_a_tenth_of_the_time_at_most_and_keeps_nobody_waiting(clock):
    """Where listing is slow: one request waits for it, the others get the list of before."""
    looks = []

    def look():
        looks.append(clock[0])
        other = threading.Thread(target=tables.look)  # another request, meanwhile
        other.start()
        other.join()
        clock[0] += 30
        return ("a", "b")

    tables = ServedTables(("a",), look, seconds=lambda: clock[0])
    for _ in range(400):
        tables.look()
        clock[0] += 1
    assert looks == [LOOK_SECONDS, LOOK_SECONDS + 30 + 300]
    assert [name for _, name in tables.listed] == ["a", "b"]
