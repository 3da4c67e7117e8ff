"""Rows of older files in the types of today: values as Apache Hudi converts them."""

import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudi_py.errors import WriteError
from hudi_py.formats.stored_values import conform_given, conform_stored, java_text, widen_floats

FLOATS = st.floats(width=32, allow_nan=False)


def converted(values, was, becomes, convert=conform_stored):
    batch = pa.record_batch([pa.array(values, was)], names=["a"])
    return convert(batch, pa.schema([("a", becomes)])).column(0).to_pylist()


def nearest(value, width):
    """The nearest float or double, by Python's own conversion."""
    return struct.unpack(width, struct.pack(width, value))[0]


@given(st.lists(FLOATS))
@example([0.10000000149011612])
def test_a_float_becomes_the_double_with_the_same_text(values):
    """0.1 stays 0.1 and is not 0.10000000149; converting it back gives the same float."""
    found = converted(values, pa.float32(), pa.float64())
    assert [nearest(each, "f") for each in found] == values
    assert all(len(repr(each)) <= len(repr(was)) for each, was in zip(found, values, strict=True))


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
@example([2**53 + 1, 2**63 - 1, -(2**53) - 3])
def test_integers_become_the_nearest_double(values):
    """Beyond 2^53 too, where no double is the same number."""
    assert [float(each) for each in values] == converted(values, pa.int64(), pa.float64())


@given(st.lists(st.integers(-(2**24), 2**24)))
@example([2**24])
def test_integers_become_floats(values):
    """An int column that became float."""
    assert [nearest(float(each), "f") for each in values] == converted(values, pa.int32(), pa.float32())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (15.0, "15.0"),
        (0.001, "0.001"),
        (9.999e-4, "9.999E-4"),
        (1e7, "1.0E7"),
        (9999999.5, "9999999.5"),
        (1e300, "1.0E300"),
        (123456789.125, "1.23456789125E8"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (5e-324, "4.9E-324"),
        (2e-60, "2.0E-60"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_becomes_the_text_that_java_writes(value, text):
    """As Double.toString: always a digit behind the point, an exponent from ten million on and below a thousandth."""
    assert [text, None] == converted([value, None], pa.float64(), pa.string())


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_means_the_same_number(value):
    """And it has as few digits as Python's."""
    text = java_text(value)
    assert value == float(text)
    if abs(value) > 1e-300:  # of smaller ones Java writes two digits even if one is enough
        assert Decimal(text).normalize() == Decimal(repr(value)).normalize()


def test_floats_have_the_text_of_floats():
    """0.1 as a float is not 0.10000000149011612."""
    assert ["0.1", "1.6777216E7", "1.4E-45"] == converted([0.1, 16777216.0, 1e-45], pa.float32(), pa.string())


def test_nested_values_are_converted_alike():
    """Fields of structs and elements of lists."""
    was, becomes = (pa.list_(pa.struct([("f", each)])) for each in (pa.float32(), pa.float64()))
    assert [[{"f": 0.1}], None] == converted([[{"f": 0.1}], None], was, becomes)


def test_rows_that_users_write_are_not_changed():
    """An integer that is no double, or bytes that are no text, are refused there."""
    for value in (2**53 + 1, 2**63 - 1):
        with pytest.raises(WriteError, match="cannot be converted"):
            converted([value, None], pa.int64(), pa.float64(), conform_given)
    assert [2**53 + 2, -(2**63)] == converted([2**53 + 2, -(2**63)], pa.int64(), pa.float64(), conform_given)
    with pytest.raises(WriteError, match="cannot be converted"):
        converted([b"\xff"], pa.binary(), pa.string(), conform_given)


@pytest.mark.parametrize(
    ("was", "value", "becomes", "stored"),
    [
        (pa.float32(), 5.1, pa.float64(), 5.1),
        (pa.float32(), 5.1, pa.string(), "5.1"),
        (pa.float64(), 5e-5, pa.string(), "5.0E-5"),
        (pa.int64(), 2**53 + 11, pa.string(), str(2**53 + 11)),
        (pa.int32(), 16777222, pa.float32(), 16777222.0),
        (pa.string(), "ß", pa.binary(), "ß".encode()),
        (pa.binary(), "ß".encode(), pa.string(), "ß"),
    ],
)
def test_rows_of_a_narrower_type_are_stored_as_hudi_stores_them(was, value, becomes, stored):
    """Values that Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0 showed; of bytes in a column of texts 1.1.1 and 1.2.0 alone."""
    assert [stored] == converted([value], was, becomes, conform_given)


def test_floats_are_read_by_their_text_where_numbers_have_become_texts():
    """Avro cannot read these blocks by itself, so Hudi 0.15.0 and 1.0.2 convert each value."""
    schema = pa.schema({"f": pa.float64(), "t": pa.string()})
    batch = pa.record_batch([pa.array([0.1], pa.float32()), pa.array([1], pa.int32())], ["f", "t"])
    assert [{"f": 0.1, "t": "1"}] == conform_stored(widen_floats(batch, schema), schema).to_pylist()


@pytest.mark.parametrize("was", [pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.timestamp("ms", "UTC")])
def test_a_timestamp_becomes_the_text_of_spark(was):
    """As Hudi 0.15.0 on Spark reads files from before the column was text (table `widened_text`)."""
    times = [None, 0, 1_704_416_523_500, -630_720_000_000 + 90_000, -1]
    texts = [None, "1970-01-01 00:00:00", "2024-01-05 01:02:03.5", "1950-01-06 00:01:30", "1969-12-31 23:59:59.999"]
    values = pa.array(times, pa.timestamp("ms", was.tz)).cast(was)
    assert texts == converted(values.to_pylist(), was, pa.string())


@given(st.lists(st.one_of(st.none(), st.floats(width=32, allow_nan=False))))
def test_floats_of_avro_blocks_keep_their_value_at_any_depth(values):
    """In structs, lists and maps too; other columns, and floats that stay floats, are left as they are."""
    narrow = pa.struct({"f": pa.float32(), "l": pa.list_(pa.float32()), "m": pa.map_(pa.string(), pa.float32())})
    wide = pa.struct({"f": pa.float64(), "l": pa.list_(pa.float64()), "m": pa.map_(pa.string(), pa.float64())})
    rows = [{"f": each, "l": [each], "m": [("k", each)]} for each in values]
    batch = pa.record_batch(
        [pa.array(rows, narrow), pa.array(values, pa.float32()), pa.array(values, pa.float32())], ["s", "f", "same"]
    )
    schema = pa.schema({"s": wide, "f": pa.float64(), "same": pa.float32()})
    found = conform_stored(widen_floats(batch, schema), schema)
    assert found.to_pydict() == {"s": rows, "f": values, "same": values}
