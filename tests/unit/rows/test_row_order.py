"""Rows in the order of several columns, in memory and by way of temporary files."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from time import process_time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_py.errors import ConfigError
from hudi_py.rows.curves import Quantiles, bits_per_column, cell_ends, column_codes, common_prefix, place_on
from hudi_py.rows.pieces import Pieces
from hudi_py.rows.row_order import RowOrder, check_order, in_order

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
VALUES = {
    pa.string(): st.text(max_size=12),
    pa.binary(): st.binary(max_size=12),
    pa.int64(): st.integers(-(1 << 63), (1 << 63) - 1),
    pa.int32(): st.integers(-(1 << 31), (1 << 31) - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(date(1600, 1, 1), date(2400, 1, 1)),
    pa.timestamp("us", "UTC"): st.integers(-(1 << 52), 1 << 52).map(lambda us: EPOCH + timedelta(microseconds=us)),
    pa.decimal128(10, 2): st.integers(-(10**9), 10**9).map(lambda number: Decimal(number) / 100),
}


@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_codes_have_the_order_of_the_values(kind):
    """Of two values the smaller one never has the larger number; null has the smallest."""

    @settings(max_examples=15)
    @given(st.lists(st.none() | VALUES[kind], min_size=1, max_size=20))
    def check(values):
        column = pa.array(values, kind)
        codes = column_codes(column, common_prefix(column)).tolist()
        present = sorted((value, code) for value, code in zip(values, codes, strict=True) if value is not None)
        if kind == pa.string():
            present.sort(key=lambda each: each[0].encode())
        assert [code for _, code in present] == sorted(code for _, code in present)
        assert all(code == 0 for value, code in zip(values, codes, strict=True) if value is None)
        assert None not in values or all(code > 0 for _, code in present)

    check()


@given(st.lists(st.text("abc", max_size=4), min_size=1, max_size=20), st.text("abc", max_size=3))
def test_codes_keep_the_order_of_texts_that_lack_the_prefix_of_a_sample(values, prefix):
    """The sample of a large group may know none of them."""
    ordered = sorted(values, key=str.encode)
    codes = column_codes(pa.array(ordered), prefix.encode()).tolist()
    assert codes == sorted(codes)


@pytest.mark.parametrize(("columns", "bits"), [(2, 4), (3, 3), (4, 2)])
def test_a_hilbert_curve_goes_from_neighbour_to_neighbour(columns, bits):
    """Every point is passed once, and two points that follow each other differ by one in one column."""
    grid = np.meshgrid(*[np.arange(1 << bits, dtype=np.uint64)] * columns, indexing="ij")
    axes = [axis.ravel() for axis in grid]
    places = place_on("HILBERT", axes, bits)
    assert sorted(places.tolist()) == list(range(1 << bits * columns))
    points = np.stack([axis[np.argsort(places)].astype(int) for axis in axes])
    assert (np.abs(np.diff(points)).sum(axis=0) == 1).all()


def test_a_z_order_takes_one_bit_of_each_column_in_turn():
    """The first column has the higher bit."""
    places = place_on("ZORDER", [np.array([0b10, 1], np.uint64), np.array([0b01, 0], np.uint64)], 2)
    assert places.tolist() == [0b1001, 0b0010]
    assert bits_per_column(2) * 2 <= 63


@given(st.lists(st.integers(0, 60), min_size=1, max_size=200), st.sampled_from([2, 16, 1 << 16]))
def test_ranks_are_shares_of_the_rows_below(values, ranges):
    """However few values there are for the ranges; the middle of the ranks is the middle of the rows."""
    codes = np.array(values, np.uint64)
    ranks = Quantiles.of(codes, ranges).ranks(codes).astype(int)
    assert (ranks < ranges).all()
    below = np.array([(codes < code).sum() for code in codes])
    until = np.array([(codes <= code).sum() for code in codes])
    assert (below * ranges // len(codes) <= ranks).all()
    assert (ranks * len(codes) < until * ranges).all()


def pieces_of(places, batch_rows, share, ends):
    """Rows of each file."""
    batches = [
        (pa.record_batch({"place": part}), part)
        for part in np.split(places, range(batch_rows, len(places), batch_rows))
    ]
    files = []
    for piece in Pieces(batches, share, ends):
        assert piece.rows.num_rows
        if piece.begins_file or not files:
            files.append([])
        files[-1] += piece.rows.column(0).to_pylist()
    return files


@given(st.lists(st.integers(0, 255), min_size=1, max_size=300), st.integers(1, 40), st.integers(1, 9), st.booleans())
def test_pieces_are_all_rows_in_files_of_nearly_their_share(places, batch_rows, files, along_a_curve):
    """No row is lost or out of order; no file is empty or more than 15 percent larger than its share."""
    ordered = np.sort(np.array(places, np.uint64))
    share = -(-len(ordered) // files)
    found = pieces_of(ordered, batch_rows, share, cell_ends(ordered, files) if along_a_curve else None)
    assert [place for file in found for place in file] == ordered.tolist()
    assert all(0 < len(file) <= share * 1.15 for file in found)
    if not along_a_curve:
        assert all(len(file) == share for file in found[:-1])


@pytest.mark.parametrize("batch_rows", [700, 32768])
def test_files_along_a_curve_are_whole_cells(batch_rows):
    """Cells hold a few rows more or less than a file's share, and no file has rows of two of them."""
    chance = np.random.default_rng(5)
    x, y = (chance.integers(0, 1 << 40, 40_000).astype(np.uint64) for _ in range(2))
    bits = bits_per_column(2)
    places = np.sort(place_on("ZORDER", [Quantiles.of(each, 1 << bits).ranks(each) for each in (x, y)], bits))
    found = pieces_of(places, batch_rows, 2500, cell_ends(places, 16))
    assert [{place >> (2 * bits - 4) for place in file} for file in found] == [{cell} for cell in range(16)]


def test_a_plan_for_more_files_than_rows_takes_no_longer():
    """One file for each row, as for that number: a target size in megabytes, not bytes, asks for millions."""
    places, before = np.arange(40, dtype=np.uint64) // 3, process_time()
    assert cell_ends(places, 300_000).tolist() == cell_ends(places, 40).tolist() == list(range(1, 14))
    assert process_time() - before < 1  # of several seconds


def batches_of(rows):
    return lambda schema: iter(rows.select(schema.names).to_batches(max_chunksize=7))


@pytest.mark.parametrize("layout", ["LINEAR", "ZORDER", "HILBERT"])
@pytest.mark.parametrize("memory_bytes", [1 << 30, 6000])
def test_no_row_is_lost_or_twice(layout, memory_bytes):
    """However little memory there is; what is sorted linearly is sorted exactly, null first."""
    names = [None if number % 11 == 0 else f"name-{number * 37 % 50:03d}" for number in range(400)]
    rows = pa.table({"a": names, "b": [float(number * 91 % 400) for number in range(400)], "n": range(400)})
    order = RowOrder(columns=("a", "b"), layout=layout)
    found = pa.Table.from_batches(list(in_order(batches_of(rows), rows.schema, order, memory_bytes))).to_pylist()
    assert sorted(row["n"] for row in found) == list(range(400))
    if layout == "LINEAR":
        keys = [(row["a"] is not None, row["a"] or "", row["b"]) for row in found]
        assert keys == sorted(keys)


def test_columns_that_have_no_order_are_refused():
    """Rows are sorted by plain columns of the table, each named once."""
    schema = pa.schema([("a", pa.int64()), ("l", pa.list_(pa.int64()))])
    for columns in (("x",), ("l",), ("a", "a")):
        with pytest.raises(ConfigError, match="cannot sort by"):
            check_order(RowOrder(columns=columns), schema)
    check_order(RowOrder(columns=("a",)), schema)
