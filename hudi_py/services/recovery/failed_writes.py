"""
When failed writes are rolled back. Policy EAGER: before the next write; LAZY: with a clean; NEVER: only by hand.

Under EAGER a maintenance run rolls back those that an expired heartbeat proves dead: the next write may be long in
coming. Without a heartbeat nothing is proven: a single writer of Apache Hudi has none while it runs.

A write whose heartbeat is not expired is running and is never rolled back, under any policy. Source:
rules/table-services B-2 to B-5, B-8; Hudi ``BaseHoodieTableServiceClient.getInstantsToRollback``.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from hudi_py.config import keys
from hudi_py.config.concurrency import failed_writes_policy
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConflictError, CorruptMetadata, UnsupportedTable
from hudi_py.fsview.loader import load_undoing
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import RollbackMetadata
from hudi_py.runtime.log import log
from hudi_py.services.rollback.plan import RUN_AGAIN
from hudi_py.services.rollback.service import RollbackService
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.heartbeat import Rhythm, delete_heartbeat, heartbeat_ages
from hudi_py.timeline.timeline import Timeline

_MAY_RUN = (
    "pending, and may be running: under the policy EAGER a writer need not show a heartbeat; the next write rolls it "
    "back, and so does hudi-py recover, if no writer is running"
)
_NEVER = f"pending, and left alone by {keys.FAILED_WRITES_POLICY.name}=NEVER; hudi-py rollback undoes it"


@attrs.frozen
class FailedWritesDue:
    """
    Pending writes, as a maintenance run sees them.

    Args:
        dead: Requested times of those that it rolls back.
        left: Requested time of each that it leaves although it may have failed, to why.
    """

    dead: frozenset[str] = frozenset()
    left: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class FailedWrites:
    """
    Args:
        contents: The table's timeline.
        table: Its properties.
        settings: Policy and rhythm of the heartbeats.
        metadata_table: The table's metadata table.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    metadata_table: MetadataTableKeeper

    def before_write(self, timeline: Timeline) -> list[RollbackMetadata]:
        """
        Policy EAGER: roll back every pending write.

        Other policies: only finish rollbacks of completed commits. A write on top of rows that are being rolled back
        would keep them.

        Args:
            timeline: As it was when the write began.

        Raises:
            ConflictError: One of them has a live heartbeat: another writer is running.
            As `RollbackService.run`.
        """
        # Failed writes are left to the clean, or to nobody; a half-undone commit is not.
        if failed_writes_policy(self.settings) != "EAGER":
            return self._roll_back(frozenset()) if load_undoing(timeline, self.contents) else []
        alive, pending = self._alive_and_pending(timeline)
        # EAGER means one writer, so a second one that is alive is an error, and its write is not touched.
        if alive:
            raise ConflictError(
                f"{self.contents.store.storage.root}: the write {min(alive)} of another process is running, by its "
                "heartbeat; try again when it is done, or set hoodie.clean.failed.writes.policy=LAZY for several "
                "writers"
            )
        return self._roll_back(pending, timeline)

    def with_clean(self) -> list[RollbackMetadata]:
        """
        Policy LAZY: roll back the pending writes whose heartbeat is expired.

        Where this table's failed writes cannot be rolled back, a warning is logged and the clean goes on. While a
        restore is pending, nothing is rolled back: it has set commits back to inflight, and deletes their files itself.

        Raises:
            As `RollbackService.run`.
        """
        chosen = self.due_with_clean()
        if chosen is None:
            return []
        try:
            return self._roll_back(chosen)
        except UnsupportedTable as error:
            log.warning("failed_writes.left", why=str(error))
            return []

    def due_with_clean(self) -> frozenset[str] | None:
        """Return the requested times of writes that `with_clean` rolls back now; None if it leaves rollbacks alone."""
        if failed_writes_policy(self.settings) != "LAZY":
            return None
        timeline = self.contents.store.load()
        # The restore has set commits back to inflight, and deletes their files itself.
        if timeline.pending(Action.RESTORE):
            return None
        alive, pending = self._alive_and_pending(timeline)
        return pending - alive

    def due_with_maintenance(self) -> FailedWritesDue:
        """Return what `with_maintenance` would do now; nothing is written."""
        policy = failed_writes_policy(self.settings)
        if policy == "LAZY":
            return FailedWritesDue(self.due_with_clean() or frozenset())
        timeline = self.contents.store.load()
        if timeline.pending(Action.RESTORE):
            return FailedWritesDue()
        alive, pending = self._alive_and_pending(timeline)
        failed = sorted(pending - alive)
        if policy == "NEVER":
            return FailedWritesDue(left=dict.fromkeys(failed, _NEVER))
        store = self.contents.store
        # Those that are alive are left out already, so what has a heartbeat has an expired one.
        beaten = heartbeat_ages(store.storage, store.clock).keys() if failed else frozenset()
        left = dict.fromkeys((time for time in failed if time not in beaten), _MAY_RUN)
        return FailedWritesDue(frozenset(failed) - left.keys(), left)

    def with_maintenance(self) -> tuple[list[RollbackMetadata], Mapping[str, str]]:
        """
        Roll back the writes that have failed for certain.

        Returns:
            What was rolled back, and the writes that were left, see `FailedWritesDue`.

        Raises:
            As `RollbackService.run`.
        """
        if failed_writes_policy(self.settings) == "LAZY":
            return self.with_clean(), {}
        due = self.due_with_maintenance()
        if not due.dead:
            return [], due.left
        try:
            return self._roll_back(due.dead), due.left
        except UnsupportedTable as error:
            return [], {**due.left, **dict.fromkeys(due.dead, str(error))}

    def is_dead(self, requested_time: str) -> bool:
        """Whether the heartbeat of a write is expired, or there is none, at this moment."""
        store = self.contents.store
        return Rhythm.of(self.settings).is_expired(heartbeat_ages(store.storage, store.clock).get(requested_time))

    def _alive_and_pending(self, timeline: Timeline) -> tuple[frozenset[str], frozenset[str]]:
        store = self.contents.store
        rhythm = Rhythm.of(self.settings)
        pending = frozenset(
            write.requested_time for write in timeline.writes.pending() if not self._is_run_again(write)
        )
        if not pending:
            return frozenset(), pending
        # After the timeline: a write beats before its requested file exists, so each pending write had one by now
        # (B-5).
        ages = heartbeat_ages(store.storage, store.clock)
        return frozenset(time for time in pending if time in ages and not rhythm.is_expired(ages[time])), pending

    def _is_run_again(self, write: Instant) -> bool:
        """Whether it is a compaction or clustering: its own service takes an attempt back, and writers go on beside."""
        if write.action is not Action.REPLACE_COMMIT:
            return write.action in RUN_AGAIN
        try:
            return self.contents.is_clustering(write)
        except CorruptMetadata:  # the rollback keeps it, and says why
            return False

    def _roll_back(self, chosen: frozenset[str], timeline: Timeline | None = None) -> list[RollbackMetadata]:
        """
        The timeline is loaded again after the heartbeats were read: a write that has completed since is kept (K-14).
        Only where *timeline* has nothing to roll back or to finish, which is usual, it is not looked for again.

        Where the table has a lock, both are read again under it, so that no write completes after the last look.
        """
        service = RollbackService(contents=self.contents, table=self.table, metadata_table=self.metadata_table)
        if timeline is not None and (chosen or timeline.pending(Action.ROLLBACK)):
            timeline = None
        done = service.run(only=chosen, is_dead=self.is_dead, timeline=timeline)
        # Last: a crash before it leaves the heartbeat of a write that is over, which recovery deletes.
        for time in (time for each in done for time in each.commits_rollback):
            delete_heartbeat(self.contents.store.storage, time)
        return done
