"""Conditions on rows: Spark SQL's logic of three values; and bounds, which rule out what no row can meet, no more."""

from __future__ import annotations

import itertools
import random
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from hudi_py.errors import ConfigError
from hudi_py.rows.bound_where import bound_filters
from hudi_py.rows.condition import Column
from hudi_py.rows.condition_text import parse_condition
from hudi_py.rows.operand import micros_of
from hudi_py.rows.predicate import Bounds, filtered, filters_of
from hudi_py.rows.pruning import leaf_may, may_match
from hudi_py.rows.where import conditions_of
from support.where_model import SCHEMA, some_condition, some_rows


def bound(text, schema=SCHEMA):
    return filters_of([parse_condition(text)], schema)


@pytest.mark.parametrize("seed", range(40))
def test_conditions_mean_what_they_say_row_by_row(seed):
    """Of every type, with nulls and NaN, as deep as it may be: true, false and null alike."""
    rng = random.Random(seed)
    rows = some_rows(rng, SCHEMA.names)
    (batch,) = pa.table(rows, schema=SCHEMA).combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], SCHEMA)]
    for _ in range(60):
        asked = some_condition(rng, SCHEMA.names, depth=3)
        expected = [asked.of(row) for row in batch.to_pylist()]
        filters = bound(asked.text)
        if len(filters) == 1:
            assert filters[0].mask(batch).to_pylist() == expected, asked.text
        assert filtered(batch, filters).num_rows == expected.count(True), asked.text


def test_lists_without_values_and_of_nulls():
    """`in` of nothing is false, also for null; `in` and `not in` beside null are true or null, false or null."""
    schema = pa.schema([("i", pa.int32())])
    batch = pa.RecordBatch.from_pydict({"i": pa.array([1, 2, None], pa.int32())})
    none = filters_of([parse_condition("i = 1") & ~parse_condition("i = 1")], schema)
    assert filtered(batch, none).num_rows == 0
    for text, expected in {
        "i in (1, null)": [True, None, None],
        "i not in (1, null)": [False, None, None],
        "i in (null)": [None, None, None],
        "i = null": [None, None, None],
        "not (i != null)": [None, None, None],
        "i = null or i = 1": [True, None, None],
        "not (i = null and i = 2)": [True, None, None],
    }.items():
        (found,) = bound(text, schema)
        assert found.mask(batch).to_pylist() == expected, text


LEAVES = ["i = 0", "i != 1", "i < 1", "i <= -1", "i > 0.5", "i >= 2e0", "i in (-3, 1)", "i in (0, null)", "i is null",
          "i not in (0, 1)", "i not in (0, null)", "i between -1 and 1", "i = null"]  # fmt: skip


@pytest.mark.parametrize("text", LEAVES + [f"not ({each})" for each in LEAVES])
def test_bounds_rule_out_what_lies_outside_and_nothing_else(text):
    """Against a list of all values within: a condition on one column is ruled out exactly where none meets it."""
    schema = pa.schema([("i", pa.int32())])
    filters = bound(text, schema)
    for low, high in itertools.combinations_with_replacement(range(-3, 4), 2):
        for has_nulls in (False, True):
            values = [*range(low, high + 1), *[None] * has_nulls]
            batch = pa.RecordBatch.from_pydict({"i": pa.array(values, pa.int32())})
            told = Bounds(minimum=low, maximum=high, has_nulls=has_nulls)
            may = may_match(filters, lambda *_, told=told: [told])
            if not (" in (" in text or "between" in text):
                assert may is (filtered(batch, filters).num_rows > 0), (low, high)
            assert may or not filtered(batch, filters).num_rows, (low, high)
    nulls = pa.RecordBatch.from_pydict({"i": pa.array([None], pa.int32())})
    assert may_match(filters, lambda *_: [Bounds(has_only_nulls=True)]) is (filtered(nulls, filters).num_rows > 0)
    is_never_met = text in ("i = null", "not (i = null)", "i not in (0, null)", "not (i in (0, null))")
    assert may_match(filters, lambda *_: [Bounds()]) is not is_never_met


PATTERNS = ["%", "a", "a%", "ab%", "_b", "%b", "a_", "", "a\\%", "b%a"]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("negation", ["", "not "])
def test_bounds_of_texts_rule_out_patterns_by_their_beginning(pattern, negation):
    """Never a text that has the form; and every range before or behind the beginning."""
    schema = pa.schema([("s", pa.string())])
    filters = bound(f"s {negation}like '{pattern}'", schema)
    texts = sorted("".join(each) for size in range(4) for each in itertools.product("abc%", repeat=size))
    for low, high in itertools.combinations_with_replacement(texts[::3], 2):
        batch = pa.RecordBatch.from_pydict({"s": [each for each in texts if low <= each <= high]})
        may = may_match(filters, lambda *_, low=low, high=high: [Bounds(minimum=low, maximum=high, has_nulls=False)])
        assert may or not filtered(batch, filters).num_rows, (low, high)
    if pattern == "ab%" and not negation:
        assert not may_match(filters, lambda *_: [Bounds(minimum="b", maximum="c")])
        assert not may_match(filters, lambda *_: [Bounds(minimum="a", maximum="aa")])
        assert may_match(filters, lambda *_: [Bounds(minimum="aa", maximum="abz")])
    if pattern == "ab%" and negation:
        assert not may_match(filters, lambda *_: [Bounds(minimum="aba", maximum="abz")])


def test_trees_are_ruled_out_by_either_side_of_and_and_by_both_of_or():
    """Under `not` it is the other way around; what is unknown rules nothing out."""
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32()), ("c", pa.int32())])
    known = {("a",): Bounds(minimum=1, maximum=5, has_nulls=False), ("b",): Bounds(minimum=1, maximum=5)}
    for text, expected in {
        "a = 9 and c = 1": False,
        "a = 9 or c = 1": True,
        "a = 9 or b = 9": False,
        "a = 9 or b is null": True,
        "not (a < 9 or c = 1)": False,
        "not (a < 9 and c = 1)": True,
        "not (a < 9 and b < 9)": False,
        "not (a is not null or c = 1)": False,
        "(a = 9 or b = 9) and c = 1": False,
    }.items():
        assert may_match(bound(text, schema), lambda path, _: [known.get(path, Bounds())]) is expected, text
    (leaf,) = bound("a = 1", schema)[0].leaves
    assert [True, False] == [leaf_may(leaf, Bounds(minimum=1, maximum=1), wanted=each) for each in (True, False)]


def test_a_row_that_is_merged_of_files_takes_each_value_from_one_of_them():
    """What is ruled out for each file may be met by a row of both; what is for one column in all of them may not."""
    schema = pa.schema([("a", pa.int32()), ("b", pa.int32())])
    base = {("a",): Bounds(minimum=1, maximum=1), ("b",): Bounds(minimum=1, maximum=1)}
    log = {("a",): Bounds(minimum=2, maximum=2), ("b",): Bounds(minimum=2, maximum=2)}
    for text, expected in {
        "(a = 1 and b = 2) or b = 9": True,
        "not (a = 1 or b = 2)": True,
        "a = 9 or b = 9": False,
        "a in (1, 9) and not b < 3": False,
    }.items():
        assert may_match(bound(text, schema), lambda path, _: [base[path], log[path]]) is expected, text


_MOMENTS = (datetime(1, 1, 1, tzinfo=timezone.utc), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=timezone.utc))
EDGES = {
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.decimal128(38, 0): (-(10**38) + 1, 10**38 - 1),
    pa.decimal128(7, 2): (Decimal("-99999.99"), Decimal("99999.99")),
    pa.date32(): (date.min, date.max),
    pa.timestamp("us", "UTC"): _MOMENTS,
    pa.timestamp("us"): tuple(moment.replace(tzinfo=None) for moment in _MOMENTS),
}


@pytest.mark.parametrize("arrow", EDGES, ids=str)
def test_the_least_and_the_greatest_value_of_a_type_can_be_asked_for(arrow):
    """As a value and as text, and they meet what lies at the same edge alone; in ranges of files, too."""
    values = EDGES[arrow]
    batch = pa.RecordBatch.from_arrays([pa.array(values, arrow)], ["v"])
    for number, (value, column) in enumerate(zip(values, (Column("v"),) * 2, strict=True)):
        for asked in (value, value.isoformat() if hasattr(value, "isoformat") else str(value)):
            for condition, expected in {
                column == asked: {number},
                column.is_in([asked]): {number},
                column < asked: set(range(number)),
                column > asked: set(range(number + 1, 2)),
            }.items():
                filters = filters_of([condition], batch.schema)
                found = filtered(batch, filters)["v"].to_pylist()
                assert found == [batch["v"][each].as_py() for each in sorted(expected)], (condition, asked)
                stored = micros_of(value) if isinstance(value, datetime) else batch["v"][number].as_py()
                told = Bounds(minimum=stored, maximum=stored, has_nulls=False)
                assert may_match(filters, lambda *_, told=told: [told]) is (number in expected), (condition, asked)


@pytest.mark.parametrize("arrow", [pa.int32(), pa.int64()], ids=str)
def test_a_text_that_is_no_value_of_the_column_is_refused(arrow):
    """Spark SQL cannot convert it; a number without quotes is compared as the number that it is."""
    schema = pa.schema([("v", arrow)])
    for edge, step in zip(EDGES[arrow], (-1, 1), strict=True):
        with pytest.raises(ConfigError, match=f"whole numbers from {EDGES[arrow][0]} to {EDGES[arrow][1]}"):
            filters_of([Column("v") == str(edge + step)], schema)
        batch = pa.RecordBatch.from_arrays([pa.array(EDGES[arrow], arrow)], ["v"])
        assert filtered(batch, filters_of([Column("v") != edge + step], schema)).num_rows == 2


@pytest.mark.parametrize("text", ["1_000", "\u0661", "\uff11", "1_0.5", "\u0661.0"])
@pytest.mark.parametrize("column", ["i", "l", "f", "d", "dec"])
def test_what_only_python_takes_for_a_number_is_refused(column, text):
    """Underscores and digits of other scripts: Spark SQL finds no row, and 1000 or 1 would be other rows."""
    for where in ((column, "=", text), f"{column} = '{text}'", f"{column} in ({text}, 2)"):
        with pytest.raises(ConfigError, match="not a value"):
            bound_filters(conditions_of(where), SCHEMA)


def test_large_integers_become_doubles_as_in_spark_sql():
    """Rounded, not refused; and a list of no values is met by no row, its negation by each."""
    schema = pa.schema([("l", pa.int64())])
    batch = pa.RecordBatch.from_pydict({"l": pa.array([2**62 + 1, None], pa.int64())})
    (found,) = bound(f"l = {float(2**62)!r}", schema)
    assert found.mask(batch).to_pylist() == [True, None]
    for condition, expected in ((Column("l").is_in([]), False), (~Column("l").is_in([]), True)):
        filters = filters_of([condition], schema)
        assert filters[0].mask(batch).to_pylist() == [expected, expected]
        for told in (Bounds(), Bounds(has_only_nulls=True), Bounds(minimum=1, maximum=1)):
            assert may_match(filters, lambda *_, told=told: [told]) is expected


def test_lists_of_floats_know_both_zeros_and_nan():
    """They are looked up as they compare."""
    schema = pa.schema([("f", pa.float32())])
    batch = pa.RecordBatch.from_pydict({"f": pa.array([0.0, -0.0, float("nan"), 0.5, 0.1], pa.float32())})
    for text, expected in {
        "f in (0)": [True, True, False, False, False],
        "f in ('-0.0', 'NaN')": [True, True, True, False, False],
        "f in ('0.1', 0.5)": [False, False, False, True, True],
        "f in (0.1)": [False] * 5,
    }.items():
        (found,) = bound(text, schema)
        assert found.mask(batch).to_pylist() == expected, text


@pytest.mark.parametrize("word", ["s", "st", "st.b", "st.deep.x", "_hoodie_record_key", "S", "St.B"])
@pytest.mark.parametrize("condition", ["s != {}", "s in ('q', {})", "st.b = {}", "not st.deep.x < {}"])
def test_a_word_that_names_a_column_or_a_field_is_no_text(condition, word):
    """Spark SQL compares both; as text it chooses other rows, all of them where it is compared with != alone."""
    deep = pa.struct([("x", pa.string())])
    schema = pa.schema([("s", pa.string()), ("st", pa.struct([("b", pa.string()), ("deep", deep)]))])
    with pytest.raises(ConfigError, match=f"{word} is a column"):
        bound_filters(conditions_of(condition.format(word)), schema)
    for text in (f"'{word}'", "st.nothing", "a.b", "t"):
        assert bound_filters(conditions_of(condition.format(text)), schema)
