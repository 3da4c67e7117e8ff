"""Which files of older commits are still needed, as commits are read from the newest on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import compress
from operator import not_

from hudi_py.fsview.named import group_of
from hudi_py.fsview.named_logs import log_group
from hudi_py.model.instant import Action, Instant


class CoveredGroups:
    """
    The groups of which newer commits wrote a base file, or that were replaced; as `group_of` returns them.

    Args:
        replaced: Replaced groups.
        tells_slice: Whether the time in the name of a log file is that of its slice.
    """

    def __init__(self, replaced: Iterable[bytes], *, tells_slice: bool) -> None:
        self._replaced = frozenset(replaced)
        self._covered = set(self._replaced)
        self._tells_slice = tells_slice
        self._newest: list[tuple[str, list[bytes]]] = []  # of each commit its time and its base files that count
        self._waiting: list[bytes] = []  # base files whose groups are computed only if another commit is searched

    def newest_bases(self, time: str, paths: list[bytes]) -> list[bytes]:
        """The base files of a commit, given by its time, that are the newest of their groups; they cover these."""
        if not paths:
            return paths
        needed = paths
        if self._is_empty:
            self._waiting = paths
        else:
            self._settle()
            groups = list(map(group_of, paths))
            needed = list(compress(paths, map(not_, map(self._covered.__contains__, groups))))
            self._covered.update(groups)
        self._newest.append((time, needed))
        return needed

    def newest_logs(self, commit: Instant, logs: list[bytes]) -> list[bytes]:
        """
        The log files of a commit that lie on the newest base file of their group, or of which no base file is known.

        To be asked before its base files are passed on, which do not replace them.
        """
        if not logs or self._is_empty:
            return logs
        self._settle()
        covered: AbstractSet[bytes] = self._covered - self._begun_before_the_end(commit, logs)
        return list(compress(logs, map(not_, map(covered.__contains__, map(log_group, logs)))))

    @property
    def _is_empty(self) -> bool:
        return not self._covered and not self._newest

    def _settle(self) -> None:
        self._covered.update(map(group_of, self._waiting))
        self._waiting = []

    def _begun_before_the_end(self, commit: Instant, logs: list[bytes]) -> AbstractSet[bytes]:
        """Groups whose newest slice began while the commit ran: its log files may lie on that one (rule Z-4)."""
        if self._tells_slice:
            text = b"\0".join(logs)
            begun = [paths for time, paths in self._newest if f"_{time}.log.".encode() in text]
        else:
            end = commit.completion_time or commit.requested_time
            begun = [paths for time, paths in self._newest if time <= end]
        return {group for paths in begun for group in map(group_of, paths)} - self._replaced


def oldest_beside(newest_first: Sequence[Instant]) -> list[int]:
    """
    Of each commit the place of the oldest one whose log files may lie on its base files; its own if there is none.

    In layout 2 that is a delta commit which was requested before that commit and completed after it (rule Z-4). In
    layout 1 names tell the slice, and who looks at all commits finds them.
    """
    found = list(range(len(newest_first)))
    for place, instant in enumerate(newest_first):
        if instant.action is Action.DELTA_COMMIT and instant.completion_time is not None:
            newer = place - 1
            while newer >= 0 and newest_first[newer].requested_time <= instant.completion_time:
                found[newer] = place
                newer -= 1
    return found
