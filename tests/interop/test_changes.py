"""What changed in ranges of time, and each single change, on tables of the newest release: as it reads them itself."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta, timezone

import pytest
from real_hudi import TABLE_VERSION, canonical_rows

import hudi_py
from hudi_py.rows.read import plain_rows
from support.interop_model import PARTITIONED

pytestmark = pytest.mark.oracle

NEWEST = max(TABLE_VERSION)
INCREMENTAL = {"hoodie.datasource.query.type": "incremental"}
SETTINGS = {
    "hoodie.table.cdc.enabled": "true",
    "hoodie.table.cdc.supplemental.logging.mode": "data_before_after",
    "hoodie.clean.automatic": "false",
    "hoodie.metadata.enable": "false",
}


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_are_those_that_hudi_reads(real_hudi, tmp_path, kind):
    """Inserts, updates and deletes, of one commit and of all, as rows and one by one."""
    peer, table = real_hudi(NEWEST), tmp_path / "t"
    create = PARTITIONED.create(TABLE_VERSION[NEWEST]) | SETTINGS | {"hoodie.datasource.write.table.type": kind}
    commits = [
        peer.write(table, PARTITIONED.batch(numbers, version), operation, create | {"hoodie.compact.inline": "false"})
        for version, (operation, numbers) in enumerate(
            [("upsert", range(6)), ("upsert", (1, 2, 6, 7)), ("delete", (2, 3)), ("upsert", (2, 4, 8))], start=1
        )
    ]
    ours = hudi_py.open_table(table)
    ends = [each.completion_time for each in ours.timeline.writes.completed()]
    starts = [_just_before(each["requested_time"]) for each in commits]
    for begin, end in [*zip(starts[1:3], ends[1:3], strict=True), (starts[0], ends[-1])]:
        asked = INCREMENTAL | {
            "hoodie.datasource.read.begin.instanttime": begin, "hoodie.datasource.read.end.instanttime": end
        }  # fmt: skip
        found = (row for batch in ours.changes(begin, end) for row in batch.to_pylist())
        assert canonical_rows(found) == peer.read(table, options=asked)
        single = peer.read(table, options=asked | {"hoodie.datasource.query.incremental.format": "cdc"})
        changes = [row for batch in ours.change_log(begin, end) for row in plain_rows(batch)]
        assert Counter(map(_key, changes)) == Counter(map(_key, single)), (begin, end)


def _just_before(time):
    """A millisecond, so that whether a range takes its own begin in decides nothing."""
    moment = datetime.strptime(time + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=timezone.utc) - timedelta(milliseconds=1)
    return moment.strftime("%Y%m%d%H%M%S%f")[:-3]


def _key(change):
    """The operation, the time, and of the rows what JSON says alike on both sides: keys and versions."""
    rows = (json.loads(each) if isinstance(each, str) else each for each in (change["before"], change["after"]))
    sides = [None if row is None else (row["id"], row["ts"]) for row in rows]
    return change["op"], str(change.get("ts_ms", change.get("ts"))), *sides
