"""
Tags on a schedule: the last commit of each hour, day, week and month becomes a savepoint with a name. Pure.

A period is due once it has ended. After a pause, the tags of all periods that were missed are due, as far as they would
not have expired by now. Instant times are in the table's time zone, so their digits are its calendar.

By watermark, a period ends when a commit says that its rows are complete up to the end of the period: that commit is
tagged, for it is the first that has all rows of the period. A commit that passes several periods is tagged for the last
of them. Source: Apache Paimon, ``tag.automatic-creation`` = ``watermark``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import MAXYEAR, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

import attrs

from hudi_py.model.instant_time import EPOCH, parse_instant_time

_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_MONTH_MAX: Final = 31
_MOMENT: Final = timedelta(microseconds=1)
_KEPT_MAX: Final = timedelta(days=365_000)
"""A tag that would last for longer lasts for so long: a larger number of periods ends after the last date."""


@attrs.frozen(kw_only=True)
class TagSchedule:
    """
    Number of hours, days, weeks and months of which a tag is kept; 0 for none.

    Args:
        watermark: The entry of a commit's extra metadata with its watermark; None to go by the time of commits.
        delay: By watermark: how far a watermark has to be past the end of a period.
    """

    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    watermark: str | None = None
    delay: timedelta = timedelta(0)

    def __bool__(self) -> bool:
        return any((self.hourly, self.daily, self.weekly, self.monthly))


class DueTag(NamedTuple):
    """A tag to create: requested time of its commit, its name, and when it expires."""

    requested_time: str
    name: str
    expires: datetime


class _Unit(NamedTuple):
    word: str
    begin: Callable[[datetime], datetime]
    label: Callable[[datetime], str]
    end: Callable[[datetime], datetime]
    span: timedelta


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _first_of_month(moment: datetime) -> datetime:
    return _midnight(moment).replace(day=1)


# The coarsest first: a commit has one savepoint, which is named after the longest period that it ends.
_UNITS: Final = (
    _Unit(
        "monthly",
        _first_of_month,
        lambda begin: f"{begin:%Y-%m}",
        # 31 days after the first of a month is always in the next month.
        lambda begin: _first_of_month(begin + _MONTH_MAX * _DAY),
        _MONTH_MAX * _DAY,
    ),
    _Unit(
        "weekly",
        lambda moment: _midnight(moment) - moment.weekday() * _DAY,
        lambda begin: f"{begin:%G-W%V}",
        lambda begin: begin + 7 * _DAY,
        7 * _DAY,
    ),
    _Unit("daily", _midnight, lambda begin: f"{begin:%Y-%m-%d}", lambda begin: begin + _DAY, _DAY),
    _Unit(
        "hourly",
        lambda moment: moment.replace(minute=0, second=0, microsecond=0),
        lambda begin: f"{begin:%Y-%m-%dT%H}",
        lambda begin: begin + _HOUR,
        _HOUR,
    ),
)


def due_tags(
    commits: Iterable[str], tags: Mapping[str, str], schedule: TagSchedule, now: datetime, zone: tzinfo
) -> tuple[DueTag, ...]:
    """
    The tags to create now, oldest first.

    Args:
        commits: Requested times of the completed commits.
        tags: Requested time of each savepoint to its name, ``""`` if it has none.
        schedule: How many of each kind to keep.
        now: With a time zone.
        zone: Time zone of the instant times.

    Returns:
        One for each commit that ends a period, unless it is savepointed already, or a later tag of the same kind or of
        a coarser one exists: a deleted one does not come back.
    """
    local = now.astimezone(zone).replace(tzinfo=None)
    moments = {time: moment for time in sorted(commits) if (moment := _moment(time, zone)) is not None}
    found: dict[str, DueTag] = {}
    for position, unit in enumerate(_UNITS):
        count: int = getattr(schedule, unit.word)
        newest = _newest(tags, position)
        # The last commit of each period, because times ascend and later ones replace earlier ones.
        ends = {unit.begin(moment): time for time, moment in moments.items()} if count else {}
        for begin, time in ends.items():
            end = unit.end(begin)
            left = end + _kept(count, unit) - local
            if end > local or left <= timedelta(0) or time <= newest or time in tags:
                continue
            due = found.get(time)
            if due is None:
                found[time] = DueTag(time, f"{unit.word}-{unit.label(begin)}", now + left)
            else:  # as long as the period needs it that needs it longest
                found[time] = due._replace(expires=max(due.expires, now + left))
    return tuple(sorted(found.values()))


def passed_tags(
    marks: Iterable[tuple[str, datetime]],
    tags: Mapping[str, str],
    schedule: TagSchedule,
    now: datetime,
    zone: tzinfo,
) -> tuple[DueTag, ...]:
    """
    The tags to create now by watermark, oldest first.

    Args:
        marks: Requested times of completed commits, ascending, with their watermarks, which have a time zone. The first
            one only tells which periods had ended before.
        tags, schedule, now, zone: As `due_tags`.

    Returns:
        One for each commit whose watermark passes the end of a period, with the exceptions of `due_tags`. Each lasts
        from its commit on for as many periods as are kept.
    """
    local = now.astimezone(zone).replace(tzinfo=None)
    found: dict[str, DueTag] = {}
    for position, unit in enumerate(_UNITS):
        count: int = getattr(schedule, unit.word)
        newest = _newest(tags, position)
        # The begin of the period that the largest watermark so far lies in: a watermark never goes back.
        reached: datetime | None = None
        for time, watermark in marks if count else ():
            try:
                inside = unit.begin((watermark - schedule.delay).astimezone(zone).replace(tzinfo=None))
            except OverflowError:  # before the first or after the last date there: it would pass all periods at once
                continue
            made = _moment(time, zone)
            if reached is not None and inside > reached and made is not None and time > newest and time not in tags:
                left = made + _kept(count, unit) - local
                if left > timedelta(0):
                    label = unit.label(unit.begin(inside - _MOMENT))
                    due = found.get(time)
                    if due is None:
                        found[time] = DueTag(time, f"{unit.word}-{label}", now + left)
                    else:  # as long as the period needs it that needs it longest
                        found[time] = due._replace(expires=max(due.expires, now + left))
            reached = inside if reached is None else max(reached, inside)
    return tuple(sorted(found.values()))


def parse_watermark(text: str) -> datetime | None:
    """A watermark, milliseconds since 1970 or ISO 8601 with a time zone; None for anything else."""
    try:
        if text.strip().lstrip("-").isdigit():
            return EPOCH + timedelta(milliseconds=int(text))
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        return moment if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _kept(count: int, unit: _Unit) -> timedelta:
    return min(count, _KEPT_MAX // unit.span) * unit.span


def _newest(tags: Mapping[str, str], position: int) -> str:
    """Time of the newest tag of the kind at that position or of a coarser one: a deleted one does not come back."""
    coarser = tuple(f"{each.word}-" for each in _UNITS[: position + 1])
    return max((time for time, name in tags.items() if name.startswith(coarser)), default="")


def _moment(time: str, zone: tzinfo) -> datetime | None:
    """
    Wall-clock time of an instant.

    None for a time that is not a date, as those of services in metadata tables, or lies in the last year there is,
    whose periods have no end.
    """
    try:
        found = parse_instant_time(time, zone).astimezone(zone).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return found if found.year < MAXYEAR else None
