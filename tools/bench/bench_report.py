"""Tables from the records of `run`."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CPU_S_MIN = 0.001  # below this a figure is a clock tick, not a measurement
Key = tuple[str, str, str]


def report(files: Iterable[Path]) -> None:
    """Print Markdown: per workload, case and metric one row per contestant, with ratios to the limit and to Hudi."""
    figures: dict[Key, dict[str, list[dict[str, Any]]]] = {}
    for record in (json.loads(line) for file in files for line in file.read_text().splitlines()):
        if record["kind"] == "machine":
            print("- " + ", ".join(f"{key} {value}" for key, value in record.items() if key != "kind"))
        else:
            key = (record["workload"], record["case"], record["metric"])
            figures.setdefault(key, {}).setdefault(record["who"], []).append(record)
    heading = None
    for (workload, case, metric), rows in figures.items():
        if heading != (workload, case):
            heading = (workload, case)
            print(f"\n### {workload}: {case}\n")
            print("| metric | who | n | min s | median s | x limit | x fastest Hudi | cpu s | peak MB | strangers |")
            print("|---|---|---|---|---|---|---|---|---|---|")
        floor = _fastest(rows, "limit")
        peer = _fastest(rows, "hudi:")
        for who, records in rows.items():
            print(f"| {metric} | {who} | {_cells(records, floor, peer)} |")


def _fastest(rows: dict[str, list[dict[str, Any]]], prefix: str) -> float | None:
    seconds = [r["s"] for who, records in rows.items() if who.startswith(prefix) for r in records if "s" in r]
    return min(seconds, default=None)


def _cells(records: list[dict[str, Any]], floor: float | None, peer: float | None) -> str:
    measured = [record for record in records if "s" in record]
    if not measured:
        reason = records[0].get("na") or records[0].get("err") or "no figure"
        return f"0 | {str(reason)[:80]} " + "| " * 6
    seconds = [record["s"] for record in measured]
    best = min(seconds)
    cells = [
        str(len(seconds)),
        f"{best:.4g}",
        f"{statistics.median(seconds):.4g}",
        f"{best / floor:.3g}" if floor else "-",
        f"{best / peer:.3g}" if peer else "-",
        f"{max(CPU_S_MIN, min(record['cpu'] for record in measured)):.3g}",
        str(max(record["peak_mb"] for record in measured)),
        f"{max(record['other'] for record in measured):.2f}",
    ]
    return " | ".join(cells)
