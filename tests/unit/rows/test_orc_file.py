"""Base files in ORC: rows stripe by stripe, times as they were written or refused, damage told."""

import datetime as dt
import io
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from pyarrow import orc

from hudi_py.errors import UnsupportedTable
from hudi_py.formats.orc_tail import read_tail
from hudi_py.rows.orc_file import OrcFile

UTC = dt.timezone.utc
NAIVE = pa.timestamp("us")
SHOWN = pa.timestamp("us", "UTC")
CODECS = ["uncompressed", "zlib", "snappy", "lz4", "zstd"]


def naive(*parts):
    return dt.datetime(*parts, tzinfo=UTC).replace(tzinfo=None)


def written(columns, **how):
    stream = io.BytesIO()
    orc.write_table(pa.table(columns), stream, **how)
    return stream


def opened(columns, **how):
    return OrcFile(written(columns, **how), "t/f.orc")


@pytest.mark.parametrize("codec", CODECS)
def test_rows_are_those_of_the_file_stripe_by_stripe(codec):
    """Whatever it is compressed with, in batches of any length, with the columns asked for, in their order."""
    rng = random.Random(3)
    rows = {"a": [rng.getrandbits(60) for _ in range(20_000)], "s": [f"text {rng.random()}" for _ in range(20_000)]}
    file = opened(rows, compression=codec, stripe_size=16_384, batch_size=1024)
    assert file.num_row_groups > 3
    assert file.metadata.num_rows == 20_000
    assert sum(file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)) == 20_000
    batches = list(file.iter_batches(700, columns=["s", "a"]))
    assert max(batch.num_rows for batch in batches) <= 700
    assert pa.Table.from_batches(batches).to_pydict() == {"s": rows["s"], "a": rows["a"]}
    assert sum(batch.num_rows for batch in file.iter_batches(columns=[])) == 20_000
    first = file.metadata.row_group(0).num_rows
    assert file.read_row_group(1, ["a"]).column("a")[0].as_py() == rows["a"][first]
    assert file.read(["s"]).column("s").to_pylist() == rows["s"]


def test_few_distinct_values_are_dictionaries():
    """The filter of ranges evaluates a condition once for each of them."""
    file = OrcFile(written({"time": ["1", "1", "2"]}), "t/f.orc", ["time"])
    (batch,) = file.iter_batches()
    assert batch.column("time").dictionary.to_pylist() == ["1", "2"]


@pytest.mark.parametrize("codec", CODECS)
def test_times_are_in_utc_at_any_depth(codec):
    """In a column, in lists, maps and structs; nulls stay, and nanoseconds are cut off, not rounded up."""
    time = naive(1969, 12, 31, 23, 59, 59, 999_999)
    rows = {
        "t": pa.array([time, None], NAIVE),
        "z": pa.array([time, None], SHOWN),
        "n": pa.array([-1, 1999], pa.timestamp("ns")),
        "l": pa.array([[time, None], None], pa.list_(NAIVE)),
        "m": pa.array([[("k", time)], None], pa.map_(pa.string(), NAIVE)),
        "s": pa.array([{"t": time, "x": 1}, None], pa.struct([("t", NAIVE), ("x", pa.int32())])),
    }
    file = opened(rows, compression=codec)
    aware = time.replace(tzinfo=UTC)
    assert file.schema_arrow.field("t").type == SHOWN
    (batch,) = file.iter_batches()
    assert batch.schema == file.schema_arrow
    assert batch.to_pylist() == [
        {"t": aware, "z": aware, "n": aware, "l": [aware, None], "m": [("k", aware)], "s": {"t": aware, "x": 1}},
        {"t": None, "z": None, "n": dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC), "l": None, "m": None, "s": None},
    ]


@pytest.mark.parametrize(
    ("day", "shown"),
    [
        (dt.date(1, 1, 1), dt.date(1, 1, 3)),
        (dt.date(1500, 3, 10), dt.date(1500, 3, 1)),  # the 29th of February there, which the other calendar lacks
        (dt.date(1582, 10, 14), dt.date(1582, 10, 4)),
        (dt.date(1582, 10, 15), dt.date(1582, 10, 15)),
        (dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
    ],
)
def test_days_before_the_gregorian_calendar_are_called_as_hudi_calls_them(day, shown):
    """It takes them for days of the Julian calendar, at any depth (Hudi 1.1.1: 0001-01-01 is shown as 0001-01-03)."""
    rows = {
        "d": pa.array([day, None, shown]),
        "m": pa.array([[("k", day)], None, []], pa.map_(pa.string(), pa.date32())),
        "s": pa.array([{"l": [day]}, None, {"l": None}], pa.struct([("l", pa.list_(pa.date32()))])),
    }
    found = opened(rows).read()
    assert found.column("d").to_pylist()[:2] == [shown, None]
    assert found.column("m").to_pylist() == [[("k", shown)], None, []]
    assert found.column("s").to_pylist() == [{"l": [shown]}, None, {"l": None}]
    assert found.schema.field("d").type == pa.date32()


@pytest.mark.parametrize("year", [1, 1600, 2300, 9999])
@pytest.mark.parametrize("is_nested", [False, True])
def test_times_that_would_wrap_are_refused_by_name(year, is_nested):
    """Arrow shows others for them; a file with such a time still serves its other columns."""
    time = naive(year, 6, 1)
    nested = pa.array([None, {"x": time}, None], pa.struct([("x", NAIVE)]))
    file = opened(
        {
            "far": nested if is_nested else pa.array([None, time, None], NAIVE),
            "near": pa.array([naive(2024, 1, 1)] * 3, NAIVE),
        }
    )
    assert [row["near"].year for batch in file.iter_batches(columns=["near"]) for row in batch.to_pylist()] == [
        2024
    ] * 3
    with pytest.raises(
        UnsupportedTable, match=rf"t/f\.orc: column 'far' has times from .*{year}.*Leave the column out"
    ):
        list(file.iter_batches(columns=["far"]))


def in_zone(times, zone):
    """A file with these times, as a writer in that time zone leaves it: seconds since 2015 began there."""
    began = dt.datetime(2015, 1, 1, tzinfo=ZoneInfo(zone)) - dt.datetime(2015, 1, 1, tzinfo=UTC)
    content = written(
        {"t": pa.array([time - began for time in times], SHOWN).cast(NAIVE)}, compression="uncompressed"
    ).getvalue()
    assert content.count(b"\x03GMT") == 1
    return io.BytesIO(content.replace(b"\x03GMT", b"\x03" + zone.encode()))


def test_times_of_a_writer_in_another_zone_are_the_ones_that_it_wrote():
    """Apache Hudi shows them so in the writer's zone; summer and winter, before and after 2015."""
    times = [dt.datetime(year, month, 15, 12, 30, tzinfo=UTC) for year in (1985, 2014, 2024) for month in (1, 7)]
    file = OrcFile(in_zone(times, "CET"), "t/f.orc")
    assert read_tail(in_zone(times, "CET")).stripes[0].zone == "CET"
    assert file.read(["t"]).column("t").to_pylist() == times


def test_the_hour_that_clocks_show_twice_is_refused():
    """It cannot be told which of both it was."""
    file = OrcFile(in_zone([dt.datetime(2024, 10, 27, 0, 30, tzinfo=UTC)], "CET"), "t/f.orc")
    with pytest.raises(UnsupportedTable, match="in the time zone 'CET' and cannot be told in UTC"):
        file.read(["t"])


def test_damage_of_the_tail_is_told_and_nothing_else():
    """Whatever byte is cut off or changed, the error is the one that readers tell as damage."""
    content = written({"a": [1, 2], "t": pa.array([None, naive(2024, 1, 1)], NAIVE)}).getvalue()
    rng = random.Random(5)
    for _ in range(400):
        at = rng.randrange(len(content))
        damaged = content[:at] if rng.random() < 0.3 else content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        try:
            read_tail(io.BytesIO(damaged))
        except pa.ArrowInvalid as error:
            assert str(error).startswith("the tail of the ORC file is damaged: ")
