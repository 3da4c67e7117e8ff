"""What callers may ask of one clean on top of the table's settings, under the names of Python and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final, TypedDict

import attrs

from hudi_py.config import keys
from hudi_py.config.clean import CleanConfig, CleanPolicy, clean_config
from hudi_py.config.keys import Key, Settings
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import format_instant_time, resolve_time


class CleanOptions(TypedDict, total=False):
    """
    Retention and limits of one clean. A file slice stays if the policy or any keep besides it keeps it.

    - ``policy``: ``KEEP_LATEST_COMMITS``, ``KEEP_LATEST_FILE_VERSIONS``, ``KEEP_LATEST_BY_HOURS``; default: that of the
      one retention given, else of the settings.
    - ``commits_retained``, ``file_versions_retained``, ``hours_retained``: retention of the policy of that name.
    - ``age_retained``: a span (``timedelta``, or text as ``"90m"``, ``"36h"``, ``"7d"``): what readers inside it need.
      Given alone it takes the policy's place; with ``commits_retained`` or ``file_versions_retained`` both keep.
      It waits for pending writes, which ``hours_retained`` does not, as in Hudi.
    - ``min_commits``: a floor in commits; ``max_commits``: a ceiling in commits for windows by time.
    - ``min_file_versions``: a floor in file slices per file group.
    - ``keep_daily``, ``keep_weekly``, ``keep_monthly``: the newest snapshot of each of the last so many days, weeks
      (from Monday) or months that have one, by the table's time zone; 0 for none.
    - ``older_than``: for one run, a cut-off in the place of the policy's retention: an instant, a date or a span back
      from now. What was superseded before it goes.
    - ``instants``: for one run, requested times of snapshots that the ladder lets go of. One inside a window, or held
      by a savepoint, is refused.
    - ``max_files``, ``max_partitions``, ``max_bytes``: what one plan deletes at most; the next clean goes on.
    - ``max_duration``: a span; when it is over, nothing more is taken on, and the next clean goes on.
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
    The table's cleaning settings with *options* on top; a single retention without a policy implies its policy.

    Args:
        settings: Of the table.
        options: Of one clean; None stands for what is not given.
        now: Aware; what a span back from now starts at.
        zone: Of the table's instants.

    Raises:
        ConfigError: A value is wrong, or two contradict each other.
        TypeError: An option that nothing knows.
    """
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    unknown = sorted(given.keys() - _KEYS.keys() - set(_FOR_ONE_RUN))
    if unknown:
        raise TypeError(f"unknown keyword {unknown[0]!r}; there are {', '.join((*_KEYS, *_FOR_ONE_RUN))}")
    policy = _policy(given)
    values = {_KEYS[name].name: _text(value) for name, value in given.items() if name in _KEYS}
    values[keys.CLEAN_POLICY.name] = policy
    by_age, by_hours = "age_retained" in given, "hours_retained" in given
    if by_age != by_hours:  # what is given for this run outdoes the other spelling of an age
        settings = settings.without(keys.CLEAN_HOURS_RETAINED if by_age else keys.CLEAN_AGE_RETAINED)
    config = attrs.evolve(clean_config(settings.merged(values)), forget=tuple(given.get("instants", ())))
    if "older_than" not in given:
        return config
    return attrs.evolve(config, older_than=_cut_off_time(given["older_than"], now, zone))


def _policy(given: Mapping[str, Any]) -> str | None:
    """
    The policy that is asked for, or that follows from the one retention given; None for that of the settings.

    Retentions of which only one could count are refused: which was meant, cannot be told. In settings they may stand
    side by side, as in Hudi (rule A-1); nobody asks one clean for two of them.
    """
    policy: str | None = given.get("policy")
    retentions = [name for name in _RETENTIONS if name in given]
    if len(retentions) > 1:
        raise ConfigError(
            f"{' and '.join(retentions)} exclude each other, and only one would count; give one, and min_commits, "
            "age_retained or min_file_versions for what is to be kept besides"
        )
    implied = _RETENTIONS[retentions[0]].value if retentions else None
    if implied is not None and policy in CleanPolicy.__members__ and policy != implied:
        raise ConfigError(
            f"policy {policy} does not look at {retentions[0]}, which was given too; leave one of them out"
        )
    if "older_than" in given:
        if policy is not None or retentions:
            raise ConfigError(
                "older_than takes the place of the policy's retention for one run, so it cannot be given together "
                "with one; min_commits, min_file_versions and the ladder keep more"
            )
        return CleanPolicy.KEEP_LATEST_BY_HOURS.value
    if policy is not None:
        return policy
    if implied is None and "age_retained" in given:
        return CleanPolicy.KEEP_LATEST_BY_HOURS.value
    return implied


def _text(value: Any) -> Any:
    return f"{value // _MS}ms" if isinstance(value, timedelta) else value


def _cut_off_time(moment: str | datetime | timedelta, now: datetime, zone: tzinfo) -> str:
    """The instant time that ``older_than`` means."""
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return format_instant_time(aware.astimezone(zone))
    try:
        return resolve_time(_text(moment), now=now, zone=zone)
    except ConfigError as error:
        raise ConfigError(f"older_than: {error}") from error
