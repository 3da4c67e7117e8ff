"""
What readers were promised in a random history: leases, the progress of a consumer, and what an undo brings back.

A promise lasts until its reader gives it up, or until its time was over at the end of a step: the clock of a history
may go back, and a lease that was dead once may have been used against its reader.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import attrs

from hudi_py.errors import HudiError, RefusedError, UnsupportedTable
from hudi_py.model.files import join_path, parse_base_file
from hudi_py.model.instant import Action
from hudi_py.model.lease import Lease
from hudi_py.model.removal_list import RemovalList
from hudi_py.table import Table
from support.history_laws import Rows, Violation, compare

if TYPE_CHECKING:
    from support.history_world import World


OF_LEASES: Final = "lease-"
"""How the names of savepoints begin that were made for leases."""


@attrs.define
class Promise:
    """
    What one lease promises.

    Attributes:
        lease: As it was taken, or renewed last.
        files: Paths of the files that its reader sees.
        rows: What its reader sees; None where a write that was pending then may still add rows to that time.
    """

    lease: Lease
    files: frozenset[str]
    rows: Rows | None


@attrs.define
class Promises:
    """
    Attributes:
        leases: By id.
        read_until: How far the consumer has read; None where there is none.
        read_until_expires: Until when that counts.
        answered: Removal in quarantine to the times that could be read before it.
        asked: Files that somebody was asked about, and has not answered.
    """

    leases: dict[str, Promise] = attrs.field(factory=dict)
    read_until: str | None = None
    read_until_expires: datetime | None = None
    answered: dict[str, frozenset[str]] = attrs.field(factory=dict)
    asked: RemovalList | None = None

    def make(self, world: World, lease: Lease) -> None:
        """A lease was taken a moment ago."""
        table = world.open()
        rows = None
        if not lease.pending and not world.is_mor:
            try:
                rows = world.rows_at(table, as_of=lease.instant)
            except HudiError as error:
                raise Violation("lease: cannot be read", f"{lease} was given, but {error}") from error
        self.leases[lease.id] = Promise(lease, _files_of(table, lease), rows)

    def check(self, world: World, table: Table) -> None:
        """
        Every reader still sees what it was promised.

        Raises:
            Violation: One does not.
        """
        now = world.clock.now()
        for id_ in [id_ for id_, each in self.leases.items() if not each.lease.is_usable(now)]:
            del self.leases[id_]
        if self.read_until_expires is not None and now >= self.read_until_expires:
            self.read_until = self.read_until_expires = None
        for promise in self.leases.values():
            self._check_lease(world, table, promise)
        if self.read_until is not None and world.has_ranges:
            self._check_consumer(world, table, self.read_until)

    @staticmethod
    def _check_lease(world: World, table: Table, promise: Promise) -> None:
        lease = promise.lease
        lost = sorted(path for path in promise.files if world.storage.size(path) is None)
        if lost:
            raise Violation("lease: files lost", f"{lease} needs {len(lost)} files that are gone: {lost[:3]}")
        if promise.rows is None:
            return
        try:
            found = world.rows_at(table, as_of=lease.instant)
        except HudiError as error:
            raise Violation("lease: cannot be read", f"{lease}: {error}") from error
        compare("lease", promise.rows, found, str(lease))

    @staticmethod
    def _check_consumer(world: World, table: Table, start: str) -> None:
        """
        Nothing that came since is gone, nor what it takes to tell which rows were deleted.

        What it reads there, the law of ranges tells.
        """
        if table.timeline.pending(Action.RESTORE):
            return
        try:
            table.changes(start, with_deletes=True).to_arrow()
        except UnsupportedTable:
            return
        except RefusedError as error:
            if "may still complete" not in str(error):
                raise Violation("consumer: changes are gone", f"changes from {start}: {error}") from error

    def check_back(self, world: World, removal: str) -> None:
        """
        An undo has brought back a clean's files: what could be read before the clean can be read again.

        Raises:
            Violation: It cannot.
        """
        times = self.answered.pop(removal, frozenset())
        table = world.open()
        if table.timeline.commits.pending() or table.timeline.pending(Action.CLEAN, Action.RESTORE, Action.ROLLBACK):
            return
        for time in sorted(times.intersection(world.chain)):
            if table.timeline.is_before_start(time):
                continue
            try:
                found = world.rows_at(table, as_of=time)
            except HudiError as error:
                raise Violation("undo: an earlier time does not come back", f"{removal}, {time}: {error}") from error
            if world.is_known(time):
                expected = world.told_at(table, time, world.expected_at(time))
                compare("undo", expected, world.told_at(table, time, found), f"rows as of {time} after the undo")


def answered_times(world: World) -> frozenset[str]:
    """The newest commits but the last that can be read as of their time."""
    table, found = world.open(), set()
    for time in () if world.is_mor else world.chain[-4:-1]:
        try:
            world.rows_at(table, as_of=time)
        except HudiError:
            continue
        found.add(time)
    return frozenset(found)


def _files_of(table: Table, lease: Lease) -> frozenset[str]:
    """Without log files in layout 1: there a later write may append to one, or be rolled back."""
    try:
        view = table.as_of(lease.instant)
    except RefusedError:  # a write before it is pending
        return frozenset()
    tells_slice = table.config.format.log_naming.tells_slice
    return frozenset(
        join_path(path, name)
        for path in view.partitions()
        for each in view.file_slices(path)
        for name in each.file_names
        if not tells_slice or parse_base_file(name) is not None
    )
