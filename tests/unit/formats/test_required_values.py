"""Nulls where a type requires a value are counted at every depth, beside a model of plain Python values."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, strategies

from hudi_py.errors import WriteError
from hudi_py.formats.conform import conform_batch
from hudi_py.formats.required_values import count_missing
from support.laws import examples

DEPTH = 3


def a_field(chance, name, depth=DEPTH):
    """A random type with random required parts."""
    kind = chance.choice(["int", "int", "struct", "list", "map"]) if depth else "int"
    if kind == "struct":
        arrow = pa.struct([a_field(chance, f"f{number}", depth - 1) for number in range(chance.randint(1, 3))])
    elif kind == "list":
        arrow = pa.list_(a_field(chance, "element", depth - 1))
    elif kind == "map":
        arrow = pa.map_(pa.string(), a_field(chance, "value", depth - 1))
    else:
        arrow = pa.int64()
    return pa.field(name, arrow, nullable=chance.random() < 0.5)


def a_value(chance, field, nulls):
    """A value of a field, null now and then, also where that is forbidden."""
    if chance.random() < nulls:
        return None
    if isinstance(field.type, pa.StructType):
        return {child.name: a_value(chance, child, nulls) for child in field.type}
    if isinstance(field.type, pa.MapType):
        return [(f"k{number}", a_value(chance, field.type.item_field, nulls)) for number in range(chance.randrange(3))]
    if isinstance(field.type, pa.ListType):
        return [a_value(chance, field.type.value_field, nulls) for _ in range(chance.randrange(3))]
    return chance.randrange(9)


def missing(value, field, path):
    """The paths of nulls in required places, one by one."""
    if value is None:
        yield from [] if field.nullable else [path]
    elif isinstance(field.type, pa.StructType):
        for child in field.type:
            yield from missing(value[child.name], child, f"{path}.{child.name}")
    elif isinstance(field.type, pa.MapType):
        for _, each in value:
            yield from missing(each, field.type.item_field, f"{path}.value")
    elif isinstance(field.type, pa.ListType):
        for each in value:
            yield from missing(each, field.type.value_field, f"{path}.element")


@examples(150)
@given(seed=strategies.integers(0, 2**32))
def test_every_missing_value_is_counted(seed):
    """In slices as well; rows that lack nothing are written as they are, all others refused by path and number."""
    chance = random.Random(seed)
    field, nulls = a_field(chance, "c"), chance.choice([0, 0.1, 0.3])
    rows = [a_value(chance, field, nulls) for _ in range(chance.randrange(12))]
    begin = chance.randrange(3)
    column, rows = pa.array(rows, field.type).slice(begin), rows[begin:]
    expected = Counter(path for row in rows for path in missing(row, field, "c"))
    assert expected == dict(count_missing(column, field))
    schema = pa.schema([field])
    batch = pa.RecordBatch.from_arrays([column], schema=schema)
    if not expected:
        assert batch.to_pylist() == conform_batch(batch, schema).to_pylist()
        return
    with pytest.raises(WriteError) as caught:
        conform_batch(batch, schema)
    assert any(f"{path!r} is null in {count} place" in str(caught.value) for path, count in expected.items())
