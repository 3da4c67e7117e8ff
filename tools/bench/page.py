#!/usr/bin/env python3
"""
Milliseconds until a browser shows the page of a table with ten thousand instants, from a server that just started.

    page.py [--instants 10000] [--repetitions 5] [--scratch DIR]

For each repetition a new server and a new browser: the first paint, when the timeline is drawn, and when all is; then,
of the same server, the page that is opened again. The least of each is printed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from make_table import make_table

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

MARKS: Final = """
window.marks = {};
new MutationObserver(() => { window.marks[document.documentElement.dataset.ready] ??= performance.now(); })
  .observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
"""
"""Runs before anything of the page."""


def shown(browser: object, url: str) -> dict[str, float]:
    """When the parts of a page were there, in milliseconds since it was asked for."""
    browser.open(url)  # type: ignore[attr-defined]
    script = "({ paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime, ...window.marks })"
    found = browser.evaluate(script)  # type: ignore[attr-defined]
    return {"first paint": found["paint"], "timeline": found.get("partly", found["yes"]), "all": found["yes"]}


def main() -> None:
    """Run as the arguments say."""
    from support.browser import Browser

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instants", type=int, default=10_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--scratch", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.scratch) as name:
        table = Path(name) / "t"
        make_table(table, version=9, mode="full", partitions=2, groups=1, slices=given.instants)
        runs: dict[str, list[dict[str, float]]] = {"new server": [], "again": []}
        for number in range(given.repetitions):
            command = [sys.executable, "-m", "hudi_py", "serve", str(table), "--port", "0"]
            with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
                assert server.stdout is not None
                found = re.search(r"http://\S+?/", server.stdout.readline())
                assert found is not None
                with Browser(Path(name) / f"profile-{number}") as browser:
                    browser.send("Page.addScriptToEvaluateOnNewDocument", {"source": MARKS})
                    for of_run in runs.values():
                        of_run.append(shown(browser, f"{found[0]}t/0/"))
                server.terminate()
        for which, of_run in runs.items():
            least = {part: round(min(each[part] for each in of_run)) for part in of_run[0]}
            print(f"{which}: " + ", ".join(f"{part} {value} ms" for part, value in least.items()))


if __name__ == "__main__":
    main()
