"""Options of one clean that override the table's settings, as in the Python API and on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final, TypedDict

import attrs

from hudi_py.config import keys
from hudi_py.config.arguments import check_kinds, check_known, texts_of
from hudi_py.config.clean import CleanConfig, CleanPolicy, clean_config, with_floor
from hudi_py.config.keys import Key
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import format_instant_time, resolve_time


class CleanOptions(TypedDict, total=False):
    """
    Retention and limits of one clean. A file slice is kept if the policy or any other keep asks for it.

    - ``policy``: ``KEEP_LATEST_COMMITS``, ``KEEP_LATEST_FILE_VERSIONS``, ``KEEP_LATEST_BY_HOURS``; default: the policy
      of the retention that is given, else that of the settings.
    - ``commits_retained``, ``file_versions_retained``, ``hours_retained``: retention of the policy of that name.
    - ``age_retained``: keep what readers within this span need (``timedelta``, or text: ``"90m"``, ``"36h"``,
      ``"7d"``). Given alone it replaces the policy; together with ``commits_retained`` or ``file_versions_retained``
      both apply. It also keeps what pending writes need; ``hours_retained`` does not, as in Hudi.
    - ``min_commits``: keep at least what this number of commits needs.
    - ``max_commits``: a window by time covers at most this number of commits.
    - ``min_file_versions``: keep at least this number of file slices per file group.
    - ``keep_daily``, ``keep_weekly``, ``keep_monthly``: keep the newest snapshot of each of the last N days, weeks
      (from Monday) or months that have one, in the table's time zone; 0 for none.
    - ``older_than``: in this run, replaces the policy's retention: what was superseded before this moment is deleted.
      An instant, a date or a span before now.
    - ``instants``: in this run, requested times of snapshots that the ladder does not keep. A snapshot that is inside
      a window, or has a savepoint, is refused.
    - ``max_files``, ``max_partitions``, ``max_bytes``: limits of what one plan deletes; the next clean continues. One
      file slice is deleted even if it is over them, and by file versions all replaced file groups are.
    - ``max_duration``: a span after which no further deletions are started; the next clean continues.
    """

    policy: str | None
    commits_retained: int | None
    file_versions_retained: int | None
    hours_retained: int | None
    age_retained: str | timedelta | None
    min_commits: int | None
    max_commits: int | None
    min_file_versions: int | None
    keep_daily: int | None
    keep_weekly: int | None
    keep_monthly: int | None
    older_than: str | datetime | timedelta | None
    instants: Sequence[str] | None
    max_files: int | None
    max_partitions: int | None
    max_bytes: int | None
    max_duration: str | timedelta | None


_RETENTIONS: Final[Mapping[str, CleanPolicy]] = {
    "commits_retained": CleanPolicy.KEEP_LATEST_COMMITS,
    "file_versions_retained": CleanPolicy.KEEP_LATEST_FILE_VERSIONS,
    "hours_retained": CleanPolicy.KEEP_LATEST_BY_HOURS,
}
_KEYS: Final[Mapping[str, Key[Any]]] = {
    "policy": keys.CLEAN_POLICY,
    "commits_retained": keys.CLEAN_COMMITS_RETAINED,
    "file_versions_retained": keys.CLEAN_FILE_VERSIONS_RETAINED,
    "hours_retained": keys.CLEAN_HOURS_RETAINED,
    "age_retained": keys.CLEAN_AGE_RETAINED,
    "min_commits": keys.CLEAN_MIN_COMMITS,
    "max_commits": keys.CLEAN_MAX_COMMITS,
    "min_file_versions": keys.CLEAN_MIN_FILE_VERSIONS,
    "keep_daily": keys.CLEAN_KEEP_DAILY,
    "keep_weekly": keys.CLEAN_KEEP_WEEKLY,
    "keep_monthly": keys.CLEAN_KEEP_MONTHLY,
    "max_files": keys.CLEAN_MAX_FILES,
    "max_partitions": keys.CLEAN_MAX_PARTITIONS,
    "max_bytes": keys.CLEAN_MAX_BYTES,
    "max_duration": keys.CLEAN_MAX_DURATION,
}
_FOR_ONE_RUN: Final = ("older_than", "instants")
_MS: Final = timedelta(milliseconds=1)


def clean_config_with(settings: Settings, options: CleanOptions, *, now: datetime, zone: tzinfo) -> CleanConfig:
    """
    Return the cleaning configuration of *settings*, overridden by *options*.

    Args:
        settings: Settings of the table.
        options: Options of one clean; None means that an option is not given. A retention without a policy implies the
            policy of that retention.
        now: Current time, timezone-aware; spans count back from it.
        zone: Time zone of the table's instants.

    Raises:
        ConfigError: A value is invalid, or two values contradict each other.
        TypeError: An option is unknown.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    check_known(options, (*_KEYS, *_FOR_ONE_RUN))
    check_kinds(str, "the name of a policy", policy=given.get("policy"))
    policy = _policy(given)
    values = {_KEYS[name].name: _text(value) for name, value in given.items() if name in _KEYS}
    # None leaves the policy of the settings in place.
    values[keys.CLEAN_POLICY.name] = policy
    by_age, by_hours = "age_retained" in given, "hours_retained" in given
    if by_age != by_hours:  # hours and age set the same thing: the option of this run wins over the other's setting
        settings = settings.without(keys.CLEAN_HOURS_RETAINED if by_age else keys.CLEAN_AGE_RETAINED)
    floor = settings[keys.CLEAN_FLOOR]
    if "older_than" in given or policy not in (None, CleanPolicy.KEEP_LATEST_BY_HOURS.value):
        settings = settings.without(keys.CLEAN_MAX_OLD_BYTES)  # of a window by time, which this run does not have
    merged = settings.without(keys.CLEAN_FLOOR).merged(values)
    config = attrs.evolve(clean_config(merged), forget=texts_of("instants", given.get("instants", ())))
    if "older_than" in given:
        config = attrs.evolve(config, older_than=_cut_off_time(given["older_than"], now, zone))
    return with_floor(config, floor)  # last: what is given for one run does not go below it, either


def _policy(given: Mapping[str, Any]) -> str | None:
    """
    Return the policy that is given, or that follows from the retention given; None to use that of the settings.

    Two retentions for one clean are refused, because only one could apply and which was meant is unknown. In settings
    several retentions are allowed, as in Hudi (A-1): there they may be defaults that were never looked at.
    """
    policy: str | None = given.get("policy")
    if policy is not None:
        policy = policy.strip().upper()  # in any case, as in settings
    retentions = [name for name in _RETENTIONS if name in given]
    if len(retentions) > 1:
        raise ConfigError(
            f"{' and '.join(retentions)} exclude each other, because only one would apply; give one, and min_commits, "
            "age_retained or min_file_versions for what else is to be kept"
        )
    implied = _RETENTIONS[retentions[0]].value if retentions else None
    if implied is not None and policy in CleanPolicy.__members__ and policy != implied:
        raise ConfigError(f"policy {policy} ignores {retentions[0]}, which was given too; leave one of them out")
    if "older_than" in given:
        if policy is not None or retentions:
            raise ConfigError(
                "older_than replaces the policy's retention for this run, so it cannot be given together with a policy "
                "or retention; min_commits, min_file_versions and the ladder can be added"
            )
        if "max_commits" in given:
            raise ConfigError("max_commits limits a window by time, which older_than replaces; leave one of them out")
        return CleanPolicy.KEEP_LATEST_BY_HOURS.value
    if policy is not None:
        return policy
    if implied is None and "age_retained" in given:
        return CleanPolicy.KEEP_LATEST_BY_HOURS.value
    return implied


def _text(value: Any) -> Any:
    return f"{value // _MS}ms" if isinstance(value, timedelta) else value


def _cut_off_time(moment: str | datetime | timedelta, now: datetime, zone: tzinfo) -> str:
    """Return the instant time for a value of ``older_than``."""
    if isinstance(moment, datetime):
        # A datetime without a zone means the table's own time, as instants do.
        aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return format_instant_time(aware.astimezone(zone))
    try:
        return resolve_time(_text(moment), now=now, zone=zone)
    except ConfigError as error:
        raise ConfigError(f"older_than: {error}") from error
