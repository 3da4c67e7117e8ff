"""Inserts that look at the keys of the table: known keys dropped or refused, as a dictionary would."""

import itertools
import random
from collections import Counter

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, WriteError
from support import writes

DROP = {"hoodie.datasource.write.insert.drop.duplicates": True}
POLICY = "hoodie.datasource.insert.dup.policy"
COMBINE = "hoodie.combine.before.insert"
SPILLED = {"hoodie.memory.merge.max.size": 2000}
GLOBAL = {"hoodie.index.type": "GLOBAL_SIMPLE"}


def some_rows(chosen, count):
    return [
        {"id": f"k{chosen.randrange(60)}", "region": f"r{chosen.randrange(3)}", "ts": chosen.randrange(9)}
        for _ in range(count)
    ]


def inserted(storage, rows, settings, streamed=False):
    table = writes.open_table(storage, **settings, **writes.ALONE, **(SPILLED if streamed else {}))
    batches = [pa.RecordBatch.from_pylist(rows[at : at + 19], schema=writes.SCHEMA) for at in range(0, len(rows), 19)]
    table.insert(iter(batches) if streamed else pa.Table.from_batches(batches))


def in_order(rows):
    return sorted(rows, key=lambda row: (row["region"], row["id"], row["ts"]))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("index", [{}, GLOBAL], ids=["in partitions", "global"])
@pytest.mark.parametrize("settings", [DROP, {POLICY: "drop"}, {POLICY: "drop", COMBINE: True}], ids=str)
def test_known_keys_are_dropped(settings, index, streamed, kind):
    """The policy keeps rows that repeat a new key; the older setting writes only the greatest of them."""
    if streamed and settings == {POLICY: "drop"} and index:
        settings = settings | {COMBINE: True}
    chosen = random.Random(7)
    storage = writes.create_table(9, **{"hoodie.table.type": kind})
    rows, deleted = [], set()
    for number in range(3):
        given = some_rows(chosen, 70)
        inserted(storage, given, settings | index, streamed)
        place = (lambda row: row["id"]) if index else (lambda row: (row["region"], row["id"]))
        known = {place(row) for row in rows}
        fresh = [row for row in given if place(row) not in known]
        if DROP.keys() & settings.keys() or settings.get(COMBINE):
            best = {}
            for row in fresh:
                if place(row) not in best or row["ts"] >= best[place(row)]["ts"]:
                    best[place(row)] = row
            fresh = list(best.values())
        rows += fresh
        # A deleted key is not known any more, in log files either.
        counts = Counter((row["region"], row["id"]) for row in rows)
        gone = {(row["region"], row["id"]) for row in itertools.islice(rows, number, None, 5)}
        gone = {place for place in gone if counts[place] == 1}  # a log record stands for one row of a base file
        deleted |= gone
        keys = pa.Table.from_pylist([{"region": region, "id": key} for region, key in sorted(gone)])
        writes.open_table(storage, **writes.ALONE).delete(keys)
        rows = [row for row in rows if (row["region"], row["id"]) not in gone]
    assert in_order(writes.merged_rows_of(storage)) == in_order(rows)
    assert deleted & {(row["region"], row["id"]) for row in rows}  # inserted again
    writes.assert_tidy(storage, settings)


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("index", [{}, GLOBAL], ids=["in partitions", "global"])
def test_known_keys_fail_an_insert_as_a_whole(index, streamed):
    """The number of them and one of them are named, nothing is committed; keys that repeat are no reason."""
    storage = writes.create_table(9)
    first = [{"id": f"k{number}", "region": f"r{number % 3}", "ts": 1} for number in range(40)]
    settings = {POLICY: "FAIL"} | index
    inserted(storage, first, settings)
    with pytest.raises(WriteError, match=r"1 rows .* 'k7'"):
        inserted(
            storage,
            [{"id": f"k{number}", "region": f"r{number % 3}", "ts": 2} for number in range(100, 140)] + [first[7]],
            settings,
            streamed,
        )
    assert in_order(writes.merged_rows_of(storage)) == in_order(first)
    repeated = [{"id": "new", "region": "r0", "ts": ts} for ts in (1, 2)]
    inserted(storage, repeated, settings)
    assert in_order(writes.merged_rows_of(storage)) == in_order(first + repeated)
    writes.assert_tidy(storage, settings)


@pytest.mark.parametrize(
    ("operation", "settings"),
    [
        ("upsert", DROP),
        ("upsert", {POLICY: "drop"}),
        ("bulk_insert", DROP),
        ("insert_overwrite", {POLICY: "fail"}),
        ("insert", DROP | {POLICY: "fail"}),
        ("insert", DROP | {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}),
        ("insert", {POLICY: "sometimes"}),
    ],
)
def test_operations_that_would_do_something_else_are_refused(operation, settings):
    """By name, before anything is written."""
    storage = writes.create_table(9)
    with pytest.raises(ConfigError, match="dup"):
        rows = pa.Table.from_pylist(writes.OLD, schema=writes.SCHEMA)
        getattr(writes.open_table(storage, **settings, **writes.ALONE), operation)(rows)
    assert not len(writes.open_table(storage).timeline)
