"""Ten thousand instants are drawn, scrolled and zoomed without stutter, in a real browser."""

from __future__ import annotations

import pytest

import hudi_py
from hudi_py.inspection.page_data import page_document
from hudi_py.inspection.page_file import page_html
from support import fixtures
from support.browser import CHROMIUM, Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: apt-get install chromium"),
]
FRAMES = 60
FRAME_SECONDS_MAX = 1 / 50


def cpu(browser):
    """CPU time of the page's thread in seconds: unlike clocks it does not count what other processes take."""
    metrics = browser.send("Performance.getMetrics")["metrics"]
    return next(each["value"] for each in metrics if each["name"] == "TaskDuration")


def frames(browser, step):
    """Do something at each of many frames; CPU time for one."""
    before = cpu(browser)
    script = (
        "new Promise((done) => { let n = 0; const next = () => {"
        f" ({step})(n); n += 1; if (n < {FRAMES}) requestAnimationFrame(next); else done(n); }};"
        " requestAnimationFrame(next); })"
    )
    assert browser.evaluate(script) == FRAMES
    return (cpu(browser) - before) / FRAMES


def test_ten_thousand_instants_are_smooth(tmp_path):
    """Drawn with half a second of work, and fifty frames fit into a second while one scrolls or zooms."""
    opened = hudi_py.open_table(str(fixtures.unpack("cow_mixed-1.1.1", tmp_path))).read_only()
    document = page_document(opened)
    events = [event for event in document["events"] if event["at"] is not None]
    document["events"] = [
        {**events[n % len(events)], "requested_time": f"2026{n:013d}", "at": 1.7e9 + 900 * n, "seconds": 300.0}
        for n in range(10_000)
    ]
    document["stored"] = [
        (1.7e9 + 900 * n, 1_000_000, 1000 * (n % 500), 500 * (n % 700), 100_000) for n in range(10_000)
    ]
    file = tmp_path / "page.html"
    file.write_text(page_html(document, "large"))
    with Browser(tmp_path / "profile") as browser:
        browser.send("Performance.enable", {"timeDomain": "threadTicks"})
        browser.open(f"file://{file}")  # the first start of a browser compiles scripts
        begun = cpu(browser)
        browser.open(f"file://{file}")
        assert "10,000 actions" in browser.evaluate("document.getElementById('page-number').textContent")
        # A new page may count from zero again.
        drawn = cpu(browser) - begun if cpu(browser) > begun else cpu(browser)
        assert drawn < 0.5
        assert frames(browser, "(n) => scrollTo(0, 40 * n)") < FRAME_SECONDS_MAX
        keys = (
            "(n) => document.getElementById('timeline').dispatchEvent("
            "new KeyboardEvent('keydown', {key: n < 8 ? '+' : 'ArrowRight'}))"
        )
        assert frames(browser, keys) < FRAME_SECONDS_MAX
        assert browser.errors == []
