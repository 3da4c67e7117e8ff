"""The texts that a value may have in a record key."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.instant_time import EPOCH
from hudi_py.rows.key_texts import forms_of
from hudi_py.rows.operand import micros_of

BEGIN, END = (micros_of(datetime(year, 1, 1, tzinfo=timezone.utc)) for year in (1980, 2037))
TYPE = pa.timestamp("us", "UTC")
ZONES = sorted(available_timezones())


def forms(moment, arrow=TYPE):
    return forms_of(micros_of(moment), arrow)


@pytest.mark.parametrize(
    ("moment", "stored"),
    [
        ("2024-01-01 18:04:05.678900", ["1704132245678900", "2024-01-01 13:04:05.678", "2024-01-01 23:49:05.678"]),
        ("2024-06-01 18:04:05", ["1717265045000000", "2024-06-01 14:04:05.0", "2024-06-01 23:49:05.0"]),
        ("1999-12-31 18:04:05.123456", ["946663445123456", "1999-12-31 23:49:05.123"]),
    ],
)
def test_keys_that_real_hudi_wrote_are_among_them(moment, stored):
    """Of upserts anywhere, and of bulk inserts in New York and in Kathmandu; releases 0.15.0 to 1.2.0 agree."""
    assert set(stored) <= set(forms(datetime.fromisoformat(moment)))


@given(micros=st.integers(BEGIN, END), zone=st.sampled_from(ZONES))
def test_the_time_on_every_clock_is_among_them(micros, zone):
    """Java's text of it in the writer's zone, and Flink's milliseconds of it, wherever on earth the writer is."""
    local = (EPOCH + timedelta(microseconds=micros)).astimezone(ZoneInfo(zone))
    millis = f"{local.microsecond // 1000:03}".rstrip("0") or "0"
    moved = micros // 1000 + local.utcoffset() // timedelta(milliseconds=1)
    assert {f"{local:%Y-%m-%d %H:%M:%S}.{millis}", str(moved)} <= set(forms_of(micros, TYPE))


@pytest.mark.parametrize(
    ("moment", "stored"),
    [
        ("2024-01-02 03:04:00", "2024-01-02T03:04"),
        ("2024-01-02 03:04:05", "2024-01-02T03:04:05"),
        ("2024-01-02 03:04:05.600000", "2024-01-02T03:04:05.600"),
        ("2024-01-02 03:04:05.067800", "2024-01-02T03:04:05.067800"),
        ("2024-01-02 03:04:00.500000", "2024-01-02T03:04:00.500"),
    ],
)
def test_a_time_without_zone_is_shown_as_java_does(moment, stored):
    """With as many groups of three digits as it takes: the text of ``LocalDateTime``, in keys of Flink."""
    assert stored in forms(datetime.fromisoformat(moment), pa.timestamp("us"))


@pytest.mark.parametrize("moment", ["1979-12-31T23:59:59.999999", "1900-01-01", "9999-12-31T23:00:00"])
def test_times_with_other_clocks_have_none(moment):
    """Liberia was 44 minutes and 30 seconds behind; years after 9999 are not those of Python."""
    assert forms(datetime.fromisoformat(moment)) is None


def test_floats_and_booleans_have_none():
    """Java's text of a float is not Python's."""
    assert forms_of(1.5, pa.float64()) is None
    assert forms_of(True, pa.bool_()) is None
