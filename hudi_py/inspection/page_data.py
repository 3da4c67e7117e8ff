"""Collects the document that the page of a table shows; the page loads nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final

from hudi_py.errors import HudiError
from hudi_py.inspection.check_command import finding_entry
from hudi_py.inspection.du_command import usage_entry
from hudi_py.inspection.life_commands import event_entry
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.usage.facts import FileUse, Usage
    from hudi_py.snapshot.history import Event
    from hudi_py.table import Table

EVENTS_MAX: Final = 20_000
PARTITIONS_MAX: Final = 1_000
FILES_MAX: Final = 5_000
COMMITS_MAX: Final = 3_000
"""Longer histories are not replayed under other settings: that takes a second for a thousand commits."""
_RETENTIONS: Final = (1, 2, 3, 5, 10, 20, 30)


def page_document(opened: Table, *, now: datetime | None = None, options: CleanOptions | None = None) -> dict[str, Any]:
    """
    Collect what the page shows of a table; lists its files once.

    A part that cannot be collected (an instant that it needs is damaged) is None, and ``problems`` says why.

    Args:
        opened: A read-only table.
        now: Replaces the clock.
        options: Settings of cleaning.
    """
    problems: list[str] = []
    config = opened.config
    moment = now or opened.contents.store.clock.now()
    chosen = options or {}
    # Once, as a list: sums and the list of files are made of the same listing.
    uses = _part(problems, lambda: list(opened.services.usage(now=now, **chosen).files())) or []
    usage = _part(problems, lambda: _summed(opened, uses)) if uses else None
    # Without the archive, if that is damaged: the page says so, and shows the rest.
    events = _part(problems, lambda: opened.history(archived=True)) or opened.history()
    findings = opened.doctor(now=now, **chosen)
    simulations, not_simulated = _simulations(opened, events, problems)
    return {
        "schema_version": 1,
        "generated_at": moment.isoformat(timespec="seconds"),
        "table": {
            "name": config.name,
            "location": opened.storage.root,
            "type": config.table_type.value,
            "version": config.version,
            "layout": config.layout_version,
            "record_key": list(config.record_key_fields),
            "partitioned_by": list(config.partition_fields),
            "ordered_by": list(config.ordering_fields),
            "zone": "UTC" if opened.zone is timezone.utc else "local time",
        },
        "version": version_of(opened),
        "findings": [finding_entry(finding, opened.storage.root) for finding in findings],
        "usage": None if usage is None else usage_entry(usage, by_reason=True, by_partition=False, by_commit=False),
        "meanings": _meanings(),
        "partitions": None if usage is None else _partitions(usage),
        "files": _files(uses),
        "files_left_out": max(0, sum(use.partition_path is not None for use in uses) - FILES_MAX),
        "events": [_event(opened, event) for event in events[-EVENTS_MAX:]],
        "events_left_out": max(0, len(events) - EVENTS_MAX),
        "simulations": simulations,
        "not_simulated": not_simulated,
        "problems": list(dict.fromkeys(problems)),
    }


def version_of(opened: Table) -> str:
    """Return a text that changes whenever the active timeline does."""
    import hashlib

    # States too: a commit that completes changes what there is to show, and adds no instant.
    names = "\n".join(f"{i.requested_time} {i.action.value} {i.state.name}" for i in opened.timeline)
    return hashlib.sha256(names.encode()).hexdigest()[:16]


def _part(problems: list[str], collect: Any) -> Any:
    try:
        return collect()
    except HudiError as error:
        problems.append(str(error))
        return None


def _summed(opened: Table, uses: Iterable[FileUse]) -> Usage:
    from hudi_py.config.keys import PARQUET_SMALL_FILE_LIMIT
    from hudi_py.services.usage.facts import sum_up

    return sum_up(uses, max(opened.settings[PARQUET_SMALL_FILE_LIMIT], 0))


def _meanings() -> dict[str, str]:
    from hudi_py.services.usage.facts import Holder

    return {holder.value: holder.meaning for holder in Holder}


def _partitions(usage: Usage) -> list[dict[str, Any]]:
    from hudi_py.services.usage.facts import total_of

    sums = [(total_of(held.values()), path, held) for path, held in usage.by_partition.items() if path is not None]
    sums.sort(key=lambda each: (-each[0].bytes, each[1]))
    return [
        {
            "partition": path,
            "files": total.files,
            "bytes": total.bytes,
            "reasons": {holder.value: [share.files, share.bytes] for holder, share in held.items()},
        }
        for total, path, held in sums[:PARTITIONS_MAX]
    ]


def _files(uses: Iterable[FileUse]) -> list[dict[str, Any]]:
    """Files in partitions, newest first within their partition: partition, name, size, what holds it and why."""
    inside = [use for use in uses if use.partition_path is not None]
    # Two stable sorts: by partition, and within one by commit, newest first.
    inside.sort(key=lambda each: each.commit or "", reverse=True)
    inside.sort(key=lambda each: each.partition_path or "")
    return [
        {
            "partition": each.partition_path,
            "name": each.path.rpartition("/")[2],
            "bytes": each.size_bytes,
            "reason": each.holder.value,
            "rule": each.rule,
            "commit": each.commit,
        }
        for each in inside[:FILES_MAX]
    ]


def _event(opened: Table, event: Event) -> dict[str, Any]:
    entry = event_entry(event)
    try:
        time = parse_instant_time(event.instant.requested_time, opened.zone)
        entry["at"] = time.timestamp()
        offset = time.utcoffset()
        # A chart shows the times that stand in the instants, not those of the zone that the browser is in.
        entry["utc_offset"] = 0 if offset is None else offset.total_seconds()
    except (ValueError, OverflowError):
        entry["at"], entry["utc_offset"] = None, 0
    partitions = entry["partitions"]
    return {**entry, "partitions": partitions[:20], "partition_count": len(partitions)}


def _simulations(
    opened: Table, events: Iterable[Event], problems: list[str]
) -> tuple[list[dict[str, Any]], str | None]:
    """The table's size over time under several retentions, each as points of time and bytes; or why there are none."""
    commits = sum(event.numbers.files_written > 0 for event in events)
    # A single commit has nothing to show; too many would keep the page waiting.
    if commits < 2:
        return [], f"it takes two commits, and this table has {commits or 'none'}"
    if commits > COMMITS_MAX:
        return [], f"{counted(commits, 'commit')} take long; hudi-py simulate replays them at a shell"
    found: list[dict[str, Any]] = []
    for retained in _RETENTIONS:
        # Retaining more than there are changes nothing any more.
        if retained > commits and found:
            break
        simulated = _part(problems, lambda count=retained: opened.simulate(commits_retained=count))
        if simulated is None:
            return found, "a part that it needs cannot be read; see the findings"
        found.append(
            {
                "commits_retained": retained,
                "bytes_end": simulated.steps[-1].bytes if simulated.steps else 0,
                "bytes_max": simulated.bytes_max,
                "files_deleted": len(simulated.deleted),
                "bytes_deleted": simulated.bytes_deleted,
                "points": [[_at(opened, step.time), step.bytes] for step in simulated.steps],
            }
        )
    return found, None


def _at(opened: Table, time: str) -> float | None:
    try:
        return parse_instant_time(time, opened.zone).timestamp()
    except (ValueError, OverflowError):
        return None
