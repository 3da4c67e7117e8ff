"""Change data capture of writes on Spark: each single change is told, as a dictionary would tell it."""

from __future__ import annotations

from collections import Counter

import pytest

import hudi_py
from support.trips import PARTITIONED, TWO_PASSES

pytestmark = pytest.mark.spark

CDC = PARTITIONED | {"hoodie.table.cdc.enabled": "true", "hoodie.clean.automatic": "false"}


def changes_of(path):
    found = Counter()
    for change in hudi_py.open_table(path).change_log("0").to_arrow().to_pylist():
        row = change["after"] or change["before"]
        before, after = (each and each["ts"] for each in (change["before"], change["after"]))
        found[change["ts"], (row["id"], row["region"]), before, after] += 1
    return found


def rows(numbers, ts):
    return [
        {"id": f"k{number}", "region": f"r{number % 3}", "ts": ts, "amount": 0.5, "name": "n"} for number in numbers
    ]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("passes", [{}, TWO_PASSES], ids=["single pass", "two passes"])
@pytest.mark.parametrize("version", [6, 9])
def test_single_changes_of_writes_on_spark_add_up(trips, kind, passes, version):
    """Upserts, inserts into small files and deletes, by one task and by several."""
    table = trips(CDC | passes | {"hoodie.table.type": kind}, version)
    expected, known = Counter(), {}
    for ts, (operation, numbers) in enumerate(
        [("insert", range(40)), ("upsert", range(20, 60)), ("delete", range(10, 30)), ("upsert", range(50))]
    ):
        given = rows(numbers, ts)
        result = getattr(table.client, operation)(table.frame(given))
        for row in given:
            key = row["id"], row["region"]
            after = None if operation == "delete" else ts
            if (known.get(key), after) != (None, None):
                expected[result.instant, key, known.get(key), after] += 1
            known[key] = after
    assert changes_of(table.path) == expected
