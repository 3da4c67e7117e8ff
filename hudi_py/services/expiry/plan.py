"""
Decides which partitions expire. Pure.

Like Apache Hudi, with one difference on purpose: for it, the last change of a partition is its newest base file, so
that it drops partitions whose rows were updated in log files since. Here every committed file counts.

Source: Hudi ``KeepByTimeStrategy``, ``KeepByCreationTimeStrategy``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, tzinfo

import attrs

from hudi_py.config.clean import format_duration
from hudi_py.config.expiry import ExpiryBy, ExpiryConfig
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.shown import Shown


@attrs.frozen(kw_only=True)
class PartitionFacts:
    """
    One partition.

    Args:
        path: Relative to the table.
        is_there: Whether the table has it.
        is_empty: Whether it has no rows any more, because all its groups are replaced.
        since: Requested time of its last change or of its creation; None if that is unknown.
        value: Its value, for expiry by value; None if it has none.
        waits_for: The pending compaction or clustering that one of its groups is part of.
        other_table: Folder of the table below this one that it lies in.
    """

    path: str
    is_there: bool = True
    is_empty: bool = False
    since: str | None = None
    value: str | None = None
    waits_for: str | None = None
    other_table: str | None = None


@attrs.frozen(kw_only=True)
class PartitionVerdict:
    """
    What becomes of one partition.

    Args:
        path: Relative to the table.
        expires: Whether its rows are deleted.
        reason: Why, or why not.
        since: Moment from which its age is counted; None if that is unknown.
    """

    path: str
    expires: bool
    reason: str
    since: datetime | None = None


@attrs.frozen(kw_only=True)
class ExpiryPlan:
    """
    What expires.

    Args:
        verdicts: On every partition, the oldest first.
        rule: What lets partitions expire, as a sentence.
    """

    verdicts: tuple[PartitionVerdict, ...]
    rule: str

    @property
    def expired(self) -> tuple[str, ...]:
        """Paths of the partitions whose rows are to be deleted, the oldest first."""
        return tuple(verdict.path for verdict in self.verdicts if verdict.expires)


@attrs.frozen(kw_only=True, repr=False)
class ExpiryReport(Shown):
    """
    What a run dropped.

    Args:
        plan: The verdicts.
        commit: Requested time of the commit that dropped the partitions; None if none was dropped.
        is_dry_run: Whether nothing was written.
    """

    plan: ExpiryPlan
    commit: str | None = None
    is_dry_run: bool = False

    def _facts(self) -> Mapping[str, object]:
        return {"expired": list(self.plan.expired), "commit": self.commit, "is_dry_run": self.is_dry_run}


def rule_of(config: ExpiryConfig) -> str:
    """The rule as a sentence."""
    if config.days <= 0:
        return "no partition expires, because no number of days is set (hoodie.partition.ttl.strategy.days.retain)"
    what = {
        ExpiryBy.LAST_CHANGE: "their last change",
        ExpiryBy.CREATION: "their creation",
        ExpiryBy.VALUE: f"the end of the time in their value ({config.value_format})",
    }[config.by]
    return f"partitions expire {config.days} days after {what}"


def plan(config: ExpiryConfig, partitions: Iterable[PartitionFacts], *, now: datetime, zone: tzinfo) -> ExpiryPlan:
    """
    Decide.

    Args:
        config: When partitions expire.
        partitions: The facts.
        now: Timezone-aware.
        zone: Time zone of the table's instants, and of values.
    """
    verdicts = [_verdict(config, facts, now, zone) for facts in partitions]
    # Those of unknown age last; of the same age by path, so that a plan never depends on the order of a listing.
    verdicts.sort(key=lambda verdict: (verdict.since is None, verdict.since or now, verdict.path))
    left = config.partitions_max
    for position, verdict in enumerate(verdicts):
        if verdict.expires and not left:
            verdicts[position] = attrs.evolve(
                verdict,
                expires=False,
                reason=f"has expired, but a run drops {config.partitions_max} partitions at most",
            )
        left -= verdict.expires and left > 0
    return ExpiryPlan(verdicts=tuple(verdicts), rule=rule_of(config))


def _verdict(config: ExpiryConfig, facts: PartitionFacts, now: datetime, zone: tzinfo) -> PartitionVerdict:
    if not facts.is_there:
        return PartitionVerdict(path=facts.path, expires=False, reason="the table has no such partition")
    if facts.other_table is not None:
        reason = f"belongs to another table: {facts.other_table} has a .hoodie of its own"
        return PartitionVerdict(path=facts.path, expires=False, reason=reason)
    since, unknown = _since(config, facts, zone)
    if since is None:
        return PartitionVerdict(path=facts.path, expires=False, reason=unknown)
    if config.days <= 0 or not _is_over(since, config.days, now):
        reason = f"younger than {config.days} days" if config.days > 0 else "no partition expires"
        return PartitionVerdict(path=facts.path, expires=False, reason=reason, since=since)
    age = format_duration(timedelta(days=(now - since).days))
    expires = not facts.is_empty and facts.waits_for is None
    reason = f"{age} old, more than {config.days} days"
    if facts.is_empty:
        # Dropped again, it would make a commit without effect in each run.
        reason = "has no rows any more"
    elif facts.waits_for is not None:
        reason = f"{reason}, but one of its groups waits for {facts.waits_for}; run that or roll it back"
    return PartitionVerdict(path=facts.path, expires=expires, reason=reason, since=since)


def _is_over(since: datetime, days: int, now: datetime) -> bool:
    try:
        return since + timedelta(days=days) < now  # not at that very moment, as in Apache Hudi
    except OverflowError:  # beyond the calendar
        return False


def _since(config: ExpiryConfig, facts: PartitionFacts, zone: tzinfo) -> tuple[datetime | None, str]:
    if config.by is ExpiryBy.VALUE:
        end = end_of(facts.value or "", config.value_format, zone)
        return end, f"its value {facts.value!r} is not a time of the form {config.value_format}"
    if facts.since is None:
        return None, "has no rows any more" if facts.is_empty else "its age is unknown"
    try:
        return parse_instant_time(facts.since, zone), ""
    except ValueError:
        return None, f"{facts.since} is not a date"


def end_of(value: str, form: str, zone: tzinfo) -> datetime | None:
    """
    The end of the time that a value names: of the day, if the form has days; None if it names none.

    The end, because rows of the whole day are in a partition of that day.
    """
    try:
        begin = datetime.strptime(value, form).replace(tzinfo=zone)
        if "%M" in form:
            return begin + timedelta(minutes=1)
        if "%H" in form:
            return begin + timedelta(hours=1)
        if "%d" in form:
            return begin + timedelta(days=1)
        if "%m" in form and begin.month < 12:
            return begin.replace(month=begin.month + 1)
        return begin.replace(year=begin.year + 1, month=1)
    except (ValueError, OverflowError):
        return None
