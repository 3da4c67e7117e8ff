"""Conditions: the forms in which they are given, what their text means, and what is said of other text."""

from __future__ import annotations

import random
from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

from hudi_py.errors import ConfigError
from hudi_py.rows.condition import And, Column, Comparison, IsIn, IsNull, Like, Not, Or, Word
from hudi_py.rows.condition_text import parse_condition
from hudi_py.rows.where import conditions_of
from support.where_model import SCHEMA, some_condition

UTC = timezone.utc
A, B = Comparison(("a",), "=", 1), Comparison(("b",), "=", 2)


# --- text -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a=1", A),
        ("a = 1 and b = 2", And((A, B))),
        ("a = 1 OR b = 2 aNd a = 1", Or((A, And((B, A))))),
        ("(a = 1 or (b = 2)) and b = 2", And((Or((A, B)), B))),
        ("a = 1 and (b = 2 and a = 1)", And((A, B, A))),
        ("not a = 1 and b = 2", And((Not(A), B))),
        ("not not (a = 1 or b = 2)", Or((A, B))),
        ("a in (1, 'x', null)", IsIn(("a",), (1, "x", None))),
        ("a not in(1)", Not(IsIn(("a",), (1,)))),
        ("a not like 'x%'", Not(Like(("a",), "x%"))),
        ("a like null", Like(("a",), None)),
        ("a IS  Not null", Not(IsNull(("a",)))),
        ("a between 1 and 2 or b = 2", Or((And((Comparison(("a",), ">=", 1), Comparison(("a",), "<=", 2))), B))),
        ("a.b . c = 1", None),
        ("a.b.c = 1", Comparison(("a", "b", "c"), "=", 1)),
        ("`a b`!='it''s'", Comparison(("a b",), "!=", "it's")),
        ("`a.b`.`c``d`.e <> 1", Comparison(("a.b", "c`d", "e"), "!=", 1)),
        ("a == 1", A),
        ('a = "it\'s"', Comparison(("a",), "=", "it's")),
        ("a = ''", Comparison(("a",), "=", "")),
        ("a = ''''", Comparison(("a",), "=", "'")),
        ("a = 'x or y = z'", Comparison(("a",), "=", "x or y = z")),
        (r"a = '\'", Comparison(("a",), "=", "\\")),
        ("a = -1.50", Comparison(("a",), "=", Decimal("-1.50"))),
        ("a = .5", Comparison(("a",), "=", Decimal("0.5"))),
        ("a = 15E-1", Comparison(("a",), "=", 1.5)),
        ("a = TRUE", Comparison(("a",), "=", True)),
        ("a = null", Comparison(("a",), "=", None)),
        ("a = date '2024-02-29'", Comparison(("a",), "=", date(2024, 2, 29))),
        ("a = TIMESTAMP '2024-02-29 01:02:03Z'", Comparison(("a",), "=", datetime(2024, 2, 29, 1, 2, 3, tzinfo=UTC))),
        ("date = date", Comparison(("date",), "=", Word("date"))),
        ("a  <= b  c ", Comparison(("a",), "<=", Word("b  c"))),
        ("a > 2024-01-01 08:30:00 and b = 2", And((Comparison(("a",), ">", Word("2024-01-01 08:30:00")), B))),
        ("a = 007", Comparison(("a",), "=", Word("007"))),
        ("größe = 1", Comparison(("größe",), "=", 1)),
    ],
)  # fmt: skip
def test_texts_have_one_meaning(text, condition):
    """The grammar of Spark SQL; words without quotes are a value."""
    if condition is None:
        with pytest.raises(ConfigError, match="expected"):
            parse_condition(text)
    else:
        assert repr(parse_condition(text)) == repr(condition)


@pytest.mark.parametrize(
    ("text", "at", "expected"),
    [
        ("", 1, "expected the name of a column, found the end of the text"),
        ("a", 2, "expected one of = != < <= > >=, in, like, between, is, found the end"),
        ("= 1", 1, "expected the name of a column, found ="),
        ("a. = 1", 4, "expected the name of a column"),
        ("a ~ 1", 3, "expected one of"),
        ("a b = 1", 3, "expected one of"),
        ("upper(a) = 'X'", 6, "expected one of"),
        ("a is 1", 6, "expected null or not null, found 1"),
        ("a is not 1", 10, "expected null, found 1"),
        ("a not = 1", 7, "expected in, like or between"),
        ("a = ", 5, "expected a value"),
        ("a = b = c", 7, "expected and, or, or the end, found =; put text with signs"),
        ("a = 1 or", 9, "expected the name of a column"),
        ("a = black or white", 19, "expected one of"),
        ("a = 1 and or b = 2", 11, "expected the name of a column, found or"),
        ("(a = 1", 7, r"expected and, or, or \), found the end"),
        ("a = 1)", 6, "expected and, or, or the end"),
        ("a in 1", 6, r"expected \( and values"),
        ("a in ()", 7, "expected a value"),
        ("a in (1 2, 3", 13, r"expected , or \)"),
        ("a between 1", 12, "expected and, with the other end"),
        ("a like 5", 8, "expected a pattern in quotes"),
        ("a = 'x", 5, "a quote that is not closed"),
        ("a = it's", 7, "a quote that is not closed"),
        ("a = 'x' --", 9, "expected and, or, or the end"),
        ("a = date '20240101'", 5, "'20240101' is not a date"),
        ("a = timestamp 'noon'", 5, "'noon' is not a timestamp"),
        (f"{'(' * 101}a = 1{')' * 101}", 101, "more than 100 levels"),
    ],
)
def test_what_is_wrong_with_a_text_is_said_by_its_place(text, at, expected):
    """The character, what could stand there, and what does."""
    with pytest.raises(ConfigError, match=rf"at character {at}: .*{expected}"):
        parse_condition(text)


def test_the_text_of_a_condition_is_that_condition():
    """Of trees at random, whatever their values."""
    rng = random.Random(7)
    for _ in range(300):
        condition = parse_condition(some_condition(rng, SCHEMA.names, depth=3).text)
        assert parse_condition(str(condition)) == condition
    for name in ("a", "a b", "a.b", "1", "a`b", "ü"):
        quoted = "`" + name.replace("`", "``") + "`"
        for value in (1, -1.5, 1e300, Decimal("1.50"), Decimal(7), "it's", True, date(2024, 1, 1),
                      datetime(2024, 1, 1, 8, 30, 0, 5, UTC)):  # fmt: skip
            found = parse_condition(str(Column(quoted) == value))
            assert repr(found) == repr(Column(quoted) == value)


# --- tuples and expressions -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("value", [7, -0.5, "it's", "", True, Decimal("1.50"), date(2024, 1, 2)], ids=repr)
def test_text_tuple_and_expression_are_one_condition(value):
    """Whatever the form, alone or in a list, and whatever the value is made of."""
    for operator, expressed in (
        ("=", Column("a b") == value), ("!=", Column("a b") != value), ("<", Column("a b") < value),
        ("<=", Column("a b") <= value), (">", Column("a b") > value), (">=", Column("a b") >= value),
        ("in", Column("a b").is_in([value])), ("not in", ~Column("a b").isin([value])),
        ("between", Column("a b").between(value, value)),
    ):  # fmt: skip
        given = [value] if operator.endswith("in") else (value, value) if operator == "between" else value
        for form in (str(expressed), ("a b", operator, given), expressed):
            assert (expressed,) == conditions_of(form) == conditions_of([form]) == conditions_of((form,))
        assert (expressed, expressed) == conditions_of((str(expressed), ("a b", operator, given)))


def test_conditions_on_null_and_patterns_have_the_same_forms():
    """A tuple of two, or of an operator and no value."""
    assert conditions_of("c is null") == conditions_of(("c", "IS NULL")) == conditions_of(Column("c").is_null())
    assert conditions_of(["c is not null"]) == conditions_of(("c", "is not null")) == (Column("c").is_not_null(),)
    assert conditions_of("c like 'a%'") == conditions_of(("c", "like", "a%")) == (Column("c").like("a%"),)
    assert conditions_of("c not like 'a%'") == conditions_of(("c", "not like", "a%")) == (~Column("c").like("a%"),)
    assert conditions_of("c <> 1") == conditions_of(("c", "<>", 1)) == conditions_of(("c", "!=", 1))


def test_expressions_combine():
    """As their text does; a list of lists is one of its inner lists, as in pyarrow."""
    a, b, c = Column("a") == 1, Column("b") == 2, Column("x.c") > 3
    assert (a & b) | ~c == parse_condition("a = 1 and b = 2 or not x.c > 3")
    assert ~~a == a
    assert conditions_of([[("a", "=", 1), "b = 2"], [c]]) == ((a & b) | c,)
    assert conditions_of([("a", "=", 1), "b = 2"]) == (a, b)
    assert Column("a").isin(pa.array([1, None])) == IsIn(("a",), (1, None))
    with pytest.raises(ConfigError, match="parentheses"):
        a & True


@pytest.mark.parametrize(
    "where",
    [7, [7], ("a", "~", 1), ("a", "="), ("a", "is null", 1), ("a", "=", None), ("a", "=", [1]), [("a",)], (1, "=", 2),
     ("a", "in", "text"), ("a", "in", 5), ("a", "like", 5), ("a", "between", 5), ("a", "between", (1, 2, 3)),
     ("a.", "=", 1), ("`a", "=", 1), ("", "=", 1), [[]], [["a = 1"], "b = 1"], pa.compute.field("a") > 1],
    ids=str,
)  # fmt: skip
def test_what_has_no_form_of_a_condition_is_refused(where):
    """As an error of ours, before anything is read."""
    with pytest.raises(ConfigError, match=r"condition|takes|column"):
        conditions_of(where)


def test_a_chain_of_comparisons_is_not_half_a_condition():
    """Python would drop the first half of it."""
    with pytest.raises(TypeError, match="list"):
        assert 1 < Column("a") < 3


@pytest.mark.parametrize("dropped", [lambda c: c and c > 1, lambda c: c > 1 or c, lambda c: not c])
def test_a_column_is_no_condition_that_python_could_drop(dropped):
    """A column of booleans beside `and` would be gone, and a delete would take more rows."""
    with pytest.raises(TypeError, match="truth value"):
        dropped(Column("paid"))


@pytest.mark.parametrize("unit", ["ns", "ps", "us", "s", "D"])
def test_a_time_of_numpy_is_a_time_in_every_unit(unit):
    """Not the number that NumPy makes of small units, which a column of numbers may hold."""
    (found,) = conditions_of(("a", "=", np.datetime64("1970-02-01", unit)))
    assert str(found.value)[:10] == "1970-02-01"


def test_times_with_nanoseconds_and_spans_are_refused():
    """Cut off, ``<`` would leave out rows of the same microsecond."""
    pandas = pytest.importorskip("pandas")
    text = "2024-01-01T00:00:00.000000001"
    beyond = np.datetime64("20000-01-01", "us")
    spans = [np.timedelta64(5, unit) for unit in ("ns", "s")]
    for value in (pandas.Timestamp(text), np.datetime64(text), pa.scalar(1, pa.timestamp("ns")), beyond, *spans):
        with pytest.raises(ConfigError, match=r"nanoseconds|cannot be compared"):
            conditions_of(("a", "<", value))


@pytest.mark.parametrize("operator", ["=", "<", "!="])
def test_what_is_no_single_value_is_refused(operator):
    """An array of several, and the time that pandas has for none: no row would be right."""
    pandas = pytest.importorskip("pandas")
    for value in (np.array([1, 2]), pandas.NaT):
        with pytest.raises(ConfigError, match="cannot be compared with a column"):
            conditions_of(("a", operator, value))
