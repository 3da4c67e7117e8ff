"""
What a planned rewrite is expected to write, and how long it takes: as earlier ones of its kind did, by the timeline.

Nothing is assumed: bytes are those of plans and commits, time is that between the inflight and the completed file.
Where the timeline does not tell it, the answer is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.model.files import parse_base_file
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.records import LOG_BYTES
from hudi_py.storage.base import Entry
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_NEWEST: Final = 5  # how many are asked: older ones tell of other data and other machines
_TOLERANCE_SECONDS: Final = 60


@attrs.frozen(kw_only=True)
class Measured:
    """
    A completed rewrite.

    Args:
        instant: Its requested time.
        bytes_read: Bytes of the files that its plan names.
        bytes_written: Bytes of its files.
        seconds: From the moment it was begun to its completion; None if the files of the timeline do not tell it.
    """

    instant: str
    bytes_read: int
    bytes_written: int
    seconds: float | None


@attrs.frozen(kw_only=True)
class Expected:
    """
    What a planned rewrite is expected to do.

    Args:
        files: Number of files that it writes.
        bytes_read: Bytes that it reads.
        bytes_written: Bytes that it writes; None if no earlier one tells it.
        seconds: How long it takes; None if no earlier one tells it.
        measured: Requested times of the earlier ones, newest first.
    """

    files: int
    bytes_read: int
    bytes_written: int | None
    seconds: float | None
    measured: tuple[str, ...]


def expected(earlier: Sequence[Measured], *, files: int, bytes_read: int) -> Expected:
    """
    Return what is expected of a plan.

    Args:
        earlier: Completed rewrites of its kind, newest first.
        files: Number of files that it writes.
        bytes_read: Bytes that it reads.
    """
    read = sum(each.bytes_read for each in earlier)
    written = sum(each.bytes_written for each in earlier)
    timed = [(each.bytes_read, each.seconds) for each in earlier if each.seconds is not None]
    seconds, in_time = sum(each for _, each in timed), sum(each for each, _ in timed)
    return Expected(
        files=files,
        bytes_read=bytes_read,
        bytes_written=round(bytes_read * written / read) if read else None,
        # Without a measurable time nothing can be said about a longer one.
        seconds=bytes_read * seconds / in_time if in_time and seconds else None,
        measured=tuple(each.instant for each in earlier),
    )


def measured(contents: Contents, timeline: Timeline, kind: Action) -> list[Measured]:
    """
    Return the newest completed rewrites of a kind that the timeline tells enough of, newest first.

    Args:
        contents: Contents of the timeline.
        timeline: The timeline.
        kind: The action while it is pending: a compaction, log compaction, or clustering in the layout's way.
    """
    store = contents.store
    files = {entry.name: entry for entry in store.storage.list(store.folder, details=True)}
    found: list[Measured] = []
    for instant in reversed(timeline.completed(COMPARABLE_ACTION[kind])):
        if len(found) == _NEWEST:
            break
        requested = Instant(instant.requested_time, kind, State.REQUESTED)
        # Only its plan tells what kind of commit it was.
        if store.layout.file_name(requested) not in files:
            continue
        try:
            read = _bytes_read(contents, timeline, requested)
            stats = contents.commit(instant).partition_to_write_stats.values() if read else ()
        except (CorruptMetadata, NotFound):  # check tells of it; here it only tells nothing
            continue
        if read:
            written = sum(stat.file_size_in_bytes for of_partition in stats for stat in of_partition)
            found.append(
                Measured(
                    instant=instant.requested_time,
                    bytes_read=read,
                    bytes_written=written,
                    seconds=_seconds(contents, instant, kind, files),
                )
            )
    return found


def _bytes_read(contents: Contents, timeline: Timeline, requested: Instant) -> int | None:
    """Bytes of the files in a plan; None if it is of another kind, or does not tell the size of each file."""
    metrics: Iterable[Mapping[str, float] | None]
    bases: Iterable[str | None]
    if requested.action in (Action.COMPACTION, Action.LOG_COMPACTION):
        operations = contents.compaction_plan(requested).operations
        metrics = [each.metrics for each in operations]
        # A log compaction leaves base files alone.
        bases = [each.data_file_path for each in operations if requested.action is Action.COMPACTION]
    else:
        plan = None if contents.is_request_empty(requested) else contents.requested_replace(requested).clustering_plan
        if plan is None:
            return None
        metrics = [group.metrics for group in plan.input_groups]
        bases = [each.data_file_path for group in plan.input_groups for each in group.slices]
    logs = [None if each is None else each.get(LOG_BYTES) for each in metrics]
    sizes = [_size_of(contents, timeline, path) for path in bases if path]
    if None in logs or None in sizes:
        return None
    return sum(int(each or 0) for each in logs) + sum(each or 0 for each in sizes)


def _size_of(contents: Contents, timeline: Timeline, path: str) -> int | None:
    """Size of a base file by the commit that wrote it: the file itself may be gone by now."""
    name = path.rpartition("/")[2]
    parsed = parse_base_file(name)
    writer = None if parsed is None else timeline.find(parsed.instant_time)
    if writer is None or not writer.is_completed:
        return None
    for of_partition in contents.commit(writer).partition_to_write_stats.values():
        for stat in of_partition:
            if (stat.path or "").rpartition("/")[2] == name:
                return stat.file_size_in_bytes
    return None


def _seconds(contents: Contents, instant: Instant, kind: Action, files: Mapping[str, Entry]) -> float | None:
    """From its inflight to its completed file; None if these files were copied, which gives them new times."""
    layout, zone = contents.store.layout, contents.store.zone
    time = instant.requested_time
    requested, inflight = (
        _modified(files, layout.file_name(Instant(time, kind, state))) for state in (State.REQUESTED, State.INFLIGHT)
    )
    completed = _modified(files, instant.file_name or layout.file_name(instant))
    # A file whose name has the moment at which it was written shows whether times of files are to be relied on.
    witness, moment = (completed, instant.completion_time) if instant.completion_time else (requested, time)
    if witness is None or inflight is None or completed is None or moment is None:
        return None
    try:
        told = parse_instant_time(moment, zone).timestamp()
    except ValueError:  # digits, but no date
        return None
    return completed - inflight if abs(witness - told) <= _TOLERANCE_SECONDS and completed >= inflight else None


def _modified(files: Mapping[str, Entry], name: str) -> float | None:
    entry = files.get(name)
    return None if entry is None or entry.modified_ms is None else entry.modified_ms / 1000
