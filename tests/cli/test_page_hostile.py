"""Text of a table in a browser: whatever commits, savepoints and names say, it is text, and nothing breaks."""

from __future__ import annotations

import json
import socket
import threading

import pytest

import hudi_py
from hudi_py.formats import records_codec as codec
from hudi_py.formats.commit_codec import encode_commit
from hudi_py.formats.properties import format_properties
from hudi_py.inspection.page_data import page_document
from hudi_py.inspection.page_file import page_html
from hudi_py.inspection.server import Server
from hudi_py.inspection.site import Site
from hudi_py.model.instant import State
from hudi_py.model.records import CommitMetadata, SavepointMetadata, WriteStat
from support.browser import CHROMIUM, Browser
from support.tables import SYNC, TableBuilder, at, on_disk

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
MARKUP = (
    '"\'><script>document.title="owned"</script><img src=x onerror="document.title=1"><style>*{display:none}</style>'
)
TURNED = "\u202eexe.\u2066\u200f\u061c"
ESCAPES = "\x1b[31m\x1b]0;owned\x07\x9b2J\x00\x7f"
LONG = "w" * 3000
TEXT = f"{MARKUP}{TURNED}{ESCAPES}first\nsecond\r\u2028third {{{{7*7}}}} javascript:alert(1) {LONG}"
RAW = ("\u202e", "\u2066", "\u200f", "\x1b", "\x9b", "\x7f")


@pytest.fixture
def location(tmp_path):
    """A table whose every text is hostile."""
    builder = TableBuilder(2)
    builder.commit(at(1), {"p": ["f"]})
    partition = "p=" + TEXT.replace("/", "\u2215").replace("\x00", "")[:60]
    builder.commit(at(2), {partition: ["g"]})
    builder.commit(at(3), {partition: ["g"]})
    schema = {"type": "record", "name": "T", "doc": TEXT, "fields": [{"name": TEXT, "type": "string", "doc": TEXT}]}
    stat = WriteStat(file_id=TEXT, path=f"p/{TEXT}.parquet", partition_path="p", num_writes=1, file_size_in_bytes=1)
    said = CommitMetadata(
        partition_to_write_stats={TEXT: (stat,)},
        operation_type=TEXT,
        extra_metadata={TEXT: TEXT, "engine": TEXT, "user": TEXT, "schema": json.dumps(schema)},
    )
    for state in (State.REQUESTED, State.INFLIGHT):
        builder.instant(at(4), "commit", state)
    builder.instant(at(4), "commit", State.COMPLETED, encode_commit(said, as_json=False, sync=SYNC))
    held = SavepointMetadata(savepointed_by=TEXT, savepointed_at_ms=0, comments=TEXT, files={"p": ()})
    builder.instant(at(1), "savepoint", State.INFLIGHT)
    builder.instant(at(1), "savepoint", State.COMPLETED, codec.encode_savepoint(held, sync=SYNC))
    properties = {
        "hoodie.table.name": TEXT, "hoodie.table.type": "COPY_ON_WRITE", "hoodie.table.version": "8",
        "hoodie.timeline.layout.version": "2", "hoodie.table.recordkey.fields": f"id,{TEXT}",
        "hoodie.table.partition.fields": TEXT, "hoodie.archivelog.folder": "history",
    }  # fmt: skip
    builder.put(".hoodie/hoodie.properties", format_properties(properties, ("made", "for a test")))
    on_disk(builder, tmp_path / "t")
    return str(tmp_path / "t")


def look(browser, width):
    """Opens everything on the page, and holds it to what it must never do."""
    browser.evaluate("[...document.querySelectorAll('#history button')].forEach((each) => each.click())")
    for row in range(browser.evaluate("document.querySelectorAll('#history tbody tr').length")):
        browser.evaluate(f"document.querySelectorAll('#history tbody button')[{row}].click()")
        browser.evaluate("document.querySelector('#instant details')?.querySelector('summary').click()")
        browser.wait("(document.querySelector('#instant details')?.children.length ?? 2) > 1")
        hold(browser, width)
    for row in range(browser.evaluate("document.querySelectorAll('#partitions tbody tr').length")):
        browser.evaluate(f"document.querySelectorAll('#partitions tbody button')[{row}].click()")
        browser.wait("document.getElementById('files').textContent !== ''")
        hold(browser, width)


def hold(browser, width):
    """Nothing of the table became an element or ran; nothing turns or hides text; nothing is wider than the screen."""
    assert browser.evaluate("document.title") not in ("owned", "1")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.evaluate("document.querySelectorAll('script').length") == 3
    assert browser.evaluate("document.querySelectorAll('style').length") == 2
    shown = browser.evaluate(
        "document.body.innerText + [...document.querySelectorAll('[title],[aria-label]')]"
        ".map((each) => each.title + each.ariaLabel).join('')"
    )
    assert not [mark for mark in RAW if mark in shown]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    # No text makes a part of the page so long that the next one is not found.
    tallest = browser.evaluate(
        "Math.max(...[...document.querySelectorAll('header, section > *, #instant, tr, .card')]"
        ".map((each) => each.offsetHeight))"
    )
    assert tallest < 1200


@pytest.mark.parametrize("is_live", [False, True], ids=["report", "served"])
def test_hostile_text_is_text(location, tmp_path, is_live):
    """In names, parameters, operations, schemas with their docs, comments, users, partitions and decoded contents."""
    open_table = lambda where: hudi_py.open_table(where).read_only()
    with Server(("127.0.0.1", 0), socket.AF_INET) as server, Browser(tmp_path / "profile") as browser:
        url = f"http://127.0.0.1:{server.server_port}/t/0/"
        server.site = Site((location,), open_table, hosts=frozenset({f"127.0.0.1:{server.server_port}"}))
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        if not is_live:
            (tmp_path / "page.html").write_text(
                page_html(page_document(open_table(location), with_contents=True), TEXT)
            )
            url = f"file://{tmp_path / 'page.html'}"
        for width in (360, 1440):
            browser.resize(width, 900)
            browser.open(url)
            assert "<script>" in browser.evaluate("document.getElementById('name').textContent")
            hold(browser, width)
            look(browser, width)
        assert [each for each in browser.errors if "favicon" not in each and "404" not in each] == []
        assert not [each for each in browser.requests if not each.startswith(("file:", "data:", "http://127.0.0.1:"))]
        server.shutdown()
