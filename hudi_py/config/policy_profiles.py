"""Policies to begin with, for common uses of a table: documents to be changed and kept in version control. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROFILES: Final[Mapping[str, str]] = {
    "streaming": """\
# A commit every minute or so, read by short queries: little is kept, so that each clean has little to do.
[keep]
everything = "2h"
commits = 10           # if the stream rests, too
floor = "30m"          # longer than the longest query
""",
    "long-queries": """\
# Queries of hours, and questions about last week.
[keep]
everything = "3d"      # longer than the longest query; for single jobs use leases instead
commits = 10
floor = "24h"
[tags]
daily = 14             # one snapshot of each of the last days can be read, too
[clean]
quarantine = true      # deleted files can be put back
grace = "3d"
""",
    "incremental": """\
# Jobs that read what has changed since they last ran.
[keep]
everything = "24h"
changes = "7d"         # a job may rest for so long; one that stores its progress (hudi-py consumer) may rest longer
commits = 10
floor = "24h"
""",
    "min-storage": """\
# As few bytes as possible: the newest rows, and what readers that are running may need.
[keep]
everything = "1h"      # longer than the longest query
commits = 1
floor = "1h"
""",
}
"""Name of each profile to its document, whose first line says for what it is."""


def purpose(document: str) -> str:
    """What a profile is for."""
    return document.partition("\n")[0].removeprefix("# ")
