"""Values computed from columns: what they mean, and what is refused."""

from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError, WriteError
from hudi_py.rows.expression import Expression
from hudi_py.table_statements import expressions_of

ROWS = pa.RecordBatch.from_pylist(
    [
        {
            "n": 7,
            "x": 1.5,
            "s": "a",
            "m": Decimal("1.50"),
            "odd name": 1,
            "at": -500_000,
            "day": datetime(2026, 1, 2, tzinfo=timezone.utc),
            "big": Decimal(10**37),
        },
        {"n": -7, "x": None, "s": None, "m": None, "odd name": 2, "at": 0, "big": Decimal(-(10**38) + 2)},
    ],
    schema=pa.schema(
        [
            ("n", pa.int32()),
            ("x", pa.float64()),
            ("s", pa.string()),
            ("m", pa.decimal128(9, 2)),
            ("odd name", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("day", pa.timestamp("us")),
            ("big", pa.decimal128(38, 0)),
        ]
    ),
)
DAY, MOMENT = date(2026, 1, 2), datetime(2026, 1, 2, 3, tzinfo=timezone.utc)
INT, DOUBLE, TEXT, MONEY, BIG = pa.int32(), pa.float64(), pa.string(), pa.decimal128(9, 2), pa.decimal128(38, 0)


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("n * 2 + 1", INT, [15, -13]),
        ("1 + n * 2", INT, [15, -13]),
        ("(1 + n) * 2", INT, [16, -12]),
        ("10 - n - 1", INT, [2, 16]),
        ("-n", INT, [-7, 7]),
        ("n % 3", INT, [1, -1]),
        ("n / 2", DOUBLE, [3.5, -3.5]),
        ("n / 0", DOUBLE, [None, None]),
        ("n % 0", INT, [None, None]),
        ("x * 2 + n", DOUBLE, [10.0, None]),
        ("m * 2", MONEY, [Decimal("3.00"), None]),
        ("m + 0.25", MONEY, [Decimal("1.75"), None]),
        ("5", MONEY, [Decimal("5.00")] * 2),
        ("m / 2", MONEY, [Decimal("0.75"), None]),
        ("m / 0", MONEY, [None, None]),
        ("m % 1", MONEY, [Decimal("0.50"), None]),
        ("n % m", MONEY, [Decimal("1.00"), None]),
        ("n", MONEY, [Decimal("7.00"), Decimal("-7.00")]),
        ("big - 1", BIG, [Decimal(10**37 - 1), Decimal(-(10**38) + 1)]),
        ("big / 10 * 10", BIG, [Decimal(10**37), Decimal(-(10**38) + 2)]),
        ("x", MONEY, [Decimal("1.50"), None]),
        ("x", TEXT, ["1.5", None]),
        ("x * 1e7", TEXT, ["1.5E7", None]),
        ("concat(-0.0 * x, ' ', 'NaN')", TEXT, ["-0.0 NaN", None]),
        ("day", pa.date32(), [DAY, None]),
        ("day", TEXT, ["2026-01-02 00:00:00", None]),
        ("at", TEXT, ["1969-12-31 23:59:59.5", "1970-01-01 00:00:00"]),
        ("at || s", TEXT, ["1969-12-31 23:59:59.5a", None]),
        ("s || 'it''s' || n", TEXT, ["ait's7", None]),
        ("concat(s, '-', s)", TEXT, ["a-a", None]),
        ("`odd name`", INT, [1, 2]),
        ("null", TEXT, [None, None]),
        ("TRUE", pa.bool_(), [True, True]),
        ("date '2026-01-02'", pa.date32(), [DAY] * 2),
        ("timestamp '2026-01-02 03:00:00'", pa.timestamp("us", "UTC"), [MOMENT] * 2),
    ],
)  # fmt: skip
def test_values(text, target, expected):
    """As in Spark SQL, in the type of the column."""
    found = Expression(text).values(ROWS, target)
    assert found.type == target
    assert found.to_pylist() == expected


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("n / 2", INT),
        ("n * 1000000000000", INT),
        ("x", INT),
        ("s", INT),
        ("99999999999999999999", INT),
        ("x * 1e300", pa.float32()),
        ("m / 8", MONEY),
        ("x / 8", MONEY),
        ("n * 1000000", pa.decimal128(8, 2)),
        ("big * 100", BIG),
        ("at", pa.date32()),
    ],
)  # fmt: skip
def test_value_that_does_not_fit_is_refused(text, target):
    """Never rounded, cut off or wrapped around."""
    with pytest.raises(WriteError, match="does not fit"):
        Expression(text).values(ROWS, target)


@pytest.mark.parametrize(
    "text", ["", "n +", "n ; 1", "upper(s)", "(n", "n n", "'open", "concat()", "date '9'", "1e400"]
)
def test_text_that_is_not_understood_is_refused(text):
    """Before anything is computed, with the place."""
    with pytest.raises(ConfigError, match=r"understood|known|not a date|too large"):
        Expression(text)


def test_absent_column_is_named():
    """And a text without quotes is explained."""
    with pytest.raises(ConfigError, match=r"no column 'hello'.*quotes"):
        Expression("hello").values(ROWS, TEXT)
    with pytest.raises(ConfigError, match="cannot be computed"):
        Expression("s + 1").values(ROWS, TEXT)


@pytest.mark.parametrize("value", [DAY, MOMENT, b"x", [1], MOMENT.time()])
def test_value_that_is_no_number_is_refused(value):
    """The text of a date would be read as a subtraction."""
    with pytest.raises(ConfigError, match="expression"):
        expressions_of({"s": value})


@pytest.mark.parametrize("value", [-5, 1.5, Decimal("-0.25"), True, None])
def test_number_stands_for_itself(value):
    """So do booleans and None."""
    target = MONEY if isinstance(value, Decimal) else pa.scalar(value).type
    found = expressions_of({"x": value})["x"].values(ROWS, target)
    assert found.to_pylist() == [value] * 2


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("kind", [float, np.float32, Decimal])
def test_number_that_is_not_finite_stands_for_itself(kind, value):
    """In a column of floats, and as text; other numbers are all finite."""
    expression = expressions_of({"x": kind(value)})["x"]
    for target in (DOUBLE, pa.float32()):
        assert [repr(each) for each in expression.values(ROWS, target).to_pylist()] == [repr(float(value))] * 2
    assert expression.values(ROWS, TEXT).to_pylist() == [value] * 2
    for target in (INT, MONEY):
        with pytest.raises(WriteError, match="does not fit"):
            expression.values(ROWS, target)
