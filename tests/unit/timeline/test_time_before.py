"""Where a window by time begins, in zones whose clocks go back (K-8)."""

import time
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.instant_time import format_instant_time, time_before
from hudi_py.runtime.clock import zone_of

ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
DAY = timedelta(days=1)
BACK = datetime(2026, 10, 25, 1, tzinfo=timezone.utc)  # in Berlin 03:00 becomes 02:00
CHANGES = [BACK, datetime(2026, 11, 1, 6, tzinfo=timezone.utc), datetime(2026, 4, 4, 15, tzinfo=timezone.utc)]
moments = st.builds(
    lambda change, minutes: change + timedelta(minutes=minutes),
    st.sampled_from(CHANGES),
    st.integers(-90, 90) | st.integers(0, 60 * 24 * 366),
)


@given(st.sampled_from(ZONES), moments, st.integers(0, 150))
def test_nothing_younger_than_the_span_lies_before_it(name, limit, later):
    """Whatever the clocks did between: too little is never kept."""
    zone = ZoneInfo(name)
    written = format_instant_time((limit + timedelta(minutes=later)).astimezone(zone))
    assert time_before(limit + DAY, DAY, zone) <= written


@given(st.sampled_from(ZONES), moments)
def test_it_is_the_moment_itself_but_in_the_hour_before_a_change(name, limit):
    """And at most an hour more is kept (rule A-20)."""
    zone = ZoneInfo(name)
    here, there = limit.astimezone(zone), (limit + timedelta(hours=1)).astimezone(zone)
    found = time_before(limit + DAY, DAY, zone)
    if there.utcoffset() >= here.utcoffset():
        assert found == format_instant_time(here)
    else:
        assert format_instant_time((limit - timedelta(hours=1)).astimezone(zone)) <= found < format_instant_time(here)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the process's zone cannot be set here")
def test_the_zone_of_the_process_is_no_exception(monkeypatch):
    """A commit of 02:15 after the change is half an hour younger than 02:45 before it."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        zone = zone_of("LOCAL")
        limit = BACK - timedelta(minutes=15)
        written = format_instant_time((BACK + timedelta(minutes=15)).astimezone(zone))
        assert written.startswith("202610250215")
        assert time_before(limit + DAY, DAY, zone) <= written
    finally:
        monkeypatch.undo()
        time.tzset()
