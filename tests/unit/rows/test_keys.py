"""Record keys and partition paths against their definition, row by row."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.rows.keys import KeyGenerator, KeyGeneratorKind, escape_path_name, is_prefixed, key_generator_of

SIMPLE, COMPLEX, NON_PARTITION = KeyGeneratorKind.SIMPLE, KeyGeneratorKind.COMPLEX, KeyGeneratorKind.NON_PARTITION
TEXTS = st.none() | st.text("ab:,/=% é😀", max_size=3)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def complex_keys(*fields, **more):
    return KeyGenerator(kind=COMPLEX, record_key_fields=fields, partition_fields=("p", "q"), **more)


def simple(**more):
    return KeyGenerator(kind=SIMPLE, record_key_fields=("id",), partition_fields=("p",), **more)


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), max_size=8))
def test_composite_keys_name_their_parts(rows):
    """``a:1,b:2``, with words for null and empty; a key without any part is refused."""
    columns = batch(b=pa.array([b for _, b in rows], pa.string()), a=pa.array([a for a, _ in rows], pa.string()))
    generator = complex_keys("a", "b")
    if any(not a and not b for a, b in rows):
        with pytest.raises(WriteError):
            generator.record_keys(columns)
        return

    def part(value):
        return "__null__" if value is None else value or "__empty__"

    assert [f"a:{part(a)},b:{part(b)}" for a, b in rows] == generator.record_keys(columns).to_pylist()


@pytest.mark.parametrize("kind", [SIMPLE, NON_PARTITION])
def test_single_key_is_the_bare_value(kind):
    """One field needs no name."""
    generator = KeyGenerator(kind=kind, record_key_fields=("id",), partition_fields=("p",) if kind is SIMPLE else ())
    assert ["a:b", "c"] == generator.record_keys(batch(id=["a:b", "c"])).to_pylist()


def test_ambiguous_key_form_must_be_said():
    """COMPLEX with one field: two forms exist in the wild and none is guessed."""
    with pytest.raises(ConfigError, match="single_field_prefixed"):
        complex_keys("id")
    rows = batch(id=["k1"])
    assert ["k1"] == complex_keys("id", single_field_prefixed=False).record_keys(rows).to_pylist()
    assert ["id:k1"] == complex_keys("id", single_field_prefixed=True).record_keys(rows).to_pylist()
    assert (True, False) == (is_prefixed("id:k1", "id"), is_prefixed("k1", "id"))


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize("generator", [simple(), complex_keys("id", single_field_prefixed=True)], ids=["bare", "named"])
def test_row_without_key_is_refused(generator, value):
    """Every record has a key."""
    with pytest.raises(WriteError, match="1 row;"):
        generator.record_keys(batch(id=["a", value]))


@given(micros=st.integers(-(10**15), 4 * 10**15))
def test_timestamps_are_microseconds(micros):
    """Whatever the zone of display."""
    for arrow in (pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")):
        column = pa.array([micros], pa.int64()).cast(arrow)
        assert [str(micros)] == simple().record_keys(batch(id=column)).to_pylist()


@given(value=st.decimals(-(10**9), 10**9, places=7, allow_nan=False))
def test_decimals_keep_their_scale(value):
    """``BigDecimal.toString`` and Python's ``str`` follow the same rule, exponents included."""
    keys = simple().record_keys(batch(id=pa.array([value], pa.decimal128(20, 7))))
    assert [str(value.quantize(Decimal("1e-7")))] == keys.to_pylist()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([-5], pa.int8()), "-5"),
        (pa.array([2**63 - 1]), "9223372036854775807"),
        (pa.array([True]), "true"),
        (pa.array([False]), "false"),
        (pa.array([dt.date(2024, 1, 2)]), "2024-01-02"),
        (pa.array([Decimal("5.00")]), "5.00"),
        (pa.array(["é"], pa.large_string()), "é"),
    ],
    ids=str,
)
def test_text_of_values_is_javas(column, expected):
    """The same text serves keys and partition paths."""
    assert [expected] == simple().record_keys(batch(id=column)).to_pylist()
    assert [expected] == simple().partition_paths(batch(p=column)).to_pylist()


@pytest.mark.parametrize("arrow", [pa.float32(), pa.float64(), pa.binary(), pa.list_(pa.int8()), pa.timestamp("ns")])
def test_types_without_a_sure_text_are_refused(arrow):
    """Java prints a double differently; a wrong key would be a silent duplicate."""
    rows = batch(id=pa.array([], arrow), p=pa.array([], arrow))
    with pytest.raises(ConfigError, match="'id'"):
        simple().record_keys(rows)
    with pytest.raises(ConfigError, match="'p'"):
        simple().partition_paths(rows)


def test_missing_column_is_refused():
    """A configured field must be among the rows' columns."""
    with pytest.raises(ConfigError, match="'id'"):
        simple().record_keys(batch(other=["x"]))


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), max_size=8), hive_style=st.booleans())
def test_encoded_paths_have_one_segment_per_field(rows, hive_style):
    """Null and empty are the hive default; everything else is escaped and comes back unescaped."""
    generator = complex_keys("a", "b", hive_style=hive_style, url_encode=True)
    columns = batch(p=pa.array([p for p, _ in rows], pa.string()), q=pa.array([q for _, q in rows], pa.string()))
    paths = generator.partition_paths(columns).to_pylist()
    assert len(rows) == len(paths)
    for row, path in zip(rows, paths, strict=True):
        segments = path.split("/")
        assert 2 == len(segments)
        for name, value, segment in zip(("p", "q"), row, segments, strict=True):
            bare = segment.removeprefix(f"{name}=") if hive_style else segment
            assert hive_style == segment.startswith(f"{name}=")
            assert (escape_path_name(value) if value else "__HIVE_DEFAULT_PARTITION__") == bare


def test_escaped_characters_are_exactly_hudis():
    """The set of the format description, upper-case hexadecimal, nothing beyond ASCII."""
    escaped = {*map(chr, range(0x20)), "\x7f", *"\"#%'*/:=?\\{[]^"}
    for character in map(chr, range(0x100)):
        assert (f"%{ord(character):02X}" if character in escaped else character) == escape_path_name(character)
    assert "x%3D1%3A2 é" == escape_path_name("x=1:2 é")


@pytest.mark.parametrize(("hive_style", "path"), [(False, "a/b"), (True, "p=a/b")])
def test_a_slash_in_the_value_of_a_single_column_makes_folders(hive_style, path):
    """As in Hudi, whose first example has them; of several columns nobody could tell where one ends."""
    assert [path] == simple(hive_style=hive_style).partition_paths(batch(p=["a/b"])).to_pylist()
    with pytest.raises(WriteError, match="urlencode"):
        complex_keys("a", "b", hive_style=hive_style, url_encode=False).partition_paths(batch(p=["a/b"], q=["c"]))
    for value in ("/a", "a/", "a//b", "a/../b", "a/.hoodie"):
        with pytest.raises(WriteError, match="no folder may be called"):
            simple(hive_style=hive_style).partition_paths(batch(p=[value]))


@pytest.mark.parametrize("value", ["12:30", "a/12:30", "\0"])
def test_unsafe_values_need_encoding(value):
    """Hudi fails on a colon: that does not happen by accident."""
    with pytest.raises(WriteError, match="urlencode"):
        simple(hive_style=True).partition_paths(batch(p=[value]))
    assert 1 == len(simple(url_encode=True).partition_paths(batch(p=[value])))


@pytest.mark.parametrize(
    "value", [".", "..", ".hoodie", ".hoodie_partition_metadata", ".hoodie_partition_metadata.orc"]
)
def test_values_that_are_other_folders_are_refused(value):
    """A partition never is the table itself, its parent, or its timeline."""
    for url_encode in (False, True):
        with pytest.raises(WriteError):
            simple(url_encode=url_encode).partition_paths(batch(p=[value]))
    assert [f"p={value}"] == simple(hive_style=True).partition_paths(batch(p=[value])).to_pylist()


def test_table_without_partitions_has_the_empty_path():
    """For every row."""
    generator = KeyGenerator(kind=NON_PARTITION, record_key_fields=("id",))
    assert ["", ""] == generator.partition_paths(batch(id=["a", "b"])).to_pylist()


@pytest.mark.parametrize(
    ("partitions", "keys", "more", "expected"),
    [
        ("", "id", {}, NON_PARTITION),
        ("", "a,b", {}, NON_PARTITION),
        ("p", "id", {}, SIMPLE),
        ("p", "a,b", {}, COMPLEX),
        ("p,q", "a,b", {}, COMPLEX),
        ("p,q", "id", {}, COMPLEX),
        ("p", "id", {"type": "COMPLEX_AVRO"}, COMPLEX),
        ("p", "id", {"class": "org.apache.hudi.keygen.ComplexKeyGenerator"}, COMPLEX),
        ("p", "id", {"class": "org.apache.hudi.keygen.SimpleAvroKeyGenerator"}, SIMPLE),
        ("", "id", {"type": "NON_PARTITION"}, NON_PARTITION),
    ],
)
def test_kind_comes_from_the_properties_or_hudis_default(partitions, keys, more, expected):
    """Version 6 names a class, later ones a type, and with neither the fields decide."""
    properties = {"hoodie.table.partition.fields": partitions, "hoodie.table.recordkey.fields": keys}
    properties |= {f"hoodie.table.keygenerator.{key}": value for key, value in more.items()}
    assert expected is key_generator_of(properties, single_field_prefixed=False).kind


@pytest.mark.parametrize(
    ("version", "said", "expected"), [("9", None, True), ("9", False, False), ("6", True, True), ("8", False, False)]
)
def test_form_of_the_single_complex_key_follows_version_and_caller(version, said, expected):
    """Version 9 has one form unless told otherwise; older tables must say."""
    properties = {
        "hoodie.table.version": version,
        "hoodie.table.recordkey.fields": "id",
        "hoodie.table.partition.fields": "p, q",
    }
    assert expected is key_generator_of(properties, single_field_prefixed=said).single_field_prefixed
    if version != "9":
        with pytest.raises(ConfigError):
            key_generator_of(properties)


@pytest.mark.parametrize(
    "more",
    [
        {"hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA"},
        {"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.GlobalDeleteKeyGenerator"},
        {"hoodie.table.keygenerator.type": "USER_PROVIDED", "hoodie.table.keygenerator.class": "com.example.Own"},
        {"hoodie.populate.meta.fields": "false"},
    ],
    ids=str,
)
def test_generators_that_are_not_served_are_refused(more):
    """Rather than keys that Hudi would make differently."""
    properties = {"hoodie.table.recordkey.fields": "id", "hoodie.table.partition.fields": "p"}
    with pytest.raises(UnsupportedTable):
        key_generator_of(properties | more)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": NON_PARTITION, "record_key_fields": ()},
        {"kind": NON_PARTITION, "record_key_fields": ("id",), "partition_fields": ("p",)},
        {"kind": SIMPLE, "record_key_fields": ("a", "b"), "partition_fields": ("p",)},
        {"kind": SIMPLE, "record_key_fields": ("id",), "partition_fields": ()},
    ],
    ids=str,
)
def test_impossible_combinations_are_refused(wrong):
    """As Hudi does."""
    with pytest.raises(ConfigError):
        KeyGenerator(**wrong)
