"""Tags on a schedule: which are due, what they are called, when they expire."""

import random
from datetime import datetime, timedelta, timezone
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from hudi_py.model.instant_time import format_instant_time
from hudi_py.services.savepoint.schedule import TagSchedule, due_tags
from hudi_py.table import Table
from support.laws import examples
from support.tables import TableBuilder, at, data_files

UTC = timezone.utc
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
SPANS = {"hourly": timedelta(hours=1), "daily": timedelta(days=1)}


def commit_times(hours):
    """Instant times so many hours before now."""
    return [format_instant_time(NOW - timedelta(hours=each)) for each in hours]


@examples(60)
@given(st.integers(0, 2**32))
def test_the_last_commit_of_each_ended_period_is_tagged_until_its_period_is_too_old(seed):
    """Compared with a list of periods; a second time nothing is due."""
    rng = random.Random(seed)
    hourly, daily = rng.randrange(10), rng.randrange(10)
    commits = sorted(set(commit_times(rng.choices(range(200), k=rng.randrange(30)))))
    schedule = TagSchedule(hourly=hourly, daily=daily)
    due = due_tags(commits, {}, schedule, NOW, UTC)
    wanted = {}
    for digits, count, span, form in ((8, daily, SPANS["daily"], "%Y%m%d"), (10, hourly, SPANS["hourly"], "%Y%m%d%H")):
        for period, times in groupby(commits, lambda time, digits=digits: time[:digits]):
            expires = datetime.strptime(period, form).replace(tzinfo=UTC) + (1 + count) * span
            if count and expires - count * span <= NOW < expires:
                last = max(times)
                wanted[last] = max(expires, wanted.get(last, expires))
    assert wanted == {each.requested_time: each.expires for each in due}
    assert () == due_tags(commits, {each.requested_time: each.name for each in due}, schedule, NOW, UTC)


def test_a_tag_is_named_after_the_longest_period_that_its_commit_ends():
    """Periods end together: of a month's last commit there is one tag, which lasts as long as any of them asks."""
    schedule = TagSchedule(hourly=1, daily=400, weekly=1, monthly=1)
    (due,) = due_tags(["20260531220000000"], {}, schedule, NOW, UTC)
    assert ("monthly-2026-05", "20260531220000000") == (due.name, due.requested_time)
    assert datetime(2026, 6, 1, tzinfo=UTC) + timedelta(days=400) == due.expires
    (week,) = due_tags(["20260528220000000"], {}, TagSchedule(weekly=1), NOW, UTC)
    assert "weekly-2026-W22" == week.name


def test_a_deleted_tag_does_not_come_back():
    """A later tag of its kind shows that it was there; a savepoint of a user on the commit is as good as a tag."""
    commits = ["20260529000000000", "20260530000000000", "20260531000000000"]
    schedule = TagSchedule(daily=9)
    names = [each.name for each in due_tags(commits, {}, schedule, NOW, UTC)]
    assert ["daily-2026-05-29", "daily-2026-05-30", "daily-2026-05-31"] == names
    assert () == due_tags(commits, {commits[2]: names[2]}, schedule, NOW, UTC)
    assert names[:1] == [each.name for each in due_tags(commits[:2], {commits[1]: "mine"}, schedule, NOW, UTC)]


def test_tags_are_created_catch_up_and_expire_with_cleans():
    """All missed days at once; each can be read by its name until its time to live is over."""
    builder = TableBuilder()
    for number in (1, 20, 30, 50, 80):
        builder.commit(at(number), {"r0": ["a"]})
    builder.clock.moment = datetime(2026, 1, 4, 12, tzinfo=UTC)

    def table():
        return Table(builder.storage, settings={"hoodie_py.tags.daily": 4}, clock=builder.clock)

    done = table().create_due_tags()
    assert [at(20), at(30), at(50)] == [each.requested_time for each in done]
    assert () == table().create_due_tags()
    table().clean(commits_retained=1)
    assert 4 == len(data_files(builder.storage))
    (name, _), *_ = builder.table().snapshot(savepoint=at(20)).base_files()
    assert "r0" == name
    assert at(20) == table().resolve_time("daily-2026-01-01")
    builder.clock.move(timedelta(days=2))
    builder.commit(at(81), {"r0": ["a"]})
    assert [at(81)] == [each.requested_time for each in table().create_due_tags()]
    builder.commit(at(120), {"r0": ["a"]})
    table().clean(commits_retained=1)
    left = {content.name for _, content in table().services.savepoint().savepoints()}
    assert {"daily-2026-01-02", "daily-2026-01-03", "daily-2026-01-04"} == left


@examples(60)
@given(
    st.sampled_from(["hourly", "daily", "weekly", "monthly"]),
    st.integers(1, 2**63 - 1) | st.sampled_from([1, 8000, 10**5, 10**9]),
    st.sampled_from(["00010101000000000", "99991130235959999", "99991231235959999"]),
    st.integers(-14, 14),
)
def test_every_number_of_periods_and_every_time_has_an_answer(unit, count, time, zone):
    """More periods than there are dates keep tags for a thousand years; a commit of a period without an end waits."""
    due = due_tags([time, *commit_times([30])], {}, TagSchedule(**{unit: count}), NOW, timezone(timedelta(hours=zone)))
    assert all(NOW < each.expires <= NOW + 366_000 * timedelta(days=1) for each in due)
    assert time not in {each.requested_time for each in due} or time.startswith("0001")
