"""Conditions of ours mean what Spark SQL means by them."""

import math
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.rows.condition import parse_condition
from hudi_py.rows.predicate import filtered, filters_of

pytestmark = pytest.mark.spark

NAN = float("nan")
UTC = timezone.utc
VALUES = {
    ("s", pa.string(), "string"): ["", "a", "ab", "B", "ü", "\uff00", "\U00010000", None],
    ("i", pa.int32(), "int"): [-1, 0, 7, 2**31 - 1, None],
    ("l", pa.int64(), "bigint"): [-(2**62), 0, 7, None],
    ("f", pa.float32(), "float"): [NAN, 0.0, -0.0, 0.5, 0.1, math.inf, None],
    ("d", pa.float64(), "double"): [NAN, 0.0, -0.0, 0.5, 0.1, -math.inf, None],
    ("b", pa.bool_(), "boolean"): [True, False, None],
    ("day", pa.date32(), "date"): [date(1969, 12, 31), date(2024, 2, 29), None],
    ("t", pa.timestamp("us", "UTC"), "timestamp"): [
        datetime(1969, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 1, 2, 3, 4, UTC), None,
    ],
    ("dec", pa.decimal128(9, 2), "decimal(20,4)"): [Decimal("-1.25"), Decimal("0.00"), Decimal("12.50"), None],
}  # fmt: skip
MORE = {"dec": ["0.005", "12.5", "1e3"], "i": ["8"], "l": ["-3"], "day": ["2000-01-01"]}


def text_of(value):
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("column", list(VALUES), ids=lambda column: column[0])
def test_comparisons_are_those_of_spark_sql(spark, tmp_path, column):
    """Every operator between all pairs of values: of NaN, both zeros, nulls, strings beyond the basic plane."""
    name, arrow, sql = column
    schema = pa.schema([("n", pa.int32()), (name, arrow)])
    given = VALUES[column]
    rows = pa.table({"n": range(len(given)), name: pa.array(given, arrow)}, schema=schema)
    pq.write_table(rows, tmp_path / "rows.parquet")
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.inMemoryColumnarStorage.partitionPruning", "false")  # its own bounds forget NaN
    spark.conf.set("spark.sql.parquet.filterPushdown", "false")
    frame = spark.read.parquet(str(tmp_path / "rows.parquet")).cache()
    (batch,) = rows.to_batches()
    texts = [*map(text_of, filter(lambda value: value is not None, given)), *MORE.get(name, [])]
    asked = [(f"{name} {op} '{text}'", f"{name} {op} cast('{text}' as {sql})")
             for op in ("=", "!=", "<", "<=", ">", ">=") for text in texts]  # fmt: skip
    asked += [(f"{name} is {no}null",) * 2 for no in ("", "not ")]
    for ours, theirs in asked:
        found = filtered(batch, filters_of([parse_condition(ours)], schema))
        assert found["n"].to_pylist() == sorted(row["n"] for row in frame.where(theirs).collect()), ours
    for setting in ("session.timeZone", "inMemoryColumnarStorage.partitionPruning", "parquet.filterPushdown"):
        spark.conf.unset(f"spark.sql.{setting}")
