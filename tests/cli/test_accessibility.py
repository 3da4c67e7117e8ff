"""
All views of the page pass an accessibility checker, dark and light: axe-core, which is packed with the tests.

tests/support/axe has its minified script as npm ships it (axe-core 4.14.1), compressed, and its licence (MPL 2.0).
"""

from __future__ import annotations

import gzip
import json
import socket
import threading

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.inspection.page_data import page_document
from hudi_py.inspection.page_file import page_html
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Site
from hudi_py.inspection.site_actions import Actions
from support import fixtures
from support.browser import CHROMIUM, Browser
from support.repository import ROOT

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
AXE = gzip.decompress((ROOT / "tests" / "support" / "axe" / "axe.min.js.gz").read_bytes()).decode()
SETTINGS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.clean.commits.retained": "1",
}


def violations(browser):
    """What the checker finds: rule and the elements; rules of WCAG 2.1 A and AA, and those of good practice."""
    browser.evaluate(f"(() => {{ {AXE} }})()")
    found = browser.evaluate(
        "axe.run(document).then((result) => JSON.stringify([result.violations, result.passes.length]))"
    )
    broken, passed = json.loads(found)
    assert passed > 10  # it looked at something
    return [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in broken]


@pytest.fixture
def lake(tmp_path):
    """A table with everything that the page draws, and one with findings."""
    location = str(tmp_path / "trips")
    for number in range(4):
        rows = pa.table({"id": ["a", "b", "c"], "city": ["Rome", "Oslo", "Rome"], "fare": [1.0, 2.0, float(number)]})
        hudi_py.write(location, rows, settings=SETTINGS)
    hudi_py.open_table(location).create_savepoint(name="kept")
    others = ("cow_failed_write-1.2.0", "cow_partitioned-1.1.1")  # the latter has column statistics
    return [location, *(str(fixtures.unpack(name, tmp_path / name)) for name in others)]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_views_pass_the_checker(lake, tmp_path, dark):
    """The page of a table with a decoded instant, a partition, its columns, slices and a plan; the lists."""
    with Server(("127.0.0.1", 0), socket.AF_INET) as server, Browser(tmp_path / "profile", dark=dark) as browser:
        port = server.server_port
        server.site = Site(
            tuple(lake), lambda where: hudi_py.open_table(where).read_only(), hosts=frozenset({f"127.0.0.1:{port}"})
        )
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for page in ("/", "/api"):
            browser.send("Page.navigate", {"url": f"http://127.0.0.1:{port}{page}"})
            browser.wait(f"location.pathname === '{page}' && document.readyState === 'complete'")
            assert violations(browser) == [], page
        for number in range(len(lake)):
            for width in (360, 1200):
                browser.resize(width, 900)
                browser.open(f"http://127.0.0.1:{port}/t/{number}/")
                browser.wait("document.getElementById('plan-text').textContent !== ''")
                # One that is completed, so that it has a content to open.
                browser.evaluate("[...document.querySelectorAll('#history button')].at(-1).click()")
                browser.evaluate("document.querySelector('#instant summary').click()")
                browser.wait("document.querySelector('#instant details pre') !== null")
                browser.evaluate("document.querySelector('#partitions button').click()")
                browser.wait("document.getElementById('columns').textContent !== ''")
                assert violations(browser) == [], (number, width)
        # The server has answered all of it: a plan under other settings, and the ranges of the columns.
        browser.open(f"http://127.0.0.1:{port}/t/2/")
        browser.wait("document.getElementById('plan-text').textContent !== ''")
        browser.evaluate("document.querySelector('#partitions button').click()")
        browser.wait("document.querySelectorAll('#columns tbody tr').length > 0")
        table = hudi_py.open_table(lake[2])
        shown = {each.column for each in table.column_ranges(table.partitions()[0])}
        cells = "[...document.querySelectorAll('#columns tbody td:first-child')].map((cell) => cell.textContent)"
        assert set(browser.evaluate(cells)) == shown
        assert "amount" in browser.evaluate("document.getElementById('columns').textContent")
        first = browser.evaluate("document.getElementById('plan-text').textContent")
        browser.evaluate(
            "(() => { const slider = document.getElementById('plan-number'); slider.value = 1;"
            " slider.dispatchEvent(new Event('change')); })()"
        )
        browser.wait("document.getElementById('plan-text').textContent.startsWith('1:')")
        assert not first.startswith("1:")
        assert browser.evaluate("document.getElementById('plan-command').textContent").endswith("--commits-retained 1")
        assert [each for each in browser.errors if "favicon" not in each and "404" not in each] == []
        server.shutdown()


def test_actions_pass_the_checker(lake, tmp_path):
    """Their section, and the dialog that shows one before it is done."""
    token = "0123456789abcdefABCDEF"
    with Server(("127.0.0.1", 0), socket.AF_INET) as server, Browser(tmp_path / "profile") as browser:
        server.site = Site(
            (lake[0],), lambda where: hudi_py.open_table(where).read_only(), hosts=None, token=token,
            actions=Actions(hudi_py.open_table, {}),
        )  # fmt: skip
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        for width in (360, 1200):
            browser.resize(width, 900)
            browser.open(f"http://127.0.0.1:{server.server_port}/t/0/?token={token}")
            assert violations(browser) == [], width
            browser.evaluate("document.querySelector('#actions button').click()")
            browser.wait("document.getElementById('doing-text').textContent.includes('do')")
            assert violations(browser) == [], width
        server.shutdown()


def test_a_report_has_no_plan_that_nobody_answers(lake, tmp_path):
    """It passes the checker, too, and asks nobody."""
    file = tmp_path / "report.html"
    file.write_text(page_html(page_document(hudi_py.open_table(lake[0]).read_only()), "trips"))
    with Browser(tmp_path / "profile") as browser:
        browser.open(f"file://{file}")
        browser.evaluate("document.querySelector('#partitions button').click()")
        assert browser.evaluate("document.getElementById('plan-box').hidden")
        assert violations(browser) == []
        assert {url for url in browser.requests if url.startswith("http")} == set()
