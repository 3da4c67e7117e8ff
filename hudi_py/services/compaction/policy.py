"""
Decides when a compaction is due, and which file slices it takes. Pure.

Source: rules/table-services E-1 to E-9; Hudi ``ScheduleCompactionActionExecutor.needCompact``, ``CompactionStrategy``
and its subclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Final

import attrs

from hudi_py.config.compaction import CompactionConfig
from hudi_py.config.parse import java_pattern
from hudi_py.errors import ConfigError
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.records import LOG_BYTES, CompactionOperation
from hudi_py.model.words import counted
from hudi_py.timeline.timeline import Timeline

LOG_FILES: Final = "TOTAL_LOG_FILES"
IO_MB: Final = "TOTAL_IO_MB"
IO_READ_MB: Final = "TOTAL_IO_READ_MB"
IO_WRITE_MB: Final = "TOTAL_IO_WRITE_MB"


@attrs.frozen(kw_only=True)
class Due:
    """
    Whether a compaction is due.

    Args:
        is_due: Whether it is.
        reason: Why, in words.
    """

    is_due: bool
    reason: str


def judge_due(timeline: Timeline, config: CompactionConfig, now: str, *, by_completion: bool) -> Due:
    """
    Decide whether a compaction is due (E-1, E-2).

    Args:
        timeline: The active timeline.
        config: Settings of compaction.
        now: Instant time of the compaction that would be scheduled.
        by_completion: Whether delta commits are counted by completion time (layout 2).
    """
    last = max((each.requested_time for each in timeline.completed(Action.COMMIT)), default=None)
    deltas = timeline.completed(Action.DELTA_COMMIT)
    if last is None and not deltas:
        return Due(is_due=False, reason="there is no delta commit")
    count = len(delta_commits_since(deltas, last, by_completion=by_completion))
    since = "the first delta commit" if last is None else f"compaction {last}"
    reference = deltas[0].requested_time if last is None else last
    # By requested time in both layouts: a plan that is pending has no completion time (rule E-2).
    if config.trigger == "NUM_COMMITS_AFTER_LAST_REQUEST":
        requested = max((instant.requested_time for instant in timeline.pending(Action.COMPACTION)), default=None)
        if requested is not None and (last is None or requested > last):
            count = len(delta_commits_since(deltas, requested, by_completion=False))
            since = f"compaction {requested}"
    seconds = _seconds(reference, now)
    is_many = count >= config.delta_commits_max
    is_long = seconds >= config.delta_seconds_max
    number = f"{counted(count, 'delta commit')} since {since}, {config.delta_commits_max} are needed"
    time = f"{seconds} s since {since}, {config.delta_seconds_max} are needed"
    if config.trigger == "TIME_ELAPSED":
        return Due(is_due=is_long, reason=time)
    if config.trigger == "NUM_AND_TIME":
        return Due(is_due=is_many and is_long, reason=f"{number}, and {time}")
    if config.trigger == "NUM_OR_TIME":
        return Due(is_due=is_many or is_long, reason=f"{number}, or {time}")
    return Due(is_due=is_many, reason=number)


def delta_commits_since(deltas: Iterable[Instant], last: str | None, *, by_completion: bool) -> list[Instant]:
    """Return the delta commits that came after a time, all of them for None; *by_completion* as for `judge_due`."""
    if last is None:
        return list(deltas)
    return [i for i in deltas if ((i.completion_time if by_completion else None) or i.requested_time) > last]


def _seconds(since: str, now: str) -> int:
    """Seconds between two instant times; times of the metadata table's first commits are not dates."""
    try:
        begin, end = (parse_instant_time(time, timezone.utc) for time in (since, now))
    except ValueError:
        return 0
    return int((end - begin).total_seconds())


@attrs.frozen(kw_only=True)
class Chosen:
    """
    What strategies chose.

    Args:
        operations: In the order in which they are carried out.
        left: Each operation that was left out, with the reason.
        beyond: Those of them that only the limit of the plan leaves for the next one.
    """

    operations: tuple[CompactionOperation, ...]
    left: tuple[tuple[CompactionOperation, str], ...]
    beyond: tuple[CompactionOperation, ...]


def choose(
    operations: Sequence[CompactionOperation], config: CompactionConfig, today: date, *, takes_first: bool
) -> Chosen:
    """
    Choose among all slices that could be compacted, as the strategies say (E-9).

    Args:
        operations: With metrics.
        config: Settings of compaction.
        today: For strategies that choose by date.
        takes_first: Whether the first operation is taken even if the limit is 0, as Hudi 0.15 does.

    Raises:
        ConfigError: A strategy chooses by date, and the path of a partition is none.
    """
    chosen = list(operations)
    left: list[tuple[CompactionOperation, str]] = []
    beyond: list[CompactionOperation] = []
    for name in config.strategies:
        # Strategies first choose among all partitions, then among the operations of those that are left.
        here = _PARTITIONS.get(name, _all_partitions)(sorted({_path(each) for each in chosen}), config, today)
        left += [(each, f"{name}: not in the partitions that it chooses") for each in chosen if _path(each) not in here]
        chosen = [each for each in chosen if _path(each) in here]
    for name in config.strategies:
        enough, few = _large_enough(name, chosen, config)
        chosen, more = _within_limit(name, enough, config, takes_first=takes_first)
        left += [*few, *((each, f"{name}: the limit of {config.target_io_mb} MB is reached") for each in more)]
        beyond += more
    return Chosen(operations=tuple(chosen), left=tuple(left), beyond=tuple(beyond))


def _path(operation: CompactionOperation) -> str:
    return operation.partition_path or ""


def _metric(operation: CompactionOperation, name: str) -> float:
    return (operation.metrics or {}).get(name, 0.0)


def _large_enough(
    name: str, operations: list[CompactionOperation], config: CompactionConfig
) -> tuple[list[CompactionOperation], list[tuple[CompactionOperation, str]]]:
    """Those that reach the strategy's threshold, in its order; and the others, with the reason."""
    threshold = {"LogFileSizeBased": (LOG_BYTES, config.log_bytes_min, "bytes of log files"),
                 "LogFileNumBased": (LOG_FILES, config.log_files_min, "log files")}.get(name)  # fmt: skip
    left: list[tuple[CompactionOperation, str]] = []
    if threshold is not None:
        metric, minimum, what = threshold
        left = [
            (operation, f"{name}: {int(_metric(operation, metric))} {what}, {minimum} are needed")
            for operation in operations
            if _metric(operation, metric) < minimum
        ]
        operations = [each for each in operations if _metric(each, metric) >= minimum]
        # Stable: operations of the same size stay in the order of the listing (rule E-9).
        operations = sorted(operations, key=lambda each: -_metric(each, metric))
    if name == "DayBased":
        operations = sorted(operations, key=lambda each: _day(_path(each)), reverse=True)
    return operations, left


def _within_limit(
    name: str, operations: list[CompactionOperation], config: CompactionConfig, *, takes_first: bool
) -> tuple[list[CompactionOperation], list[CompactionOperation]]:
    """Those that the strategy's limit has room for, and the others."""
    if name not in _LIMITED:
        return operations, []
    beyond: list[CompactionOperation] = []
    taken: list[CompactionOperation] = []
    remaining = float(config.target_io_mb)
    for each in operations:
        # Asked before the operation is counted, so that the last one may exceed the limit (rule E-9).
        if remaining > 0 or (takes_first and not taken):
            taken.append(each)
            remaining -= _metric(each, IO_MB)
        else:
            beyond.append(each)
    return taken, beyond


_LIMITED: Final = frozenset({"LogFileSizeBased", "LogFileNumBased", "BoundedIO", "DayBased"})


# --- strategies that choose partitions --------------------------------------------------------------------------------
def _all_partitions(partitions: Sequence[str], _config: CompactionConfig, _today: date) -> frozenset[str]:
    return frozenset(partitions)


def _newest_days(partitions: Sequence[str], config: CompactionConfig, _today: date) -> frozenset[str]:
    return frozenset(sorted(partitions, key=_day, reverse=True)[: config.days])


def _recent_days(partitions: Sequence[str], config: CompactionConfig, today: date) -> frozenset[str]:
    earliest = today - timedelta(days=config.days)
    return frozenset(path for path in partitions if _day(path) >= earliest)


def _earlier_days(partitions: Sequence[str], config: CompactionConfig, today: date) -> frozenset[str]:
    return frozenset(partitions) - _recent_days(partitions, config, today)


def _matching(partitions: Sequence[str], config: CompactionConfig, _today: date) -> frozenset[str]:
    pattern = java_pattern(config.partition_regex or ".*")
    # Apache Hudi looks for the pattern anywhere in the path here, and compares whole paths in clusterings.
    return frozenset(path for path in partitions if pattern.search(path))


_PARTITIONS: Final[Mapping[str, Callable[[Sequence[str], CompactionConfig, date], frozenset[str]]]] = {
    "DayBased": _newest_days,
    "BoundedPartitionAware": _recent_days,
    "UnBoundedPartitionAware": _earlier_days,
    "PartitionRegexBased": _matching,
}


def _day(path: str) -> date:
    """The date of a partition ``yyyy/MM/dd``, with names of columns or without."""
    text = "/".join(folder.rpartition("=")[2] for folder in path.split("/"))
    try:
        return datetime.strptime(text, "%Y/%m/%d").date()  # noqa: DTZ007 - a date alone
    except ValueError:
        raise ConfigError(
            f"partition {path!r} is not a date yyyy/MM/dd, which the strategy of hoodie.compaction.strategy compares; "
            "use another strategy, such as LogFileSizeBasedCompactionStrategy"
        ) from None
