"""The page of a long timeline: its instants at once, what they hold behind that."""

from __future__ import annotations

import json
import re
import socket
import threading

import pytest

import hudi_py
from hudi_py.inspection import site as site_module
from hudi_py.inspection.page_data import page_document
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Request, Site
from hudi_py.model.instant import State
from support.browser import CHROMIUM, Browser
from support.tables import TableBuilder, at, on_disk

HOST = "127.0.0.1:8642"
HIDDEN = "['storage', 'retention', 'partitions'].map((name) => document.getElementById(`${name}-section`).hidden)"


@pytest.fixture
def location(tmp_path, monkeypatch):
    """A table whose timeline counts as long: commits, one of them pending, a clean and a savepoint."""
    monkeypatch.setattr(site_module, "INSTANTS_MIN", 5)
    builder = TableBuilder(2)
    for number in range(1, 6):
        builder.commit(at(number), {"p": ["f"]})
    builder.cleaned(at(6), earliest=at(3), last_commit=at(5))
    builder.savepoint(at(5), {"p": [builder.base_name("f", at(5))]})
    builder.commit(at(7), {"p": ["f"]}, state=State.INFLIGHT)
    return on_disk(builder, tmp_path / "t").storage.root


def opened(location):
    """A table, as the command opens it."""
    return hudi_py.open_table(location).read_only()


def asked(site, target):
    """The document of a page, or behind it."""
    answer = site.answer(Request("GET", target, {"host": HOST}))
    assert answer.status == 200
    text = answer.body.decode()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    return json.loads(text if found is None else found[1])


def test_names_alone_are_shown_until_the_rest_is_read(location, tmp_path):
    """Nothing of an instant is read for it; what is there is as in the whole document, which has all that it names."""
    site = Site((location,), opened, hosts=frozenset({HOST}))
    outline, whole = asked(site, "/t/0/"), asked(site, "/t/0/document")
    assert outline["partial"]
    assert "partial" not in whole
    assert outline.keys() - {"partial", "nothing"} == whole.keys()
    assert outline["version"] != whole["version"]
    assert outline["table"] == whole["table"]
    shown = ("requested_time", "action", "state", "completion_time", "seconds", "at", "utc_offset", "archived")
    outlined = [{**outline["nothing"], "operation": "", **each} for each in outline["events"]]
    events = [[{name: each[name] for name in shown} for each in found] for found in (outlined, whole["events"])]
    assert events[0] == events[1]
    assert len(events[0]) == 8
    assert all(each.keys() == other.keys() for each, other in zip(outlined, whole["events"], strict=True))
    assert asked(site, "/t/0/") == whole
    for instant in (tmp_path / "t" / ".hoodie" / "timeline").iterdir():
        instant.write_bytes(b"{damaged")
    assert asked(Site((location,), opened, hosts=frozenset({HOST})), "/t/0/")["events"] == outline["events"]


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium")
def test_the_page_draws_the_instants_and_then_the_rest(location, tmp_path, monkeypatch):
    """Nothing is said of what is not read yet: neither that all is well, nor that there are no files."""
    may_read = threading.Event()

    def slow(*given, **named):
        assert may_read.wait(60)
        return page_document(*given, **named)

    monkeypatch.setattr(site_module, "page_document", slow)
    with Server(("127.0.0.1", 0), socket.AF_INET) as server, Browser(tmp_path / "profile") as browser:
        host = f"127.0.0.1:{server.server_port}"
        server.site = Site((location,), opened, hosts=frozenset({host}))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            browser.send("Page.navigate", {"url": f"http://{host}/t/0/"})
            browser.wait("document.documentElement?.dataset.ready === 'partly'")
            text = browser.evaluate("document.body.innerText")
            assert "8 actions" in text
            assert "Reading what the instants hold" in text
            assert "Nothing is wrong" not in text
            assert browser.evaluate(HIDDEN) == [True] * 3
            browser.screenshot(tmp_path / "partly.png")
            may_read.set()
            browser.wait("document.documentElement.dataset.ready === 'yes'")
            assert browser.evaluate(HIDDEN) == [False] * 3
            assert browser.evaluate("document.getElementById('status').textContent").startswith("Updated")
            assert browser.errors == []
        finally:
            may_read.set()
            server.shutdown()
