"""Dates and times as text in conditions: what Spark's cast reads, and nothing that has no single meaning."""

from datetime import date, datetime, timedelta, timezone

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError
from hudi_py.rows.condition_times import day_of, moment_of

UTC = timezone.utc


def clock(*parts):
    """A time without a zone."""
    return datetime(*parts)  # noqa: DTZ001 - that is asked for


DAYS = {
    "2030-06-29": date(2030, 6, 29),
    "2030-6-29": date(2030, 6, 29),
    " 2030-6-9\n": date(2030, 6, 9),
    "2030-06-9": date(2030, 6, 9),
    "2030-6": date(2030, 6, 1),
    "2030": date(2030, 1, 1),
    "0001-1-1": date(1, 1, 1),
}
MOMENTS = {
    **{text: clock(day.year, day.month, day.day) for text, day in DAYS.items()},
    "2030-6-29 8:5": clock(2030, 6, 29, 8, 5),
    "2030-6-29T8": clock(2030, 6, 29, 8),
    "2030-06-29T08:05:06.5": clock(2030, 6, 29, 8, 5, 6, 500_000),
    "2030-06-29 08:05:6.": clock(2030, 6, 29, 8, 5, 6),
    "2030-06-29 08:05:06.1234567": clock(2030, 6, 29, 8, 5, 6, 123_456),
    "2030-06-29 08:05:06Z": datetime(2030, 6, 29, 8, 5, 6, tzinfo=UTC),
    "2030-06-29T08:05z": datetime(2030, 6, 29, 8, 5, tzinfo=UTC),
    "2030-06-29 08:05:06 UTC": datetime(2030, 6, 29, 8, 5, 6, tzinfo=UTC),
    "2030-06-29 08:05:06+1": datetime(2030, 6, 29, 7, 5, 6, tzinfo=UTC),
    "2030-06-29 08:05:06.25-1:30": datetime(2030, 6, 29, 9, 35, 6, 250_000, tzinfo=UTC),
    "2030-06-29 08:05:06+0130": datetime(2030, 6, 29, 6, 35, 6, tzinfo=UTC),
    "2030-06-29 08:05:06+01:30:15": datetime(2030, 6, 29, 6, 34, 51, tzinfo=UTC),
    "2030-06-29 08:05:06 GMT+8": datetime(2030, 6, 29, 0, 5, 6, tzinfo=UTC),
    "2030-06-29 08:05:06 Europe/Paris": datetime(2030, 6, 29, 6, 5, 6, tzinfo=UTC),
    "2030-10-27 02:30:00 Europe/Paris": datetime(2030, 10, 27, 0, 30, tzinfo=UTC),  # twice: the earlier one
    "2030-03-31 02:30:00 Europe/Paris": datetime(2030, 3, 31, 1, 30, tzinfo=UTC),  # never: as Java, later by the gap
}
NONE_OF_THEM = [
    "", "20300629", "2030-W26-6", "2030-06-31", "2030-13-1", "30-6-29", "02030-6-29", "2030-6-029", "2030/6/29",
    "2030-6-", "-2030-6-29", "10000-1-1", "2030-6-29x", "today", "\uff12030-06-29", "0000-01-01",
]  # fmt: skip
NO_MOMENTS = [
    *NONE_OF_THEM, "08:05", "T08:05", "20300629T080506", "2030-6-29 24:00", "2030-6-29 8:60", "2030-6-29 8:5:60",
    "2030-6-29 8:5:6.5.5", "2030-6-29 8:5:6+19", "2030-6-29 8:5:6+1:60", "2030-6-29 8:5:6 Mars/Olympus",
    "2030-6-29 8:5:6 ../etc", "2030-6-29 8:5:6 localtime", "0001-01-01 00:00:00 Europe/Paris",
]  # fmt: skip


@pytest.mark.parametrize("text", DAYS)
def test_days_are_those_of_sparks_cast(text):
    """Months and days of one digit, and their first days where they are left out."""
    assert day_of(text) == DAYS[text]


@pytest.mark.parametrize("text", MOMENTS)
def test_moments_are_those_of_sparks_cast(text):
    """Days, hours, minutes, seconds, parts of them, offsets and names of zones."""
    found, expected = moment_of(text), MOMENTS[text]
    assert (found.tzinfo is None) is (expected.tzinfo is None)
    assert found - expected == timedelta()


@pytest.mark.parametrize("text", NO_MOMENTS)
def test_other_texts_are_refused(text):
    """Never another day or moment than Spark's: what it takes for null, and what has no single meaning here."""
    for read in (day_of,) if text in NONE_OF_THEM else ():
        with pytest.raises(ValueError):
            read(text)
    with pytest.raises(ValueError):
        moment_of(text)


def test_partitions_statistics_and_rows_read_a_date_alike(tmp_path):
    """Each way of writing a date finds the same rows, and leaves out the same files, as its ISO form."""
    days = [date(2030, 6, 28), date(2030, 6, 29), date(2030, 7, 1)]
    rows = pa.table({"id": ["a", "b", "c"], "p": days, "d": days, "t": [clock(d.year, d.month, d.day) for d in days]})
    for name, partition in {"parts": "p", "whole": ""}.items():
        settings = {
            "hoodie.table.name": "t",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": partition,
        }
        hudi_py.write(str(tmp_path / name), rows, settings=settings)
        table = hudi_py.open_table(str(tmp_path / name))
        for column in ("p", "d", "t"):
            for operator, found in {"=": ["b"], "<=": ["a", "b"], ">": ["c"]}.items():
                for value in ("'2030-6-29'", "2030-6-29", "date '2030-6-29'", "'2030-06-29'"):
                    read = table.rows(where=f"{column} {operator} {value}")
                    assert sorted(read.to_arrow()["id"].to_pylist()) == found, (name, column, operator, value)
                    skipped = 3 - len(found) if name == "parts" else 0
                    assert sum(read.skipped.values()) == skipped, (name, column, operator, value)
    with pytest.raises(ConfigError, match=r"'20300629' is not a value of the column's type date32"):
        table.rows(where="d = '20300629'").to_arrow()
