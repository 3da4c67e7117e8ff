"""Conditions: exact on every row, and no statistics change which rows come back."""

from __future__ import annotations

import io
import math
import random
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest

from hudi_py.errors import ConfigError, CorruptMetadata
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.mdt.statistics import column_prefix, key_suffix
from hudi_py.model.column_statistics import ColumnStatistics
from hudi_py.model.files import FileSlice, format_base_file, parse_base_file
from hudi_py.rows.bounds import bounds_of_chunk, bounds_of_statistics
from hudi_py.rows.condition import Column, Condition, conditions_of, parse_condition
from hudi_py.rows.predicate import Bounds, filters_of
from hudi_py.snapshot.rows import Rows
from hudi_py.storage.memory import MemoryStorage

UTC = timezone.utc
NAN = float("nan")
SCHEMA = pa.schema([
    ("s", pa.string()), ("i", pa.int32()), ("l", pa.int64()), ("f", pa.float32()), ("d", pa.float64()),
    ("b", pa.bool_()), ("day", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("local", pa.timestamp("us")),
    ("dec", pa.decimal128(9, 2)), ("bin", pa.binary()), ("nest", pa.struct([("s", pa.int32())])),
])  # fmt: skip
OLD_TYPES = {"l": pa.int32(), "d": pa.float32(), "dec": pa.decimal128(7, 2)}
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")
STRINGS = ["", "a", "ab", "b", "ü", "\uff00", "\U00010000", "o'k"]
KINDS = {"s": "string", "i": "int", "l": "long", "f": "float", "d": "double", "b": "boolean", "day": "date",
         "t": "timestamp-micros", "local": "local-timestamp-micros", "dec": "decimal"}  # fmt: skip


def slices(files):
    """File slices of base files alone."""
    return [FileSlice(path, base.file_id, base.instant_time, base) for path, base in files]


def some_value(rng, column):
    at = datetime(2024, 1, 1, 0, 0, rng.randrange(9), rng.randrange(2), UTC)
    return {
        "s": lambda: rng.choice(STRINGS),
        "i": lambda: rng.randrange(-9, 9),
        "l": lambda: rng.randrange(-9, 9),
        "f": lambda: rng.choice([NAN, 0.0, -0.0, 0.5, -2.5, math.inf]),
        "d": lambda: rng.choice([NAN, 0.0, -0.0, 0.5, 2.5, -math.inf]),
        "b": lambda: rng.random() < 0.5,
        "day": lambda: date(2024, 1, 1) + timedelta(rng.randrange(9)),
        "t": lambda: at,
        "local": lambda: at.replace(tzinfo=None),
        "dec": lambda: Decimal(rng.randrange(-999, 999)) / 4 // Decimal("0.01") * Decimal("0.01"),
        "bin": lambda: bytes([rng.randrange(256)]),
        "nest": lambda: {"s": rng.randrange(9)},
    }[column]()


def some_rows(rng, names):
    """Few values of a narrow range, so that bounds often rule out; columns of nulls, and columns without any."""
    count = rng.randrange(0, 12)
    columns = {}
    for name in names:
        pool = [some_value(rng, name) for _ in range(rng.randrange(1, 4))]
        nulls = rng.choice([0, 0.3, 1])
        columns[name] = [None if rng.random() < nulls else rng.choice(pool) for _ in range(count)]
    return columns


def write(storage, rng, number, columns):
    """A base file, in the types of today or of before; row groups of few rows; sometimes without statistics."""
    name = format_base_file(f"f{number}-0", "0-0-0", f"202601010000000{number:02}")
    fields = [
        pa.field(field.name, OLD_TYPES.get(field.name, field.type) if rng.random() < 0.3 else field.type)
        for field in SCHEMA
        if field.name in columns and rng.random() > 0.1
    ]
    keys = [str(at) for at in range(len(next(iter(columns.values()))))]
    data = pa.table({"_hoodie_record_key": keys, **{f.name: pa.array(columns[f.name], f.type) for f in fields}})
    sink = io.BytesIO()
    stored = rng.choice([True, True, False, ["i", "s"]])
    pq.write_table(data, sink, row_group_size=rng.choice([2, 5, 100]), write_statistics=stored)
    storage.create_new(name, sink.getvalue())
    return ("", parse_base_file(name)), data


class Told:
    """A stand-in for the metadata table: what Hudi derives from the footers, as `of_column` gives it."""

    def __init__(self, tables):
        self._tables = tables

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def of_column(self, column):
        found = {}
        for name, data in self._tables.items():
            if column in data.column_names and column in KINDS:
                statistics = self._statistics(column, name, data[column])
                found[column_prefix(column) + key_suffix("", name)] = statistics
        return found

    def _statistics(self, column, name, values):
        known = [each for each in values.to_pylist() if each is not None]
        if any(isinstance(each, float) and math.isnan(each) for each in known):
            known = [0.0]  # as Hudi does
        order = (lambda text: text.encode("utf-16-be")) if column == "s" else None  # as Java does
        bounds = [min(known, key=order), max(known, key=order)] if known else [None, None]
        if column in ("t", "local") and known:
            bounds = [(each.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(0, 0, 1)
                      for each in bounds]  # fmt: skip
        return ColumnStatistics(
            column=column, where=name, kind=KINDS[column], minimum=bounds[0], maximum=bounds[1],
            value_count=len(values), null_count=values.null_count, size_bytes=1, uncompressed_bytes=1,
        )  # fmt: skip


# --- the meaning, said once more, row by row --------------------------------------------------------------------------
def meets(value, operator, wanted):
    """Spark SQL's comparison of two values."""
    if value is None:
        return False
    first, second = _ordered(value), _ordered(wanted)
    return {"=": first == second, "!=": first != second, "<": first < second, "<=": first <= second,
            ">": first > second, ">=": first >= second}[operator]  # fmt: skip


def _ordered(value):
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def text_of(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value)


@pytest.mark.parametrize("seed", range(60))
def test_statistics_change_no_row(seed):
    """Of files old and new, with nulls, NaN, widened types and missing columns: what a look at every row gives."""
    rng = random.Random(seed)
    storage = MemoryStorage("/lake/trips")
    names = [*rng.sample(SCHEMA.names, 1), *rng.sample(["s", "f", "d", "i"], 1)]
    schema = pa.schema([field for field in SCHEMA if field.name in names])
    files, tables = [], {}
    for number in range(rng.randrange(2, 6)):
        file, data = write(storage, rng, number, some_rows(rng, names))
        files.append(file)
        tables[file[1].name] = data
    everything = [row for batch in Rows(storage, slices(files), schema) for row in batch.to_pylist()]
    skipped = 0
    for _ in range(60):
        conditions, checks = [], []
        for column in rng.sample(schema.names, rng.choice([1, 1, len(schema)])):
            if column in ("bin", "nest") or rng.random() < 0.1:
                is_null = rng.random() < 0.5
                conditions.append(f"{column} is {'' if is_null else 'not '}null")
                checks.append(lambda row, c=column, n=is_null: (row[c] is None) is n)
            else:
                operator, value = rng.choice(OPERATORS), some_value(rng, column)
                conditions.append(f"`{column}` {operator} {_quoted(value)}")
                checks.append(lambda row, c=column, o=operator, v=value: meets(row[c], o, v))
        expected = [row for row in everything if all(check(row) for check in checks)]
        for statistics in (None, lambda: Told(tables), _broken):
            rows = Rows(storage, slices(files), schema, where=conditions, statistics=statistics)
            found = [row for batch in rows for row in batch.to_pylist()]
            assert repr(expected) == repr(found), conditions
            assert rows.count.read + rows.count.skipped == len(files)
            skipped += rows.count.skipped
    assert skipped, "nothing was ever skipped"


def _quoted(value):
    text = text_of(value)
    return "'" + text.replace("'", "''") + "'" if isinstance(value, str) else text


def _broken():
    raise CorruptMetadata("the metadata table is damaged")


# --- what is opened ---------------------------------------------------------------------------------------------------
def numbered(storage, count):
    """Files of ten rows each, in order."""
    files, tables = [], {}
    for number in range(count):
        name = format_base_file(f"f{number}-0", "0-0-0", f"202601010000000{number:02}")
        data = pa.table({"i": pa.array(range(10 * number, 10 * number + 10), pa.int32())})
        sink = io.BytesIO()
        pq.write_table(data, sink, row_group_size=5)
        storage.create_new(name, sink.getvalue())
        files.append(("", parse_base_file(name)))
        tables[name] = data
    return files, tables


def test_files_that_the_metadata_table_rules_out_are_not_opened():
    """One that is gone is not missed; without the metadata table it is."""
    storage = MemoryStorage("/lake/trips")
    files, tables = numbered(storage, 5)
    storage.delete(files[0][1].name)
    schema = pa.schema([("i", pa.int32())])
    rows = Rows(storage, slices(files), schema, where=["i >= 23", "i < 31"], statistics=lambda: Told(tables))
    assert [row["i"] for batch in rows for row in batch.to_pylist()] == list(range(23, 31))
    assert (rows.count.read, rows.count.skipped, rows.file_count) == (2, 3, 5)


def test_columns_asked_for_and_columns_of_conditions_are_apart():
    """A condition may be on a column that is not shown, meta columns too."""
    storage = MemoryStorage("/lake/trips")
    file, data = write(storage, random.Random(1), 0, {"s": ["x", "y", "z"]})
    rows = Rows(storage, slices([file]), SCHEMA, columns=["s"], where=["_hoodie_record_key = 1"])
    assert [{"s": "y"}] == [row for batch in rows for row in batch.to_pylist()]
    assert data.num_rows == 3
    rows = Rows(storage, slices([file]), SCHEMA, columns=["s"], where=["s > x"], with_meta=True)
    assert [*META_COLUMNS, "s"] == rows.schema.names


# --- bounds -----------------------------------------------------------------------------------------------------------
def told(kind, low, high, nulls=0):
    return ColumnStatistics(column="c", where="f", kind=kind, minimum=low, maximum=high, value_count=9,
                            null_count=nulls, size_bytes=1, uncompressed_bytes=1)  # fmt: skip


@pytest.mark.parametrize(
    ("statistics", "arrow"),
    [
        (told("double", 0.0, 0.0), pa.float64()),  # NaN among them
        (told("int", 1, 2), pa.string()),  # retyped
        (told("int", 1, 2), pa.date32()),  # 0.15.0 after a compaction
        (told("bytes", b"1", b"2"), pa.decimal128(9, 2)),  # the same
        (told("long", 1, 2), pa.timestamp("us", "UTC")),  # of what unit
        (told("decimal", Decimal(1), Decimal(2)), pa.decimal128(38, 18)),  # rounded
        (told("string", "a", "\uff00"), pa.string()),  # UTF-16 has another maximum
        (told("bytes", b"1", b"2"), pa.binary()),
        (told("int", 2, 1), pa.int32()),  # makes no sense
        (told("string", None, None, nulls=9), pa.string()),  # so does Hudi tell of a file without statistics
        (told("timestamp-micros", 1, 2), pa.timestamp("us")),
        (told("int", 1, None), pa.int32()),
    ],
)
def test_statistics_that_may_be_inexact_rule_nothing_out(statistics, arrow):
    """No bounds come of them."""
    found = bounds_of_statistics(statistics, arrow)
    assert (found.minimum, found.maximum, found.has_only_nulls) == (None, None, False)


def test_bounds_of_a_footer_that_are_not_numbers_rule_nothing_out():
    """Java's Parquet writes a NaN as the maximum."""
    statistics = SimpleNamespace(has_null_count=True, null_count=0, has_min_max=True, min=0.5, max=NAN)
    chunk = SimpleNamespace(statistics=statistics, num_values=2)
    assert bounds_of_chunk(chunk, pa.float64(), pa.float64()) == Bounds(has_nulls=False)


def test_bounds_rule_out_what_lies_outside_and_nothing_else():
    """Against a list of all values within."""
    schema = pa.schema([("c", pa.int32())])
    for low in range(-2, 3):
        for high in range(low, 3):
            for value in range(-4, 5):
                for operator in OPERATORS:
                    (bound,) = filters_of([Condition("c", operator, str(value))], schema)
                    possible = any(meets(each, operator, value) for each in range(low, high + 1))
                    assert possible is bound.may_match(Bounds(minimum=low, maximum=high))
                    assert not bound.may_match(Bounds(has_only_nulls=True))
                    assert bound.may_match(Bounds())


# --- texts ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a=1", ("a", "=", "1")),
        (" a  <= b c ", ("a", "<=", "b c")),
        ("`a b`!='it''s'", ("a b", "!=", "it's")),
        ('a > "x"', ("a", ">", "x")),
        ("a = ''", ("a", "=", "")),
        ("a IS  Not null", ("a", "is not null", "")),
        ("a is null", ("a", "is null", "")),
        ("a = is null", ("a", "=", "is null")),
        ("a = b = c", ("a", "=", "b = c")),
    ],
)
def test_conditions_are_read(text, condition):
    """Names and values may be quoted; what follows the operator is the value."""
    assert Condition(*condition) == parse_condition(text)


@pytest.mark.parametrize("text", ["", "a", "= 1", "a ~ 1", "a is 1", "a like 'x%'", "a b = 1"])
def test_text_that_is_not_a_condition_is_refused(text):
    """The message tells the form."""
    with pytest.raises(ConfigError, match="COLUMN OP VALUE"):
        parse_condition(text)


@pytest.mark.parametrize(
    "text",
    ["i = x", "i = 1.5", f"l = {2**63}", "f = one", "b = 1", "day = 2024", "t = noon", "dec = NaN", "dec = 1e99",
     "bin = a", "nest = 1", "nowhere = 1", "local = 2024-01-01T00:00:00Z"],
)  # fmt: skip
def test_values_of_another_type_are_refused(text):
    """Before a file is opened."""
    with pytest.raises(ConfigError):
        Rows(MemoryStorage("/lake/trips"), [], SCHEMA, where=[text])


def test_one_text_in_the_place_of_a_list_of_columns_is_refused_as_that():
    """It is not taken for a list of letters; the message shows the list."""
    with pytest.raises(ConfigError, match=r"give a list, also of one: columns=\['s'\]"):
        Rows(MemoryStorage(), [], SCHEMA, columns="s")


VALUES = [
    7,
    -0.1,
    1e300,
    NAN,
    "it's",
    "",
    True,
    Decimal("1.50"),
    date(2024, 1, 2),
    datetime(2024, 1, 1, 8, 30, tzinfo=UTC),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_text_tuple_and_expression_are_one_condition(value):
    """Whatever the form, alone or in a list, and whatever the value is made of."""
    for operator, expressed in (
        ("=", Column("a b") == value), ("!=", Column("a b") != value), ("<", Column("a b") < value),
        ("<=", Column("a b") <= value), (">", Column("a b") > value), (">=", Column("a b") >= value),
    ):  # fmt: skip
        text = f"`a b` {operator} {_quoted(value)}"
        for form in (text, ("a b", operator, value), expressed):
            assert (expressed,) == conditions_of(form) == conditions_of([form]) == conditions_of((form,))
        assert (expressed, expressed) == conditions_of((text, text))


def test_conditions_on_null_have_the_same_forms():
    """A tuple of two, or of an operator and no value."""
    assert conditions_of("c is null") == conditions_of(("c", "IS NULL")) == conditions_of(Column("c").is_null())
    assert conditions_of(["c is not null"]) == conditions_of(("c", "is not null")) == (Column("c").is_not_null(),)


def test_other_spellings_of_the_comparisons_mean_the_same():
    """Those of Spark SQL and Python, which a reader would take for values that begin with a sign."""
    assert conditions_of("a == 1") == conditions_of(("a", "==", 1)) == conditions_of("a = 1")
    assert conditions_of("a <> x") == conditions_of(("a", "<>", "x")) == conditions_of("a != x")
    assert conditions_of("a = '= 1'") == (Condition("a", "=", "= 1"),)


@pytest.mark.parametrize(
    "where",
    [7, [7], ("a", "~", 1), ("a", "="), ("a", "is null", 1), ("a", "=", None), ("a", "=", [1]), [("a",)], (1, "=", 2),
     pa.compute.field("a") > 1],
    ids=str,
)  # fmt: skip
def test_what_has_no_form_of_a_condition_is_refused(where):
    """As an error of ours, before anything is read."""
    with pytest.raises(ConfigError, match=r"condition|takes"):
        conditions_of(where)


def test_a_chain_of_comparisons_is_not_half_a_condition():
    """Python would drop the first half of it."""
    with pytest.raises(TypeError, match="list"):
        assert 1 < Column("a") < 3


@pytest.mark.parametrize(
    "text",
    [
        "id = 'a' or id = 'b'",
        'id = "a" and id = "b"',
        "id = 'a' --",
        "id = 'a",
        "id = '",
        "n = 1 or n = 2",
        "n=1 AND m is null",
    ],
)
def test_two_conditions_in_one_are_refused(text):
    """Taken for one value they would be met by no row, without a word."""
    with pytest.raises(ConfigError, match="is not one condition"):
        parse_condition(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("id = it's", "it's"), ("id = 'it''s'", "it's"), ("id = black or white", "black or white"),
     ("id = 'x or y = z'", "x or y = z"), ("id = \"it's\"", "it's"), ("id = ''", ""), ("id = ''''", "'")],
)  # fmt: skip
def test_a_value_may_hold_words_and_quotes(text, value):
    """In quotes anything goes; a quote of the same kind is written twice."""
    assert parse_condition(text).text == value
