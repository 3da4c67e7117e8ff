"""Rows as a lazy frame of polars: its answers, and what of its questions reaches the reader."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timezone

import pyarrow as pa
import pyarrow.parquet
import pytest

import hudi_py
from hudi_py.snapshot import polars_scan
from hudi_py.snapshot.polars_scan import understood
from hudi_py.snapshot.rows import Rows
from hudi_py.storage.memory import MemoryStorage
from hudi_py.storage.wrappers import RecordingStorage
from support.fixtures import unpack_rows
from support.plain_rows import rows_of_files
from support.writes import create_table, open_table

pl = pytest.importorskip("polars")

UTC = timezone.utc
SCHEMA = pa.schema([
    ("s", pa.string()), ("n", pa.int64()), ("f", pa.float32()), ("d", pa.date32()), ("t", pa.timestamp("us", "UTC")),
    ("w", pa.timestamp("us")),
])  # fmt: skip


def some_table(rng):
    def some(values):
        return [rng.choice([None, *values]) for _ in range(7)]

    moments = [datetime(2026, 1, day, 5, tzinfo=UTC) for day in (1, 2, 3)]
    days = [date(2026, 1, day) for day in (1, 2)]
    floats = [0.1, 1.5, float("nan")]
    columns = [
        some(each) for each in ("abc", range(5), floats, days, moments, [m.replace(tzinfo=None) for m in moments])
    ]
    return pa.table(columns, schema=SCHEMA)


@pytest.fixture
def rows():
    return rows_of_files(some_table, SCHEMA, files=3, group_rows=2)


def expressions():
    """Conditions on every kind of column, each with what of it is understood."""
    s, n, f, d, t, w = map(pl.col, SCHEMA.names)
    moment = datetime(2026, 1, 2, 5, tzinfo=UTC)
    return [
        (s == "a", "s = 'a'"),
        (pl.lit("b") < s, "s > 'b'"),
        (s != "a", "s != 'a'"),
        (n.is_in([1, 3]), "n in (1, 3)"),
        (s.is_in(["a", "q"]), "s in ('a', 'q')"),
        (n.is_between(1, 3, closed="left"), "n >= 1 and n < 3"),
        (n.is_null(), "n is null"),
        (s.is_not_null() & (n >= 2), "n >= 2 and s is not null"),
        ((s == "a") | (n == 1), "s = 'a' or n = 1"),
        (d > date(2026, 1, 1), "d > date '2026-01-01'"),
        (t == moment, "t = timestamp '2026-01-02T05:00:00+00:00'"),
        (w <= moment.replace(tzinfo=None), "w <= timestamp '2026-01-02T05:00:00'"),
        ((n > 1) & s.str.starts_with("a"), "n > 1"),
        ((n > 1) | s.str.starts_with("a"), None),
        (f == 0.1, None),
        (f.is_nan(), None),
        (n > 1.5, None),
        (n.eq_missing(1), None),
        (n + 1 == 2, None),
        (~((s == "a") & (n == 1)), "s != 'a' or n != 1"),
    ]


@pytest.mark.parametrize(("expression", "expected"), expressions(), ids=lambda each: str(each)[:40])
def test_conditions_are_answered_by_polars_and_understood_where_they_can_be(rows, expression, expected, monkeypatch):
    """The answer is that of polars on all rows; what is understood only spares reading."""
    told = []

    def spied(predicate, schema):
        told.append(understood(predicate, schema))
        return told[0]

    monkeypatch.setattr(polars_scan, "understood", spied)
    found = rows.to_polars_lazy().filter(expression).collect()

    assert rows.to_polars().filter(expression).equals(found)
    assert [expected] == [None if each is None else str(each) for each in told]


def test_columns_and_limits_reach_the_reader(rows):
    """Only what is asked for is read, and no more than is wanted."""
    whole, lazy = rows.to_polars(), rows.to_polars_lazy()

    assert whole.select("n", "s").equals(lazy.select("n", "s").collect())
    assert whole.head(9).equals(lazy.head(9).collect())
    assert whole.filter(pl.col("n") > 1).head(2).equals(lazy.filter(pl.col("n") > 1).head(2).collect())
    assert whole.height == lazy.select(pl.len()).collect().item()
    assert whole.group_by("s").len().sort("s").equals(lazy.group_by("s").len().sort("s").collect())
    assert lazy.collect_schema() == whole.schema


STEPS = {
    "head": lambda frame: frame.head(4),
    "large head": lambda frame: frame.head(15),
    "condition": lambda frame: frame.filter(pl.col("n") > 1),
    "other condition": lambda frame: frame.filter(pl.col("n") % 2 == 0),
    "slice": lambda frame: frame.slice(1, 9),
    "select": lambda frame: frame.select("n", "s"),
}


@pytest.mark.parametrize("first", STEPS)
def test_limits_and_conditions_count_in_their_order(rows, first):
    """The first rows of those that meet a condition, or those of the first rows that meet it, and so on."""
    for steps in itertools.product([first], STEPS, STEPS):
        whole, lazy = rows.to_polars(), rows.to_polars_lazy()
        for step in steps:
            whole, lazy = STEPS[step](whole), STEPS[step](lazy)
        assert whole.equals(lazy.collect()), steps


def test_rows_without_files_have_their_columns():
    """A table before its first commit."""
    empty = Rows(MemoryStorage("/lake/trips"), [], SCHEMA)
    assert empty.to_polars().schema == empty.to_polars_lazy().filter(pl.col("n") == 1).collect().schema


def test_a_key_asked_for_by_polars_is_looked_up_in_the_record_index(tmp_path):
    """From the expression to the one file that holds the row."""
    table = hudi_py.open_table(unpack_rows("cow_record_index-1.1.1", tmp_path))
    row = table.rows(with_meta=True).to_arrow().to_pylist()[-1]
    storage = RecordingStorage(table.storage)
    lazy = hudi_py.Table(storage).rows(where="amount is not null or amount is null").to_polars_lazy()
    storage.clear()

    found = lazy.filter(pl.col("id") == row["id"]).select("id").collect()

    assert [row["id"]] == found["id"].to_list()
    opened = {path for verb, path in storage.calls if verb == "open_read" and path.endswith(".parquet")}
    assert [row["_hoodie_file_name"]] == [path.rpartition("/")[2] for path in opened]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_a_table_without_commits_is_a_frame_without_columns(version):
    """Created, and nothing completed yet: no rows, as in the other readers, and a message that says so for a column."""
    rows = open_table(create_table(version)).rows()
    assert rows.to_polars_lazy().collect().shape == pl.DataFrame(rows).shape == (0, 0)
    with pytest.raises(hudi_py.ConfigError, match="no column id; it has none: no commit has completed"):
        open_table(create_table(version)).rows(columns=["id"])
