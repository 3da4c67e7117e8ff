"""
An ordered set of instants, and the views of it that Hudi's rules are based on. Pure.

Source: rules/timeline 2.5 and 7, rules/table-services 0; Hudi ``BaseHoodieTimeline``, ``TimelineLayout``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Final, TypeAlias

from hudi_py.config.table import TableType
from hudi_py.model.instant import COMPARABLE_ACTION, Action, Instant, State
from hudi_py.model.shown import Shown
from hudi_py.versions.layout import Layout

COMMITS: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING})
COMMITS_AND_COMPACTION: Final = COMMITS | {Action.COMPACTION}
WRITES: Final = COMMITS_AND_COMPACTION | {Action.LOG_COMPACTION}
_KEPT: Final = 8
"""Timelines that are kept: those of a table and of its metadata table, before and after a step."""
_NAMES_KEPT: Final = 1024
_Rank: TypeAlias = tuple[State, str, str]
"""State, completion time or an empty text, and name of an instant's file; the highest one says what the instant is."""
_COW_TABLE: Final = frozenset({Action.COMMIT, Action.REPLACE_COMMIT, Action.CLUSTERING})


class Timeline(Shown):
    """
    Instants in order of requested time, each in its highest state.

    Args:
        instants: Sorted by (requested time, comparable action).
        file_names: Names in the timeline folder, if the instants were read from there.
        layout: Layout of these names.
    """

    def __init__(
        self, instants: tuple[Instant, ...], file_names: tuple[str, ...] = (), layout: Layout | None = None
    ) -> None:
        self.instants = instants
        self._file_names = file_names
        self._layout = layout

    @cached_property
    def all_states(self) -> tuple[Instant, ...]:
        """One instant per file, in order."""
        if self._layout is None:
            return self.instants
        files = (self._layout.parse(name) for name in self._file_names)
        return tuple(sorted((i for i in files if i is not None), key=_order))

    def __len__(self) -> int:
        return len(self.instants)

    def __iter__(self) -> Iterator[Instant]:
        return iter(self.instants)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Timeline) and self.instants == other.instants

    def __hash__(self) -> int:
        return hash(self.instants)

    def _facts(self) -> Mapping[str, object]:
        instants = self.instants
        found: dict[str, object] = {"instants": len(instants), "pending": len(self.pending())}
        return {**found, "first": str(instants[0]), "last": str(instants[-1])} if instants else found

    def _listed(self) -> Iterable[tuple[str, str, str]]:
        return ((i.requested_time, i.action.value, i.state.name.lower()) for i in reversed(self.instants))

    def of(self, actions: Iterable[Action]) -> Timeline:
        """Only these actions, all states."""
        wanted = frozenset(actions)
        return Timeline(tuple(i for i in self.instants if i.action in wanted))

    def without(self, instant: Instant) -> Timeline:
        """As if there were no such instant, in any state."""
        key = _key(instant)
        return Timeline(tuple(i for i in self.instants if _key(i) != key))

    def without_savepoints(self, requested_times: Collection[str]) -> Timeline:
        """As if the savepoints of these times had been deleted."""

        def stays(instant: Instant) -> bool:
            return instant.action is not Action.SAVEPOINT or instant.requested_time not in requested_times

        parse = None if self._layout is None else self._layout.parse
        names = tuple(n for n in self._file_names if parse is None or (i := parse(n)) is None or stays(i))
        return Timeline(tuple(filter(stays, self.instants)), names, self._layout)

    def completed(self, *actions: Action | str) -> tuple[Instant, ...]:
        """Completed instants, of *actions* (enum or the word on disk) or of all."""
        return _of(self._completed, actions)

    def pending(self, *actions: Action | str) -> tuple[Instant, ...]:
        """Requested and inflight instants, of *actions* or of all."""
        return _of(self._pending, actions)

    def find(self, requested_time: str, action: Action | None = None) -> Instant | None:
        """The instant of that time (and comparable action, if given), in its highest state."""
        # Planners ask for thousands of times, so this must not go through all instants.
        low = bisect_left(self._times, requested_time)
        for instant in self.instants[low:]:
            if instant.requested_time != requested_time:
                return None
            if action is None or instant.comparable_action is COMPARABLE_ACTION[action]:
                return instant
        return None

    @cached_property
    def _times(self) -> list[str]:
        return [i.requested_time for i in self.instants]

    @cached_property
    def _completed(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.state is State.COMPLETED)

    @cached_property
    def _pending(self) -> tuple[Instant, ...]:
        return tuple(i for i in self.instants if i.state is not State.COMPLETED)

    @cached_property
    def last_time(self) -> str | None:
        """The largest requested or completion time on the timeline: a new time has to be larger."""
        # Completion times are not sorted here: an action that began early may have ended last.
        times = [i.requested_time for i in self.instants[-1:]]
        times += [i.completion_time for i in self.instants if i.completion_time is not None]
        return max(times, default=None)

    # --- the views that the rules name ---------------------------------------------------------------------------
    @cached_property
    def commits(self) -> Timeline:
        """``TL.commits``: commit, deltacommit, replacecommit, clustering."""
        return self.of(COMMITS)

    @cached_property
    def committed(self) -> Timeline:
        """Completed `commits`; to readers, files from before its start belong to archived commits."""
        return Timeline(self.commits.completed())

    @cached_property
    def commits_and_compaction(self) -> Timeline:
        """``TL.commits+compaction``, which bounds the earliest instant to retain."""
        return self.of(COMMITS_AND_COMPACTION)

    @cached_property
    def writes(self) -> Timeline:
        """``TL.write``: everything that writes data files."""
        return self.of(WRITES)

    @cached_property
    def view(self) -> Timeline:
        """``TL.view``, which decides about file slices: completed writes and pending (log) compactions."""
        pending = (Action.COMPACTION, Action.LOG_COMPACTION)
        return Timeline(tuple(i for i in self.writes if i.state is State.COMPLETED or i.action in pending))

    def table_commits(self, table_type: TableType) -> Timeline:
        """``TL.table``: the commits timeline of the table's type."""
        return self.of(_COW_TABLE) if table_type is TableType.COPY_ON_WRITE else self.commits

    @cached_property
    def compacting(self) -> frozenset[str]:
        """Requested times of pending compactions: a reader takes what was logged behind one with the slice below."""
        return frozenset(instant.requested_time for instant in self.pending(Action.COMPACTION))

    @cached_property
    def start(self) -> str | None:
        """Time of the first instant that is not the time of a savepoint in this timeline."""
        # As Hudi does (rules/table-services 0): an old savepoint must not make everything behind it look active.
        savepointed = {i.requested_time for i in self.instants if i.action is Action.SAVEPOINT}
        return next((t for t in self._times if t not in savepointed), None)

    @cached_property
    def first_not_savepointed(self) -> str | None:
        """
        Time of the first completed commit without a savepoint; if all have savepoints, of the last one.

        Archived commits are older than this, even if older commits with savepoints are still active (rule D-7).
        """
        savepointed = {i.requested_time for i in self.instants if i.action is Action.SAVEPOINT}
        times = [i.requested_time for i in self.committed]
        return next((time for time in times if time not in savepointed), times[-1] if times else None)

    def is_before_start(self, requested_time: str) -> bool:
        """Whether the time is older than this timeline, so that its instant is archived (or never existed)."""
        return self.start is not None and requested_time < self.start

    def is_before_commits(self, requested_time: str) -> bool:
        """
        Whether a write of that time is archived (or never existed), however old the other instants are.

        An old rollback or clean may be active for long: in layout 1 each of these actions is archived by its own number
        (rule D-12).
        """
        first = self.first_not_savepointed
        return first is not None and requested_time < first


def _of(instants: tuple[Instant, ...], actions: tuple[Action | str, ...]) -> tuple[Instant, ...]:
    if not actions:
        return instants
    wanted = {action if isinstance(action, Action) else Action(action) for action in actions}
    return tuple(i for i in instants if i.action in wanted)


def build_timeline(names: Iterable[str], layout: Layout) -> Timeline:
    """
    Build a timeline from the names in a timeline folder; names that are not instants are ignored.

    Several completed files of one layout-2 instant (two executors of one clean, rule A-75) count as one, the newest.
    Only the highest state of each instant becomes a value: this runs at every load, over every file. The same names
    give the same value again: a small write lists the folders of a table and of its metadata table thirty times, mostly
    with nothing new in them, and a timeline knows what it was asked before.
    """
    return _built(tuple(names), layout)


@lru_cache(maxsize=_KEPT)
def _built(names: tuple[str, ...], layout: Layout) -> Timeline:
    highest: dict[str, _Rank] = {}
    # A longer timeline would push out its own names, and keeping them would only cost time.
    ranked = _kept_rank if len(names) <= _NAMES_KEPT else _rank
    for name in names:
        found = ranked(name, layout)
        if found is None:
            continue
        key, rank = found
        best = highest.get(key)
        if best is None or best < rank:
            highest[key] = rank
    instants = []
    for key in sorted(highest):
        state, completion, name = highest[key]
        action = layout.extensions[name.partition(".")[2]][0]
        instants.append(Instant(key.partition(".")[0], action, state, completion or None, name))
    return Timeline(tuple(instants), names, layout)


def _rank(name: str, layout: Layout) -> tuple[str, _Rank] | None:
    """Which instant a file is of, as a text that sorts like (requested time, comparable action), and its rank there."""
    head, _, extension = name.partition(".")
    kind = layout.sort_kinds.get(extension)
    # The cheap test first: the layout parses a name only if its digits are not plain.
    if kind is None or not ((head.isdecimal() and head.isascii()) or layout.parse(name) is not None):
        return None
    time, _, completion = head.partition("_")
    return time + kind[1], (kind[0], completion, name)  # the word starts with a dot, which sorts before all digits


_kept_rank = lru_cache(maxsize=_NAMES_KEPT)(_rank)


def _key(instant: Instant) -> tuple[str, Action]:
    return (instant.requested_time, instant.comparable_action)


def _order(instant: Instant) -> tuple[str, str, int, str]:
    action = COMPARABLE_ACTION[instant.action]
    return (instant.requested_time, action.value, instant.state, instant.completion_time or "")
