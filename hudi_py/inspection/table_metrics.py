"""What metrics say of a table: its timeline, which costs one listing; its files and findings once it was examined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Final

from hudi_py.errors import CorruptMetadata, NotFound
from hudi_py.inspection.open_metrics import Sample
from hudi_py.model.instant_time import parse_instant_time

if TYPE_CHECKING:
    from hudi_py.model.instant import Action, Instant
    from hudi_py.services.doctor.service import Examined
    from hudi_py.services.usage.facts import Usage
    from hudi_py.table import Table

_WASTED: Final = "hudi_py_wasted_bytes"


def timeline_samples(opened: Table, location: str, now: datetime) -> Iterator[Sample]:
    """
    Yield what the active timeline shows; reads the content of one instant for each action.

    Args:
        opened: The table.
        location: The label ``table``.
        now: For ages.
    """
    config, table = opened.config, {"table": location}
    yield Sample("hudi_py_table_up", table, 1)
    info = {"name": config.name, "type": config.table_type.value, "version": str(config.version)}
    yield Sample("hudi_py_table_info", {**table, **info}, 1)
    instants = opened.timeline.instants
    for (action, state), count in sorted(Counter((i.action.value, i.state.name.lower()) for i in instants).items()):
        yield Sample("hudi_py_instants", {**table, "action": action, "state": state}, count)
    pending: dict[Action, Instant] = {}
    done: dict[Action, Instant] = {}
    # Oldest first: the first pending one of an action is the oldest, the last completed one the newest.
    for instant in instants:
        if instant.is_completed:
            done[instant.action] = instant
        else:
            pending.setdefault(instant.action, instant)
    for instant in pending.values():
        begun = _seconds(opened, instant)
        if begun is not None:
            labels = {**table, "action": instant.action.value}
            yield Sample("hudi_py_pending_age_seconds", labels, max(now.timestamp() - begun, 0))
    for instant in done.values():
        yield from _last(opened, instant, {**table, "action": instant.action.value}, now)


def _last(opened: Table, instant: Instant, labels: dict[str, str], now: datetime) -> Iterator[Sample]:
    from hudi_py.snapshot.history import InstantContent, event_of

    begun = _seconds(opened, instant)
    if begun is not None:
        yield Sample("hudi_py_last_completed_timestamp_seconds", labels, begun)
        yield Sample("hudi_py_last_completed_age_seconds", labels, max(now.timestamp() - begun, 0))
    try:
        event = event_of(InstantContent(instant, opened.contents.plain(instant)), opened.zone)
    except (CorruptMetadata, NotFound):  # a finding of hudi-py check, and no reason to say nothing of the others
        return
    if event.seconds is not None:
        yield Sample("hudi_py_last_duration_seconds", labels, event.seconds)
    yield Sample("hudi_py_last_written_bytes", labels, event.numbers.bytes_written)
    yield Sample("hudi_py_last_deleted_files", labels, event.numbers.files_deleted)


def _seconds(opened: Table, instant: Instant) -> float | None:
    try:
        return parse_instant_time(instant.requested_time, opened.zone).timestamp()
    except (ValueError, OverflowError):
        return None


def examined_samples(examined: Examined, location: str, at: datetime) -> Iterator[Sample]:
    """
    Yield what an examination found: files and bytes by what keeps them, findings.

    Args:
        examined: Result of ``hudi-py doctor``.
        location: The label ``table``.
        at: When the table was examined.
    """
    table = {"table": location}
    yield Sample("hudi_py_examined_timestamp_seconds", table, at.timestamp())
    for (severity, code), count in Counter((f.severity.value, f.code) for f in examined.findings).items():
        yield Sample("hudi_py_findings", {**table, "severity": severity, "code": code}, count)
    health = examined.health
    if health is not None and health.trigger is not None:
        yield Sample("hudi_py_commits_since_clean", table, health.trigger.commits)
    if health is not None and health.usage is not None:
        yield from usage_samples(health.usage, location)


def usage_samples(usage: Usage, location: str) -> Iterator[Sample]:
    """Yield files and bytes by what keeps them; zero for a holder that keeps nothing, so that no line ends."""
    from hudi_py.services.usage.facts import WASTED, Holder

    table = {"table": location}
    for holder in Holder:
        share = usage.of(holder)
        yield Sample("hudi_py_held_files", {**table, "held_by": holder.value}, share.files)
        yield Sample("hudi_py_held_bytes", {**table, "held_by": holder.value}, share.bytes)
    yield Sample(_WASTED, table, usage.of(*WASTED).bytes)
