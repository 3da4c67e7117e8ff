"""Avro text of record schemas; the texts of real tables are compared in test_real_files.py."""

import json

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError, CorruptMetadata, UnsupportedTable
from hudi_py.formats.record_schema import (
    META_COLUMNS,
    format_record_schema,
    meta_fields,
    parse_record_schema,
    sanitize_name,
    storage_schema,
    storage_type,
    with_meta_fields,
)

UTC = pa.timestamp("us", "UTC")
NAMES = st.sampled_from(["a", "b", "_c", "D9", "fixed", "element"])
LEAVES = st.sampled_from(
    [
        *(pa.string(), pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.binary(), pa.date32(), UTC),
        *(pa.timestamp("us"), pa.decimal128(5, 2), pa.decimal128(38, 0), pa.decimal128(18, 18)),
    ]
)


def _nest(types):
    nullable = st.booleans()
    fields = st.builds(pa.field, NAMES, types, nullable)
    return (
        st.lists(fields, min_size=1, max_size=3, unique_by=lambda field: field.name).map(pa.struct)
        | st.builds(lambda t, n: pa.list_(pa.field("element", t, n)), types, nullable)
        | st.builds(lambda t, n: pa.map_(pa.string(), pa.field("value", t, n)), types, nullable)
    )


TYPES = st.recursive(LEAVES, _nest, max_leaves=5)
SCHEMAS = st.lists(
    st.builds(pa.field, NAMES, TYPES, st.booleans()), min_size=1, max_size=4, unique_by=lambda field: field.name
).map(pa.schema)


@given(schema=SCHEMAS)
def test_text_and_schema_are_inverse(schema):
    """Every storable schema survives its Avro text, which an independent Avro library accepts."""
    text = format_record_schema(schema, "t")
    assert schema == parse_record_schema(text)
    fastavro.parse_schema(json.loads(text))


@given(schema=SCHEMAS)
def test_storage_schema_is_a_fixed_point(schema):
    """What is storable is left alone."""
    assert schema == storage_schema(schema)
    assert schema == storage_schema(pa.schema([*meta_fields(), *schema]))


@pytest.mark.parametrize(("precision", "size"), [(1, 1), (5, 3), (9, 4), (18, 8), (38, 16)])
def test_decimal_takes_the_size_hudi_gives_it(precision, size):
    """The figures are those of files written by Hudi."""
    text = format_record_schema(pa.schema([pa.field("d9", pa.decimal128(precision, 1))]), "types_cx")
    assert json.loads(text)["fields"][0]["type"][1] == {
        "type": "fixed",
        "name": "fixed",
        "namespace": "hoodie.types_cx.types_cx_record.d9",
        "size": size,
        "logicalType": "decimal",
        "precision": precision,
        "scale": 1,
    }


def test_nested_names_follow_the_column():
    """Records inside lists and maps are called like the column; namespaces grow with the depth."""
    inner = pa.struct([pa.field("q", pa.struct([pa.field("x", pa.int32(), nullable=False)]))])
    schema = pa.schema([pa.field("st", pa.list_(inner), nullable=False), pa.field("m", pa.map_(pa.string(), inner))])
    st_field, m_field = json.loads(format_record_schema(schema, "types_cx"))["fields"]
    record = st_field["type"]["items"][1]
    assert ("st", "hoodie.types_cx.types_cx_record") == (record["name"], record["namespace"])
    assert "default" not in st_field
    q = record["fields"][0]["type"][1]
    assert ("q", "hoodie.types_cx.types_cx_record.st") == (q["name"], q["namespace"])
    assert {"name": "x", "type": "int"} == q["fields"][0]
    value = m_field["type"][1]["values"][1]
    assert ("m", "hoodie.types_cx.types_cx_record") == (value["name"], value["namespace"])


def test_text_has_javas_form():
    """No blanks, null first, null default, characters outside ASCII unescaped."""
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("at", UTC)])
    assert (
        '{"type":"record","name":"trips_record","namespace":"hoodie.trips","fields":[{"name":"id","type":"string"},'
        '{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null}]}'
    ) == format_record_schema(schema, "trips")


def test_meta_fields_are_added_once():
    """The footer's schema has the five meta columns in front, whatever the commit's had."""
    text = format_record_schema(pa.schema([pa.field("id", pa.string())]), "t")
    full = with_meta_fields(text)
    assert [*META_COLUMNS, "id"] == [field["name"] for field in json.loads(full)["fields"]]
    assert '{"name":"_hoodie_commit_time","type":["null","string"],"doc":"","default":null}' in full
    assert full == with_meta_fields(full)
    assert parse_record_schema(text) == parse_record_schema(full)


@pytest.mark.parametrize(
    ("name", "expected"), [("trips", "trips"), ("my-trips.v1", "my__trips__v1"), ("1st", "__st"), ("é", "__")]
)
def test_table_names_become_avro_names(name, expected):
    """Illegal characters, and an illegal first one, become two underscores."""
    assert expected == sanitize_name(name)


@pytest.mark.parametrize(
    ("incoming", "stored"),
    [
        (pa.int8(), pa.int32()),
        (pa.int16(), pa.int32()),
        (pa.large_string(), pa.string()),
        (pa.string_view(), pa.string()),
        (pa.large_binary(), pa.binary()),
        (pa.timestamp("us", "Europe/Berlin"), UTC),
        (pa.large_list(pa.int8()), pa.list_(pa.field("element", pa.int32()))),
        (pa.map_(pa.large_string(), pa.int16()), pa.map_(pa.string(), pa.int32())),
        (pa.struct([("a", pa.int8())]), pa.struct([("a", pa.int32())])),
    ],
)
def test_stored_type(incoming, stored):
    """Types without a place of their own go to the next larger one."""
    assert stored == storage_type(incoming, "c")


@pytest.mark.parametrize(
    "refused",
    [
        pa.uint8(),
        pa.null(),
        pa.timestamp("ns"),
        pa.timestamp("ms", "UTC"),
        pa.date64(),
        pa.time64("us"),
        pa.duration("s"),
        pa.decimal256(40, 2),
        pa.decimal128(5, -2),
        pa.float16(),
        pa.binary(4),
        pa.dictionary(pa.int32(), pa.string()),
        pa.struct([]),
        pa.map_(pa.int32(), pa.string()),
        pa.list_(pa.struct([("deep", pa.uint32())])),
    ],
    ids=str,
)
def test_unstorable_type_is_refused_by_name(refused):
    """The error says which column it is."""
    with pytest.raises(ConfigError, match="'amount"):
        storage_schema(pa.schema([pa.field("amount", refused)]))


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("a b", pa.int32())]),
        pa.schema([("1a", pa.int32())]),
        pa.schema([("id", pa.int32()), ("ID", pa.int32())]),
        pa.schema([("id", pa.int32()), ("id", pa.int32())]),
        pa.schema([("s", pa.struct([("a-b", pa.int32())]))]),
        pa.schema([("\U00010400", pa.int32())]),
        pa.schema([("a²", pa.int32())]),
        pa.schema([("٣a", pa.int32())]),
        pa.schema(meta_fields()),
    ],
    ids=["blank", "digit", "case", "twice", "nested", "beyond", "power", "other digit", "none"],
)
def test_unfit_names_are_refused(schema):
    """Names must suit Avro and must differ for Spark."""
    with pytest.raises(ConfigError):
        storage_schema(schema)


@pytest.mark.parametrize("name", ["größe", "名前", "имя_2", "_x", "a٣"])
def test_letters_and_digits_of_any_script_make_a_name(name):
    """As Avro's Java library has it, and so Apache Hudi."""
    text = format_record_schema(storage_schema(pa.schema([(name, pa.int32())])), "t")
    assert parse_record_schema(text).names == [name]


@pytest.mark.parametrize(
    "avro",
    [
        ["int", "string"],
        {"type": "enum", "name": "e", "symbols": ["A"]},
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        {"type": "long", "logicalType": "timestamp-millis"},
        {"type": "fixed", "name": "f", "size": 4},
    ],
    ids=str,
)
def test_tables_with_other_types_are_not_written(avro):
    """A type that we would write differently stops the write and names the column."""
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "c", "type": avro}]})
    with pytest.raises(UnsupportedTable, match="'c'"):
        parse_record_schema(text)


def test_named_types_may_be_referred_to():
    """Avro spells a named type once; later fields name it."""
    decimal = {"type": "fixed", "name": "money", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}
    fields = [
        {"name": "a", "type": decimal},
        {"name": "b", "type": ["null", "money"]},
        {"name": "c", "type": "n.money"},
    ]
    text = json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": fields})
    money = pa.decimal128(9, 2)
    expected = pa.schema([pa.field("a", money, False), pa.field("b", money), pa.field("c", money, False)])
    assert expected == parse_record_schema(text)


@pytest.mark.parametrize(
    "text", ["", "[]", '"string"', '{"type":"record"}', '{"type":"record","name":"r","fields":[{"name":"a"}]}']
)
def test_damaged_schema_is_reported(text):
    """Damage is told from lack of support."""
    with pytest.raises(CorruptMetadata):
        parse_record_schema(text)
