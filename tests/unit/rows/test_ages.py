"""Files from before a widening are told from those after it, and few files are asked."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.formats.record_schema import storage_schema
from hudi_py.model.files import BaseFile
from hudi_py.rows.ages import as_stored, by_stored_schema

WIDENINGS = {"n": [None, pa.int32(), pa.int64()], "f": [pa.float32(), pa.float64()], "late": [None, pa.string()]}
TABLE = pa.schema([(name, types[-1]) for name, types in WIDENINGS.items()])


def base_file(number):
    return "", BaseFile(f"f{number}", f"f{number}", "0-0-0", f"{number:017d}", "parquet")


@given(
    count=st.integers(0, 200),
    when=st.lists(st.integers(0, 200), min_size=4, max_size=4),
    shuffle=st.randoms(use_true_random=False),
)
def test_every_file_is_read_in_its_own_types(count, when, shuffle):
    """Whenever columns came and types grew; and a type that never grew costs two footers, however many files."""
    first_n, grown = sorted(when[:2])
    ages = {"n": (first_n, grown), "f": (when[2],), "late": (when[3],)}

    def stored_at(number):
        held = {name: WIDENINGS[name][sum(number >= time for time in times)] for name, times in ages.items()}
        return pa.schema([(name, kind) for name, kind in held.items() if kind is not None])

    asked = []

    def stored(partition, file):
        asked.append(file.instant_time)
        return stored_at(int(file.instant_time))

    files = [base_file(number) for number in range(count)]
    shuffle.shuffle(files)
    groups = by_stored_schema(files, TABLE, stored)
    assert {file.name for _, file in files} == {file.name for _, some in groups for _, file in some}
    assert len(files) == sum(len(some) for _, some in groups)
    for schema, some in groups:
        assert TABLE.names == schema.names
        for _, file in some:
            assert as_stored(TABLE, stored_at(int(file.instant_time))) == schema
    assert len(asked) == len(set(asked))
    changes = len({time for times in ages.values() for time in times if 0 < time < count})
    assert len(asked) <= min(count, 2) + 2 * changes * max(1, count.bit_length())


def test_nested_types_are_taken_leaf_by_leaf():
    """Fields are those that the file has, in the table's order; only what Spark cannot widen itself is the file's."""
    old = storage_schema(
        pa.schema(
            [
                ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
                ("l", pa.list_(pa.float32())),
                ("m", pa.map_(pa.string(), pa.struct([("d", pa.decimal128(5, 2))]))),
                ("t", pa.timestamp("us", "UTC")),
            ]
        )
    )
    new = storage_schema(
        pa.schema(
            [
                ("s", pa.struct([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])),
                ("l", pa.list_(pa.float64())),
                ("m", pa.map_(pa.string(), pa.struct([("d", pa.decimal128(9, 2))]))),
                ("t", pa.timestamp("us", "UTC")),
                ("x", pa.int64()),
            ]
        )
    )
    read = as_stored(new, old)
    assert pa.struct([("a", pa.int32()), ("b", pa.string())]) == read.field("s").type
    assert old.field("l").type == read.field("l").type
    assert old.field("m").type == read.field("m").type
    assert new.field("t") == read.field("t")
    assert new.field("x") == read.field("x")
    millis = pa.schema([("t", pa.timestamp("ms", "UTC"))])
    assert new.field("t") == as_stored(new, millis).field("t")
