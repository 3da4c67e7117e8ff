"""What a file holds of each column: as its rows say, whatever batches they come in."""

import math
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.rows.column_ranges import RangeCollector, joined

SCHEMA = pa.schema([("x", pa.float64()), ("s", pa.string()), ("n", pa.list_(pa.int64()))])
FLOATS = st.one_of(st.none(), st.floats())


class Footer:
    """Of a file with two row groups of three chunks."""

    num_row_groups = 2
    num_columns = 3
    path_in_schema = ""
    total_compressed_size = 1
    total_uncompressed_size = 2

    def row_group(self, _):
        return self

    def column(self, position):
        found = Footer()
        found.path_in_schema = ("x", "s", "n.list.element")[position]
        return found


def gathered(*batches):
    collector = RangeCollector(SCHEMA, ["x", "s", "n", "absent"])
    for values in batches:
        rows = [{"x": x, "s": s, "n": [1]} for x, s in values]
        collector.add(pa.RecordBatch.from_pylist(rows, schema=SCHEMA))
    return {each.column: each for each in collector.finish(Footer())}


def order(value):
    """Java's: -0.0 before 0.0, NaN last."""
    return (math.isnan(value), 0 if math.isnan(value) else value, math.copysign(1, value))


@given(st.lists(st.lists(st.tuples(FLOATS, st.none() | st.text(max_size=3)), min_size=1), min_size=1, max_size=3))
def test_bounds_hold_every_value_and_count_every_null(batches):
    """Of floats NaN is the largest; lists have no bounds; a column that the file lacks has no range."""
    found = gathered(*batches)
    assert found.keys() == {"x", "s"}
    floats = [x for batch in batches for x, _ in batch]
    texts = [s.encode() for batch in batches for _, s in batch if s is not None]
    values = [x for x in floats if x is not None]
    x, s = found["x"], found["s"]
    assert (x.value_count, x.null_count) == (len(floats), len(floats) - len(values))
    assert (x.size_bytes, x.uncompressed_bytes) == (2, 4)
    if values:
        assert all(order(x.minimum) <= order(value) <= order(x.maximum) for value in values)
        assert order(abs(x.minimum)) == order(abs(min(values, key=order)))
        assert order(abs(x.maximum)) == order(abs(max(values, key=order)))
    else:
        assert (x.minimum, x.maximum) == (None, None)
    bounds = (None, None) if not texts else (min(texts).decode(), max(texts).decode())
    assert (s.minimum, s.maximum) == bounds


@pytest.mark.parametrize("split", range(4))
def test_files_together_are_as_one(split):
    """However their rows are split; a range travels from an executor."""
    rows = [(1.5, "b"), (math.nan, None), (-3.0, "a")]
    first, second = rows[:split], rows[split:]
    parts = [gathered(part) for part in (first, second) if part]
    whole, sizes = gathered(rows), ("size_bytes", "uncompressed_bytes")
    for name, wanted in whole.items():
        together = pickle.loads(pickle.dumps(parts[0][name]))
        for part in parts[1:]:
            together = joined(together, part[name])
        for field in ("minimum", "maximum", "value_count", "null_count"):
            assert repr(getattr(together, field)) == repr(getattr(wanted, field))
        assert all(getattr(together, field) for field in sizes)


def test_dates_beyond_those_of_python():
    """Spark stores years before 1 and after 9999, too: their bounds are numbers of days."""
    schema = pa.schema([("d", pa.date32())])
    collector = RangeCollector(schema, ["d"])
    days = [4_000_000, None, -2_000_000]
    collector.add(pa.record_batch([pa.array(days, pa.date32())], schema=schema))
    collector.add(pa.record_batch([pa.array([5], pa.date32())], schema=schema))
    range_of = next(iter(collector._ranges.values()))
    assert (range_of.minimum, range_of.maximum, range_of.null_count) == (-2_000_000, 4_000_000, 1)
