"""What happened to a table: one event for each instant, from what the instants hold. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import parse_instant_time

_REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})
"""Operations that write rows again without changing them."""
# Kilobytes of Avro, which do not say what the action did.
_HIDDEN: Final = frozenset({"schema"})


@attrs.frozen(kw_only=True)
class Numbers:
    """
    What an action wrote and deleted; zero where an instant does not record it.

    Args:
        files_written, bytes_written: Data files, log files among them, and their sizes.
        files_deleted: Files that a clean, rollback or restore deleted.
        rows_inserted, rows_updated, rows_deleted: Rows that a write changed.
        rows_rewritten: Rows that a compaction or clustering wrote again.
        groups_replaced: File groups that a replacecommit superseded.
    """

    files_written: int = 0
    bytes_written: int = 0
    files_deleted: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    rows_rewritten: int = 0
    groups_replaced: int = 0


@attrs.frozen(kw_only=True)
class Event:
    """
    One action of a table's life.

    Args:
        instant: In its highest state.
        is_archived: Whether it is on the archived timeline.
        operation: Operation of a write in Hudi's words (``UPSERT``), else the action in capitals.
        seconds: How long it took; None if the timeline does not show it.
        numbers: What it wrote and deleted.
        partitions: Paths of the partitions that it wrote to or deleted from.
        parameters: What else it recorded: entries of the writer, policy of a clean, creator of a savepoint.
        problem: Why its content cannot be read; None if it can.
    """

    instant: Instant
    is_archived: bool = False
    operation: str
    seconds: float | None = None
    numbers: Numbers = Numbers()
    partitions: tuple[str, ...] = ()
    parameters: Mapping[str, Any] = attrs.field(factory=dict)
    problem: str | None = None


class InstantContent(NamedTuple):
    """
    What the timeline holds of an instant.

    Args:
        instant: In its highest state.
        content: Its decoded content, plain data; anything but an object counts as empty.
        problem: Why the content could not be read.
        is_archived: Whether it is on the archived timeline.
        seconds: How long it took according to its files, for an instant that does not record it.
    """

    instant: Instant
    content: Any
    problem: str | None = None
    is_archived: bool = False
    seconds: float | None = None


def event_of(read: InstantContent, zone: tzinfo) -> Event:
    """Build the event of an instant; *zone* is the time zone of the table's instants."""
    instant, content = read.instant, read.content
    found: Mapping[str, Any] = content if isinstance(content, dict) and instant.is_completed else {}
    written = _stats(found)
    operation = found.get("operationType") if isinstance(found.get("operationType"), str) else None
    is_rewrite = operation in _REWRITES
    replaced = found.get("partitionToReplaceFileIds") or {}
    parts = found.get("partitionMetadata") or {}
    return Event(
        instant=instant,
        is_archived=read.is_archived,
        operation=instant.action.value.upper() if operation is None else operation,
        seconds=_seconds(read, found, zone),
        numbers=Numbers(
            files_written=len(written),
            bytes_written=sum(_number(stat, "fileSizeInBytes") for stat in written),
            files_deleted=_number(found, "totalFilesDeleted"),
            # Rows that a compaction or clustering moves were counted in the writes before.
            rows_inserted=0 if is_rewrite else sum(_number(stat, "numInserts") for stat in written),
            rows_updated=0 if is_rewrite else sum(_number(stat, "numUpdateWrites") for stat in written),
            rows_deleted=0 if is_rewrite else sum(_number(stat, "numDeletes") for stat in written),
            rows_rewritten=sum(_number(stat, "numWrites") for stat in written) if is_rewrite else 0,
            groups_replaced=sum(len(_items(ids)) for ids in replaced.values()) if isinstance(replaced, dict) else 0,
        ),
        partitions=tuple(sorted({*_keys(found.get("partitionToWriteStats")), *_keys(replaced), *_keys(parts)})),
        parameters=dict(_parameters(instant, found)),
        problem=read.problem,
    )


def _keys(value: Any) -> Iterable[str]:
    return value if isinstance(value, dict) else ()


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _stats(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    by_partition = content.get("partitionToWriteStats")
    if not isinstance(by_partition, dict):
        return []
    return [
        stat for stats in by_partition.values() for stat in _items(stats) if isinstance(stat, dict) and stat.get("path")
    ]


def _number(content: Mapping[str, Any], name: str) -> int:
    value = content.get(name)
    # A counter below 0, or of another type, says nothing.
    return value if isinstance(value, int) and value > 0 else 0


def seconds_by_name(instant: Instant, zone: tzinfo) -> float | None:
    """How long an action took according to its two times; None if it has not both, or they are not its own."""
    if instant.action is Action.SAVEPOINT or instant.completion_time is None:  # the first has the time of its commit
        return None
    try:
        begun, ended = (parse_instant_time(t, zone) for t in (instant.requested_time, instant.completion_time))
        # Two machines may have given the times, and their clocks differ.
        return max((ended - begun).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def _seconds(read: InstantContent, content: Mapping[str, Any], zone: tzinfo) -> float | None:
    if read.instant.action is Action.SAVEPOINT or read.instant.completion_time is not None:
        return seconds_by_name(read.instant, zone)
    taken = content.get("timeTakenInMillis")
    return taken / 1000 if isinstance(taken, int) and taken >= 0 else read.seconds


def _parameters(instant: Instant, content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    extra = content.get("extraMetadata")
    if isinstance(extra, dict):
        yield from ((name, value) for name, value in sorted(extra.items()) if name not in _HIDDEN and value is not None)
    names: tuple[str, ...] = ()
    if instant.action is Action.CLEAN:
        names = ("earliestCommitToRetain", "lastCompletedCommitTimestamp")
        parts = content.get("partitionMetadata")
        # All partitions of a clean have the same policy.
        found = parts.values() if isinstance(parts, dict) else ()
        policies = {str(part["policy"]) for part in found if isinstance(part, dict) and part.get("policy")}
        yield from (("policy", policy) for policy in sorted(policies)[:1])
    elif instant.action is Action.SAVEPOINT:
        names = ("savepointedBy", "comments")
    elif instant.action is Action.ROLLBACK:
        names = ("commitsRollback",)
    elif instant.action is Action.RESTORE:
        names = ("instantsToRollback",)
    yield from ((name, content[name]) for name in names if content.get(name))


def sum_of(events: Iterable[Event]) -> Numbers:
    """The sum of what actions wrote and deleted."""
    sums = dict.fromkeys(attrs.fields_dict(Numbers), 0)
    for event in events:
        for name in sums:
            sums[name] += getattr(event.numbers, name)
    return Numbers(**sums)
