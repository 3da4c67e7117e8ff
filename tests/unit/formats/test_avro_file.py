import contextlib
import io
import json
import uuid
import zlib

import fastavro
import fastavro.utils
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import decode_avro_file, decode_record, encode_avro_file, encode_record
from hudi_py.formats.avro_registry import schema_text

SYNC = bytes(range(16))
PLAN = schema_text("HoodieCleanerPlan")
RECORD = {
    "earliestInstantToRetain": {"timestamp": "20240101000000000", "action": "commit", "state": "COMPLETED"},
    "lastCompletedCommitTimestamp": "20240102000000000",
    "policy": "KEEP_LATEST_COMMITS",
    "filesToBeDeletedPerPartition": {},
    "version": 2,
    "filePathsToBeDeletedPerPartition": {"r=ä": [{"filePath": "/t/r=ä/a.parquet", "isBootstrapBaseFile": False}]},
    "partitionsToBeDeleted": [],
    "extraMetadata": {},
}
DATA = encode_avro_file(PLAN, RECORD, SYNC)


def container(schema, records, **options):
    """What fastavro's own writer makes of it; an independent second opinion."""
    stream = io.BytesIO()
    fastavro.writer(stream, schema, records, sync_marker=SYNC, **options)
    return stream.getvalue()


def test_decoding_gives_back_what_was_encoded():
    """Decoding is the inverse of encoding."""
    file = decode_avro_file(DATA, "x")
    assert (PLAN, SYNC, (RECORD,), "null", "HoodieCleanerPlan") == (
        file.schema_text,
        file.sync,
        file.records,
        file.codec,
        file.record_name,
    )


def test_header_has_the_schema_and_nothing_else():
    """rules/timeline 4.2: no codec, no other key, one block of one object."""
    head = b"Obj\x01" + b"\x02" + b"\x16avro.schema"
    assert DATA.startswith(head)
    assert b"avro.codec" not in DATA
    assert 2 == DATA.count(SYNC)


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda key: not key.startswith("avro.")),
        st.text(st.characters(codec="utf-8")).map(str.encode),
    )
)
def test_notes_in_the_header_round_trip_and_other_readers_pass_over_them(notes):
    """Avro leaves every key that does not begin with its own word to the application."""
    data = encode_avro_file(PLAN, RECORD, SYNC, notes)
    assert decode_avro_file(data, "x").notes == notes
    reader = fastavro.reader(io.BytesIO(data))
    assert list(reader) == [RECORD]


def test_other_readers_read_it():
    """Fastavro's own reader finds the record."""
    assert [RECORD] == list(fastavro.reader(io.BytesIO(DATA)))


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_foreign_files_are_read(codec):
    """rules/timeline 4.2: plain types, a codec entry, further metadata, several blocks."""
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "string"}]}
    records = [{"a": str(number)} for number in range(50)]
    data = container(schema, records, codec=codec, sync_interval=64, metadata={"who": "somebody"})
    file = decode_avro_file(data, "x")
    assert (tuple(records), codec) == (file.records, file.codec)


def test_header_block_with_a_negative_count_is_read():
    """The Avro specification allows a block size behind a negative count."""
    schema = b'{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
    entry = b"\x16avro.schema" + bytes([len(schema) * 2 & 0x7F | 0x80, len(schema) * 2 >> 7]) + schema
    size = bytes([len(entry) * 2 & 0x7F | 0x80, len(entry) * 2 >> 7])
    data = b"Obj\x01" + b"\x01" + size + entry + b"\x00" + SYNC + b"\x02\x02\x06" + SYNC
    assert ({"a": 3},) == decode_avro_file(data, "x").records


def test_older_files_get_defaults_and_newer_fields_are_dropped():
    """rules/timeline 4.3: resolution by name with the reader's schema."""
    older = {
        "type": "record",
        "name": "HoodieCleanerPlan",
        "namespace": "org.apache.hudi.avro.model",
        "fields": [{"name": "policy", "type": "string"}, {"name": "fromTheFuture", "type": "int", "default": 0}],
    }
    record = decode_avro_file(container(older, [{"policy": "P"}]), "x", PLAN).records[0]
    assert {"policy": "P", "version": 1, "lastCompletedCommitTimestamp": ""}.items() <= record.items()
    assert "fromTheFuture" not in record
    assert {field["name"] for field in json.loads(PLAN)["fields"]} == set(record)


def test_types_that_do_not_resolve_are_refused():
    """A number where a text belongs is damage, whatever the file says about itself."""
    other = {"type": "record", "name": "HoodieCleanerPlan", "fields": [{"name": "policy", "type": "int"}]}
    with pytest.raises(CorruptMetadata, match="HoodieCleanerPlan"):
        decode_avro_file(container(other, [{"policy": 1}]), "x", PLAN)


def test_a_file_torn_at_any_byte_is_corrupt():
    """Every proper prefix is refused with source and byte offset."""
    for size in range(len(DATA)):
        with pytest.raises(CorruptMetadata, match=r"^t/T\.clean.* \d+"):
            decode_avro_file(DATA[:size], "t/T.clean")


@given(st.data())
def test_flipped_bytes_give_a_value_or_corrupt_metadata(data):
    """No damage leads to another exception, nor to a hang."""
    damaged = bytearray(DATA)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(DATA) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptMetadata):
        decode_avro_file(bytes(damaged), "x", data.draw(st.sampled_from([None, PLAN])))


@given(st.binary(max_size=200))
def test_garbage_behind_the_magic_is_corrupt(garbage):
    """Four right bytes make no file."""
    with pytest.raises(CorruptMetadata):
        decode_avro_file(b"Obj\x01" + garbage, "x")


@given(st.binary(max_size=300))
def test_garbage_behind_a_whole_header_is_corrupt_or_a_value(garbage):
    """A right header vouches for nothing."""
    header = DATA[: DATA.index(SYNC) + 16]
    with contextlib.suppress(CorruptMetadata):
        decode_avro_file(header + garbage, "x")


@given(st.binary(max_size=300))
def test_garbage_in_a_block_of_the_right_size_is_corrupt_or_a_value(garbage):
    """A right frame vouches for nothing."""
    header = DATA[: DATA.index(SYNC) + 16]
    size = len(garbage) * 2
    framed = header + b"\x02" + bytes([size & 0x7F | 0x80, size >> 7]) + garbage + SYNC
    with contextlib.suppress(CorruptMetadata):
        decode_avro_file(framed, "x", PLAN)


def test_a_number_cannot_make_us_allocate():
    """A size or count far beyond the file is refused before anything is read."""
    header = DATA[: DATA.index(SYNC) + 16]
    huge = b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    for block in (b"\x02" + huge + SYNC, huge + b"\x02\x00" + SYNC):
        with pytest.raises(CorruptMetadata):
            decode_avro_file(header + block, "x")


def test_a_deflate_bomb_is_refused():
    """A small file cannot fill the memory."""
    schema = b'{"type":"record","name":"R","fields":[{"name":"a","type":"bytes"}]}'
    deflater = zlib.compressobj(9, zlib.DEFLATED, -15)
    payload = deflater.compress(bytes(1 << 20)) * 300  # the stream never ends, which is torn as well
    data = container(json.loads(schema), [{"a": b""}], codec="deflate")
    size = len(payload) * 2
    varint = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    header = data[: data.index(SYNC) + 16]
    with pytest.raises(CorruptMetadata, match="does not inflate"):
        decode_avro_file(header + b"\x02" + varint + payload + SYNC, "x")


@pytest.mark.parametrize(
    "schema",
    [
        '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}',
        '{"type":"record","name":"R","fields":[]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}',
        '{"type":"record","name":"n.R","fields":[{"name":"a","type":{"type":"map","values":"n.R"}}]}',
        "[" * 5000 + "]" * 5000,
        '{"type":"record","name":"R","fields":[{"name":"a","type":'
        + '{"type":"array","items":' * 99
        + '"int"'
        + "}" * 101,
        '"string"',
        '{"type":"record"}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"unheard of"}]}',
        "not JSON",
    ],
)
def test_schemas_that_could_loop_or_crash_are_refused(schema):
    """A damaged file must not hang or exhaust the stack: empty items, self reference, depth, nonsense."""
    raw = schema.encode()
    size = len(raw) * 2
    varint = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14])
    data = b"Obj\x01\x02\x16avro.schema" + varint + raw + b"\x00" + SYNC + b"\x02\x02\x00" + SYNC
    with pytest.raises(CorruptMetadata, match="schema"):
        decode_avro_file(data, "x")


def test_bare_records_round_trip():
    """Records without a container, as in log blocks, have to fill their bytes."""
    assert RECORD == decode_record(encode_record(PLAN, RECORD), PLAN, "x")
    with pytest.raises(CorruptMetadata):
        decode_record(encode_record(PLAN, RECORD) + b"\x00", PLAN, "x")


@pytest.mark.parametrize("text", ["HoodieSavepointMetadata", "HoodieCleanerPlan", "HoodieRestoreMetadata"])
def test_java_classes_of_texts_change_no_value(text):
    """The schema that decodes faster gives what the schema of the file gives, and the file keeps its schema."""
    schema = json.loads(schema_text(text))
    assert "avro.java.string" in schema_text(text)
    record = fastavro.utils.generate_one(fastavro.parse_schema(schema))
    data = encode_avro_file(schema_text(text), record, SYNC)
    file = decode_avro_file(data, "x")
    (expected,) = fastavro.reader(io.BytesIO(data))
    assert expected == file.records[0]
    assert schema_text(text) == file.schema_text


def test_a_text_of_a_logical_type_keeps_it():
    """Only Java's class is left out: a UUID is decoded as one."""
    kind = {"type": "string", "logicalType": "uuid"}
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": kind}]}
    value = uuid.UUID(int=7)
    assert [{"id": value}] == list(decode_avro_file(container(schema, [{"id": value}]), "x").records)
