"""Writes of more rows than fit into memory."""

import itertools
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError, ConflictError, WriteError
from hudi_py.local.gather import gathered
from hudi_py.local.memory import Memory
from hudi_py.local.streamed import StreamedRows
from hudi_py.rows import spill as spill_module
from hudi_py.rows.spill import Spill
from support import writes

TINY = {"hoodie.memory.merge.max.size": 2000, **writes.ALONE}
SMALL_FILES = {"hoodie.copyonwrite.record.size.estimate": 1 << 20}
BUCKETS = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": 3}
SEVERAL = {
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
}
FEW = 4


def rows(chosen, keys, ts):
    """Rows in random order; most are in one partition, some keys come several times."""
    picked = [chosen.choice(keys) for _ in range(len(keys))]
    return [
        {"id": f"k{key}", "region": "eu" if key % 5 else f"r{key % 3}", "ts": ts + chosen.randrange(3)}
        for key in picked
    ]


def batches(listed):
    return (pa.RecordBatch.from_pylist(listed[at : at + 19], schema=writes.SCHEMA) for at in range(0, len(listed), 19))


def model(before, changes, *, deletes):
    """What a table orders by: the greater value wins, of equal ones the later row."""
    after = dict(before)
    for row in changes:
        place = row["region"], row["id"]
        if deletes:
            after.pop(place, None)
        elif place not in after or row["ts"] >= after[place]["ts"]:
            after[place] = row
    return after


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(("version", "index"), [(6, {}), (9, {}), (9, BUCKETS)], ids=["6", "9", "buckets"])
def test_rows_beyond_memory_change_a_table_as_a_dictionary(kind, version, index):
    """Upserts and deletes in many batches, small and large partitions, keys that repeat across batches."""
    chosen = random.Random(version)
    settings = {**TINY, **SMALL_FILES, **index}
    storage = writes.create_table(version, **{"hoodie.table.type": kind})
    expected = {}
    for number, operation in enumerate(["upsert", "delete", "upsert"]):
        changes = rows(chosen, range(number * 20, number * 20 + 80), 10 * number)
        table = writes.open_table(storage, **settings)
        getattr(table, operation)(batches(changes))
        expected = model(expected, changes, deletes=operation == "delete")
    stored = writes.merged_rows_of(storage)
    assert stored == sorted(expected.values(), key=lambda row: (row["region"], row["id"]))
    writes.assert_tidy(storage, (kind, version))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("moves", [True, False], ids=["moving", "staying"])
@pytest.mark.parametrize("index", ["GLOBAL_SIMPLE", "RECORD_INDEX"])
def test_a_global_index_beyond_memory_gives_the_rows_of_one_in_memory(index, moves, kind):
    """Keys that wander between partitions and repeat across batches, with values that win and lose, and deletes."""
    asked = {
        "hoodie.index.type": index,
        "hoodie.simple.index.update.partition.path": moves,
        "hoodie.record.index.update.partition.path": moves,
        "hoodie.metadata.enable": index == "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": index == "RECORD_INDEX",
        **SMALL_FILES,
    }
    # By commit time, because log files hold no ordering values that a row which moves could be compared with.
    more = {"hoodie.table.type": kind}
    if kind == "MERGE_ON_READ":
        more["hoodie.record.merge.mode"] = "COMMIT_TIME_ORDERING"
    chosen = random.Random(len(index) + moves)
    spilled, held = writes.create_table(9, **more), writes.create_table(9, **more)
    for number, operation in enumerate(["upsert", "upsert", "delete", "upsert"]):
        listed = [
            {"id": f"k{chosen.randrange(80)}", "region": f"r{chosen.randrange(4)}", "ts": number + chosen.randrange(3)}
            for _ in range(120)
        ]
        getattr(writes.open_table(spilled, **asked, **TINY), operation)(batches(listed))
        getattr(writes.open_table(held, **asked, **writes.ALONE), operation)(batches(listed))
        assert placed_rows(spilled) == placed_rows(held)
    assert placed_rows(held)
    writes.assert_tidy(spilled, (index, kind))


def placed_rows(storage):
    """All rows with the partitions that hold them; each key is there once."""
    found = writes.open_table(storage).rows(with_meta=True).to_arrow().to_pylist()
    names = ("id", "_hoodie_partition_path", "region", "ts")
    assert len(found) == len({row["id"] for row in found})
    return sorted(tuple(row[name] for name in names) for row in found)


@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite_table"])
@pytest.mark.parametrize("fields", ["region", ""], ids=["partitions", "one folder"])
def test_inserts_beyond_memory_add_every_row_once(operation, fields):
    """Each row of a stream, also those with the same key, with a sequence number of its own."""
    storage = writes.create_table(9, **{"hoodie.datasource.write.partitionpath.field": fields})
    listed = rows(random.Random(1), range(120), 1)
    table = writes.open_table(storage, **TINY, **SMALL_FILES)
    table.bulk_insert(pa.Table.from_pylist(listed[:5], schema=writes.SCHEMA))
    done = getattr(table, operation)(batches(listed))
    assert done.rows_inserted == len(listed)
    stored = table.rows(with_meta=True).to_arrow()
    assert stored.num_rows == len(listed) + (0 if operation == "insert_overwrite_table" else 5)
    assert len(stored.column("_hoodie_commit_seqno").unique()) == stored.num_rows


def test_only_one_row_of_a_key_is_inserted_on_request():
    """With hoodie.combine.before.insert, wherever in the stream the rows of a key are."""
    storage = writes.create_table(9)
    listed = rows(random.Random(2), range(200), 1)
    writes.open_table(storage, **TINY, **{"hoodie.combine.before.insert": "true"}).insert(batches(listed))
    assert writes.merged_rows_of(storage) == sorted(
        model({}, listed, deletes=False).values(), key=lambda row: (row["region"], row["id"])
    )


def test_a_full_disk_is_an_error_with_a_remedy_and_leaves_no_write(monkeypatch, tmp_path):
    """Nothing is committed, pending or left in the folder; the next write goes on."""
    storage = writes.create_table(9)

    def full(*_):
        raise OSError(28, "No space left on device")

    class FullFile:
        def __init__(self, file):
            self._file = file
            self.write = full

        def __getattr__(self, name):
            return getattr(self._file, name)

    given = spill_module.tempfile.TemporaryFile
    monkeypatch.setattr(spill_module.tempfile, "TemporaryFile", lambda **more: FullFile(given(**more)))
    listed = rows(random.Random(3), range(200), 1)
    settings = {**TINY, "hoodie.memory.spillable.map.path": str(tmp_path)}
    with pytest.raises(WriteError, match=r"No space left on device.*hoodie.memory.spillable.map.path"):
        writes.open_table(storage, **settings).upsert(batches(listed))
    monkeypatch.undo()
    table = writes.open_table(storage, **settings)
    assert not list(table.timeline)
    assert not os.listdir(tmp_path)
    assert table.upsert(batches(listed)).rows_inserted


def test_a_spill_has_no_name_that_a_killed_process_could_leave(tmp_path):
    """The folder is empty while rows are spilled; rows come back by part, in order."""
    schema = pa.schema([("n", pa.int64())])
    with Spill(schema, str(tmp_path), buffer_bytes=64) as spill:
        for start in range(0, 100, 10):
            numbers = pa.array(range(start, start + 10), pa.int64())
            spill.add(pa.RecordBatch.from_arrays([numbers], schema=schema), numbers.to_numpy() % FEW)
        assert not os.listdir(tmp_path)
        assert sorted(spill.parts()) == list(range(FEW))
        for part in range(FEW):
            back = [number for batch in spill.read(part) for number in batch.column(0).to_pylist()]
            assert back == list(range(part, 100, FEW))
            assert spill.num_rows(part) == len(back)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    """With the setting that names it."""
    with pytest.raises(ConfigError, match=r"absent is not a folder.*hoodie.memory.spillable.map.path"):
        Spill(pa.schema([("n", pa.int64())]), str(tmp_path / "absent"))


def test_a_stream_that_may_be_written_twice_is_kept(tmp_path):
    """Beside other writers a write may begin again; a stream comes only once."""
    listed = rows(random.Random(4), range(50), 1)
    memory = Memory(100, str(tmp_path))
    for is_repeated in (True, False):
        with gathered(batches(listed), lambda: None, memory, is_repeated=is_repeated) as given:
            assert isinstance(given, StreamedRows)
            assert pa.Table.from_batches(given.stream.read()).to_pylist() == listed
            if is_repeated:
                assert pa.Table.from_batches(given.stream.read()).to_pylist() == listed
            else:  # never an empty write
                with pytest.raises(ConflictError, match="give the rows again"):
                    given.stream.read()


def test_parquet_files_are_read_batch_by_batch(tmp_path):
    """Columns that one of them lacks are null; types that cannot be stored are widened, as in memory."""
    one = pa.table({"id": ["a", "b"], "n": pa.array([1, 2], pa.uint8())})
    other = pa.table({"id": ["c"], "x": [1.5]})
    paths = [str(tmp_path / "1.parquet"), str(tmp_path / "2.parquet")]
    for path, table in zip(paths, (one, other), strict=True):
        pq.write_table(table, path)
    with (
        gathered(paths, lambda: None, Memory(1), is_repeated=False) as streamed,
        gathered(paths, lambda: None, Memory(1 << 20), is_repeated=False) as held,
    ):
        assert isinstance(streamed, StreamedRows)
        assert pa.Table.from_batches(streamed.stream.read()) == held.table
        assert (
            streamed.schema == held.schema == pa.schema([("id", pa.string()), ("n", pa.int32()), ("x", pa.float64())])
        )


@pytest.mark.parametrize("text", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_texts_of_every_arrow_type_can_be_spilled(text):
    """As polars and DuckDB hand them over."""
    storage = writes.create_table(9)
    listed = [{"id": f"k{number}", "region": "eu", "ts": 1} for number in range(40)]
    given = pa.Table.from_pylist(listed, schema=writes.SCHEMA)
    stream = given.set_column(0, "id", given.column("id").cast(text)).to_batches(10)
    writes.open_table(storage, **TINY).upsert(iter(stream))
    assert writes.merged_rows_of(storage) == sorted(listed, key=lambda row: row["id"])


@pytest.mark.parametrize("operation", ["upsert", "insert", "bulk_insert", "insert_overwrite", "delete"])
def test_columns_that_exclude_nulls_can_be_spilled(operation):
    """The schema of the rows stays as given while they get their file groups."""
    strict = pa.schema([field.with_nullable(False) for field in writes.SCHEMA])
    listed = [{"id": f"k{number}", "region": "eu", "ts": 1} for number in range(60)]
    given = pa.Table.from_pylist(listed, schema=strict)
    states = []
    for limit in ({}, TINY):
        storage = writes.create_table(9)
        writes.open_table(storage, **writes.ALONE).upsert(given.slice(0, 20))
        getattr(writes.open_table(storage, **{**writes.ALONE, **limit}), operation)(iter(given.slice(10).to_batches(7)))
        states.append(writes.merged_rows_of(storage))
    assert states[0] == states[1]


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("operation", ["insert", "bulk_insert", "insert_overwrite"])
def test_inserted_deletions_mean_the_same_beyond_memory(operation, kind):
    """With buckets they delete the stored row, as its place is known; also in batches of nothing but deletions."""
    schema = writes.SCHEMA.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    listed = [{"id": f"k{number}", "region": "eu", "ts": 1, "_hoodie_is_deleted": False} for number in range(30)]
    changes = [{**row, "ts": 2, "_hoodie_is_deleted": number < 10} for number, row in enumerate(listed[:20])]
    changes += [{**row, "id": f"new{row['id']}"} for row in changes]
    for index in ({}, BUCKETS):
        states = []
        for limit in ({}, TINY):
            storage = writes.create_table(9, **{"hoodie.table.type": kind})
            table = writes.open_table(storage, **writes.ALONE, **index)
            table.upsert(pa.Table.from_pylist(listed, schema=schema))
            table = writes.open_table(storage, **{**writes.ALONE, **index, **limit})
            given = pa.Table.from_pylist(changes, schema=schema).to_batches(5)
            done = getattr(table, operation)(iter(given))
            rows_left = sorted((row["id"], row["ts"]) for row in writes.merged_rows_of(storage))
            states.append((done.rows_inserted, done.rows_updated, done.rows_deleted, rows_left))
        assert states[0] == states[1]


def test_batches_that_differ_are_an_error_that_names_the_column():
    """Never one of Arrow; batches that differ only in what they say of nulls are taken."""
    strict = pa.schema([field.with_nullable(False) for field in writes.SCHEMA])
    one = pa.RecordBatch.from_pylist([{"id": "a", "region": "eu", "ts": 1}] * 9, schema=strict)
    loose = pa.RecordBatch.from_pylist([{"id": "b", "region": "eu", "ts": 1}], schema=writes.SCHEMA)
    texts = loose.set_column(2, "ts", pa.array(["1"]))
    nulls = loose.set_column(2, "ts", pa.array([None], pa.int64()))
    for limit in ({}, TINY):
        storage = writes.create_table(9)
        table = writes.open_table(storage, **{**writes.ALONE, **limit})
        table.upsert(iter([one, loose]))
        assert [row["id"] for row in writes.merged_rows_of(storage)] == ["a", "b"]
        for other, words in ((texts, "'ts' is string in a batch, and int64"), (nulls, "'ts' has nulls in a batch")):
            with pytest.raises(WriteError, match=words):
                table.upsert(iter([one, other]))
        with pytest.raises(ConfigError, match="batches with a Table among them"):
            table.upsert(iter([one, pa.table(one)]))
        assert not writes.open_table(storage).timeline.pending()


@pytest.mark.parametrize("operation", ["upsert", "insert_overwrite"])
@pytest.mark.parametrize("beside", [{}, SEVERAL], ids=["alone", "several writers"])
def test_an_error_of_the_callers_iterator_leaves_no_write(operation, beside):
    """Wherever in the stream it comes: nothing is pending, and the next write, of any settings, goes on."""
    listed = rows(random.Random(5), range(200), 1)

    def failing(count):
        yield from itertools.islice(batches(listed), count)
        raise ZeroDivisionError

    storage = writes.create_table(9)
    for count in (0, 1, 5, 9):
        with pytest.raises(ZeroDivisionError):
            getattr(writes.open_table(storage, **TINY, **beside), operation)(failing(count))
        assert not list(writes.open_table(storage).timeline)
    assert writes.open_table(storage, **TINY).upsert(batches(listed)).rows_inserted
