"""
Which instant a data file belongs to, by the time in its name. Pure.

Every service that reports or removes files of no instant asks here, so that all agree on which these are.
"""

from __future__ import annotations

from functools import cached_property

import attrs

from hudi_py.timeline.timeline import COMMITS, Timeline


@attrs.frozen
class Origins:
    """
    The times of a table's writes.

    Args:
        timeline: The active timeline.
        archive: The archived timeline; None if it cannot be read.
    """

    timeline: Timeline
    archive: Timeline | None

    @cached_property
    def known(self) -> frozenset[str]:
        """Requested times of completed writes of the active timeline."""
        return frozenset(i.requested_time for i in self.timeline.writes.completed())

    @cached_property
    def pending(self) -> frozenset[str]:
        """Requested times of writes that are not completed."""
        return frozenset(i.requested_time for i in self.timeline.writes.pending())

    @cached_property
    def archived(self) -> frozenset[str] | None:
        """Requested times of archived instants; None if the archive cannot be read."""
        return None if self.archive is None else frozenset(i.requested_time for i in self.archive)

    def is_orphan(self, requested_time: str) -> bool:
        """Whether no instant has that time, and readers can see that."""
        if requested_time in self.known or requested_time in self.pending:
            return False
        if self.archived is not None and requested_time in self.archived:
            return False
        # From before the start it would count as committed: that is `looks_committed`.
        start = self.timeline.committed.start
        return start is None or requested_time > start

    def looks_committed(self, requested_time: str) -> bool:
        """Whether the time is before the active timeline, and the archive, which begins earlier, does not have it."""
        if requested_time in self.known or requested_time in self.pending or self.is_orphan(requested_time):
            return False
        first = self._first_archived
        # Before the first archived commit nothing is known, so nothing is claimed.
        return first is not None and requested_time > first and requested_time not in (self.archived or ())

    @cached_property
    def _first_archived(self) -> str | None:
        commits = (i for i in self.archive or () if i.action in COMMITS and i.is_completed)
        return next((i.requested_time for i in commits), None)
