"""Times as users type them."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import EPOCH, iso_utc, moment_of, parse_instant_time, resolve_time
from support.tables import TableBuilder, at

NOW = datetime(2026, 6, 1, 12, tzinfo=timezone.utc)
ZONES = [timezone.utc, timezone(timedelta(hours=13)), timezone(timedelta(hours=-11))]
isoformat = st.builds(
    lambda moment, offset: moment.replace(tzinfo=timezone(timedelta(minutes=offset))).isoformat(),
    st.datetimes(),
    st.integers(-23 * 60, 23 * 60),
)
spans = st.from_regex(r"[0-9]{1,15} ?(ms|s|m|h|d|w)", fullmatch=True)


@given(isoformat | spans | st.text(max_size=30), st.sampled_from(ZONES))
def test_whatever_is_typed_is_a_time_or_wrong_usage(text, zone):
    """Also at both ends of the calendar, where another zone has a year that there is none of."""
    try:
        time = resolve_time(text, now=NOW, zone=zone, to_end_of_second=True)
    except ConfigError as error:
        assert "is not a time" in str(error)
    else:
        assert time.isdigit()
        assert len(time) >= 14


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("20260521", "20260521000000000"),
        ("2026-05-21T06:30", "20260521063000000"),
        ("2026-05-21T06:30:00Z", "20260521063000000"),
        ("2026-05-21 06:30:00.125+02:00", "20260521043000125"),
        (" 36h ", "20260531000000000"),
        ("0s", "20260601120000000"),
        ("20260521063000", "20260521063000"),
    ],
)
def test_forms_of_a_time(text, time):
    """Instants as they are, ISO 8601 in the table's zone or its own, and spans back from now."""
    assert time == resolve_time(text, now=NOW, zone=timezone.utc)


def test_fourteen_digits_mean_the_end_of_their_second():
    """As in Hudi, which wrote such times up to 0.9."""
    assert parse_instant_time("20260521063000", timezone.utc) == parse_instant_time("20260521063000999", timezone.utc)


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("2026-05-21 06:30:00", "20260521063000999"),
        ("2026-05-21T06:30:00", "20260521063000999"),
        ("2026-05-21T06:30:59Z", "20260521063059999"),
        ("2026-05-21T06:30:00+02:00", "20260521043000999"),
        # what has no seconds or has a fraction is that moment, as digits are
        ("2026-05-21", "20260521000000000"),
        ("2026-05-21T06:30", "20260521063000000"),
        ("2026-05-21T06:30+02:00", "20260521043000000"),
        ("2026-05-21 06:30:00.000", "20260521063000000"),
        ("2026-05-21 06:30:00.500Z", "20260521063000500"),
        ("20260521063000", "20260521063000"),
        ("20260521063000000", "20260521063000000"),
    ],
)
def test_a_text_with_whole_seconds_is_their_end_for_readers(text, last):
    """As for those of Hudi; for whoever names an instant or a moment it is their beginning."""
    assert resolve_time(text, now=NOW, zone=timezone.utc, to_end_of_second=True) == last
    first = last[:-3] + "000" if last.endswith("999") else last
    assert resolve_time(text, now=NOW, zone=timezone.utc) == first


@pytest.mark.parametrize("layout", [1, 2])
def test_a_read_of_a_second_has_all_that_was_committed_in_it(layout):
    """As of that time, and up to it; the next range begins behind it, and datetimes are exact."""
    builder = TableBuilder(layout)
    times = [f"20260521{each}" for each in ("062959999", "063000000", "063000500", "063000999", "063001000")]
    for time in times:
        builder.commit(time, {time: ["a"]})
    table, text = builder.table(), "2026-05-21 06:30:00"
    assert [table.resolve_time(text), table.resolve_time(text, exact=True)] == [times[3], times[1]]
    assert table.as_of(text).requested_time == times[3]
    assert table.as_of(datetime(2026, 5, 21, 6, 30)).requested_time == times[1]  # noqa: DTZ001
    assert table.as_of(datetime(2026, 5, 21, 6, 30, 0, 999_000)).requested_time == times[3]  # noqa: DTZ001


@pytest.mark.parametrize("zone", [timezone.utc, timezone(timedelta(hours=5, minutes=30))])
def test_a_moment_means_what_its_whole_text_means(zone):
    """With a zone of its own or in that of the table; what is neither text nor moment is named."""
    for moment in (datetime(2026, 11, 21, 6, 30), datetime(2026, 11, 21, 6, 30, tzinfo=timezone.utc)):  # noqa: DTZ001
        text = moment.isoformat(timespec="milliseconds")
        for to_end_of_second in (False, True):
            found = (resolve_time(x, now=NOW, zone=zone, to_end_of_second=to_end_of_second) for x in (text, moment))
            assert len({*found}) == 1
    with pytest.raises(ConfigError, match="is not a time"):
        resolve_time(20261121, now=NOW, zone=zone)


@pytest.mark.parametrize(
    "text",
    ["20260230120000000", "20260230120000", "20260230", "20261301000000", "202601010000000000", "00000000000002"],
)
def test_digits_that_are_no_date_are_refused(text):
    """Who asks for 30 February means another day; 18 digits are a slip of the finger."""
    with pytest.raises(ConfigError, match=f"'{text}.*is not a date"):
        resolve_time(text, now=NOW, zone=timezone.utc)


@pytest.mark.parametrize("layout", [1, 2])
def test_an_instant_that_is_no_date_is_found_by_its_time(layout):
    """Tables of Apache Hudi may hold such, active and archived."""
    builder = TableBuilder(layout)
    odd = ("00000000000000101", "20250230000000000")
    for time in (*odd, at(1), at(2), at(3)):
        builder.commit(time, {"eu": ["a"]})
    assert [builder.table().resolve_time(each) for each in odd] == list(odd)
    with pytest.raises(ConfigError, match="is not a date"):
        builder.table().resolve_time("20260231000000000")
    builder.table().archive(keep_min_commits=1, keep_max_commits=2)
    assert builder.table().timeline.find(odd[0]) is None
    assert [builder.table().resolve_time(each) for each in odd] == list(odd)


@pytest.mark.parametrize("epoch_ms", [2**63 - 1, 253_402_300_800_000, -(2**63), -62_135_596_800_001])
@pytest.mark.parametrize("zone", [timezone.utc, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))])
def test_moment_beyond_the_calendar_is_in_its_first_or_last_year(epoch_ms, zone):
    """Files of a table may hold any number as a time."""
    moment = moment_of(epoch_ms, zone)
    assert moment.year == (9999 if epoch_ms > 0 else 1)
    assert moment.tzinfo is zone
    assert iso_utc(epoch_ms).startswith(f"{moment.year:04d}-")


@given(st.integers(-62_135_510_400_000, 253_402_214_400_000))
def test_moment_keeps_each_millisecond(epoch_ms):
    """Within the calendar nothing is rounded, whatever the zone."""
    for zone in (timezone.utc, timezone(timedelta(hours=14))):
        assert (moment_of(epoch_ms, zone) - EPOCH) // timedelta(milliseconds=1) == epoch_ms
