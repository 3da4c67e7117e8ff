"""Collects the document that the page of a table shows; the page loads nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from hudi_py.errors import CorruptMetadata, HudiError
from hudi_py.inspection.check_command import finding_entry
from hudi_py.inspection.du_command import usage_entry
from hudi_py.inspection.json_stream import json_text
from hudi_py.inspection.life_commands import event_entry
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.words import counted

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.services.simulation.plan import Simulation
    from hudi_py.services.simulation.service import Recorded, Writes
    from hudi_py.services.usage.facts import FileUse, Usage
    from hudi_py.snapshot.bytes_over_time import Stored
    from hudi_py.snapshot.history import Event, InstantContent
    from hudi_py.table import Table
    from hudi_py.table_services import TableServices

EVENTS_MAX: Final = 20_000
PARTITIONS_MAX: Final = 1_000
FILES_MAX: Final = 5_000
COMMITS_MAX: Final = 3_000
"""Longer histories are not replayed under other settings: that takes a second for a thousand commits."""
CONTENTS_MAX: Final = 100
"""Decoded instants in a page that is one file: who gets it asks about the newest."""
CONTENT_BYTES_MAX: Final = 50_000
PARAMETERS_MAX: Final = 100
TEXT_LENGTH_MAX: Final = 2_000
"""Of what an action recorded; the decoded content has all."""
LOOKS_MAX: Final = 3_000_000
"""Looks at a file that all replays may take together, of some 4 µs each."""
_LOOKS_ONCE: Final = 6
"""What a replay does once for each file takes as long as so many looks."""
_RETENTIONS: Final = (3, 10, 1, 30, 5, 2, 20)
"""The first ones are replayed where all of them take too long."""


def page_document(
    opened: Table, *, now: datetime | None = None, options: CleanOptions | None = None, with_contents: bool = False
) -> dict[str, Any]:
    """
    Collect what the page shows of a table; lists its files once.

    A part that cannot be collected (an instant that it needs is damaged) is None, and ``problems`` says why.

    Args:
        opened: A read-only table.
        now: Replaces the clock.
        options: Settings of cleaning.
        with_contents: Include the decoded contents of the newest instants, for a page that can ask nobody for them.
    """
    problems: list[str] = []
    moment = now or opened.contents.store.clock.now()
    chosen = options or {}
    # Findings, sums and the list of files are made of one listing.
    examined = opened.services.doctor(now=now, keeps_files=True, **chosen).run()
    uses, usage = examined.uses, None if examined.health is None else examined.health.usage
    if uses is None:  # asked once more, for the reason
        uses = _part(problems, lambda: list(opened.services.usage(now=now, **chosen).files())) or []
    # Without the archive, and so without replays, if that is damaged: the page says so, and shows the rest.
    life = _part(problems, lambda: _life(opened, problems, archived=True, with_contents=with_contents)) or _life(
        opened, problems, archived=False, with_contents=with_contents
    )
    events = life.events
    inside, files = _files(uses)
    simulations, not_simulated = _simulations(opened, life, problems)
    return {
        "schema_version": 1,
        "generated_at": moment.isoformat(timespec="seconds"),
        "table": about_table(opened),
        "version": version_of(opened),
        "findings": [finding_entry(finding, opened.storage.root) for finding in examined.findings],
        "usage": None if usage is None else usage_entry(usage, by_reason=True, by_partition=False, by_commit=False),
        "meanings": _meanings(),
        "partitions": None if usage is None else _partitions(usage),
        "files": files,
        "files_left_out": inside - len(files),
        "events": [_event(opened, event) for event in events[-EVENTS_MAX:]],
        "events_left_out": max(0, len(events) - EVENTS_MAX),
        "stored": _stored(opened, life.stored),
        "contents": life.contents,
        "simulations": simulations,
        "not_simulated": not_simulated,
        "problems": list(dict.fromkeys(problems)),
    }


def about_table(opened: Table) -> dict[str, Any]:
    """What the properties say of a table."""
    config = opened.config
    return {
        "name": config.name,
        "location": opened.storage.root,
        "type": config.table_type.value,
        "version": config.version,
        "layout": config.layout_version,
        "record_key": list(config.record_key_fields),
        "partitioned_by": list(config.partition_fields),
        "ordered_by": list(config.ordering_fields),
        "zone": "UTC" if opened.zone is timezone.utc else "local time",
    }


@attrs.frozen
class _Life:
    """
    What the instants hold.

    Args:
        events: What happened.
        stored: The bytes after each action.
        contents: Decoded contents as JSON text by requested time and action.
        writes: For replays; None where some are missing or there are too many.
    """

    events: tuple[Event, ...]
    stored: tuple[Stored, ...]
    contents: dict[str, str]
    writes: Writes | None


def _life(opened: Table, problems: list[str], *, archived: bool, with_contents: bool) -> _Life:
    """Every instant is read and decoded once: there may be ten thousand."""
    from hudi_py.services.simulation.service import Writes
    from hudi_py.snapshot.bytes_over_time import BytesOverTime
    from hudi_py.snapshot.history import event_of

    events, stored = [], BytesOverTime()
    writes = Writes(opened.storage.root) if archived else None
    commits = 0
    wanted = frozenset(opened.timeline.instants[-CONTENTS_MAX:] if with_contents else ())
    texts: dict[str, str] = {}
    for found in opened.instant_contents(archived=archived):
        instant, content = found.instant, found.content
        events.append(event_of(found, opened.zone))
        stored.add(instant, content)
        commits += events[-1].numbers.files_written > 0
        if writes is not None and (commits > COMMITS_MAX or not _is_added(writes, found, problems)):
            writes = None
        # At once: a commit of many files takes megabytes, and there may be many of those. Text in lines is longer, and
        # takes twenty times as long.
        if content is not None and instant in wanted and len(json_text(content)) <= CONTENT_BYTES_MAX:
            text = json_text(content, indent=1)
            if len(text) <= CONTENT_BYTES_MAX:
                texts[f"{instant.requested_time} {instant.action.value}"] = text
    return _Life(tuple(events), stored.points(), texts, writes)


def _is_added(writes: Writes, found: InstantContent, problems: list[str]) -> bool:
    """Take an instant for the replays; False if it is a write that cannot be read: they would be wrong without it."""
    from hudi_py.timeline.timeline import WRITES

    problem = found.problem if found.instant.action in WRITES else None
    try:
        writes.add(found.instant, found.content)
    except CorruptMetadata as error:
        problem = str(error)
    problems += [] if problem is None else [problem]
    return problem is None


def _stored(opened: Table, points: Iterable[Stored]) -> list[tuple[float, int, int, int, int]]:
    """Time on the chart, and the bytes of each reason."""
    found = []
    for point in points:
        at, offset = place_of_time(opened, point.instant.completion_time or point.instant.requested_time)
        if at is not None:  # without a date there is no place for it
            found.append((at + offset, point.live, point.superseded, point.replaced, point.savepoint))
    return found


def version_of(opened: Table) -> str:
    """Return a text that changes whenever the active timeline or the properties of the table do."""
    import hashlib

    # States too: a commit that completes changes what there is to show, and adds no instant.
    names = "\n".join(f"{i.requested_time} {i.action.value} {i.state.name}" for i in opened.timeline)
    # An upgrade, or a setting that is mended, adds no instant either.
    names += "".join(f"\n{name}={value}" for name, value in sorted(opened.config.properties.items()))
    return hashlib.sha256(names.encode("utf-8", "backslashreplace")).hexdigest()[:16]


def _part(problems: list[str], collect: Any) -> Any:
    try:
        return collect()
    except HudiError as error:
        problems.append(str(error))
        return None


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


def _files(uses: Iterable[FileUse]) -> tuple[int, list[dict[str, Any]]]:
    """Number of files in partitions, and entries of the newest ones of each: all partitions get an equal share."""
    found = file_entries(uses)
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for each in found:
        by_partition.setdefault(each["partition"], []).append(each)
    share = max(1, FILES_MAX // max(1, len(by_partition)))
    shown = found if len(found) <= FILES_MAX else [each for files in by_partition.values() for each in files[:share]]
    return len(found), shown[:FILES_MAX]


def file_entries(uses: Iterable[FileUse]) -> list[dict[str, Any]]:
    """Files in partitions, newest first within their partition: name, size, file group, what holds it and why."""
    inside = [use for use in uses if use.partition_path is not None]
    # Two stable sorts: by partition, and within one by commit, newest first.
    inside.sort(key=lambda each: each.commit or "", reverse=True)
    inside.sort(key=lambda each: each.partition_path or "")
    return [_file(each) for each in inside]


def _file(use: FileUse) -> dict[str, Any]:
    from hudi_py.model.files import parse_data_file

    name = use.path.rpartition("/")[2]
    parsed = parse_data_file(name)
    return {
        "partition": use.partition_path,
        "name": name,
        "bytes": use.size_bytes,
        "reason": use.holder.value,
        "rule": use.rule,
        "commit": use.commit,
        "group": None if parsed is None else parsed.file_id,
        "is_base": use.is_base_file,
    }


def _event(opened: Table, event: Event) -> dict[str, Any]:
    entry = event_entry(event)
    entry["at"], entry["utc_offset"] = place_of_time(opened, event.instant.requested_time)
    partitions = entry["partitions"]
    return {
        **entry,
        "partitions": [_cut(each) for each in partitions[:20]],
        "partition_count": len(partitions),
        "operation": _cut(entry["operation"]),
        "parameters": {_cut(name): _cut(value) for name, value in list(entry["parameters"].items())[:PARAMETERS_MAX]},
    }


def _cut(value: Any) -> Any:
    """What writers record is theirs to choose, and a page with megabytes of it in each of its actions shows nothing."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) <= TEXT_LENGTH_MAX:
        return value
    return f"{text[:TEXT_LENGTH_MAX]} … {len(text) - TEXT_LENGTH_MAX:,} more characters"


def _simulations(opened: Table, life: _Life, problems: list[str]) -> tuple[list[dict[str, Any]], str | None]:
    """The table's size over time under several retentions, each as points of time and bytes; or why there are none."""
    commits = sum(event.numbers.files_written > 0 for event in life.events)
    # A single commit has nothing to show; too many would keep the page waiting.
    if commits < 2:
        return [], f"it takes two commits, and this table has {commits or 'none'}"
    if commits > COMMITS_MAX:
        return [], f"{counted(commits, 'commit')} take long; hudi-py simulate replays them at a shell"
    files = sum(event.numbers.files_written for event in life.events)
    chosen, problem = _affordable(commits, files)
    if not chosen:
        return [], problem
    found: list[dict[str, Any]] = []
    services = opened.services
    # Once for all retentions, of what was read for the events.
    service = services.simulation()
    recorded = (
        None if life.writes is None else _part(problems, partial(service.recorded_of, opened.timeline, life.writes))
    )
    for retained in chosen:
        simulated = None if recorded is None else _part(problems, partial(_replayed, services, recorded, retained))
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
    return found, problem


def _affordable(commits: int, files: int) -> tuple[list[int], str | None]:
    """The retentions to replay, fewest commits first, and why not all of them are, if that is so."""
    # Retaining more than there are changes nothing any more.
    wanted = [each for each in _RETENTIONS if each <= commits]
    chosen, looks = [], 0
    for retained in wanted:
        # Each clean looks at every file that is still there.
        needed = files * (_LOOKS_ONCE + retained)
        if looks + needed <= LOOKS_MAX:
            looks += needed
            chosen.append(retained)
    some = "" if chosen == wanted else f"{counted(files, 'file')} of {counted(commits, 'commit')} take long"
    return sorted(chosen), f"{some}; hudi-py simulate replays them at a shell" if some else None


def _replayed(services: TableServices, recorded: Recorded, retained: int) -> Simulation:
    return recorded.under(services.clean_config(commits_retained=retained))


def _at(opened: Table, time: str) -> float | None:
    return place_of_time(opened, time)[0]


def place_of_time(opened: Table, time: str) -> tuple[float | None, float]:
    """
    Seconds of a time that an instant names, None if it is no date, and what its zone is ahead of UTC.

    A chart shows the times that stand in the instants, not those of the zone that the browser is in.
    """
    try:
        moment = parse_instant_time(time, opened.zone)
        offset = moment.utcoffset()
        return moment.timestamp(), 0 if offset is None else offset.total_seconds()
    except (ValueError, OverflowError):
        return None, 0
