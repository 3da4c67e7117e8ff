"""What each payload class of Apache Hudi makes of the rows of a key, as its releases 0.15.0 and 1.0.2 do."""

import pyarrow as pa
import pytest

from hudi_py.config.payload_class import hudis_payload
from hudi_py.errors import UnsupportedTable
from hudi_py.formats.delete_block import DeletedKey, OrderingValue, encode_delete_block
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, encode_log_block
from hudi_py.rows.log_rules import log_rules_of
from hudi_py.rows.ordering import sequence_parts
from hudi_py.storage.memory import MemoryStorage
from support.log_slices import base_file, data_block, log_file, read

PACKAGE = "org.apache.hudi.common.model."
TOASTED = "__debezium_unavailable_value"
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.int64()), ("v", pa.string()), ("w", pa.string())])
BYTES = pa.schema([("id", pa.string()), ("_event_lsn", pa.int64()), ("v", pa.string()), ("y", pa.binary())])
SEQUENCE = pa.schema([("id", pa.string()), ("_event_seq", pa.string()), ("v", pa.string())])


def rules_of(name, version, ordering="ts"):
    properties = {
        "hoodie.table.version": str(version),
        "hoodie.table.precombine.field": ordering,
        "hoodie.compaction.payload.class": PACKAGE + name,
    }
    if version == 8:
        properties |= {
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        }
    return log_rules_of(properties, "t")


def row(ts, v, w=None):
    return {"id": "a", "ts": ts, "v": v, "w": w}


def delete(ts=None):
    ordering = () if ts is None else (OrderingValue("long", ts),)
    content = encode_delete_block([DeletedKey("a", "p", ordering)])
    return encode_log_block(LogBlock(BlockType.DELETE, {int(HeaderKey.INSTANT_TIME): "1"}, content))


def left(rules, base, blocks, schema=SCHEMA, memory=None):
    """The row that a read shows: as values behind the key, or None; the base file has another key, too."""
    storage = MemoryStorage("/t")
    order = schema.names[1]
    other = {**dict.fromkeys(schema.names), "id": "b", order: "1.1" if schema.field(1).type == pa.string() else 1}
    file = base_file(storage, [*([] if base is None else [base]), other], schema)
    logs = [
        log_file(storage, at + 1, each if isinstance(each, bytes) else data_block([each], schema))
        for at, each in enumerate(blocks)
    ]
    found = read(storage, file, logs, rules, schema=schema, memory=memory)
    assert found[-1] == other
    assert len(found) <= 2
    return tuple(found[0].values())[1:] if len(found) == 2 else None


A, B, C = row(2, "a", "a"), row(2, None, "b"), row(1, "c", None)
CASES = [
    # Event time: the greater value, the later row among equals.
    ("EventTimeAvroPayload", (6, 8), A, [B], (2, None, "b")),
    ("EventTimeAvroPayload", (6, 8), A, [C], (2, "a", "a")),
    ("EventTimeAvroPayload", (6, 8), None, [A, C], (2, "a", "a")),
    ("EventTimeAvroPayload", (6,), A, [delete(1)], None),
    ("EventTimeAvroPayload", (8,), A, [delete(1)], (2, "a", "a")),
    # First value: the earlier row among equals.
    ("FirstValueAvroPayload", (6, 8), A, [B], (2, "a", "a")),
    ("FirstValueAvroPayload", (6, 8), None, [A, B], (2, "a", "a")),
    ("FirstValueAvroPayload", (6, 8), C, [A, B], (2, "a", "a")),
    ("FirstValueAvroPayload", (8,), A, [delete(2)], None),
    # Partial update: nulls are filled, by older and by later rows.
    ("PartialUpdateAvroPayload", (6, 8), A, [B], (2, "a", "b")),
    ("PartialUpdateAvroPayload", (6, 8), B, [C], (2, "c", "b")),
    ("PartialUpdateAvroPayload", (6, 8), None, [B, C], (2, "c", "b")),
    ("PartialUpdateAvroPayload", (6, 8), None, [C, B], (2, "c", "b")),
    ("PartialUpdateAvroPayload", (6,), None, [A, delete(3), C], (1, "c", None)),
    ("PartialUpdateAvroPayload", (8,), None, [A, delete(3), C], None),
    # Values other than defaults: nulls are filled from the base file, in 1.0.2 among log records, too.
    ("OverwriteNonDefaultsWithLatestAvroPayload", (6, 8), A, [row(1, "c", None)], (1, "c", "a")),
    ("OverwriteNonDefaultsWithLatestAvroPayload", (6,), None, [A, C], (2, "a", "a")),
    ("OverwriteNonDefaultsWithLatestAvroPayload", (8,), None, [A, C], (1, "c", "a")),
    ("OverwriteNonDefaultsWithLatestAvroPayload", (6,), None, [A, B], (2, None, "b")),
    ("OverwriteNonDefaultsWithLatestAvroPayload", (8,), None, [A, B], (2, "a", "b")),
    ("OverwriteNonDefaultsWithLatestAvroPayload", (8,), A, [delete(1)], (2, "a", "a")),
    # DMS: the log wins over the base file; ordering values decide among log records of 0.15 alone.
    ("AWSDmsAvroPayload", (6, 8), A, [C], (1, "c", None)),
    ("AWSDmsAvroPayload", (6,), None, [A, C], (2, "a", "a")),
    ("AWSDmsAvroPayload", (8,), None, [A, C], (1, "c", None)),
]


@pytest.mark.parametrize("memory", [None, 1], ids=["held", "in-parts"])
@pytest.mark.parametrize(("name", "versions", "base", "blocks", "expected"), CASES)
def test_rows_of_a_key_are_merged_as_the_class_does(name, versions, base, blocks, expected, memory):
    """Against the base file, among log records, with deletes."""
    for version in versions:
        assert left(rules_of(name, version), base, blocks, memory=memory) == expected, version


@pytest.mark.parametrize("version", [6, 8])
def test_operations_of_dms_and_debezium_delete_in_any_case(version):
    """Wherever such a row stands in the log files."""
    for name, ordering, column in (
        ("AWSDmsAvroPayload", "ts", "Op"),
        ("debezium.MySqlDebeziumAvroPayload", "_event_seq", "_change_operation_type"),
        ("debezium.PostgresDebeziumAvroPayload", "_event_lsn", "_change_operation_type"),
    ):
        arrow = pa.string() if ordering == "_event_seq" else pa.int64()
        schema = pa.schema([("id", pa.string()), (ordering, arrow), (column, pa.string())])
        low, high = ("1.1", "2.1") if ordering == "_event_seq" else (1, 2)
        stored = {"id": "a", ordering: low, column: "I"}
        for text, is_gone in (("D", True), ("d", True), ("u", False), (None, False)):
            changed = {"id": "a", ordering: high, column: text}
            found = left(rules_of(name, version, ordering), stored, [changed], schema)
            assert found == (None if is_gone else (high, text)), (name, text)


def test_toasted_values_are_those_of_the_base_file():
    """Texts and bytes, where the log record wins; in 1.0.2 they are filled among log records, too."""
    first = {"id": "a", "_event_lsn": 1, "v": "x", "y": b"x"}
    second = {"id": "a", "_event_lsn": 2, "v": TOASTED, "y": TOASTED.encode()}
    third = {"id": "a", "_event_lsn": 2, "v": TOASTED, "y": b""}
    for version in (6, 8):
        rules = rules_of("debezium.PostgresDebeziumAvroPayload", version, "_event_lsn")
        assert left(rules, first, [second], BYTES) == (2, "x", b"x")
        assert left(rules, first, [third], BYTES) == (2, "x", b"")
        assert left(rules, second, [first], BYTES) == (2, TOASTED, TOASTED.encode())
        expected = (2, TOASTED, b"") if version == 6 else (2, "x", b"")
        assert left(rules, None, [first, third], BYTES) == expected


def test_sequences_of_mysql_are_two_numbers():
    """File 10 is behind file 9, of equal ones the stored row stays; 0.15 compares log records as texts."""
    nine, ten = ({"id": "a", "_event_seq": text, "v": text} for text in ("9.5", "10.5"))
    again = {"id": "a", "_event_seq": "010.5", "v": "again"}
    for version in (6, 8):
        rules = rules_of("debezium.MySqlDebeziumAvroPayload", version, "_event_seq")
        assert left(rules, ten, [nine], SEQUENCE) == ("10.5", "10.5")
        assert left(rules, nine, [ten], SEQUENCE) == ("10.5", "10.5")
        assert left(rules, ten, [again], SEQUENCE) == ("10.5", "10.5")
        expected = ("9.5", "9.5") if version == 6 else ("10.5", "10.5")
        assert left(rules, None, [nine, ten], SEQUENCE) == expected
    with pytest.raises(UnsupportedTable, match=r"not FILE\.POSITION"):
        sequence_parts(pa.array(["10"]))


def test_a_delete_with_a_text_wins_over_the_log_records_before_it():
    """In versions 6 and 8, by the default class, too: Hudi does not compare it with them; 1.0.2 with other rows."""
    schema = pa.schema([("id", pa.string()), ("t", pa.string()), ("v", pa.string())])
    content = encode_delete_block([DeletedKey("a", "p", (OrderingValue("string", "1"),))])
    gone = encode_log_block(LogBlock(BlockType.DELETE, {int(HeaderKey.INSTANT_TIME): "1"}, content))
    two, zero = ({"id": "a", "t": text, "v": "x"} for text in "20")
    event = {"hoodie.table.version": "8", "hoodie.table.precombine.field": "t"}
    event["hoodie.record.merge.mode"] = "EVENT_TIME_ORDERING"
    six = rules_of("DefaultHoodieRecordPayload", 6, "t")
    for rules in (six, log_rules_of(event, "t"), *(rules_of("EventTimeAvroPayload", at, "t") for at in (6, 8))):
        assert left(rules, None, [two, gone], schema) is None
        assert left(rules, None, [two, gone, two], schema) == ("2", "x")
        is_forgotten = rules.deletes_reset  # any row behind it wins
        assert left(rules, None, [two, gone, zero], schema) == (("0", "x") if is_forgotten else None)
        assert left(rules, two, [gone], schema) == (None if rules.deletes_reset else ("2", "x"))


@pytest.mark.parametrize("version", [6, 8])
def test_a_class_of_ones_own_is_refused_by_name_whatever_it_is_called(version):
    """And so are Debezium's where another column orders the rows: the class looks at its own."""
    properties = {"hoodie.table.version": str(version), "hoodie.table.precombine.field": "ts"}
    if version == 8:
        properties |= {
            "hoodie.record.merge.mode": "CUSTOM",
            "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        }
    for name in ("com.example.EventTimeAvroPayload", "com.example.Mine", f"{PACKAGE}Unknown"):
        with pytest.raises(UnsupportedTable, match=f"{name}.*read-optimized"):
            log_rules_of(properties | {"hoodie.compaction.payload.class": name}, "t")
    for name in ("MySqlDebeziumAvroPayload", "PostgresDebeziumAvroPayload"):
        with pytest.raises(UnsupportedTable, match=r"where _event_.* orders the rows, not ts"):
            rules_of(f"debezium.{name}", version)
    assert hudis_payload("com.example.DefaultHoodieRecordPayload") is None
    assert hudis_payload(f"{PACKAGE}DefaultHoodieRecordPayload") == "DefaultHoodieRecordPayload"
