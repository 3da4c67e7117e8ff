"""Bulk inserts as their settings want them: order of the rows in files, number of files, one row of each key."""

import io
import itertools
import random

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py import write_job
from hudi_py.errors import ConfigError, WriteError
from support import writes

MODE = "hoodie.bulkinsert.sort.mode"
CLASS = "hoodie.bulkinsert.user.defined.partitioner.class"
COLUMNS = "hoodie.bulkinsert.user.defined.partitioner.sort.columns"
SUFFIX = "hoodie.bulkinsert.sort.suffix.record_key"
COMBINE = "hoodie.combine.before.insert"
BY_COLUMNS = {CLASS: "org.apache.hudi.execution.bulkinsert.RowCustomColumnsSortPartitioner", COLUMNS: "ts"}
ARRIVAL = [{}, {MODE: "NONE"}, {MODE: "PARTITION_PATH_REPARTITION"}, {MODE: "PARTITION_PATH_REPARTITION_AND_SORT"}]
BY_KEY = [{MODE: "GLOBAL_SORT"}, {MODE: "PARTITION_SORT"}]
SPILLED = {"hoodie.memory.merge.max.size": 2000}


def some_rows(count=120):
    """Keys of one to three letters, most rows in one partition, ordering values that repeat."""
    chosen = random.Random(count)
    return [
        {"id": f"k{number}", "region": "eu" if number % 4 else f"r{number % 3}", "ts": chosen.randrange(5)}
        for number in chosen.sample(range(count), count)
    ]


def bulk_inserted(rows, settings, *, streamed):
    """Return the rows of each file of a new table, by partition."""
    storage = writes.create_table(9)
    table = writes.open_table(storage, **settings, **writes.ALONE, **(SPILLED if streamed else {}))
    batches = [pa.RecordBatch.from_pylist(rows[at : at + 19], schema=writes.SCHEMA) for at in range(0, len(rows), 19)]
    table.bulk_insert(iter(batches) if streamed else pa.Table.from_batches(batches))
    files = {}
    for name, content in storage.files().items():
        if name.endswith(".parquet"):
            found = pq.ParquetFile(io.BytesIO(content)).read(columns=[*writes.SCHEMA.names, "_hoodie_commit_seqno"])
            files.setdefault(name.partition("/")[0], []).append(found.to_pylist())
    numbers = [row.pop("_hoodie_commit_seqno") for rows in itertools.chain(*files.values()) for row in rows]
    assert len(numbers) == len(set(numbers))
    return files


def expected(rows, key):
    """One file for each partition: all rows come from one task and fit into a file."""
    paths = sorted({row["region"] for row in rows})
    return {path: [sorted((row for row in rows if row["region"] == path), key=key)] for path in paths}


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("settings", ARRIVAL + BY_KEY, ids=lambda each: each.get(MODE, "unset").lower())
def test_rows_of_a_file_have_the_order_that_the_mode_says(settings, streamed):
    """In order of arrival, or by the text of their keys; in memory as through temporary files."""
    rows = some_rows()
    key = (lambda row: row["id"].encode()) if settings in BY_KEY else (lambda row: 0)
    assert bulk_inserted(rows, settings, streamed=streamed) == expected(rows, key)


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
def test_rows_are_sorted_by_columns_and_then_by_their_key(streamed):
    """With Apache Hudi's own partitioner by columns."""
    rows = [row | {"ts": number // 2} for number, row in enumerate(some_rows())]
    found = bulk_inserted(rows, BY_COLUMNS | {SUFFIX: True}, streamed=streamed)
    assert found == expected(rows, lambda row: (row["ts"], row["id"]))


def test_many_partitions_in_any_order_make_one_file_each_while_rows_wait_in_little_memory(monkeypatch):
    """Whatever is written early stays open for the rows of the partition that come later."""
    real = write_job.base_file_options
    monkeypatch.setattr(write_job, "base_file_options", lambda given: attrs.evolve(real(given), row_group_bytes=500))
    rows = [{"id": f"k{number}", "region": f"r{number % 7}", "ts": number} for number in range(300)]
    assert bulk_inserted(rows, {MODE: "NONE"}, streamed=False) == expected(rows, lambda row: 0)


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("mode", ["NONE", "GLOBAL_SORT"])
def test_one_row_of_each_key_is_written_if_asked_for(mode, streamed):
    """That with the greatest ordering value, of equal ones the latest; keys of other partitions are other keys."""
    rows = [row | {"id": f"k{int(row['id'][1:]) % 30}"} for row in some_rows()]
    best = {}
    for number, row in enumerate(rows):
        place = row["region"], row["id"]
        best[place] = max(best.get(place, (-1, -1)), (row["ts"], number))
    kept = [rows[number] for number in sorted(number for _, number in best.values())]
    found = bulk_inserted(rows, {MODE: mode, COMBINE: True}, streamed=streamed)
    by_key = {path: [sorted(each, key=lambda row: row["id"]) for each in files] for path, files in found.items()}
    assert by_key == expected(kept, lambda row: row["id"])
    if mode == "GLOBAL_SORT":
        assert found == by_key


def test_rows_without_an_ordering_value_cannot_be_chosen_from():
    """As in other writes that choose."""
    with pytest.raises(WriteError, match="'ts' is null in 1 row;"):
        bulk_inserted([{"id": "a", "region": "eu", "ts": None}], {COMBINE: True}, streamed=False)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({MODE: "SOMEHOW"}, MODE),
        ({COLUMNS: "ts"}, CLASS),
        ({SUFFIX: True}, CLASS),
        ({CLASS: "com.example.Partitioner", COLUMNS: "ts"}, "com.example.Partitioner"),
        ({CLASS: BY_COLUMNS[CLASS]}, COLUMNS),
        (BY_COLUMNS | {MODE: "NONE"}, MODE),
        (BY_COLUMNS | {COLUMNS: "nothing"}, "nothing"),
        ({MODE: "GLOBAL_SORT", "hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 2}, MODE),
    ],
)
def test_what_would_have_no_effect_is_refused_by_name(settings, named):
    """Before anything is written."""
    storage = writes.create_table(9)
    with pytest.raises(ConfigError, match=named):
        writes.open_table(storage, **settings, **writes.ALONE).bulk_insert(pa.Table.from_pylist(some_rows(3)))
    assert not len(writes.open_table(storage).timeline)
