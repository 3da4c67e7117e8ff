"""Conditions of ours mean what Spark SQL means by them: it evaluates the same texts on the same rows."""

import math
import random
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudi_py.rows.condition_text import parse_condition
from hudi_py.rows.predicate import filtered, filters_of
from support.where_model import COMPARED, NAN, SCHEMA, some_condition, some_value

pytestmark = pytest.mark.spark

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
MORE = {
    "dec": ["0.005", "12.5", "1e3"],
    "i": ["8"],
    "l": ["-3"],
    "day": ["2000-01-01", "2024-2-29", "2024-02", "2024"],
    "t": [
        "2024-1-1", "2024-01", "2024-01-01 01:02", "2024-1-1 1:2:3.000004", "2024-01-01T02:02:03.000004999+1",
        "2024-1-1 2:2:3.000004 Europe/Paris", "2023-12-31 20:02:03.000004 GMT-5",
    ],
}  # fmt: skip
SETTINGS = {
    "session.timeZone": "UTC",
    "inMemoryColumnarStorage.partitionPruning": "false",  # its own bounds forget NaN
    "parquet.filterPushdown": "false",
    "parser.escapedStringLiterals": "true",
}


@pytest.fixture
def frame_of(spark, tmp_path):
    """Makes a DataFrame of rows."""

    def make(rows):
        pq.write_table(rows, tmp_path / "rows.parquet")
        return spark.read.parquet(str(tmp_path / "rows.parquet")).cache()

    for setting, value in SETTINGS.items():
        spark.conf.set(f"spark.sql.{setting}", value)
    yield make
    for setting in SETTINGS:
        spark.conf.unset(f"spark.sql.{setting}")


def text_of(value):
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)


@pytest.mark.parametrize("column", list(VALUES), ids=lambda column: column[0])
def test_comparisons_are_those_of_spark_sql(frame_of, column):
    """Every operator between all pairs of values: of NaN, both zeros, nulls, strings beyond the basic plane."""
    name, arrow, sql = column
    schema = pa.schema([("n", pa.int32()), (name, arrow)])
    given = VALUES[column]
    rows = pa.table({"n": range(len(given)), name: pa.array(given, arrow)}, schema=schema)
    frame = frame_of(rows)
    (batch,) = rows.to_batches()
    texts = [*map(text_of, filter(lambda value: value is not None, given)), *MORE.get(name, [])]
    asked = [(f"{name} {op} '{text}'", f"{name} {op} cast('{text}' as {sql})")
             for op in ("=", "!=", "<", "<=", ">", ">=") for text in texts]  # fmt: skip
    asked += [(f"{name} is {no}null",) * 2 for no in ("", "not ")]
    for ours, theirs in asked:
        found = filtered(batch, filters_of([parse_condition(ours)], schema))
        assert found["n"].to_pylist() == sorted(row["n"] for row in frame.where(theirs).collect()), ours


@pytest.mark.parametrize("seed", range(4))
def test_trees_at_random_are_those_of_spark_sql(frame_of, seed):
    """True, false and null of the same text on each row: values of every type, structs, nulls, NaN, patterns."""
    rng = random.Random(seed)
    columns = {
        field.name: [None if rng.random() < 0.25 else some_value(rng, field.name) for _ in range(24)]
        for field in SCHEMA
    }
    rows = pa.table({"n": range(24), **columns}, schema=pa.schema([("n", pa.int32()), *SCHEMA]))
    frame = frame_of(rows).coalesce(1)
    (batch,) = rows.to_batches()
    asked = [some_condition(rng, [name], depth=0).text for name in COMPARED if "." not in name for _ in range(12)]
    asked += [some_condition(rng, ["nest"], depth=0).text for _ in range(24)]
    asked += [some_condition(rng, SCHEMA.names, depth=3).text for _ in range(60)]
    told = frame.selectExpr("n", *[f"({text}) as c{at}" for at, text in enumerate(asked)]).orderBy("n").collect()
    for at, text in enumerate(asked):
        ours = {True: [], False: [], None: []}
        filters = filters_of([parse_condition(f"({text}) or n < 0")], rows.schema)
        for number, value in zip(batch["n"].to_pylist(), filters[0].mask(batch).to_pylist(), strict=True):
            ours[value].append(number)
        theirs = {value: [row["n"] for row in told if row[f"c{at}"] is value] for value in ours}
        assert ours == theirs, text
