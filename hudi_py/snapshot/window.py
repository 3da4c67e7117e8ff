"""
Which commits lie in a range of time, and what the table showed at its end. Pure.

Layout 2 orders commits by completion time, so no commit appears later within a range that was read already. Layout 1
orders them by requested time; there `refuse_pending_writes` ensures the same. Source: Hudi ``IncrementalRelationV1``,
``IncrementalRelationV2``; rules/timeline 9.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import attrs

from hudi_py.errors import ConfigError, RefusedError
from hudi_py.fsview.build import ViewContext
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action
from hudi_py.rows.committed import Commits
from hudi_py.storage.base import Entry
from hudi_py.timeline.order import order_times
from hudi_py.timeline.timeline import Timeline


@attrs.frozen
class Window:
    """
    A range of time.

    Args:
        after: Only commits later than this; ``""`` for a range that begins with the table.
        until: Only commits up to and including this time; None for all up to now.

    Raises:
        ConfigError: The range ends before it begins.
    """

    after: str = ""
    until: str | None = attrs.field(default=None)

    @until.validator
    def _is_after(self, _: object, until: str | None) -> None:
        if until is not None and until < self.after:
            raise ConfigError(
                f"the range ends at {until}, before it begins at {self.after}; give the earlier one first. If a reader "
                f"has read until {self.after}, the last commits of that were rolled back since: read the table as a "
                "whole, and go on from there"
            )

    def __contains__(self, time: str) -> bool:
        return self.after < time and (self.until is None or time <= self.until)

    @property
    def is_everything(self) -> bool:
        """Whether every commit lies in the range."""
        return not self.after and self.until is None

    def __str__(self) -> str:
        begin = f"after {self.after}" if self.after else "from the beginning"
        return begin if self.until is None else f"{begin} until {self.until}"


def last_end(timeline: Timeline, clusterings: frozenset[str], *, by_completion: bool) -> str:
    """
    The latest end of a range to which no more writes can be added; ``""`` if there is none.

    Args:
        clusterings: Requested times of pending clusterings, which change no rows.
    """
    ends = order_times(timeline, by_completion=by_completion).values()
    if by_completion:
        return max(ends, default="")
    # A write before which others completed may still complete (layout 1), and would then be in a range that was read.
    pending = (instant.requested_time for instant in timeline.commits.pending())
    first = min((time for time in pending if time not in clusterings), default=None)
    return max((time for time in ends if first is None or time < first), default="")


def unseen_writes(seen: Timeline, later: Timeline, window: Window, *, by_completion: bool) -> list[str]:
    """
    Times, as ranges compare them, of writes in a range that were there when a timeline was listed, and are not in it.

    A listing takes time, and in an object store several requests: it may show a write and lack one that completed
    before it, whose name comes earlier. A listing that begins after it has both.

    Args:
        seen: A timeline.
        later: The timeline as listed after that one.
        window: The range.
    """
    if by_completion:
        known = {instant.requested_time for instant in seen.writes.completed()}
        times = order_times(later, by_completion=True)
        return [time for requested, time in times.items() if time in window and requested not in known]
    # Whatever is on it, pending or not, has a say in where a range may end.
    return [
        each.requested_time
        for each in later.writes
        if each.requested_time in window and seen.find(each.requested_time, each.action) is None
    ]


def needs_archive(window: Window, timeline: Timeline, active: Mapping[str, str]) -> bool:
    """
    Whether a bound of the range lies among commits that may be archived.

    Args:
        timeline: The active timeline.
        active: What `order_times` returns for it.
    """
    bounds = [each for each in (window.after, window.until) if each]
    # Archival may skip a commit with a savepoint, so such a commit does not show where the timeline starts
    # (rules/timeline 7).
    savepointed = {instant.requested_time for instant in timeline.completed(Action.SAVEPOINT)}
    first = next((each for each in sorted(active) if each not in savepointed), None)
    return bool(bounds) and (first is None or min(bounds) < active[first])


def commits_of(window: Window, times: Mapping[str, str], *, by_completion: bool) -> Commits:
    """
    The commits of the range.

    Args:
        times: Requested time of each completed write to the time that is compared; archived writes may be left out if
            none of them can lie in the range.
    """
    # Completion times are not in the rows, so the commits of the range have to be listed; in layout 1 the range itself
    # is enough.
    if by_completion and not window.is_everything:
        if window.after:
            return Commits(times=frozenset(time for time, compared in times.items() if compared in window))
        return Commits()  # all rows that the files at the end of the range hold
    return Commits(after=window.after, until=window.until)


def context_at_end(
    context: ViewContext,
    window: Window,
    times: Mapping[str, str],
    *,
    knows_archive: bool,
    rewritings: Collection[str] = (),
) -> ViewContext:
    """
    View context of the end of a range in layout 2: whatever completed later is invisible.

    Groups that were replaced later are still live.

    Args:
        context: View context of the table as it is now.
        times: As for `commits_of`.
        knows_archive: Whether archived commits are among *times*; else all of them completed before the end.
        rewritings: Requested times of compactions and clusterings that were planned by the end and completed later.
    """
    until = window.until
    if until is None:
        return context

    def is_in(time: str) -> bool:
        # What it was planned from was completed then, and it changes no rows: its slices stand for the older ones from
        # its plan on. A clean deletes the older ones, and keeps what its window needs by requested times.
        if time in rewritings:
            return time <= until
        compared = times.get(time)
        return compared <= until if compared is not None else not knows_archive and context.is_committed(time)

    visible = frozenset(filter(is_in, context.visible_times.union(times)))
    return attrs.evolve(
        context,
        visible_times=visible,
        first_time=None if knows_archive else context.first_time,
        last_time=max(visible, default=context.first_time),
        completed_times=frozenset(filter(is_in, context.completed_times.union(times))),
        replaced={key: time for key, time in context.replaced.items() if is_in(time)},
        pending_compactions={},
        pending_clustering={},
    )


def visible_files(context: ViewContext, entries: Iterable[Entry]) -> Iterator[tuple[str, int | None]]:
    """Name and size of the files visible in *context*, so that log files find the slice that they had at that time."""
    for entry in entries:
        base = parse_base_file(entry.name)
        if base is not None:
            if context.is_committed(base.instant_time):
                yield entry.name, entry.size_bytes
            continue
        log = parse_log_file(entry.name)
        if log is not None and (context.log_naming.tells_slice or context.is_completed(log.instant_time)):
            yield entry.name, entry.size_bytes


def refuse_pending_writes(timeline: Timeline, window: Window, clusterings: frozenset[str]) -> None:
    """
    Refuse a range of layout 1 in which a write may still complete: a reader that continues from its end would miss it.

    Args:
        clusterings: Requested times of pending clusterings, which change no rows.

    Raises:
        RefusedError: A pending write lies in the range.
    """
    # A pending write behind the last completed one is harmless: a range with an open end reads only up to that one.
    last = max((instant.requested_time for instant in timeline.commits.completed()), default="")
    until = last if window.until is None else window.until
    for pending in timeline.commits.pending():
        time = pending.requested_time
        if time in window and time <= until and time not in clusterings:
            before = max(
                (t.requested_time for t in timeline.commits.completed() if t.requested_time < time), default=""
            )
            way_out = f"end the range at {before}, or " if before > window.after else ""
            raise RefusedError(
                f"the changes {window} cannot be read yet: {pending} lies in that range and may still complete; "
                f"{way_out}read again when it has completed or was rolled back"
            )
