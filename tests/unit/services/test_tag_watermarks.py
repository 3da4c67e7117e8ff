"""Tags by watermark: the first commit that has all rows of a period is its tag."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.config.retention_policy import parse_policy
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import format_instant_time
from hudi_py.services.savepoint.schedule import TagSchedule, parse_watermark, passed_tags
from support import writes
from support.laws import examples

UTC = timezone.utc
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
KEY = "watermark"
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def marks_of(*hours):
    """Commits an hour apart that end now, with watermarks of so many hours after the first of May."""
    times = [format_instant_time(NOW - (len(hours) - number) * HOUR) for number in range(len(hours))]
    return [(time, datetime(2026, 5, 1, tzinfo=UTC) + each * HOUR) for time, each in zip(times, hours, strict=True)]


@examples(60)
@given(st.lists(st.integers(0, 200), max_size=20), st.integers(0, 30), st.integers(1, 9))
def test_the_first_commit_past_the_end_of_a_day_is_tagged_with_that_day(hours, delay, count):
    """Days by days, compared with a search for each; a watermark that goes back passes nothing again."""
    marks = marks_of(*hours)
    found = passed_tags(marks, {}, TagSchedule(daily=count, watermark=KEY, delay=delay * HOUR), NOW, UTC)
    wanted = {}
    for day in range(-3, 12):
        begin = datetime(2026, 5, 1, tzinfo=UTC) + day * DAY
        past = [time for time, mark in marks if mark - delay * HOUR >= begin + DAY]
        if past and past[0] != marks[0][0]:
            wanted[past[0]] = f"daily-{begin:%Y-%m-%d}"  # of several days the last one
    assert {each.requested_time: each.name for each in found} == wanted
    again = passed_tags(marks, wanted, TagSchedule(daily=count, watermark=KEY, delay=delay * HOUR), NOW, UTC)
    assert again == ()


def test_periods_end_together_and_last_from_the_commit_on():
    """The longest period names the tag, and the time to live counts from the commit, not from the event time."""
    schedule = TagSchedule(hourly=3, daily=2, watermark=KEY)
    (hour, day) = passed_tags(marks_of(22, 23, 25), {}, schedule, NOW, UTC)
    assert (hour.name, day.name) == ("hourly-2026-05-01T22", "daily-2026-05-01")
    assert hour.expires == NOW - 2 * HOUR + 3 * HOUR
    assert day.expires == NOW - HOUR + 2 * DAY
    late = passed_tags([(format_instant_time(NOW - 9 * DAY), NOW), *marks_of(2000)], {}, schedule, NOW, UTC)
    assert [each.name for each in late] == ["daily-2026-07-22"]


@examples(60)
@given(
    st.datetimes(timezones=st.just(UTC)) | st.sampled_from([FIRST, LAST]),
    st.sampled_from(["hourly", "daily", "weekly", "monthly"]),
    st.integers(1, 2**63 - 1) | st.integers(1, 9),
    st.integers(-14, 14),
    st.timedeltas(timedelta(0), timedelta(days=9999)),
)
def test_no_watermark_and_no_number_of_periods_is_too_large(watermark, unit, count, zone, delay):
    """What a stream calls the end of time may be no time where the table is; a tag that is kept for ever has an end."""
    marks = marks_of(0, 1, 50)
    marks[1:1] = [(marks[0][0], watermark)]
    schedule = TagSchedule(**{unit: count}, watermark=KEY, delay=delay)
    found = passed_tags(marks, {}, schedule, NOW, timezone(timedelta(hours=zone)))
    assert all(NOW < each.expires < LAST for each in found)


def test_a_watermark_after_the_last_date_passes_nothing():
    """As one that is no time: the next one ends the period."""
    east = timezone(timedelta(hours=9))
    marks = marks_of(0, 1, 50)
    late = [marks[0], (marks[1][0], LAST), marks[2]]
    found = passed_tags(late, {}, TagSchedule(daily=3, watermark=KEY), NOW, east)
    assert found == passed_tags(marks[::2], {}, TagSchedule(daily=3, watermark=KEY), NOW, east) != ()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("1777593600000", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T02:00:00+02:00", datetime(2026, 5, 1, tzinfo=UTC)),
        ("2026-05-01T00:00:00Z", datetime(2026, 5, 1, tzinfo=UTC)),
        *((text, None) for text in ("", "soon", "2026-05-01T00:00:00", "9" * 30, "-9223372036854775808")),
    ],
)
def test_watermarks_are_moments_or_nothing(text, moment):
    """Without a time zone it would be another moment on each machine; Flink's smallest number is no time."""
    assert parse_watermark(text) == moment


@pytest.mark.parametrize("version", [6, 9])
def test_commits_carry_watermarks_and_are_tagged_after_them(version):
    """From the extra metadata that a write is given to a name for time travel; what is no time is passed over."""
    storage = writes.create_table(version)
    asked = {"hoodie_py.tags.daily": 5, "hoodie_py.tags.watermark": KEY, "hoodie_py.tags.watermark.delay": "1h"}
    rows = [{"id": "a", "region": "eu", "ts": 1}]
    times = []
    for text in ("2026-01-01T23:30:00Z", "2026-01-02T00:30:00Z", "never", "2026-01-02T01:00:00Z", None):
        extra = {} if text is None else {KEY: text}
        done = writes.open_table(storage, **asked).upsert(
            pa.Table.from_pylist(rows, schema=writes.SCHEMA), extra_metadata=extra
        )
        times.append(done.instant)
        rows[0]["ts"] += 1
    table = writes.open_table(storage, **asked)
    ((savepoint, content),) = table.services.savepoint().savepoints()
    assert (savepoint.requested_time, content.name) == (times[3], "daily-2026-01-01")
    assert table.as_of("daily-2026-01-01").requested_time == times[3]
    assert table.create_due_tags() == ()


def test_a_policy_says_it_too():
    """And refuses what has no effect."""
    policy = parse_policy('[tags]\ndaily = 3\nwatermark = "flink"\ndelay = "1h"')
    assert policy.settings["hoodie_py.tags.watermark"] == "flink"
    assert policy.settings["hoodie_py.tags.watermark.delay"] == "3600000ms"
    for text in ('[tags]\nwatermark = "flink"', '[tags]\ndaily = 3\ndelay = "1h"'):
        with pytest.raises(ConfigError, match="contradict"):
            parse_policy(text)
