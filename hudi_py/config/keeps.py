"""What callers may ask of a clean besides Hudi's policy, under the names of Python and the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any, Final, TypedDict

from hudi_py.config import keys
from hudi_py.config.clean import CleanPolicy
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import format_instant_time, resolve_time


class CleanKeeps(TypedDict, total=False):
    """
    Keeps besides the policy's, and limits of one run. A file slice stays if any keep, or the policy, keeps it.

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


_KEYS: dict[str, keys.Key[Any]] = {
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


def keep_settings(keeps: CleanKeeps) -> dict[str, Any]:
    """
    As settings, without what is None.

    Raises:
        TypeError: A keyword that nothing knows.
    """
    found = {}
    for name, value in keeps.items():
        if name not in _KEYS:
            raise TypeError(f"unknown keyword {name!r}; there are {', '.join(_KEYS)}, older_than, instants")
        if value is not None:
            found[_KEYS[name].name] = f"{value // _MS}ms" if isinstance(value, timedelta) else value
    return found


_KEYWORDS: Final[Mapping[CleanPolicy, str]] = {
    CleanPolicy.KEEP_LATEST_COMMITS: "commits_retained",
    CleanPolicy.KEEP_LATEST_FILE_VERSIONS: "file_versions_retained",
    CleanPolicy.KEEP_LATEST_BY_HOURS: "hours_retained",
}


def check_one_retention(policy: str | None, given: Sequence[CleanPolicy]) -> None:
    """
    Refuse retentions of which only one could count: which was meant, cannot be told.

    In settings they may stand side by side, as in Hudi (rule A-1); nobody asks one clean for two of them.

    Args:
        policy: Word of the policy that was asked for.
        given: Policies whose retentions were asked for.

    Raises:
        ConfigError: Two are given, or one that the policy does not look at.
    """
    names = [_KEYWORDS[each] for each in given]
    if len(names) > 1:
        raise ConfigError(
            f"{' and '.join(names)} exclude each other, and only one would count; give one, and min_commits, "
            "age_retained or min_file_versions for what is to be kept besides"
        )
    if names and policy in CleanPolicy.__members__ and policy != given[0].value:
        raise ConfigError(f"policy {policy} does not look at {names[0]}, which was given too; leave one of them out")


_MS = timedelta(milliseconds=1)


def cut_off_time(moment: str | datetime | timedelta, now: datetime, zone: tzinfo) -> str:
    """
    The instant time that ``older_than`` means.

    Raises:
        ConfigError: It is no time.
    """
    if isinstance(moment, timedelta):
        moment = f"{moment // _MS}ms"
    if isinstance(moment, datetime):
        aware = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return format_instant_time(aware.astimezone(zone))
    try:
        return resolve_time(moment, now=now, zone=zone)
    except ConfigError as error:
        raise ConfigError(f"older_than: {error}") from error
