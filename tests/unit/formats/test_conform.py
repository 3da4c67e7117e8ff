"""Rows to the storage schema."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import WriteError
from hudi_py.formats.conform import conform_array, conform_batch, refuse_null_elements
from hudi_py.formats.record_schema import storage_schema

STRUCT = pa.struct([pa.field("b", pa.large_list(pa.int8())), pa.field("a", pa.large_string())])
INCOMING = pa.schema(
    [
        ("m", pa.map_(pa.string(), STRUCT)),
        ("l", pa.large_list(STRUCT)),
        ("s", STRUCT),
        ("n", pa.int16()),
        ("t", pa.timestamp("us", "Asia/Tokyo")),
    ]
)
TEXTS = st.text("ab é😀", max_size=3)
STRUCTS = st.none() | st.fixed_dictionaries(
    {"b": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3), "a": st.none() | TEXTS}
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "m": st.none() | st.dictionaries(TEXTS, STRUCTS, max_size=3).map(lambda d: list(d.items())),
            "l": st.none() | st.lists(STRUCTS, max_size=3),
            "s": STRUCTS,
            "n": st.none() | st.integers(-9, 9),
        }
    ),
    max_size=6,
)


def has_null_element(value):
    """Look for a null inside any list, the slow way."""
    if isinstance(value, dict):
        return any(has_null_element(child) for child in value.values())
    if isinstance(value, tuple):  # an entry of a map, whose value may be null
        return has_null_element(value[1])
    if isinstance(value, list):
        return any((child is None) or has_null_element(child) for child in value)
    return False


@given(rows=ROWS, start=st.integers(0, 6), length=st.integers(0, 6))
def test_values_stay_and_types_become_the_stored_ones(rows, start, length):
    """Slices, nulls and nesting of any shape keep their values."""
    batch = pa.RecordBatch.from_pylist(rows, schema=INCOMING).slice(start, length)
    conformed = conform_batch(batch, storage_schema(INCOMING))
    conformed.validate(full=True)
    assert storage_schema(INCOMING) == conformed.schema
    assert batch.to_pylist() == conformed.to_pylist()


@given(rows=ROWS, start=st.integers(0, 6))
def test_null_elements_are_refused_wherever_they_hide(rows, start):
    """Exactly the batches with a null inside some list are refused."""
    batch = conform_batch(pa.RecordBatch.from_pylist(rows, schema=INCOMING).slice(start), storage_schema(INCOMING))
    if any(has_null_element(value) for row in rows[start:] for value in row.values()):
        with pytest.raises(WriteError, match="null element"):
            refuse_null_elements(batch)
    else:
        refuse_null_elements(batch)


def test_columns_are_matched_by_name():
    """Order does not matter, missing columns are null, others are dropped."""
    schema = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.float64())])
    batch = pa.RecordBatch.from_pydict({"x": [1], "c": pa.array([2.5], pa.float32()), "a": [3]})
    assert [{"a": 3, "b": None, "c": 2.5}] == conform_batch(batch, schema).to_pylist()


@pytest.mark.parametrize(
    ("array", "target"),
    [(pa.array(["x"]), pa.int64()), (pa.array([2**40]), pa.int32()), (pa.array([[1]]), pa.string())],
    ids=["text", "large", "list"],
)
def test_value_that_does_not_fit_is_refused(array, target):
    """Nothing is cut off silently."""
    with pytest.raises(WriteError, match="'c'"):
        conform_array(array, target, "c")


REQUIRED = pa.field("q", pa.int32(), nullable=False)


@pytest.mark.parametrize(
    ("value", "loose", "strict"),
    [
        (None, pa.int32(), pa.int32()),
        ({"q": None}, pa.struct([("q", pa.int32())]), pa.struct([REQUIRED])),
        ([None], pa.list_(pa.int32()), pa.list_(REQUIRED)),
        ([("k", None)], pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), REQUIRED)),
    ],
    ids=["top", "struct", "list", "map"],
)
def test_null_in_a_required_place_is_refused(value, loose, strict):
    """What the schema requires is checked at every depth, in rows that declare nothing."""
    batch = pa.RecordBatch.from_arrays([pa.array([value], loose)], names=["c"])
    with pytest.raises(WriteError, match=r"'c[^']*' is null in 1 place,"):
        conform_batch(batch, pa.schema([pa.field("c", strict, nullable=False)]))


def test_required_field_below_a_null_struct_is_no_null():
    """The parent is missing, not the field."""
    strict = pa.struct([REQUIRED])
    loose = pa.array([None, {"q": 1}], pa.struct([("q", pa.int32())]))
    batch = pa.RecordBatch.from_arrays([loose], names=["c"])
    assert [None, {"q": 1}] == conform_batch(batch, pa.schema([("c", strict)])).column(0).to_pylist()
