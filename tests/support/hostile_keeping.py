"""Ways to spoil what hudi_py keeps beside a table: leases, and the files in quarantine with their manifests."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.hostile_tables import EARLY, ESCAPES, LATE, Spoil, endless, link_away, sparse

DEEP = b"[" * 200_000
UNTIL_MS = 1 << 50


def lease(**other: Any) -> bytes:
    """The file of a lease that counts, but for what is given."""
    document = {
        "version": 1, "kind": "snapshot", "id": "abc", "holder": "a reader", "instant": LATE, "pending": [],
        "created": "2026-01-01T00:00:00Z", "expires": "2099-01-01T00:00:00Z",
    }  # fmt: skip
    return json.dumps(document | other).encode()


def leases(spoiled: Callable[[Path], Any]) -> Spoil:
    """One file of a lease; *spoiled* gets its path."""

    def spoil(table: Path, outside: Path) -> None:
        folder = table / ".hoodie" / ".aux" / "hudi_py" / "leases"
        folder.mkdir(parents=True)
        spoiled(folder / "abc.json")

    return spoil


def removal(spoiled: Callable[[Path], Any]) -> Spoil:
    """A removal that holds one file and can be undone; *spoiled* gets the path of its manifest."""

    def spoil(table: Path, outside: Path) -> None:
        folder = table / ".hoodie" / ".aux" / "hudi_py" / "quarantine" / "orphans-1"
        (folder / "files").mkdir(parents=True)
        (folder / "files" / f"x-0_0-0-0_{EARLY}.parquet").write_bytes(b"bytes")
        spoiled(folder / "manifest.json")

    return spoil


def manifest(*files: str, **other: Any) -> bytes:
    document: dict[str, Any] = {"kind": "orphans", "made_ms": 1, "until_ms": UNTIL_MS}
    document["files"] = {path: {f"x-0_0-0-0_{EARLY}.parquet": 5, "canary.parquet": 6} for path in files}
    return json.dumps(document | other).encode()


def away(table: Path, outside: Path) -> None:
    """All that hudi_py keeps lies outside."""
    (table / ".hoodie" / ".aux").mkdir(exist_ok=True)
    link_away(table / ".hoodie" / ".aux" / "hudi_py", outside)


KEPT_KINDS: dict[str, Spoil] = {
    "lease is a pipe": leases(os.mkfifo),
    "lease is endless": leases(endless),
    "lease of gigabytes": leases(sparse),
    "lease is deep": leases(lambda path: path.write_bytes(DEEP)),
    "lease of another kind of digits": leases(lambda path: path.write_bytes(lease(instant="\u0661" * 17))),
    "lease with controls": leases(lambda path: path.write_bytes(lease(holder=ESCAPES))),
    "lease of many pending writes": leases(lambda path: path.write_bytes(lease(pending=[EARLY] * 300_000))),
    "manifest goes up": removal(lambda path: path.write_bytes(manifest("", "../../../../outside", "..", "/tmp"))),
    "manifest is deep": removal(lambda path: path.write_bytes(DEEP)),
    "manifest with controls": removal(lambda path: path.write_bytes(manifest("", kind=ESCAPES))),
    "manifest of numbers without end": removal(lambda path: path.write_bytes(manifest("", until_ms=10**400))),
    "manifest is a pipe": removal(os.mkfifo),
    "manifest of gigabytes": removal(sparse),
    "all is elsewhere": away,
}
