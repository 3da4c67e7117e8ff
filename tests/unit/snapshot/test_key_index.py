"""Rows that are looked up by their keys: the same as without any index, from as few files as can be."""

from __future__ import annotations

import random
import re

import pytest

import hudi_py
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX
from hudi_py.mdt.record_index import RecordLocation
from hudi_py.model.files import FileSlice, LogFile, parse_base_file
from hudi_py.snapshot.key_index import slices_of_keys
from hudi_py.storage.wrappers import RecordingStorage
from support import writes
from support.fixtures import row_fixture_names, unpack_rows

INDEXED = [name for name in row_fixture_names() if "record_index" in name or "all_indexes" in name]
KEYED = [
    *INDEXED,
    "cow_custom_keygen-1.1.1",
    "cow_timestamp_keygen-0.15.0",
    "mor_event_time-1.0.2",
    "cow_bucket-0.15.0",
]
KEY = "_hoodie_record_key"
NAMES = {"partitions", "record_index", "metadata_table", "bloom_filters", "footers"}


def set_property(path, name, value):
    """As a writer of Hudi leaves it."""
    properties = path / ".hoodie" / "hoodie.properties"
    text = re.sub(rf"^{re.escape(name)}=.*\n", "", properties.read_text(), flags=re.MULTILINE)
    properties.write_text(f"{text.rstrip()}\n{name}={value}\n")


def leave(path, *partitions):
    """A metadata table with `files` and these partitions."""
    set_property(path, "hoodie.table.metadata.partitions", ",".join(["files", *partitions]))


def all_rows(table):
    return table.rows(with_meta=True).to_arrow().to_pylist()


def found(table, where, **options):
    rows = table.rows(where=where, with_meta=True, **options)
    listed = rows.to_arrow().to_pylist()
    assert NAMES == rows.skipped.keys()
    assert sum(rows.skipped.values()) == rows.count.skipped
    assert rows.count.read + rows.count.skipped == rows.file_count
    return listed, rows


def in_key_order(rows):
    return sorted(rows, key=lambda row: (row[KEY], str(row)))


def condition(rng, keys, field):
    """A condition on keys at random, and the same as a function of a row."""
    some = rng.sample(keys, rng.randint(1, min(4, len(keys)))) + rng.sample(["absent", "k", "", "id:x"], 1)
    column = rng.choice([KEY, field])
    texts = ", ".join(f"'{key}'" for key in some)
    kind = rng.randrange(5)
    if kind == 0:
        return f"{column} = '{some[0]}'", lambda row: row[column] == some[0]
    if kind == 1:
        return f"{column} in ({texts})", lambda row: row[column] in some
    if kind == 2:
        return f"not {column} in ({texts})", lambda row: row[column] not in some
    if kind == 3:
        low = some[-2]
        return f"{column} in ({texts}) and {KEY} >= '{low}'", lambda row: row[column] in some and row[KEY] >= low
    return f"{KEY} = '{some[0]}' or {field} in ({texts})", lambda row: row[KEY] == some[0] or row[field] in some


@pytest.mark.parametrize("name", KEYED)
def test_a_look_up_gives_what_a_full_read_gives(name, tmp_path):
    """Conditions on keys at random, through whatever indexes the table has."""
    table = hudi_py.open_table(unpack_rows(name, tmp_path))
    rows, rng = all_rows(table), random.Random(name)
    keys, (field,) = sorted({row[KEY] for row in rows}), table.config.record_key_fields

    for _ in range(5):
        text, is_met = condition(rng, keys, field)
        assert in_key_order([row for row in rows if is_met(row)]) == in_key_order(found(table, text)[0]), text


@pytest.mark.parametrize("name", INDEXED)
def test_one_key_is_read_from_one_file_slice(name, tmp_path):
    """By the record index; data files of other slices are not even opened."""
    table = hudi_py.open_table(unpack_rows(name, tmp_path))
    row = all_rows(table)[-1]
    storage = RecordingStorage(table.storage)
    table = hudi_py.Table(storage)
    table.rows().schema  # noqa: B018 - loads what is asked once for a table
    storage.clear()

    listed, rows = found(table, f"{KEY} = '{row[KEY]}'")

    assert [row] == listed
    assert rows.count.read == 1
    assert rows.skipped["record_index"] == rows.file_count - 1
    opened = {path for verb, path in storage.calls if verb in ("open_read", "read") and ".hoodie/" not in path}
    file_id = row["_hoodie_file_name"].split("_")[0]
    assert opened
    assert all(file_id in path for path in opened)


@pytest.mark.parametrize("name", [name for name in INDEXED if name.startswith("cow_")])
def test_a_key_that_is_not_there_opens_no_file(name, tmp_path):
    """A copy-on-write table has no rows but those that the index knows."""
    listed, rows = found(hudi_py.open_table(unpack_rows(name, tmp_path)), "id = 'absent'")
    assert ([], 0, rows.file_count) == (listed, rows.count.read, rows.skipped["record_index"])


@pytest.mark.parametrize("name", [name for name in INDEXED if "all_indexes" in name])
@pytest.mark.parametrize("partitions", [(BLOOM_FILTERS,), ()], ids=["metadata table", "footers"])
def test_bloom_filters_rule_files_out_where_there_is_no_record_index(name, partitions, tmp_path):
    """Those of the metadata table before a file is opened, else those in the files."""
    path = unpack_rows(name, tmp_path)
    leave(path, *partitions)
    table = hudi_py.open_table(path)
    rows = all_rows(table)
    low, high = min(row[KEY] for row in rows), max(row[KEY] for row in rows)
    between = f"{low}0"  # within the range of keys of all files: only a Bloom filter tells that it is in none

    for key in (low, high, between):
        listed, read = found(table, f"{KEY} = '{key}'")
        assert [row for row in rows if row[KEY] == key] == listed
        assert read.skipped["record_index"] == read.skipped["metadata_table"] == 0
        assert bool(read.skipped["bloom_filters"]) or read.skipped["footers"]
        assert read.count.read == (key != between)
    storage = RecordingStorage(table.storage)
    found(hudi_py.Table(storage), f"{KEY} = '{between}'")
    opened = [path for verb, path in storage.calls if verb == "open_read" and path.endswith(".parquet")]
    assert bool(opened) == (not partitions)


@pytest.mark.parametrize(
    "change",
    [
        leave,
        lambda path: set_property(path, "hoodie.table.metadata.partitions.inflight", RECORD_INDEX),
        lambda path: [
            file.write_bytes(file.read_bytes()[:-40])
            for file in (path / ".hoodie/metadata/record_index").glob(".record-index*log.2*")
        ],
        lambda path: set_property(path, "hoodie.populate.meta.fields", "false"),
    ],
    ids=["not made", "being made", "damaged", "keys are not stored"],
)
def test_an_index_that_is_not_whole_is_not_used(change, tmp_path):
    """All files may hold the key then."""
    path = unpack_rows("cow_record_index-0.15.0", tmp_path)
    expected = all_rows(hudi_py.open_table(path))
    change(path)
    table = hudi_py.open_table(path)

    for key in (expected[0][KEY], "absent"):
        listed, rows = found(table, f"id = '{key}'")
        assert [row for row in expected if row[KEY] == key] == listed
        assert rows.skipped["record_index"] == 0


def test_the_index_tells_nothing_of_the_past(tmp_path):
    """As of an earlier time, of base files alone, or once the table has changed since it was opened."""
    path = unpack_rows("mor_record_index-1.0.2", tmp_path)
    table = hudi_py.open_table(path)
    key = all_rows(table)[0][KEY]
    first, *_, last = table.timeline.completed("deltacommit", "commit")

    for options in ({"as_of": first.requested_time}, {"as_of": last.requested_time}, {"read_optimized": True}):
        expected = [row for row in table.rows(with_meta=True, **options).to_arrow().to_pylist() if row[KEY] == key]
        listed, rows = found(table, f"{KEY} = '{key}'", **options)
        assert expected == listed
        assert rows.skipped["record_index"] == 0

    assert found(table, f"{KEY} = '{key}'")[1].skipped["record_index"]
    (path / ".hoodie/timeline/20991231235959999.deltacommit.requested").touch()
    assert not found(table, f"{KEY} = '{key}'")[1].skipped["record_index"]


class Index(dict):
    """A record index that says what it is told to say."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def locations(self, keys):
        return {key: self[key] for key in keys if key in self}


def slice_of(number, *, with_logs=False):
    base = parse_base_file(f"f{number}-0_0-0-0_20260101000000000.parquet")
    logs = (LogFile(".f", f"f{number}-0", "20260101000000001", 1, None),) if with_logs else ()
    return FileSlice("eu", f"f{number}-0", "20260101000000000", base, logs)


def chosen(slices, index, keys):
    named = slices_of_keys(slices, {key: key for key in keys}, lambda: Index(index))
    return None if named is None else [each.file_id for each in named]


def test_an_index_that_names_what_is_not_there_is_not_used():
    """It is behind, or it tells of another table: nothing follows from it."""
    slices = [slice_of(1), slice_of(2)]
    here, gone, elsewhere = (RecordLocation(*at, 0) for at in (("eu", "f1-0"), ("eu", "f9-0"), ("us", "f1-0")))

    assert chosen(slices, {"k": here}, "k") == ["f1-0"]
    assert chosen(slices, {"k": here, "l": gone}, "kl") is None
    assert chosen(slices, {"k": elsewhere}, "k") is None
    assert slices_of_keys(slices, {"k": "k"}, lambda: None) is None


def test_a_key_that_the_index_lacks_may_lie_under_a_delete_that_does_not_count():
    """So slices with log files are read for it; a key that it knows is in its slice."""
    slices = [slice_of(1), slice_of(2, with_logs=True)]
    assert chosen(slices, {"k": RecordLocation("eu", "f1-0", 0)}, "k") == ["f1-0"]
    assert chosen(slices, {"k": RecordLocation("eu", "f1-0", 0)}, "kl") == ["f1-0", "f2-0"]
    assert chosen(slices, {}, "l") == ["f2-0"]


@pytest.mark.parametrize("files", [10, 100])
@pytest.mark.parametrize("version", [6, 9])
def test_how_many_files_a_key_opens_does_not_grow_with_the_table(version, files):
    """One for each key that is there, of however many, and none for the others."""
    storage = writes.create_table(version)
    settings = {"hoodie.metadata.enable": "true", "hoodie.metadata.record.index.enable": "true"}
    rows = [{"id": f"k{number:05d}", "region": f"r{number}", "ts": number} for number in range(files)]
    writes.upsert(storage, rows, **settings)
    partitions = writes.open_table(storage).config.metadata_partitions
    assert RECORD_INDEX in partitions
    for key, expected in (("k00007", [rows[7]]), ("k00009' or id = 'k00003", [rows[3], rows[9]]), ("k0", [])):
        recorded = RecordingStorage(storage)
        listed = writes.open_table(recorded).rows(where=f"id = '{key}'").to_arrow().to_pylist()
        opened = {path for verb, path in recorded.calls if verb in ("open_read", "read") and ".hoodie" not in path}
        assert sorted(listed, key=lambda row: row["id"]) == expected
        assert len(opened) == len(expected), opened
