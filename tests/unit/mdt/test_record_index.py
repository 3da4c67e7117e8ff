"""Looking record keys up in the metadata table's record index."""

from __future__ import annotations

import io
import json
import uuid

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hudi_py
from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.avro_registry import schema_text
from hudi_py.mdt.lookup import Stored, group_number
from hudi_py.mdt.record_index import RecordIndex, RecordLocation, decode_location
from hudi_py.mdt.records import RECORD
from hudi_py.mdt.table import MetadataTable
from hudi_py.storage.wrappers import RecordingStorage
from support.fixtures import row_fixture_names, unpack_rows
from support.laws import examples

FOLDER = ".hoodie/metadata/record_index"
INDEXED = [name for name in row_fixture_names() if "record_index" in name or "all_indexes" in name]
OF_UUID = {"fileIdEncoding": 0, "fileIdHighBits": -1, "fileIdLowBits": 2, "fileIndex": 0}


def java_hash(text):
    """As the Java documentation defines it: the sum of the units times powers of 31, in 32 bits."""
    units = text.encode("utf-16-be", "surrogatepass")
    pairs = [int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2)]
    total = sum(unit * 31 ** (len(pairs) - 1 - at) for at, unit in enumerate(pairs)) % 2**32
    return total - 2**32 if total >= 2**31 else total


def stored(kind=5, **fields):
    """A record with these fields, others null."""
    schema = schema_text(RECORD, 9)
    content = {"partitionName": "eu", "instantTime": 7, **OF_UUID, **fields}
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out,
        fastavro.parse_schema(json.loads(schema)),
        {"key": "", "type": kind, "recordIndexMetadata": content},
    )
    return Stored(out.getvalue(), schema, "f")


def test_fixtures_hold_base_files_logs_and_tables_of_both_kinds():
    """The parameters below hold what they are there for."""
    assert len(INDEXED) == 9
    assert any(name.startswith("mor_") for name in INDEXED)


@pytest.mark.parametrize("name", INDEXED)
def test_every_row_lies_where_the_index_of_hudi_says(name, tmp_path):
    """Of each key partition and file group, as the rows' own columns tell; of deleted and unknown ones nothing."""
    table = hudi_py.open_table(unpack_rows(name, tmp_path))
    rows = table.rows(with_meta=True).to_arrow().to_pylist()
    places = {each["_hoodie_record_key"]: each for each in rows}
    asked = places.keys() | {f"k{number:04}" for number in range(60)} | {"", "unknown"}

    with RecordIndex(MetadataTable(table.storage), table.timeline) as index:
        found = index.locations(asked)
        one_by_one = {key: index.locations([key]).get(key) for key in places}

    assert found == one_by_one
    assert {key: row["_hoodie_partition_path"] for key, row in places.items()} == {
        key: at.partition_path for key, at in found.items()
    }
    assert all(row["_hoodie_file_name"].startswith(found[key].file_id) for key, row in places.items())


def test_only_the_groups_of_the_keys_are_opened(tmp_path):
    """One key, one file group, once: its base file as a stream, never whole."""
    table = hudi_py.open_table(unpack_rows("cow_all_indexes-1.1.1", tmp_path))
    key = table.rows(with_meta=True, columns=["_hoodie_record_key"]).to_arrow()["_hoodie_record_key"][0].as_py()
    storage = RecordingStorage(table.storage)
    metadata = MetadataTable(storage)
    storage.clear()

    with RecordIndex(metadata, table.timeline) as index:
        assert list(index.locations([key])) == [key]
        index.locations([key])

    read = [(verb, path) for verb, path in storage.calls if FOLDER in path and verb != "list"]
    assert ["open_read"] == [verb for verb, path in read if path.endswith(".hfile")]
    assert len(read) == len(set(read))
    assert all(f"record-index-000{group_number(key, 2)}-0_" in path for _, path in read)


@examples(200)
@given(st.text(max_size=12), st.integers(1, 50))
def test_a_group_is_chosen_by_the_hash_of_java(key, count):
    """Its absolute value, as Java computes the remainder."""
    assert abs(java_hash(key)) % count == group_number(key, count)


def test_the_smallest_hash_has_a_group():
    """Its absolute value does not fit into an int of Java."""
    assert java_hash("polygenelubricants") == -(2**31)
    assert group_number("polygenelubricants", 10) == 2**31 % 10


@examples(50)
@given(st.uuids(), st.integers(-1, 2**31 - 1))
def test_a_file_group_is_told_by_numbers(name, number):
    """The UUID and what follows it; -1 where nothing does."""
    high, low = (int.from_bytes(part, "big", signed=True) for part in (name.bytes[:8], name.bytes[8:]))
    found = decode_location(stored(fileIdHighBits=high, fileIdLowBits=low, fileIndex=number))

    assert RecordLocation("eu", str(name) if number < 0 else f"{name}-{number}", 7) == found
    assert uuid.UUID(found.file_id[:36]) == name


def test_a_file_group_is_told_by_text():
    """Where it is no UUID."""
    assert RecordLocation("eu", "00000001-x", 7) == decode_location(stored(fileIdEncoding=1, fileId="00000001-x"))


@pytest.mark.parametrize(
    "record",
    [stored(kind=4), stored(partitionName=None), stored(fileIdEncoding=2), stored(fileIdHighBits=None),
     stored()._replace(value=b"\x02"), stored()._replace(value=b"")],
)  # fmt: skip
def test_what_is_no_location_is_corrupt(record):
    """Nothing is guessed."""
    with pytest.raises(CorruptMetadata, match="record"):
        decode_location(record)


@pytest.mark.parametrize(
    ("file_id", "error"),
    [("record-index-0003-0", CorruptMetadata), ("record-index-eu-0000-0", UnsupportedTable)],
    ids=["a gap", "of a partition"],
)
def test_groups_that_cannot_be_told_are_refused(file_id, error, tmp_path):
    """A group before which one is missing, or the form of the index that counts within each partition."""
    path = unpack_rows("cow_record_index-0.15.0", tmp_path)
    (path / FOLDER / f".{file_id}_00000000000000011.log.1_0-0-0").write_bytes(b"")
    table = hudi_py.open_table(path)

    with pytest.raises(error):
        RecordIndex(MetadataTable(table.storage), table.timeline)
