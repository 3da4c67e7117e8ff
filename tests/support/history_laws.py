"""What a random history is played on, and what is said of one that breaks a law."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from hudi_py.errors import ConfigError, ConflictError, HudiError, RefusedError, UnsupportedTable, WriteError
from support.history_writer import Row

Rows = Mapping[tuple[str, str], Row]
OWN_FOLDER = ".hoodie/.aux/hudi_py/"
REFUSALS: Final = (RefusedError, ConfigError, ConflictError, UnsupportedTable, WriteError)
AFTER_A_CRASH = frozenset(
    {
        "instant-stale", "instant-request-missing", "leftover-markers", "file-orphaned", "properties-backup",
    }
)  # fmt: skip
"""What a check may say about a table whose last writer died; `recover` has to settle it."""


class Violation(Exception):
    """
    A law does not apply.

    Args:
        law: Which, short; two sequences that break the same one are one finding.
        message: What was expected, and what was found.
    """

    def __init__(self, law: str, message: str) -> None:
        super().__init__(law, message)
        self.law, self.message = law, message

    def __str__(self) -> str:
        return f"[{self.law}] {self.message}"


@attrs.frozen
class Kind:
    """
    What kind of table a history is played on.

    Args:
        version: Table version 6, 8 or 9, of a new table.
        fixture: Name of a table of Apache Hudi to begin with instead.
        metadata: ``hoodie.metadata.enable``; None for not set.
        lock: Whether there is a lock provider.
        lazy: Whether failed writes are rolled back by cleans, and heartbeats tell which have failed.
        deltas: Whether a new table is merge-on-read.
        rows: Whether the table is written and read as users do it, log files included; see `history_rows`.
        buckets: Whether a new table has a bucket index (of 2 buckets); with *rows*.
        statistics: Whether the metadata table keeps statistics; with *rows*.
        indexes: Whether the metadata table keeps a record index and Bloom filters; with *rows*.
        global_index: ``hoodie.index.type`` by which writes look keys up in all partitions; with *rows*, new tables.
        changes: Whether a new table has change data capture; with *rows*.
        several: Whether several writers are allowed, which are told apart by `txn.conflict`; with *rows* and *lock*.
    """

    version: int = 9
    fixture: str | None = None
    metadata: bool | None = None
    lock: bool = False
    lazy: bool = False
    deltas: bool = False
    rows: bool = False
    buckets: bool = False
    statistics: bool = False
    indexes: bool = False
    global_index: str = ""
    changes: bool = False
    several: bool = False


def refused_without_change(before: Mapping[str, bytes], after: Mapping[str, bytes], error: HudiError) -> None:
    """A refusal changes nothing but what is documented as our own."""
    changed = {
        path
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path) and not path.startswith(OWN_FOLDER)
    }
    if changed:
        raise Violation(
            f"refusal: changed the table ({type(error).__name__})", f"{sorted(changed)[:6]} changed, although: {error}"
        )


def compare(law: str, expected: Rows, found: Rows, what: str) -> None:
    if expected == found:
        return
    lost, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    other = [key for key in expected.keys() & found.keys() if expected[key] != found[key]]
    raise Violation(
        f"{law}: {'rows lost' if lost else 'rows too many' if more else 'other rows'}",
        f"{what}: expected {len(expected)}, found {len(found)}: {len(lost)} lost {sorted(lost)[:3]}, "
        f"{len(more)} too many {sorted(more)[:3]}, {len(other)} other "
        f"{[(key, expected[key]['ts'], found[key]['ts']) for key in sorted(other)[:3]]}",
    )
