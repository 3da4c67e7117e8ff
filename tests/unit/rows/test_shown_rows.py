"""Rows as plain values: what cannot be shown is named."""

import pyarrow as pa
import pytest

from hudi_py.errors import UnsupportedTable
from hudi_py.rows.read import plain_rows

BROKEN = pa.array([b"a\xff"]).view(pa.string())  # other programs store any bytes as text
LATE = pa.array([400_000_000_000_000_000], pa.timestamp("us"))  # in the year 14645


@pytest.mark.parametrize("make", [lambda each: each, lambda each: pa.StructArray.from_arrays([each], ["n"])])
@pytest.mark.parametrize(("column", "why"), [(BROKEN, "a text is not UTF-8"), (LATE, "a date or time cannot be shown")])
def test_what_cannot_be_shown_is_named_with_the_way_out(column, why, make):
    """At any depth."""
    with pytest.raises(UnsupportedTable, match=rf"{why}.*\.parquet"):
        plain_rows(pa.record_batch({"v": make(column)}))
