"""
Write ``docs/metrics.md``: every metric, from the list in the code; tests/tidy holds the page up to date.

Usage: ``python tools/make_metrics_page.py``
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hudi_py.inspection.open_metrics import FAMILIES

ROOT: Final = Path(__file__).resolve().parents[1]
TARGET: Final = ROOT / "docs" / "metrics.md"
_HEAD: Final = """# Metrics

Ages, counts, bytes and durations of tables, for Prometheus and everything else that reads OpenMetrics text. There are
two ways:

```
hudi-py serve /lake/warehouse                                  # then let a collector call /metrics
hudi-py clean --tables tables.txt --metrics-file clean.prom    # for the text files of node_exporter
```

`--metrics-file FILE` can be given to every command. The file is replaced at once when the command ends, whether it
succeeds or fails; with `--tables` and `fleet` it has the numbers of all tables. Use one file for each scheduled
command. If a run fails, the file keeps the time of the last success: alarm if `time() -
hudi_py_command_success_timestamp_seconds` grows too large. `doctor`, `du` and `fleet` list the files of a table and
add what keeps them; other commands add the timeline, which costs one listing.

`/metrics` reads the timeline of each table at every call. Files and findings are examined again when a timeline has
changed, for at most five seconds in one call; `hudi_py_examined_timestamp_seconds` shows the state of each table.

The label `table` is the location as it was given. With a token (`--token`), let the collector send it as
`Authorization: Bearer ...`.

| metric | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(f"| `{name}` | {meaning} |\n" for name, (_, meaning) in FAMILIES.items())


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"wrote {TARGET.relative_to(ROOT)}")
