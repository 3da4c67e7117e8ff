"""Judges the settings and the health of a table by facts. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise
from typing import Final

import attrs

from hudi_py.config.archive import ArchiveConfig
from hudi_py.config.clean import CleanConfig, CleanPolicy
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import format_instant_time, parse_instant_time, time_before
from hudi_py.model.words import counted, human_bytes, human_span
from hudi_py.services.archive.plan import ArchivePlan, Bound
from hudi_py.services.check.findings import Finding
from hudi_py.services.clean.planning.scope import Scope, Trigger
from hudi_py.services.doctor.findings import finding
from hudi_py.services.explain.explain import window_blocker
from hudi_py.services.usage.facts import Holder, Usage
from hudi_py.timeline.timeline import Timeline

STUCK_AFTER: Final = timedelta(hours=1)
"""Age at which a pending action counts as stuck."""
WAITING_AFTER: Final = timedelta(days=7)
"""Age at which a plan that nobody has carried out is told."""
AHEAD_MAX: Final = timedelta(minutes=5)
"""Clocks of machines may differ by this much."""
INSTANT_FILES_MAX: Final = 3000
"""Files of the active timeline: one page of an object store's listing has 1000."""
SMALL_FILES_MIN: Final = 10
"""Fewer small files in a partition are not worth a finding."""
OUTDATED_TIMES: Final = 5
OUTDATED_BYTES_MIN: Final = 1 << 30
_OVERDUE_COMMITS: Final = 20
_REWRITING: Final = frozenset({Action.COMPACTION, Action.LOG_COMPACTION, Action.CLUSTERING})
_PATIENT: Final = _REWRITING | {Action.INDEXING}
_UNBOUND: Final = frozenset({Bound.COUNT, Bound.COMPACTION, Bound.DATA_TIMELINE, Bound.LOCK})
_SHOWN_MAX: Final = 5


@attrs.frozen(kw_only=True)
class Health:
    """
    Facts for the judgement.

    Args:
        timeline: The active timeline.
        timeline_folder: Its folder, relative to the table.
        instant_files: Number of files in that folder.
        now: Timezone-aware.
        zone: Time zone of the table's instants.
        clusterings: Requested times of pending clusterings; in layout 1 their action does not tell.
        clean: Settings of cleaning; None if they contradict each other.
        archive: Settings of archival; None if they contradict each other.
        is_clean_automatic: Whether commits clean.
        has_lock: Whether the settings name a lock.
        no_deletion: Why no data may be deleted; None if it may.
        trigger, scope, earliest, warnings: Of the next clean; None and empty if it cannot be planned.
        is_overtaken: Whether the commit where the last clean stopped is archived.
        archival: Plan of the next archival; None if it cannot be planned.
        usage: What keeps the files; None if that is unknown.
        small_bytes: Size below which a base file counts as small.
        target_bytes: Size that base files should have.
    """

    timeline: Timeline
    timeline_folder: str
    instant_files: int
    now: datetime
    zone: tzinfo
    clusterings: frozenset[str] = frozenset()
    clean: CleanConfig | None
    archive: ArchiveConfig | None
    is_clean_automatic: bool
    has_lock: bool
    no_deletion: str | None = None
    trigger: Trigger | None = None
    scope: Scope | None = None
    earliest: Instant | None = None
    warnings: tuple[str, ...] = ()
    is_overtaken: bool = False
    archival: ArchivePlan | None = None
    usage: Usage | None = None
    small_bytes: int = 0
    target_bytes: int = 1


def judge(health: Health) -> Iterator[Finding]:
    """Every finding, in no order."""
    yield from _settings(health)
    yield from _instants(health)
    yield from _cleaning(health)
    yield from _archival(health)
    yield from _clocks(health)
    yield from _writers(health)
    yield from _readers(health)
    if health.usage is not None:
        yield from _storage(health, health.usage)


def _settings(health: Health) -> Iterator[Finding]:
    clean, archive = health.clean, health.archive
    if health.no_deletion is not None:
        yield finding("deletion-off", "settings", health.no_deletion)
    if clean is not None and not clean.services_enabled:
        yield finding("services-off", "settings")
    elif not health.is_clean_automatic:
        yield finding("clean-automatic-off", "settings")
    if clean is None or archive is None or clean.archive_max_commits is None:
        return
    kept = clean.commits_required
    # Hudi adapts its minimum to the cleaner, but not to a maximum below it: then no clean ever finds anything (D-3,
    # K-17).
    if clean.archive_max_commits < kept:
        yield finding(
            "settings-never-clean",
            "settings",
            f"hoodie.keep.max.commits={clean.archive_max_commits}, and cleans retain {counted(kept, 'commit')}",
        )
    elif archive.keep_min <= kept:
        yield finding(
            "settings-archive-before-clean",
            "settings",
            f"hoodie.keep.min.commits={archive.keep_min}, and cleans retain {counted(kept, 'commit')}",
        )


def _instants(health: Health) -> Iterator[Finding]:
    stuck, waiting = (time_before(health.now, age, health.zone) for age in (STUCK_AFTER, WAITING_AFTER))
    for instant in health.timeline.pending():
        if instant.action is Action.CLEAN:
            if instant.requested_time < stuck:
                yield finding("clean-unfinished", _where(health, instant), f"{instant}{_age(health, instant)}")
        # Plans of compactions, clusterings and indexes may wait for days until their service runs.
        elif instant.requested_time < stuck and not _is_of(health, instant, _PATIENT):
            yield finding("instant-stuck", _where(health, instant), f"{instant}{_age(health, instant)}")
        elif instant.requested_time < waiting and _is_of(health, instant, _REWRITING):
            yield finding("plan-waiting", _where(health, instant), f"{instant}{_age(health, instant)}")
    if health.instant_files > INSTANT_FILES_MAX:
        yield finding("timeline-long", health.timeline_folder, f"{counted(health.instant_files, 'file')}")


def _is_of(health: Health, instant: Instant, services: Collection[Action]) -> bool:
    """Whether an instant is of one of these services, which have clustering among them."""
    is_clustering = instant.action is Action.REPLACE_COMMIT and instant.requested_time in health.clusterings
    return is_clustering or instant.action in services


def _cleaning(health: Health) -> Iterator[Finding]:
    clean, trigger = health.clean, health.trigger
    for warning in health.warnings:
        yield finding("settings-questionable", "settings", warning)
    if clean is None:
        return
    blocker = window_blocker(health.timeline, clean)
    if blocker is not None:
        yield finding("clean-blocked", _where(health, blocker), f"{blocker}{_age(health, blocker)}")
    if trigger is not None:
        # Well above the settings: a clean may be due and simply not have run yet.
        limit = max(_OVERDUE_COMMITS, 2 * clean.commits_required, 2 * trigger.required)
        if trigger.commits >= limit:
            yield finding("clean-overdue", health.timeline_folder, f"{counted(trigger.commits, 'commit')}")
    if health.is_overtaken and health.scope is not None:
        yield finding("clean-overtaken", health.timeline_folder, health.scope.reason)


def _archival(health: Health) -> Iterator[Finding]:
    plan, archive = health.archival, health.archive
    if plan is None or archive is None or not archive.services_enabled:
        return
    # The others do not stand in the way: they are settings, or go away by themselves.
    if plan.bound is not None and plan.bound not in _UNBOUND:
        yield finding("archival-blocked", health.timeline_folder, plan.bound.value)
    # Within the limits only because the clean raised them (rule D-3).
    elif plan.bound is Bound.COUNT and len(health.timeline.commits.completed()) > archive.keep_max:
        kept = "keeps what commits from the start of the retention window on need"
        yield finding("archival-blocked", health.timeline_folder, f"it waits for the clean, which still {kept}")
    elif len(plan.instants) > 2 * plan.keep_max:
        yield finding("archival-overdue", health.timeline_folder, f"{counted(len(plan.instants), 'instant')}")


def _clocks(health: Health) -> Iterator[Finding]:
    try:
        limit = format_instant_time((health.now + AHEAD_MAX).astimezone(health.zone))
    # The limit lies beyond the calendar, so no time is ahead of it.
    except OverflowError:
        return
    # Either time: the completion time comes from a clock, too.
    ahead = [
        instant for instant in health.timeline if max(instant.requested_time, instant.completion_time or "") > limit
    ]
    if ahead:
        yield finding("clock-ahead", _where(health, ahead[-1]), _named(ahead))
    backwards = [i for i in health.timeline if i.completion_time is not None and i.completion_time < i.requested_time]
    if backwards:
        yield finding("clock-backwards", _where(health, backwards[-1]), _named(backwards))


def _writers(health: Health) -> Iterator[Finding]:
    writes = [each for each in health.timeline.writes if not _is_of(health, each, _PATIENT)]
    # With a lock, writes may well overlap: it guards their commit points.
    if not health.has_lock:
        both = next(_overlapping(writes, health.now, health.zone), None)
        if both is not None:
            yield finding("writers-overlap", _where(health, both[1]), f"{both[0]} and {both[1]}")
    # 14 digits before Hudi 0.10, 17 since (rules/timeline 2.2).
    lengths = sorted({len(write.requested_time) for write in writes})
    if len(lengths) > 1:
        yield finding("writers-mixed", health.timeline_folder, f"{' and '.join(map(str, lengths))} digits")


def _overlapping(writes: list[Instant], now: datetime, zone: tzinfo) -> Iterator[tuple[Instant, Instant]]:
    """
    Neighbours of which the second was requested before the first had ended.

    A write that is pending has not ended, unless it is old: then it failed, and what came later did not run beside it.
    """
    stuck = time_before(now, STUCK_AFTER, zone)
    for first, second in pairwise(writes):
        if first.is_pending:
            if first.requested_time >= stuck:
                yield first, second
        elif first.completion_time is not None and second.requested_time < first.completion_time:
            yield first, second


def _readers(health: Health) -> Iterator[Finding]:
    clean = health.clean
    if clean is None:
        return
    if clean.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS and clean.versions == 1 and not clean.has_window:
        yield finding("reader-risk", "settings", clean.retention)
    if health.earliest is not None:
        try:
            span = health.now - parse_instant_time(health.earliest.requested_time, health.zone)
        except (ValueError, OverflowError):
            return
        yield finding(
            "reader-window",
            health.timeline_folder,
            f"it begins with {health.earliest.requested_time}, {human_span(span)} ago ({clean.retention})",
        )


def _storage(health: Health, usage: Usage) -> Iterator[Finding]:
    for path, share in usage.small.items():
        # Files of the same rows in target size: a small partition cannot have fewer than one.
        needed = max(1, -(-share.bytes // health.target_bytes))
        # A few small files are normal: the next inserts go into them.
        if share.files >= SMALL_FILES_MIN and share.files >= 2 * needed:
            yield finding(
                "files-small",
                path or ".",
                f"{counted(share.files, 'file')} below {human_bytes(health.small_bytes)}, "
                f"{human_bytes(share.bytes)} together",
            )
    for code, holder in (
        ("storage-unexamined", Holder.UNEXAMINED),
        ("storage-orphaned", Holder.ORPHAN),
        ("storage-savepoint", Holder.SAVEPOINT),
        ("storage-removable", Holder.REMOVABLE),
    ):
        share = usage.of(holder)
        if share.files:
            yield finding(code, ".", f"{counted(share.files, 'file')}, {human_bytes(share.bytes)}")
    live = usage.of(Holder.LIVE).bytes
    old = usage.of(Holder.RETAINED, Holder.SAVEPOINT, Holder.PENDING, Holder.REMOVABLE, Holder.UNEXAMINED).bytes
    if old >= OUTDATED_BYTES_MIN and old > OUTDATED_TIMES * live:
        yield finding(
            "storage-outdated", ".", f"{human_bytes(old)} of old versions, {human_bytes(live)} of newest rows"
        )


def _where(health: Health, instant: Instant) -> str:
    return f"{health.timeline_folder}/{instant.file_name}" if instant.file_name else str(instant)


def _age(health: Health, instant: Instant) -> str:
    try:
        return f", {human_span(health.now - parse_instant_time(instant.requested_time, health.zone))} old"
    except (ValueError, OverflowError):
        return ""


def _named(instants: list[Instant]) -> str:
    shown = ", ".join(map(str, instants[:_SHOWN_MAX]))
    return shown if len(instants) <= _SHOWN_MAX else f"{shown} and {len(instants) - _SHOWN_MAX} more"
