"""Worked examples of the manuals of Apache Paimon, Apache Iceberg and BorgBackup: what they keep is kept here, too."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone

import pytest

from hudi_py.config.clean import clean_config
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, RefusedError
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import format_instant_time
from hudi_py.services.clean.retention.ladder import climb
from hudi_py.services.clean.retention.policy import Reason
from support.tables import TableBuilder

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def commit(builder: TableBuilder, when: datetime) -> str:
    """One commit that writes the only file again; the clock stands at its moment."""
    time = format_instant_time(when)
    builder.clock.moment = when
    builder.commit(time, {"r0": ["f"]}, completed_at=time)
    return time


def answers(builder: TableBuilder, asked: str, time: str | None = None) -> bool:
    """Whether the table can be read as of a commit, or of a tag of it, and shows the file of that commit."""
    try:
        files = builder.table().base_files(asked)
    except (RefusedError, ConfigError):
        return False
    return [base.instant_time for _, base in files] == [time or asked]


# --- Apache Paimon: manage snapshots ---------------------------------------------------------------------------------
# Minutes after 10:00 of eight snapshots, and the first that is left after each; at least 2, at most 5, one hour.
PAIMON = ((0, 1), (20, 1), (40, 1), (60, 1), (80, 2), (90, 3), (95, 3), (96, 4))


@pytest.mark.parametrize("layout", [1, 2])
def test_snapshots_of_paimon_expire_by_number_and_time(layout):
    """
    At least two, at most five, for an hour: cleaned after each commit, what Paimon keeps can be read.

    What it expires cannot, but for the newest of that, which a query may have begun to read inside of the hour: such is
    the rule of Apache Hudi, and by now (PR 7706) of Paimon, too.
    """
    builder, times = TableBuilder(layout), []
    for minutes, first in PAIMON:
        times.append(commit(builder, moment("2023-07-06 10:00") + minutes * MINUTE))
        builder.table().clean(age_retained="1h", min_commits=2, max_commits=5)
        assert all(answers(builder, time) for time in times[first - 1 :])
        assert not any(answers(builder, time) for time in times[: max(first - 2, 0)])
    assert len(times[3:]) == 5


def test_the_last_ten_of_a_hundred_are_ten():
    """An article on Paimon keeps snapshots 90 to 100 with a minimum of ten, which are eleven; its formula keeps ten."""
    builder = TableBuilder()
    times = [commit(builder, moment("2026-01-01") + number * MINUTE) for number in range(1, 101)]
    plan = builder.table().plan_clean(age_retained="5m", min_commits=10)
    assert plan.earliest_to_retain is not None
    assert plan.earliest_to_retain.requested_time == times[90]
    builder.table().clean(age_retained="5m", min_commits=10)
    # The eleventh is what a query reads that began right before; its files are kept, and nobody is promised them.
    assert [number for number, time in enumerate(times, 1) if answers(builder, time)] in (
        list(range(90, 101)),
        list(range(91, 101)),
    )


def test_a_consumer_of_paimon_holds_the_next_snapshot_until_it_expires():
    """It has read up to snapshot 2; whatever the limits say, 3 and later stay until it moves on, or is forgotten."""
    builder = TableBuilder()
    times = [commit(builder, moment("2023-07-06 10:00") + 20 * number * MINUTE) for number in range(3)]
    builder.table().consumer("job").at(times[1], ttl="2h")
    times += [commit(builder, moment("2023-07-06 11:00") + number * MINUTE) for number in range(6)]
    limits = {"age_retained": "1m", "max_commits": 1}
    builder.table().clean(**limits)
    assert all(answers(builder, time) for time in times[2:])
    assert not answers(builder, times[0])
    commit(builder, moment("2023-07-06 14:00"))
    builder.table().clean(commits_retained=1)
    assert not answers(builder, times[2])


# --- Apache Iceberg: expiring snapshots, branches and tags ---------------------------------------------------------
def test_snapshots_of_iceberg_older_than_a_time_expire_but_for_the_last():
    """``expire_snapshots(older_than, retain_last)``: of an idle table the newest stays, of any at least so many."""
    cut_off = moment("2021-06-30")
    for retain_last in (1, 3):
        builder = TableBuilder()
        times = [commit(builder, cut_off + number * DAY) for number in (-9, -8, -7, -2)]
        builder.clock.moment = cut_off + DAY
        builder.table().clean(older_than=cut_off, min_commits=retain_last)
        assert all(answers(builder, time) for time in times[-retain_last:])
        assert not any(answers(builder, time) for time in times[: -retain_last - 1])


def test_tags_of_iceberg_outlive_their_snapshots_until_their_own_end():
    """
    A snapshot of each week for a month, of each month for six, of the year for ever; the rest for a week, and two.

    Iceberg's page gives the week's tag seven days and calls that a month: it has thirty here. A branch is not served;
    what it would keep (``max-snapshot-age``, ``min-snapshots-to-keep``) is the table's own retention.
    """
    start = moment("2023-01-01")
    builder, times = TableBuilder(), {}
    tags = {7: ("EOW-01", 30), 30: ("EOM-01", 180), 365: ("EOY-2023", None)}
    for day in (6, 7, 8, 29, 30, 31, 38, 209, 210, 211, 364, 365, 366, 367):
        times[day] = commit(builder, start + day * DAY)
        if day in tags:
            name, days = tags[day]
            builder.table().create_savepoint(times[day], name=name, ttl=None if days is None else f"{days}d")
        builder.clock.moment += timedelta(hours=1)
        builder.table().clean(age_retained="7d", min_commits=2)
        for tagged, (name, days) in tags.items():
            if tagged <= day:
                assert answers(builder, name, times[tagged]) is (days is None or day < tagged + days), (day, name)
        young = [each for each in times if day - each < 7]
        kept = max(len(young), 2) + 1  # and the one that a query may have begun to read within the week
        assert not any(answers(builder, times[old]) for old in sorted(times)[:-kept])
        assert all(answers(builder, times[newest]) for newest in sorted(times)[-2:])
    assert [each.requested_time for each in builder.table().timeline.completed(Action.SAVEPOINT)] == [times[365]]


# --- BorgBackup: prune visualized ----------------------------------------------------------------------------------
def test_days_and_months_of_borg_are_on_the_ladder():
    """
    A backup on each day of 2015 but the nineteenth of December; ``--keep-daily 14 --keep-monthly 6`` keeps twenty.

    A rung of borg does not count what one before has taken, so its six months come after December; a rung here counts
    all of its periods, whichever else keeps their snapshot, so that is the seventh month. There are no years here.
    """
    days = [date(2015, 1, 1) + number * DAY for number in range(365)]
    days.remove(date(2015, 12, 19))
    times = [f"{day:%Y%m%d}120000000" for day in days]
    config = clean_config(Settings({"hoodie_py.clean.keep.daily": 14, "hoodie_py.clean.keep.monthly": 7}))
    kept = climb(times, config)
    daily = {f"201512{day}" for day in (31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 18, 17)}
    monthly = {"20151130", "20151031", "20150930", "20150831", "20150731", "20150630"}
    assert {each.time[:8] for each in kept if each.reason is Reason.DAILY} == daily
    assert {each.time[:8] for each in kept if each.reason is Reason.MONTHLY} == monthly | {"20151231"}
    assert {each.time[:8] for each in kept} == daily | monthly


def test_a_clean_keeps_the_calendar_of_borg_readable():
    """The same on a table with the days that matter: what falls off cannot be read, and all else can."""
    builder = TableBuilder()
    days = [date(2015, 5, 31), date(2015, 6, 29), date(2015, 6, 30), date(2015, 7, 31), date(2015, 8, 30)]
    days += [date(2015, month, last) for month, last in ((8, 31), (9, 30), (10, 31), (11, 29), (11, 30))]
    days += [date(2015, 12, day) for day in range(12, 32) if day != 19]
    times = {day: commit(builder, datetime(day.year, day.month, day.day, 12, tzinfo=timezone.utc)) for day in days}
    builder.clock.moment = moment("2016-01-01")
    builder.table().clean(commits_retained=1, keep_daily=14, keep_monthly=7)
    off = {date(2015, 5, 31), date(2015, 6, 29), date(2015, 8, 30), date(2015, 11, 29)}
    off |= {date(2015, 12, day) for day in range(12, 17)}
    assert {day for day, time in times.items() if not answers(builder, time)} == off
