"""The quick way to the files of a record gives what the general one does, or says that the record is damaged."""

from __future__ import annotations

import io
import json

import fastavro
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_registry import schema_text
from hudi_py.mdt.present import decode_present
from hudi_py.mdt.records import ALL_PARTITIONS, RECORD, FileInfo, decode_files, encode_files, present

VERSIONS = (6, 8, 9)
EVERY = pytest.mark.parametrize("version", VERSIONS)
SIZES = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.dictionaries(st.text(max_size=200), st.builds(FileInfo, SIZES, st.booleans()), max_size=20)
SOME = {"a.parquet": FileInfo(434_343, False), "gone.parquet": FileInfo(0, True), "n" * 70: FileInfo(1, False)}


def general(value, schema):
    return present(decode_files(value, schema, "here"))


@EVERY
@given(files=RECORDS, key=st.sampled_from(["eu", ALL_PARTITIONS]))
@example(files=SOME, key="eu")
def test_it_gives_what_the_general_way_gives(version, files, key):
    """Whatever names, sizes and deletions the record holds."""
    value, schema = encode_files(key, files, version), schema_text(RECORD, version)
    assert decode_present(value, schema, "here") == general(value, schema)


@EVERY
def test_a_record_cut_anywhere_is_damaged_or_whole(version):
    """Behind the files nothing is looked at; before that, half a record is never taken for a whole one."""
    value, schema = encode_files("eu", SOME, version), schema_text(RECORD, version)
    outcomes = []
    for length in range(len(value)):
        try:
            outcomes.append(decode_present(value[:length], schema, "here"))
        except CorruptMetadata as error:
            assert "here" in str(error)
            outcomes.append(None)
    first = next(number for number, outcome in enumerate(outcomes) if outcome is not None)
    assert first > len("".join(SOME))
    assert all(outcome == general(value, schema) for outcome in outcomes[first:])


@EVERY
@given(at=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_changed_byte_is_never_another_error(version, at, byte):
    """Checksums find it before; without them it is damage or another listing, and no endless work."""
    value, schema = bytearray(encode_files("eu", SOME, version)), schema_text(RECORD, version)
    value[at % len(value)] = byte
    try:
        decode_present(bytes(value), schema, "here")
    except CorruptMetadata as error:
        assert "here" in str(error)


@EVERY
def test_blocks_that_tell_their_length_are_read(version):
    """Avro allows a negative count, followed by the bytes of the block."""
    value, schema = encode_files("eu", SOME, version), schema_text(RECORD, version)
    start = value.index(b"a.parquet") - 2
    assert value[start] == 2 * len(SOME)
    with_length = value[:start] + bytes([2 * len(SOME) - 1, 2]) + value[start + 1 :]
    assert decode_present(with_length, schema, "here") == general(with_length, schema) == present(SOME)


@pytest.mark.parametrize("change", ["order", "type", "more"])
def test_another_schema_takes_the_general_way(change):
    """A release that writes other fields is read by what its schema says."""
    schema = json.loads(schema_text(RECORD, 9))
    union = next(field for field in schema["fields"] if field["name"] == "filesystemMetadata")["type"]
    fields = next(branch for branch in union if isinstance(branch, dict))["values"]["fields"]
    if change == "order":
        fields.reverse()
    elif change == "type":
        fields[0]["type"] = ["null", "long"]
    else:
        fields.append({"name": "more", "type": "long", "default": 7})
    infos = {name: {"size": info.size_bytes, "isDeleted": info.is_deleted} for name, info in SOME.items()}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"key": "", "type": 2, "filesystemMetadata": infos})
    assert decode_present(out.getvalue(), json.dumps(schema), "here") == present(SOME)


@EVERY
def test_records_of_other_partitions_are_refused(version):
    """A column's statistics are no listing."""
    out = io.BytesIO()
    record = {"key": "", "type": 3, "filesystemMetadata": None}
    schema = schema_text(RECORD, version)
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), record)
    with pytest.raises(CorruptMetadata, match="type 3"):
        decode_present(out.getvalue(), schema, "here")
