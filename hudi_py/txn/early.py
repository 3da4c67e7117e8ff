"""
Looks before a file is written whether a running write, which began earlier, is at work on the same file group.

One of the two is going to lose when it completes, and without this look it has written all its files by then. Markers
tell what a running write is about to write; whoever began later gives way, so of two writes one always goes on. What
is not seen here, because a marker came a moment later, is found when the write completes (`hudi_py.txn.conflict`).

Source: rules/table-services F-12; Hudi ``SimpleDirectMarkerBasedDetectionStrategy``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import attrs

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.model.files import parse_base_file, parse_log_file
from hudi_py.model.instant import Action
from hudi_py.runtime.clock import SLEEP, Clock
from hudi_py.storage.base import Storage
from hudi_py.timeline.heartbeat import Rhythm, pulses
from hudi_py.timeline.markers import Marker, instants_with_markers, read_markers_of
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.conflict import Group, first_common

_OF_ROWS: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT})
"""Rewrites of rows are judged by their plans, and overwrites write new file groups only."""
_PAUSE_S: Final = 0.5


class EarlyConflict(ConflictError):
    """
    A running write is at work on the same file group.

    Args:
        message: What, where, why.
        instant: Requested time of that write.
    """

    def __init__(self, message: str, instant: str = "") -> None:
        # Both go to `Exception`, because pickling keeps only its arguments.
        super().__init__(message, instant)
        self.instant = instant

    def __str__(self) -> str:
        return str(self.args[0])


def groups_of(markers: Iterable[Marker]) -> frozenset[Group]:
    """Return the file groups whose files are marked. Pure."""
    found = ((each, parse_base_file(each.file_name) or parse_log_file(each.file_name)) for each in markers)
    return frozenset((each.partition_path, file.file_id) for each, file in found if file is not None)


@attrs.frozen(kw_only=True)
class EarlyLook:
    """
    Looks for running writes; pickled for executors.

    Args:
        store: The table's timeline.
        rhythm: When heartbeats of other writers count as expired.
        by_bucket: Whether file groups are the same if their bucket is.
    """

    store: TimelineStore
    rhythm: Rhythm
    by_bucket: bool = False

    def check(self, instant_time: str, group: Group) -> None:
        """
        Look for a running write that began before ours and marked a file of the same file group.

        Args:
            instant_time: Requested time of our write.
            group: Partition path and file id of what ours is about to write.

        Raises:
            EarlyConflict: There is one.
        """
        storage = self.store.storage
        earlier = [time for time in instants_with_markers(storage) if time < instant_time]
        # The usual case costs this one request.
        alive = pulses(storage, self.store.clock, self.rhythm) if earlier else {}
        for time in earlier:
            if time not in alive:
                continue
            theirs = groups_of(read_markers_of(storage, time, group[0]))
            if first_common({group}, theirs, by_bucket=self.by_bucket) is not None and self._writes_rows(time):
                raise EarlyConflict(
                    f"{storage.root}: the write {time} is running ({alive[time]}) and is at work on file group "
                    f"{group[1]} in partition {group[0]!r}; {instant_time} began later and gives way before it writes "
                    "the file; write again",
                    time,
                )

    def _writes_rows(self, time: str) -> bool:
        found = [each for each in self.store.load() if each.requested_time == time]
        return any(each.action in _OF_ROWS and not each.is_completed for each in found)


def wait_for(
    storage: Storage,
    clock: Clock,
    settings: Settings,
    instant_time: str,
    patience_s: float,
    sleep: Callable[[float], None] = SLEEP,
) -> None:
    """
    Wait until a write is over or its heartbeat has expired, at most for *patience_s* seconds.

    Begun again at once, a write would lose against the same running one.
    """
    rhythm = Rhythm.of(settings)
    # Counted, so that it ends where a test lets no time pass.
    for _ in range(int(patience_s / _PAUSE_S)):
        if instant_time not in pulses(storage, clock, rhythm):
            return
        sleep(_PAUSE_S)
