"""Types that hudi_py reads and does not write: vectors, enums, times of other writers."""

import json
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import UnsupportedTable, WriteError
from hudi_py.formats.read_types import ReadTypes, has_vectors
from hudi_py.formats.record_schema import parse_record_schema
from hudi_py.formats.stored_values import conform_stored


def parsed(*types):
    fields = [{"name": f"c{at}", "type": ["null", each]} for at, each in enumerate(types)]
    return parse_record_schema(json.dumps({"type": "record", "name": "r", "fields": fields}), ReadTypes)


def vector(dimension, kind, width, **more):
    size = dimension * width
    return {"type": "fixed", "name": f"v{size}{kind}", "size": size, "logicalType": "vector", "dimension": dimension,
            "elementType": kind, "storageBacking": "FIXED_BYTES", **more}  # fmt: skip


@given(data=st.data(), kind=st.sampled_from([("FLOAT", "f"), ("DOUBLE", "d"), ("INT8", "b")]))
def test_a_vector_is_the_list_of_its_numbers(data, kind):
    """Stored as little-endian bytes; null stays null, in a slice of a column too."""
    name, code = kind
    dimension = data.draw(st.integers(1, 4))
    number = st.integers(-128, 127).map(int if code == "b" else float)
    rows = data.draw(st.lists(st.none() | st.lists(number, min_size=dimension, max_size=dimension), min_size=1))
    begin = data.draw(st.integers(0, len(rows) - 1))
    schema = parsed(vector(dimension, name, struct.calcsize(code)))
    stored = [None if row is None else struct.pack(f"<{dimension}{code}", *row) for row in rows]
    column = pa.array(stored, pa.binary(dimension * struct.calcsize(code))).slice(begin)
    found = conform_stored(pa.record_batch([column], names=["c0"]), schema)
    found.validate(full=True)
    assert rows[begin:] == found.column(0).to_pylist()


def test_bytes_of_another_width_are_damage():
    """Five bytes hold no floats."""
    batch = pa.record_batch([pa.array([b"12345"], pa.binary(5))], names=["c0"])
    with pytest.raises(WriteError, match="5 bytes"):
        conform_stored(batch, parsed(vector(2, "FLOAT", 4)))


def test_types_of_other_writers():
    """As their values are shown; a logical type that is not known is the type beneath it."""
    enum = {"type": "enum", "name": "kind", "symbols": ["INLINE", "OUT_OF_LINE"]}
    millis = {"type": "long", "logicalType": "timestamp-millis"}
    uuid = {"type": "string", "logicalType": "uuid"}
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    expected = [pa.string(), pa.timestamp("ms", "UTC"), pa.string(), pa.decimal128(9, 2), pa.binary()]
    assert expected == parsed(enum, millis, uuid, decimal, {"type": "fixed", "name": "f", "size": 3}).types


@pytest.mark.parametrize("more", [{"elementType": "FLOAT16"}, {"storageBacking": "LIST"}])
def test_a_vector_of_another_kind_is_refused(more):
    """Rather than shown as bytes."""
    with pytest.raises(UnsupportedTable, match="vector"):
        parsed(vector(2, "FLOAT", 4, **more))


def test_vectors_are_found_at_any_depth():
    """Spark's own Parquet reader must not be asked for them."""
    inner = {"type": "record", "name": "s", "fields": [{"name": "v", "type": vector(2, "FLOAT", 4)}]}
    array = {"type": "array", "items": inner}
    schema = parsed({"type": "array", "items": "float"}, vector(3, "FLOAT", 4), array, {"type": "map", "values": array})
    assert [False, True, True, True] == [has_vectors(field) for field in schema.with_metadata(None)]


def test_writers_do_not_know_them():
    """A file without vectors beside files with them would be unreadable."""
    fields = [{"name": "v", "type": vector(2, "FLOAT", 4)}]
    with pytest.raises(UnsupportedTable, match="cannot write it"):
        parse_record_schema(json.dumps({"type": "record", "name": "r", "fields": fields}))
