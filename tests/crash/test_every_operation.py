"""Each operation on both types of table, interrupted at every call that changes something: not done, or done once."""

import pyarrow as pa
import pytest

from support.crash_points import EVERY, interruptions
from support.writes import ALONE, SCHEMA, create_table, merged_rows_of, open_table

SETTINGS = {**ALONE, "hoodie.metadata.enable": True}
KEY = ("loader", 7)
ROWS = [("eu", "a", 1), ("eu", "b", 1), ("us", "c", 1), ("us", "d", 1)]
CHANGED, NEW = ("eu", "a", 2), ("us", "n", 2)


def arrow(*rows):
    flat = [{"id": key, "region": region, "ts": ts} for region, key, ts in rows]
    return pa.Table.from_pylist(flat, schema=SCHEMA)


def merge(table, **words):
    """One clause of each kind."""
    statement = table.merge(arrow(CHANGED, ("eu", "b", 2), NEW), on=["id", "region"])
    statement = statement.when_matched_delete(where="id = 'b'").when_matched_update().when_not_matched_insert()
    return statement.when_not_matched_by_source_delete(where="id = 'd'").execute(**words)


SORT_MODES = ("NONE", "GLOBAL_SORT", "PARTITION_SORT", "PARTITION_PATH_REPARTITION_AND_SORT")
OPERATIONS = {
    "upsert": (lambda table, **words: table.upsert(arrow(CHANGED, NEW), **words), [CHANGED, *ROWS[1:], NEW]),
    "insert": (lambda table, **words: table.insert(arrow(NEW), **words), [*ROWS, NEW]),
    "delete": (lambda table, **words: table.delete(arrow(ROWS[0], ROWS[2]), **words), [ROWS[1], ROWS[3]]),
    "delete where": (lambda table, **words: table.delete(where="id = 'a'", **words), ROWS[1:]),
    "update": (
        lambda table, **words: table.update({"ts": 5}, where="region = 'us'", **words),
        [*ROWS[:2], ("us", "c", 5), ("us", "d", 5)],
    ),
    "merge": (merge, [CHANGED, ROWS[2], NEW]),
    "insert_overwrite": (lambda table, **words: table.insert_overwrite(arrow(NEW), **words), [*ROWS[:2], NEW]),
    "insert_overwrite_table": (lambda table, **words: table.insert_overwrite_table(arrow(NEW), **words), [NEW]),
    "drop_partitions": (lambda table, **words: table.drop_partitions(["us"], **words), ROWS[:2]),
    # A bulk insert looks for no keys: a row whose key is there is a second one.
    **{
        f"bulk_insert {mode}": (
            lambda table, **words: table.bulk_insert(arrow(NEW, ROWS[0]), **words),
            [*ROWS, NEW, ROWS[0]],
        )
        for mode in SORT_MODES
    },
}


def rows_of(storage):
    return [(row["region"], row["id"], row["ts"]) for row in merged_rows_of(storage)]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_interrupted_anywhere_each_operation_is_done_once(record_property, version, kind, name):
    """
    Given again with its write key it is done exactly once, wherever it was interrupted; nothing is left to find.

    On a table with a metadata table, and with log files where there can be some.
    """
    original = create_table(version, **{"hoodie.datasource.write.table.type": kind})
    open_table(original, **SETTINGS).upsert(arrow(*((region, key, 0) for region, key, _ in ROWS)))
    open_table(original, **SETTINGS).upsert(arrow(*ROWS))
    run, after = OPERATIONS[name]
    settings = {**SETTINGS, "hoodie.bulkinsert.sort.mode": name.rpartition(" ")[2]} if "bulk" in name else SETTINGS
    before, after, count = sorted(ROWS), sorted(after), 0
    assert rows_of(original) == before
    for case in interruptions(original.copy):
        count += case.run(lambda storage: run(open_table(storage, **settings), write_key=KEY))
        found = rows_of(case.storage)
        assert found in (before, after), case
        if name == "drop_partitions" and found == after:  # there is nothing to drop any more, which is refused
            open_table(case.storage, **SETTINGS).upsert(arrow())
        else:
            assert run(open_table(case.storage, **settings), write_key=KEY).is_repeated == (found == after), case
        assert rows_of(case.storage) == after, case
        open_table(case.storage, **SETTINGS).upsert(arrow(("ap", "z", 9)))
        assert rows_of(case.storage) == sorted([("ap", "z", 9), *after]), case
        table = open_table(case.storage)
        assert not table.timeline.pending(), case
        assert {finding.code for finding in table.check()} <= {"leftover-markers"}, case
    record_property("interruptions", count)
    assert count * EVERY > 40
