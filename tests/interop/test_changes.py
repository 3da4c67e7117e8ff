"""What changed in ranges of time, and each single change, as Hudi reads it: of its newest release's tables and ours."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta, timezone

import pyarrow as pa
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


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_reads_each_change_that_we_write_and_goes_on(peer, tmp_path, kind):
    """By keys and by conditions, a compaction or clustering between; expected is in what two dictionaries differ."""
    path, rows, expected = tmp_path / "t", {}, Counter()
    mode = ("op_key_only", "data_before", "data_before_after")[(len(kind) + len(peer.version) + peer.table_version) % 3]
    create = PARTITIONED.create(peer.table_version) | SETTINGS | {"hoodie.datasource.write.table.type": kind}
    create |= {"hoodie.table.cdc.supplemental.logging.mode": mode}
    again = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}

    def step(time, changed, gone=()):
        for number in {*changed, *gone}:
            row, before = changed.get(number), rows.get(number)
            if row != before:
                sides = (None if each is None else (each["id"], each["ts"]) for each in (before, row))
                expected[("d" if row is None else "u" if before else "i", time, *sides)] += 1
            rows.pop(number, None)
        rows.update(changed)

    def batch(numbers, version):
        return {number: PARTITIONED.fill(number, version) for number in numbers}

    def arrow(changed):
        return pa.Table.from_pylist(list(changed.values()), schema=PARTITIONED.schema)

    first = batch(range(9), 1)
    step(hudi_py.write(path, arrow(first), operation="insert", settings=create).instant, first)
    table = hudi_py.open_table(path, settings=again | {"hoodie.compact.inline.max.delta.commits": 1})
    second = batch((1, 2, 3, 9), 2)
    step(table.upsert(arrow(second)).instant, second)
    table.refresh()
    assert (table.cluster if kind == "COPY_ON_WRITE" else table.compact)()
    gone = [number for number, row in rows.items() if row["ts"] == 2 or number == 4]
    step(table.delete(where=f"ts = 2 or id = '{rows[4]['id']}'").instant, {}, gone)
    third = {number: {**row, "ts": 3} for number, row in rows.items() if row["region"] == "us"}
    step(table.update({"ts": 3}, where="region = 'us'").instant, third)
    # No deleted key again: 1.0.2 compares the delete's number with that of the row as other types, and fails.
    fourth = batch((0, 7, 10), 4)
    instant = peer.write(path, arrow(fourth), "upsert", create | again)["requested_time"]
    step(instant, fourth)
    fifth = batch((0, 5, 11), 5)
    step(table.refresh().upsert(arrow(fifth)).instant, fifth)

    writes = table.refresh().timeline.writes.completed()
    asked = INCREMENTAL | {
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": _just_before(writes[0].requested_time),
        "hoodie.datasource.read.end.instanttime": writes[-1].completion_time or writes[-1].requested_time,
    }
    assert Counter(map(_key, peer.read(path, options=asked))) == expected
    assert Counter(_key(row) for each in table.change_log("0") for row in plain_rows(each)) == expected
    assert canonical_rows(rows.values()) == peer.read(path)
    assert not table.check()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_changes_that_hudi_archived_are_told(peer, tmp_path, kind):
    """Its own change query leaves them out or fails; expected is in what two dictionaries differ."""
    path, rows, expected = tmp_path / "t", {}, Counter()
    mode = ("op_key_only", "data_before", "data_before_after")[(len(kind) + len(peer.version) + peer.table_version) % 3]
    create = PARTITIONED.create(peer.table_version) | SETTINGS | {"hoodie.datasource.write.table.type": kind}
    create |= {
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        "hoodie.archive.automatic": "false",
        "hoodie.compact.inline": "false",
    }
    writes = [
        ("upsert", range(6)), ("upsert", (1, 2, 6, 7)), ("delete", (2, 3)), ("insert", (9, 10)), ("upsert", (1, 2, 10)),
        ("delete", (9,)), ("upsert", (5,)), ("upsert", (4, 6)), ("upsert", (4,)),
    ]  # fmt: skip
    for version, (operation, numbers) in enumerate(writes, start=1):
        time = peer.write(path, PARTITIONED.batch(numbers, version), operation, create)["requested_time"]
        for number in numbers:
            before = rows.pop(number, None)
            if operation != "delete":
                rows[number] = PARTITIONED.fill(number, version)
            sides = (None if each is None else (each["id"], each["ts"]) for each in (before, rows.get(number)))
            expected[("d" if number not in rows else "u" if before else "i", time, *sides)] += 1
    peer.archive(
        path,
        {
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
            "hoodie.clean.commits.retained": "1",
            "hoodie.cleaner.commits.retained": "1",
        },
    )
    table = hudi_py.open_table(path)
    assert len(table.timeline.writes.completed()) < len(writes)
    assert Counter(_key(row) for each in table.change_log("0") for row in plain_rows(each)) == expected


def test_changes_beside_an_unfinished_base_file_are_those_that_hudi_reads(real_hudi, tmp_path):
    """
    Log files that were written behind it, in a table of completion times; in every range.

    Only ranges: Hudi's snapshot lays those log files on the unfinished file, and so loses their rows.
    """
    peer, path = real_hudi("1.1.1"), tmp_path / "t"
    several = {
        "hoodie.clean.failed.writes.policy": "LAZY",
        "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
        "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    }
    create = PARTITIONED.create(9) | several | {"hoodie.datasource.write.table.type": "MERGE_ON_READ"}
    create |= {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": "false", "hoodie.compact.inline": "false"}
    peer.write(path, PARTITIONED.batch(range(6), 1), "upsert", create)
    failed = peer.fail_write(path, PARTITIONED.batch((*range(3), *range(20, 29)), 2), "upsert", create)
    peer.write(path, PARTITIONED.batch((0, 1, 3), 3), "upsert", create)
    peer.write(path, PARTITIONED.batch((3, 4), 4), "upsert", create)
    peer.write(path, PARTITIONED.batch((1,), 5), "delete", create)
    table = hudi_py.open_table(path)
    assert [each for each in path.glob(f"*/*_{failed}.parquet") if list(each.parent.glob("*.log.*"))]
    ends = [None, *(each.completion_time for each in table.timeline.writes.completed())]
    for begin, end in ((a, b) for a in ends for b in ends if a is None or b is None or a <= b):
        asked = INCREMENTAL | {"hoodie.datasource.read.begin.instanttime": begin or "000"}
        asked |= {} if end is None else {"hoodie.datasource.read.end.instanttime": end}
        found = (row for batch in table.changes(begin, end) for row in batch.to_pylist())
        assert canonical_rows(found) == peer.read(path, options=asked), (begin, end)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_row_written_again_as_it_was_is_an_update(peer, tmp_path, kind):
    """One that loses against the stored row is none; with one of each, and one that changes."""
    create = PARTITIONED.create(peer.table_version) | SETTINGS | {"hoodie.datasource.write.table.type": kind}
    create["hoodie.compact.inline"] = "false"
    rows = {number: PARTITIONED.fill(number, 5) for number in range(3)}
    again = {0: rows[0], 1: {**rows[1], "ts": 4}, 2: PARTITIONED.fill(2, 6)}
    for each in (rows, again):
        written = pa.Table.from_pylist(list(each.values()), schema=PARTITIONED.schema)
        peer.write(tmp_path / "t", written, "upsert", create)
    table = hudi_py.open_table(tmp_path / "t")
    first = table.timeline.writes.completed()[0]
    asked = INCREMENTAL | {
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": _just_before(first.requested_time),
    }
    found = Counter(_key(row) for each in table.change_log("0") for row in plain_rows(each))
    assert Counter(map(_key, peer.read(tmp_path / "t", options=asked))) == found
    assert [op for op, _, before, _ in found if before == (rows[0]["id"], 5)] == ["u"]


def _just_before(time):
    """A millisecond, so that whether a range takes its own begin in decides nothing."""
    moment = datetime.strptime(time + "000", "%Y%m%d%H%M%S%f").replace(tzinfo=timezone.utc) - timedelta(milliseconds=1)
    return moment.strftime("%Y%m%d%H%M%S%f")[:-3]


def _key(change):
    """The operation, the time, and of the rows what JSON says alike on both sides: keys and versions."""
    rows = (json.loads(each) if isinstance(each, str) else each for each in (change["before"], change["after"]))
    sides = [None if row is None else (row["id"], row["ts"]) for row in rows]
    return change["op"], str(change.get("ts_ms", change.get("ts"))), *sides
