"""A table of buckets is known by what its writers left, and written with their settings or not at all."""

import uuid

import hypothesis
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_py
from hudi_py.errors import ConfigError, UnsupportedTable
from hudi_py.local.rows import ArrowRows
from hudi_py.rows.bucket_index import BucketIndex
from hudi_py.storage.local import LocalStorage
from hudi_py.writing.buckets import BUCKET_FOLDER, are_numbered, check_buckets
from hudi_py.writing.groups import TARGET, write_groups
from hudi_py.writing.job import TaskIdentity
from hudi_py.writing.tag import BUCKET, FILE_ID, tag_buckets, tag_inserts
from support import fixtures, writes
from support.tables import TableBuilder, at

REST = "-ed33-42cb-87ca-6054ba54646a-0"
FOUR = {
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": 4,
    "hoodie.index.bloom.num_entries": 10,  # small files are quick to write
}
INDEX = BucketIndex(count=4, hashed=(0,), fields=("id",), is_prefixed=False, splits_at_colons=False)


def check(builder, buckets=None):
    table = builder.table()
    check_buckets(builder.storage, table.timeline, table.contents, buckets)


@given(st.lists(st.integers(0, 9_999), min_size=1))
def test_numbers_of_buckets_are_seen(numbers):
    """However many files a commit wrote."""
    assert are_numbered([f"{number:08d}{REST}" for number in numbers])


@given(st.lists(st.uuids(version=4), max_size=50))
def test_random_ids_are_no_numbers(ids):
    """But for one in some hundred thousand, which this search does not find."""
    random = [f"{each}-0" for each in ids if not str(each).startswith("0000")]
    assert not are_numbered(random) or len(random) > 3


def test_one_random_id_among_them_is_enough_to_doubt():
    """Tables that only look like it in a part are written as before."""
    assert not are_numbered([f"00000001{REST}", f"{uuid.UUID(int=2**127)}-0"])
    assert not are_numbered([])


@pytest.mark.parametrize("layout", [1, 2])
def test_a_table_of_buckets_is_refused_without_its_settings(layout):
    """Rows of ours would lie in no bucket: duplicates for Apache Hudi. Later commits of ours hide no bucket."""
    builder = TableBuilder(layout)
    builder.commit(at(0), {"p": [f"00000000{REST}", f"00000001{REST}"]})
    check(builder, INDEX)
    builder.commit(at(1), {"p": [f"abcdef01{REST}"]})
    before = builder.storage.files()
    with pytest.raises(UnsupportedTable, match=r"00000000-ed33.*duplicates.*hoodie.bucket.index.num.buckets"):
        check(builder)
    with pytest.raises(ConfigError, match="has no bucket index"):
        check(builder, INDEX)
    assert before == builder.storage.files()


@pytest.mark.parametrize("path", ["consistent_hashing_metadata/p/00000000000000.hashing_meta", "partition/x"])
def test_a_table_of_consistent_hashing_is_refused(path):
    """Its file ids are no numbers, but the folder says which keys go where."""
    builder = TableBuilder()
    builder.commit(at(0), {"p": [f"{uuid.UUID(int=2**127)}-0"]})
    check(builder)
    builder.put(f"{BUCKET_FOLDER}/{path}", b"{}")
    for buckets in (None, INDEX):
        with pytest.raises((UnsupportedTable, ConfigError), match="bucket index"):
            check(builder, buckets)


def row(number, region, ts):
    return {"id": f"k{number}", "region": region, "ts": ts}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["UPSERT", "UPSERT", "DELETE", "INSERT", "BULK_INSERT", "INSERT_OVERWRITE", "MERGE"]),
        st.sets(st.integers(0, 30), min_size=1, max_size=12),
    ),
    min_size=1,
    max_size=4,
)


def region_of(number):
    return ("eu", "us")[number % 2]


def merge_deleting(storage, rows):
    """Deletes the rows whose keys are there, and inserts the others, in one commit."""
    merge = writes.open_table(storage, **FOUR, **writes.ALONE).merge(pa.Table.from_pylist(rows), ["id", "region"])
    merge.when_matched_delete().when_not_matched_insert().execute()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
@hypothesis.settings(max_examples=8)
@given(steps=STEPS)
def test_rows_in_buckets_equal_a_dictionary(version, kind, steps):
    """Any writes of keys; every bucket has one file group, and each row is in the one of its key."""
    storage, model = writes.create_table(version, **{"hoodie.table.type": kind}), {}
    for ts, (operation, numbers) in enumerate(steps, start=1):
        overwrites = operation == "INSERT_OVERWRITE"
        news = [each for each in numbers if each not in model]
        chosen = news if "INSERT" in operation and not overwrites else sorted(numbers)
        if not chosen or (operation in ("DELETE", "MERGE") and not model):
            continue
        rows = [row(each, region_of(each), ts) for each in chosen]
        if operation == "MERGE":
            merge_deleting(storage, rows)
        else:
            writes.upsert(storage, rows, operation=operation, **FOUR)
        if overwrites:
            replaced = {each["region"] for each in rows}
            model = {number: kept for number, kept in model.items() if kept["region"] not in replaced}
        for each in chosen:
            if operation == "DELETE" or (operation == "MERGE" and each in model):
                model.pop(each, None)
            else:
                model[each] = row(each, region_of(each), ts)
    if not writes.open_table(storage).timeline.completed():  # nothing to delete yet
        return
    by_id = sorted(model.values(), key=lambda each: each["id"])
    assert sorted(writes.merged_rows_of(storage), key=lambda each: each["id"]) == by_id
    table = writes.open_table(storage)
    seen = [(path, each.file_id[:8]) for path in table.partitions() for each in table.file_slices(path)]
    assert len(set(seen)) == len(seen)
    assert all(int(number) < 4 for _, number in seen)
    assert not table.timeline.pending()


@pytest.mark.parametrize("wrong", [{"hoodie.bucket.index.num.buckets": 8}, {"hoodie.bucket.index.num.buckets": 3}])
def test_another_number_of_buckets_is_refused(wrong):
    """Before a row is stored; the table stays as it is, and with the right number it goes on."""
    storage = writes.create_table(9)
    many = [row(number, "eu", 1) for number in range(40)]
    writes.upsert(storage, many, **FOUR)
    with pytest.raises(ConfigError, match="not written with hoodie"):
        writes.upsert(storage, [row(50, "eu", 2)], **FOUR | wrong)
    with pytest.raises(UnsupportedTable, match="numbers of buckets"):
        writes.upsert(storage, [row(50, "eu", 2)])
    assert len(writes.rows_of(storage)) == 40
    writes.upsert(storage, [row(50, "eu", 2)], **FOUR)
    assert len(writes.rows_of(storage)) == 41


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_an_overwrite_with_another_number_of_buckets_is_refused(kind):
    """The other partitions would keep the number that they have, and nobody can have two."""
    storage = writes.create_table(9, **{"hoodie.table.type": kind})
    writes.upsert(storage, [row(number, "eu", 1) for number in range(40)], **FOUR)
    with pytest.raises(ConfigError, match="not written with hoodie"):
        writes.upsert(
            storage, [row(50, "eu", 2)], operation="INSERT_OVERWRITE", **FOUR | {"hoodie.bucket.index.num.buckets": 3}
        )


@pytest.mark.parametrize("operation", ["UPSERT", "INSERT", "DELETE"])
def test_a_large_write_finds_the_buckets_of_a_small_one(operation, monkeypatch):
    """Rows tagged first and written by file group afterwards: the same files, whichever task sees a bucket first."""
    storage = writes.create_table(9)
    writes.upsert(storage, [row(number, "eu", 1) for number in range(0, 40, 2)], **FOUR)
    ids = {base.file_id for _, base in writes.open_table(storage).base_files()}

    def in_two_passes(rows, job):
        table = rows.table.append_column(BUCKET, pa.array([0] * rows.table.num_rows))
        if job.combines:
            tagged = [*tag_buckets(job, table.slice(0, 5).to_batches()), *tag_buckets(job, table.slice(5).to_batches())]
        else:
            tagged = list(tag_inserts(job, rows.table.to_batches()))
        together = pa.Table.from_batches(tagged)
        routed = together.append_column(TARGET, together.column(FILE_ID)).sort_by(TARGET).drop([FILE_ID])
        return write_groups(job, routed.to_batches(), TaskIdentity(0, 0, 0))

    monkeypatch.setattr(ArrowRows, "write", in_two_passes)
    start = 41 if operation == "INSERT" else 0
    changed = [row(number, "eu", 2) for number in range(start, start + 10)]
    writes.upsert(storage, changed, operation=operation, **FOUR)
    left = {each["id"] for each in writes.rows_of(storage)}
    old, new = {f"k{number}" for number in range(0, 40, 2)}, {each["id"] for each in changed}
    assert left == (old - new if operation == "DELETE" else old | new)
    assert len(left) == len(writes.rows_of(storage))
    assert {base.file_id for _, base in writes.open_table(storage).base_files()} >= ids
    assert len({base.file_id[:8] for _, base in writes.open_table(storage).base_files()}) <= 4


@pytest.mark.parametrize("name", fixtures.row_fixture_names("cow_bucket") + fixtures.row_fixture_names("mor_bucket"))
def test_their_tables_are_written_without_duplicates(name, tmp_path):
    """Every key again: each row stays in the file group that Apache Hudi chose."""
    folder = fixtures.unpack_rows(name, tmp_path)
    table = hudi_py.open_table(folder)
    before = {each.file_id for path in table.partitions() for each in table.file_slices(path)}
    rows = table.rows().to_arrow()
    ids = rows.column("id").to_pylist()
    count = 1 + max(int(file_id[:8]) for file_id in before)
    settings = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": count}
    opened = writes.open_table(LocalStorage(folder), **settings)
    rows = rows.select([name for name in rows.column_names if not name.startswith("_hoodie_")])
    writes.write(LocalStorage(folder), ArrowRows(rows), opened, "UPSERT")
    table = hudi_py.open_table(folder)
    assert sorted(table.rows().to_arrow().column("id").to_pylist()) == sorted(ids)
    assert {each.file_id for path in table.partitions() for each in table.file_slices(path)} == before
