"""What the change logs of a table tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from hudi_py.model.instant import Action
from hudi_py.table import Table
from support.fixtures import expected_rows
from support.writes import open_table

Counted = Callable[[Iterable[Mapping[str, Any]]], Counter[str]]


def changes_that_hudi_reads(
    name: str, table: Table
) -> Iterator[tuple[str, str | None, list[str] | None, Counted, Counter[str]]]:
    """
    Begin, end and columns of each change query that real Hudi was asked, a function that counts changes, its changes.

    Of a replaced file group 0.15.0 and 1.0.2 read its last row as often as it has rows, so only their number counts.

    Args:
        name: One of the tables of ``rows/`` in the README of the fixtures.
        table: It, with all commits active.
    """
    replacing = {each.requested_time for each in table.timeline.completed(Action.REPLACE_COMMIT)}
    counted = partial(_counted, faulty=set() if name.endswith("-1.1.1") else replacing)
    for each in expected_rows(name)["cdc"]:
        rows = [row for change in each["data"] for row in (change["before"], change["after"]) if row]
        yield each["begin"], each["end"], list(rows[0]) if rows else None, counted, counted(each["data"])


def _counted(changes: Iterable[Mapping[str, Any]], *, faulty: set[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for change in changes:
        time = change["ts_ms"] if "ts_ms" in change else change["ts"]
        is_faulty = change["op"] == "d" and time in faulty
        rows = () if is_faulty else (change["before"], change["after"])
        found[json.dumps([change["op"], time, *rows], sort_keys=True)] += 1
    return found


def rows_by_changes(storage):
    """The rows that all single changes make, and every change log is told by a commit."""
    table, rows = open_table(storage), {}
    for change in table.change_log("0").to_arrow().to_pylist():
        for row in filter(None, (change["before"], change["after"])):
            rows[row["id"]] = change["after"]
    stats = (stat for each in table.timeline.writes.completed() for stat in _stats_of(table, each))
    told = {path for stat in stats for path in stat.cdc_stats or ()}
    assert {path for path in storage.files() if path.endswith(".cdc")} == told
    return sorted(filter(None, rows.values()), key=lambda row: row["id"])


def _stats_of(table, instant):
    return [stat for stats in table.contents.commit(instant).partition_to_write_stats.values() for stat in stats]
