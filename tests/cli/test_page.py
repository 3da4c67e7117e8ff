"""``hudi-py report``: one file with everything in it, whatever the table's text says; looked at in a real browser."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import threading
from collections import Counter

import pytest

import hudi_py
from hudi_py.inspection import page_data
from hudi_py.inspection.page_data import page_document, version_of
from hudi_py.inspection.page_file import page_html, script_json
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Site
from hudi_py.storage.wrappers import RecordingStorage
from hudi_py.table import Table
from hudi_py.timeline.contents import Contents
from support.browser import CHROMIUM, Browser
from support.tables import TableBuilder, at, on_disk

HOSTILE = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'
BROWSER = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]


def embedded(html):
    """The document in a page."""
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)[1])


@pytest.fixture
def page(run, table, tmp_path):
    """Report on a table of real Hudi: the path of the file."""

    def make(name, *options):
        result = run("report", table(name), "-o", tmp_path / "page.html", *options)
        assert result.code == 0, result
        return tmp_path / "page.html"

    return make


@pytest.mark.parametrize(
    "name", ["cow_mixed-1.1.1", "mor_compacted-0.15.0", "cow_empty-1.1.1", "cow_failed_write-1.0.2"]
)
def test_the_page_has_what_the_commands_say(run, table, page, name):
    """Findings of doctor, sums of du, events of history."""
    document = embedded(page(name).read_text())
    path = document["table"]["location"]
    assert document["findings"] == run("doctor", path, "--json").json
    usage = run("du", path, "--json").json
    assert document["usage"] == usage or usage["total"]["files"] == 0
    events = run("history", path, "--archived", "--json").json["events"]
    assert [(e["requested_time"], e["action"], e["state"]) for e in document["events"]] == [
        (e["requested_time"], e["action"], e["state"]) for e in events
    ]
    assert document["problems"] == []
    assert sum(each["bytes"] for each in document["files"]) == sum(each["bytes"] for each in document["partitions"])


def test_the_page_asks_for_nothing_and_runs_only_its_own_scripts(page):
    """No address of another host in markup or script of ours, and a policy that names the hashes of both scripts."""
    html = page("cow_mixed-1.1.1").read_text()
    outside_data = html.replace(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1], "")
    assert re.findall(r"""(?:src|href)\s*=\s*["']?(?!#)[^"'\s>]+""", outside_data.partition("<script>")[0]) == []
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 2
    policy = re.search(r'Content-Security-Policy" content="(.*?)"', html)[1]
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    assert "MIT" in (hudi_py_page() / "uplot-LICENSE.txt").read_text()


def hudi_py_page():
    """Folder of the page's parts."""
    from importlib.resources import files

    return files("hudi_py.inspection").joinpath("page")


@pytest.mark.parametrize("text", [HOSTILE, "<!--<script>", "]]>&amp;\u2028\u0000", "\ud800"])
def test_text_of_a_table_ends_no_element(text):
    """Nothing between the two tags of the data can be taken for markup, and it decodes to the same text."""
    html = page_html({"text": text}, text.encode("utf-8", "replace").decode())
    data = script_json({"text": text})
    assert not set("<>&") & set(data)
    assert html.count("<script") == page_html({}, "").count("<script")
    assert embedded(html) == {"text": text}


def test_damage_leaves_a_page(run, tmp_path):
    """What cannot be collected is named; the rest is shown."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    builder.commit(at(2), {"p": ["f"]})
    builder.savepoint(at(2), {"p": []})
    on_disk(builder, tmp_path / "t")
    damaged = next((tmp_path / "t" / ".hoodie" / "timeline").glob("*.savepoint"))
    damaged.write_bytes(b"no Avro")
    result = run("report", tmp_path / "t", "-o", tmp_path / "page.html")
    assert result.code == 0, result
    document = embedded((tmp_path / "page.html").read_text())
    assert document["problems"]
    assert "table-damaged" in {each["code"] for each in document["findings"]}


def test_output_is_whole_or_not_there_and_never_in_the_table(run, table, tmp_path):
    """It replaces no file of the table, and a folder that is missing is an error of one line."""
    path = table("cow_partitioned-1.1.1")
    assert run("report", path, "-o", path / "page.html").code == 2
    assert run("report", path, "-o", tmp_path / "none" / "page.html").code == 2
    assert run("report", path).code == 2
    assert run("report", path, "-o", "-").out.startswith("<!doctype html>")
    # Before the table is opened and all of it collected.
    assert run("report", tmp_path / "none", "-o", "-", "--json").code == 2
    result = run("report", path, "-o", tmp_path / "page.html", "--json")
    assert result.json["bytes"] == (tmp_path / "page.html").stat().st_size


def test_the_version_changes_with_the_timeline(tmp_path):
    """A page that is open knows by it that there is something new."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    table = on_disk(builder, tmp_path)
    before = version_of(table)
    assert version_of(table.refresh()) == before
    builder.commit(at(2), {"p": ["f"]})
    assert version_of(on_disk(builder, tmp_path)) != before


def test_documents_of_long_tables_are_bounded(tmp_path, monkeypatch):
    """What is left out is counted."""
    builder = TableBuilder(2)
    for number in range(1, 9):
        builder.commit(at(number), {f"p{number}": ["f"]})
    monkeypatch.setattr(page_data, "EVENTS_MAX", 3)
    monkeypatch.setattr(page_data, "FILES_MAX", 5)
    monkeypatch.setattr(page_data, "PARTITIONS_MAX", 2)
    monkeypatch.setattr(page_data, "COMMITS_MAX", 4)
    document = page_document(on_disk(builder, tmp_path).read_only())
    assert (len(document["events"]), document["events_left_out"]) == (3, 5)
    assert (len(document["files"]), document["files_left_out"]) == (5, 11)
    assert len(document["partitions"]) == 2
    assert document["simulations"] == []
    monkeypatch.setattr(page_data, "FILES_MAX", 8)
    shown = page_document(on_disk(builder, tmp_path).read_only())["files"]
    assert {each["partition"] for each in shown} == {f"p{number}" for number in range(1, 9)}  # its newest of each
    assert all(each["reason"] == "live" for each in shown)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_page_finds_out_once_what_keeps_the_files(layout):
    """Each commit is read once; a folder is listed once for that and once for archival, however much is replayed."""
    builder = TableBuilder(layout)
    for number in range(1, 40):
        builder.commit(at(number), {f"p{number % 3}": ["f"]})
    recorded = RecordingStorage(builder.storage)
    document = page_document(Table(recorded, clock=builder.clock).read_only(), with_contents=True)
    assert [each["commits_retained"] for each in document["simulations"]] == [1, 2, 3, 5, 10, 20, 30]
    assert document["usage"]["total"]["files"] == len(builder.storage.files())
    calls = Counter(recorded.calls)
    assert {calls["list", f"p{number}"] for number in range(3)} == {2}
    read = [count for (verb, path), count in calls.items() if verb == "read" and ".commit" in path]
    assert read and max(read) == 1
    assert sum(count for (verb, path), count in calls.items() if path == builder.folder) <= 7


@pytest.mark.parametrize("layout", [1, 2])
def test_a_page_replays_what_it_decoded_for_its_events(layout, monkeypatch):
    """Each instant becomes plain data once, and every replay is that of ``hudi-py simulate``."""
    builder = TableBuilder(layout)
    for number in range(1, 9):
        builder.commit(at(number), {f"p{number % 3}": ["f"]})
    opened = Table(builder.storage, clock=builder.clock).read_only()
    decoded = Counter()
    plain = Contents.plain
    monkeypatch.setattr(Contents, "plain", lambda self, instant: (decoded.update([instant]), plain(self, instant))[1])
    shown = {each["commits_retained"]: each for each in page_document(opened)["simulations"]}
    assert decoded and set(decoded.values()) == {1}
    assert shown
    for retained, replay in shown.items():
        simulated = opened.simulate(commits_retained=retained)
        assert [each[1] for each in replay["points"]] == [step.bytes for step in simulated.steps]
        assert (replay["files_deleted"], replay["bytes_max"]) == (len(simulated.deleted), simulated.bytes_max)


@pytest.mark.parametrize("layout", [1, 2])
def test_a_page_replays_nothing_without_a_commit_that_is_damaged(layout):
    """What it wrote is unknown, so each size after it would be wrong; the page says which file it is."""
    builder = TableBuilder(layout)
    for number in range(1, 5):
        builder.commit(at(number), {"p": ["f"]})
    damaged = next(path for path in builder.storage.files() if at(2) in path and path.endswith(".commit"))
    builder.storage.replace(damaged, b"damaged")
    document = page_document(Table(builder.storage, clock=builder.clock).read_only())
    assert document["simulations"] == []
    assert document["not_simulated"] == "a part that it needs cannot be read; see the findings"
    assert any(damaged in problem for problem in document["problems"])


def test_a_page_replays_what_a_reader_waits_for(tmp_path, monkeypatch):
    """The retentions that matter most are replayed first, and the page says that there are others."""
    builder = TableBuilder(2)
    for number in range(1, 21):
        builder.commit(at(number), {"p": ["f"]})
    opened = on_disk(builder, tmp_path).read_only()
    shown = {}
    for looks in (0, 200, 600, 1000, 3000):
        monkeypatch.setattr(page_data, "LOOKS_MAX", looks)
        document = page_document(opened)
        shown[looks] = [each["commits_retained"] for each in document["simulations"]]
        assert bool(document["not_simulated"]) == (looks < 3000)
    # Of 20 files, retaining 3 takes 180 looks, 10 takes 320, 1 takes 140, 5 takes 220, 2 takes 160, 20 takes 520.
    assert shown == {0: [], 200: [3], 600: [3, 10], 1000: [1, 3, 5, 10], 3000: [1, 2, 3, 5, 10, 20]}
    assert document["not_simulated"] is None
    monkeypatch.setattr(page_data, "LOOKS_MAX", 0)
    assert page_document(opened)["not_simulated"] == (
        "20 files of 20 commits take long; hudi-py simulate replays them at a shell"
    )


class TestInABrowser:
    """Drawn, read, and used with the keyboard alone."""

    pytestmark = BROWSER

    def test_everything_is_drawn_at_every_width_in_both_colours(self, page, tmp_path):
        """No error, no request to anywhere, and no page wider than the screen."""
        path = page("cow_mixed-1.1.1")
        document = embedded(path.read_text())
        for dark in (False, True):
            with Browser(tmp_path / f"profile{dark}", dark=dark) as browser:
                for width in (360, 800, 1400):
                    browser.resize(width, 900)
                    browser.open(f"file://{path}")
                    assert browser.evaluate("document.documentElement.scrollWidth") <= width
                    assert browser.evaluate("document.querySelectorAll('#history tbody tr').length") == len(
                        document["events"]
                    )
                    assert browser.evaluate("document.querySelectorAll('.finding').length") == len(document["findings"])
                    assert browser.evaluate("document.querySelectorAll('canvas').length") == 3
                assert browser.errors == []
                assert {url for url in browser.requests if not url.startswith(("file://", "data:"))} == set()
                back = browser.evaluate("getComputedStyle(document.body).backgroundColor")
                assert back == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")

    def test_the_keyboard_reaches_and_works_everything(self, page, tmp_path):
        """Tab goes through all controls; keys zoom the timeline and choose instants; everything has a name."""
        path = page("cow_mixed-1.1.1")
        with Browser(tmp_path / "profile") as browser:
            browser.open(f"file://{path}")
            reached = set()
            for _ in range(60):
                browser.press("Tab")
                reached.add(browser.evaluate("document.activeElement.id || document.activeElement.className"))
            assert {"timeline", "search", "action", "retained", "partition-search", "skip"} <= reached
            browser.evaluate("document.getElementById('timeline').focus()")
            browser.press("PageDown")
            first = browser.evaluate("document.querySelector('#instant b').textContent")
            browser.press("PageDown")
            assert browser.evaluate("document.querySelector('#instant b').textContent") != first
            for key in ("+", "ArrowRight", "-", "0"):
                browser.press(key)
            browser.evaluate("document.getElementById('retained').focus()")
            before = browser.evaluate("document.getElementById('retained-text').textContent")
            browser.evaluate(
                "document.getElementById('retained').value = 0; document.getElementById('retained').oninput()"
            )
            assert browser.evaluate("document.getElementById('retained-text').textContent") != before
            browser.evaluate("document.querySelector('#partitions button').focus()")
            browser.press("Enter")
            assert browser.evaluate("document.activeElement.id") == "files-title"
            nodes = browser.accessible()
            unnamed = [n for n in nodes if n["focusable"] and not n["name"] and n["role"] != "RootWebArea"]
            assert unnamed == []
            assert browser.errors == []

    def test_an_instant_is_decoded_and_slices_are_drawn(self, run, page, tmp_path):
        """The whole content of the newest instants comes along; slices of a partition stand in their file groups."""
        path = page("cow_mixed-1.1.1")
        document = embedded(path.read_text())
        with Browser(tmp_path / "profile", width=360) as browser:
            browser.open(f"file://{path}")
            rows = "[...document.querySelectorAll('#history tbody tr')]"
            for number, event in enumerate(reversed(document["events"])):
                browser.evaluate(f"{rows}[{number}].querySelector('button').click()")
                shown = browser.evaluate("document.querySelector('#instant details pre')?.textContent ?? null")
                assert (shown is not None) == (event["state"] == "COMPLETED")
                if shown is not None and event["action"] != "savepoint":
                    told = run("instant", document["table"]["location"], event["requested_time"], "--json").json
                    assert json.loads(shown) == told["content"]
            browser.evaluate("document.querySelector('#partitions button').click()")
            said = browser.evaluate("document.querySelector('#files [role=img]').ariaLabel")
            partition = browser.evaluate("document.querySelector('#partitions button').textContent")
            groups = {each["group"] for each in document["files"] if each["partition"] == partition} - {None}
            assert said.startswith(f"Slices of {len(groups)} file group")
            assert "live" in said
            assert browser.evaluate("document.querySelectorAll('#files canvas').length") == 1
            assert browser.evaluate("document.documentElement.scrollWidth") <= 360
            assert browser.errors == []

    def test_a_server_is_asked_for_files_that_the_page_leaves_out(self, tmp_path, monkeypatch):
        """Every partition of a table with more files than a page holds has its files, and the page follows them."""
        builder = TableBuilder(2)
        for number in (1, 2, 3):
            builder.commit(at(number), {"a": ["f"], "b": ["g"]})
        on_disk(builder, tmp_path / "t")
        monkeypatch.setattr(page_data, "FILES_MAX", 2)
        with Server(("127.0.0.1", 0), socket.AF_INET) as server, Browser(tmp_path / "profile") as browser:
            host = f"127.0.0.1:{server.server_port}"
            server.site = Site(
                (str(tmp_path / "t"),), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({host})
            )
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
            browser.open(f"http://{host}/t/0/")
            rows = "document.querySelectorAll('#files tbody tr').length"
            for number, count in ((0, 4), (1, 4)):  # three slices and the metafile
                browser.evaluate(f"document.querySelectorAll('#partitions button')[{number}].click()")
                browser.wait(f"{rows} === {count}")
            builder.commit(at(4), {"b": ["g"]})
            on_disk(builder, tmp_path / "t")
            browser.wait(f"{rows} === 5")
            assert "left out" not in browser.evaluate("document.getElementById('files').textContent")
            server.shutdown()
