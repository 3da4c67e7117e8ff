"""Pages of tables that are empty, damaged, full of findings or badly named: as readable as the others."""

from __future__ import annotations

import json
import subprocess

import pytest

from hudi_py.inspection.page_data import page_document
from hudi_py.inspection.page_file import list_html, page_html
from support.browser import CHROMIUM, Browser
from support.tables import TableBuilder, at, on_disk

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
LOCATIONS = (
    "/lake/a b",
    "/lake/$(touch x)`id`;&|<>",
    '/lake/it\'s "so"',
    "/lake/\\'",
    "/lake/a\nb\x1b[31m\u202eevil",
    "/lake/plain-1_2.3",
)
COLLECT = """(() => { const drawn = new Set(), draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
drawn.add(text); return draw.call(this, text, ...rest); };
document.getElementById('zoom-in').click(); document.getElementById('zoom-all').click();
return new Promise((done) => setTimeout(() => done(JSON.stringify([...drawn])), 100)); })()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """One for all."""
    with Browser(tmp_path_factory.mktemp("profile"), width=390) as browser:
        yield browser


@pytest.fixture
def document(tmp_path):
    """Of a table with two commits."""
    builder = TableBuilder(2)
    for number in (1, 2):
        builder.commit(at(number), {"p": ["f"]})
    return page_document(on_disk(builder, tmp_path / "t").read_only())


@pytest.fixture
def shown(browser, tmp_path):
    """Shows a document."""

    def show(document):
        (tmp_path / "page.html").write_text(page_html(document, "title"))
        browser.open(f"file://{tmp_path / 'page.html'}")
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        return browser

    return show


def text_of(browser, name):
    """Text of an element, as it is seen."""
    return browser.evaluate(f"document.getElementById('{name}').innerText")


def test_an_empty_table_says_so_in_words(shown, tmp_path):
    """No controls without a use, no frames around nothing."""
    browser = shown(page_document(on_disk(TableBuilder(2), tmp_path / "t").read_only()))
    assert "No instants yet" in text_of(browser, "timeline")
    assert text_of(browser, "partitions-hint") == "No partitions yet."
    assert "it takes two commits, and this table has none" in text_of(browser, "sizes")
    hidden = (
        "retention-controls retention-hint timeline-controls timeline-hint all-tables history-title history-controls "
        "history-box partitions-controls partitions-box"
    )
    for name in hidden.split():
        assert browser.evaluate(f"getComputedStyle(document.getElementById('{name}')).display") == "none", name
    assert (
        max(browser.evaluate(f"document.getElementById('{name}').clientHeight") for name in ("timeline", "sizes")) < 100
    )


def test_partitions_that_cannot_be_listed_are_not_said_to_be_none(shown, document):
    """The page has no sums then; a filter that matches nothing says so in the list."""
    browser = shown({**document, "partitions": None, "usage": None})
    assert "see the findings" in text_of(browser, "partitions-hint")
    assert "yet" not in text_of(browser, "partitions-hint")
    browser = shown(document)
    assert browser.evaluate("document.getElementById('partitions-hint').hidden")
    search = "document.getElementById('partition-search')"
    browser.evaluate(f"Object.assign({search}, {{value: 'nowhere'}}).dispatchEvent(new Event('input'))")
    assert "No partition matches." in text_of(browser, "partitions-box")


def test_what_cannot_be_read_stands_among_the_findings(shown, document):
    """With what to do, and nothing else claims that all is well."""
    browser = shown({**document, "findings": [], "problems": ["/lake/" + "x" * 200 + ": no Avro"], "simulations": []})
    text = text_of(browser, "findings")
    assert "no Avro" in text
    assert f"hudi-py check {document['table']['location']}" in text
    assert "Nothing is wrong" not in text


def test_a_finding_about_the_whole_table_names_no_place_in_it(shown, document):
    """A lone dot after its code looked like a mistake."""
    one = {"severity": "info", "code": "storage-removable", "where": ".", "message": "3 files", "fix": "clean"}
    browser = shown({**document, "findings": [one, {**one, "code": "files-small", "where": "p"}]})
    titles = browser.evaluate("[...document.querySelectorAll('.finding p:first-child')].map((each) => each.innerText)")
    assert titles == ["info storage-removable", "info files-small p"]


def test_a_finding_of_hundreds_of_places_is_one_card(shown, document):
    """The next kind of finding is seen without scrolling through them; all are there to be opened."""
    many = [
        {"severity": "warning", "code": "files-small", "where": f"p{n}", "message": f"{n} files", "fix": "cluster"}
        for n in range(400)
    ]
    last = {**many[0], "code": "timeline-long", "where": "timeline"}
    browser = shown({**document, "findings": [*many, last]})
    assert browser.evaluate("document.querySelectorAll('.finding').length") == 2
    assert "400 places" in text_of(browser, "findings")
    browser.evaluate("document.querySelector('#findings summary').click()")
    assert "p199: 199 files" in text_of(browser, "findings")
    assert "and 200 more" in text_of(browser, "findings")


def test_axes_show_the_times_of_the_instants_wherever_one_is(shown, document):
    """24 hours and ISO dates, whatever the zone of the browser."""
    drawn = {}
    for zone in ("America/Los_Angeles", "Asia/Kolkata"):
        shown(document).send("Emulation.setTimezoneOverride", {"timezoneId": zone})
        browser = shown(document)
        drawn[zone] = json.loads(browser.evaluate(COLLECT))
    day = document["events"][0]["requested_time"][:8]
    assert drawn["America/Los_Angeles"] == drawn["Asia/Kolkata"]
    assert f"{day[:4]}-{day[4:6]}-{day[6:]}" in drawn["Asia/Kolkata"]


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_command_on_the_page_can_be_copied(shown, document, location, tmp_path):
    """A shell takes the location for one word, and runs nothing in it; no name turns the text around it."""
    browser = shown(
        {**document, "table": {**document["table"], "location": location}, "live": "http://127.0.0.1:9/t/0/"}
    )
    command = text_of(browser, "plan-command").removeprefix("hudi-py ")
    told = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, cwd=tmp_path, check=True)
    assert told.stdout.decode().split("\0")[:2] == ["clean", location]
    assert not (tmp_path / "x").exists()
    for text in (text_of(browser, "location"), command, list_html([("/t/0/", location)])):
        assert "\u202e" not in text
        assert "\x1b" not in text
