"""Tables in which keys are repeated, or not: what is pruned never changes which rows come back."""

import random
from contextlib import suppress

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import HudiError
from hudi_py.mdt.lookup import RECORD_INDEX
from hudi_py.mdt.record_index import RecordIndex
from hudi_py.mdt.table import MetadataTable
from hudi_py.model.files import FileSlice, parse_base_file, parse_log_file
from hudi_py.model.records import CommitMetadata, WriteStat
from hudi_py.snapshot.unique_keys import row_count
from support import writes
from support.laws import examples

KEYS = "abcdefgh"
EVERY_INDEX = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
STEPS = st.lists(
    st.sampled_from(["BULK_INSERT", "INSERT", "UPSERT", "UPSERT", "DELETE", "compact", "cluster"]),
    min_size=1,
    max_size=6,
)
CONDITIONS = (
    ("id = '{}'", lambda row, key: row["id"] == key),
    ("_hoodie_record_key in ('{}', 'x')", lambda row, key: row["id"] == key),
    ("id = '{}' and ts > 1", lambda row, key: row["id"] == key and row["ts"] > 1),
    ("id > '{}'", lambda row, key: row["id"] > key),
    ("id = '{}' or region = 'us'", lambda row, key: row["id"] == key or row["region"] == "us"),
)


def made(version, kind, steps, rng):
    """A table after the steps, of which some are refused; no write looks up the keys of other partitions."""
    storage = writes.create_table(version, **{"hoodie.datasource.write.table.type": kind})
    for number, step in enumerate(steps):
        table = writes.open_table(storage, **EVERY_INDEX, **{"hoodie.compact.inline.max.delta.commits": 1})
        rows = [{"id": key, "region": rng.choice(["eu", "us"]), "ts": number} for key in rng.sample(KEYS, 3)]
        with suppress(HudiError):
            if step == "compact":
                table.compact()
            elif step == "cluster":
                table.cluster()
            else:
                writes.upsert(storage, rows, table, step)
    return storage


def plain(rows):
    return sorted(map(str, rows))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
@examples(8)
@given(STEPS, st.integers(0, 1 << 16))
def test_pruning_never_changes_which_rows_come_back(version, kind, steps, seed):
    """Whatever operations made the table: a condition gives the rows of a full read that meet it."""
    storage = made(version, kind, ["INSERT", *steps], random.Random(seed))
    table = writes.open_table(storage, **EVERY_INDEX)
    everything = table.rows().to_arrow().to_pylist()
    for key in (*KEYS, "x") if everything else ():
        for text, is_met in CONDITIONS:
            rows = table.rows(where=text.format(key))
            expected = [row for row in everything if is_met(row, key)]
            found = plain(rows.to_arrow().to_pylist())
            if "DELETE" in steps and kind == "MERGE_ON_READ":  # nobody counts what deletes in log files take
                assert set(found) <= set(plain(expected)), text.format(key)
            else:
                assert found == plain(expected), (text.format(key), rows.skipped)


def looked_up(storage, key):
    rows = writes.open_table(storage, **EVERY_INDEX).rows(where=f"id = '{key}'")
    return sorted(row["region"] for row in rows.to_arrow().to_pylist()), rows.skipped["record_index"] > 0


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_record_index_is_used_again_once_no_key_is_repeated(kind):
    """It names one of the two rows of a key: so it is asked for no key at all while there are two."""
    storage = writes.create_table(9, **{"hoodie.datasource.write.table.type": kind})
    first, again = ({"id": "a", "region": region, "ts": 1} for region in ("eu", "us"))
    writes.upsert(storage, [first, {"id": "b", "region": "us", "ts": 1}], operation="BULK_INSERT", **EVERY_INDEX)
    assert looked_up(storage, "a") == (["eu"], True)
    writes.upsert(storage, [again], operation="BULK_INSERT", **EVERY_INDEX)
    assert looked_up(storage, "a") == (["eu", "us"], False)
    assert looked_up(storage, "b") == (["us"], False)
    writes.upsert(storage, [again], operation="DELETE", **EVERY_INDEX)
    if kind == "MERGE_ON_READ":  # how many rows the delete takes is known once it is merged
        assert looked_up(storage, "b") == (["us"], False)
        writes.open_table(storage, **EVERY_INDEX, **{"hoodie.compact.inline.max.delta.commits": 1}).compact()
    # The row that is left is not in the index: the delete took the key out of it.
    assert looked_up(storage, "a") == (["eu"], False)
    writes.upsert(storage, [first], **EVERY_INDEX)
    assert looked_up(storage, "a")[0] == ["eu"]


STATES = st.tuples(
    st.sampled_from(["UPSERT", "UPSERT", "DELETE"]),
    st.sets(st.sampled_from("abcdefghijkl"), min_size=1),
    st.sampled_from([1, 100]),
)


@given(st.lists(STATES, min_size=1, max_size=6))
@examples(10)
def test_keys_of_an_index_are_counted_under_all_its_layers(states):
    """A base file and log files over it, any of them the largest: new keys, known keys again, deletes of either."""
    storage = writes.create_table(9)
    alive = set()
    for number, (operation, keys, commits) in enumerate(states):
        rows = [{"id": key, "region": "eu", "ts": number} for key in sorted(keys)]
        settings = EVERY_INDEX | {"hoodie.metadata.compact.max.delta.commits": commits}
        writes.upsert(storage, rows, operation=operation, **settings)
        alive = alive - keys if operation == "DELETE" else alive | keys
        table = writes.open_table(storage, **EVERY_INDEX)
        assert RECORD_INDEX in table.config.metadata_partitions
        with RecordIndex(MetadataTable(storage), table.timeline) as index:
            assert index.count() == len(alive), number


BASE = parse_base_file("g-0_0-0-0_20260101000000000.parquet")
LOG = parse_log_file(".g-0_20260101000000001.log.1_0-0-0")


def commit(**stat):
    return CommitMetadata(partition_to_write_stats={"p": [WriteStat(**{"path": "p/" + BASE.name, **stat})]})


@pytest.mark.parametrize(
    ("base", "logs", "commits", "count"),
    [
        (BASE, (), [commit(num_writes=3)], (3, 3)),
        (BASE, (), [commit(num_writes=3), commit(num_writes=5)], (3, 3)),
        (BASE, (), [], None),
        (None, (LOG,), [commit(path="p/" + LOG.name)], None),
        (BASE, (LOG,), [commit(path="p/" + LOG.name, num_update_writes=2), commit(num_writes=3)], (3, 3)),
        (BASE, (LOG,), [commit(path="p/" + LOG.name, num_inserts=1), commit(num_writes=3)], (4, 4)),
        (BASE, (LOG,), [commit(path="p/" + LOG.name, num_deletes=1), commit(num_writes=3)], (2, 3)),
        (BASE, (LOG,), [commit(path="p/" + LOG.name, num_inserts=1)], None),
        (BASE, (LOG,), [*2 * [commit(path="p/" + LOG.name, num_inserts=1)], commit(num_writes=3)], (5, 5)),
        (BASE, (LOG,), [commit(num_writes=3)], None),
        (BASE, (attrs.evolve(LOG, is_cdc=True),), [commit(num_writes=3)], (3, 3)),
    ],
)
def test_rows_are_counted_where_commits_tell_of_all_files(base, logs, commits, count):
    """A file of which nothing is told leaves them unknown, and so does a base file of an archived commit under logs."""
    assert row_count([FileSlice("p", "g-0", "1", base, logs)], commits, lambda: None) == count


def test_a_log_compaction_repeats_what_the_merged_files_say():
    """Counted twice, its deletes would make room for a repeated key."""
    of_log = {"path": "p/" + LOG.name, "num_inserts": 2, "num_deletes": 1}
    merged = attrs.evolve(commit(**of_log), operation_type="LOG_COMPACT")
    commits = [merged, commit(num_writes=3)]
    assert row_count([FileSlice("p", "g-0", "1", BASE, (LOG,))], commits, lambda: None) == (3, 3)
