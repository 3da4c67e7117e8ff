"""Leases of an opened table: they keep a snapshot readable while a job reads it, whatever is cleaned meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import attrs

from hudi_py.config.arguments import check_flags, check_kinds, check_texts
from hudi_py.config.uses import Use
from hudi_py.errors import ConflictError, HudiError, NotFound
from hudi_py.model.lease import Lease, consumer_id, lease_span
from hudi_py.runtime.who import who_runs_this
from hudi_py.table_view import TableView

if TYPE_CHECKING:
    from hudi_py.services.lease.consumers import ConsumerService
    from hudi_py.services.lease.keeper import LeaseKeeper
    from hudi_py.services.lease.service import LeaseService
    from hudi_py.snapshot.snapshot import Snapshot
    from hudi_py.timeline.timeline import Timeline

__all__ = ["Consumer", "TableLeases"]

CONSUMER_TTL: Final = "7d"
"""So long the progress of a consumer counts that is not noted again."""


class TableLeases(TableView):
    """A table of which snapshots can be leased."""

    @contextmanager
    def lease(
        self,
        *,
        ttl: str | timedelta,
        at: str | datetime | None = None,
        holder: str | None = None,
        savepoint: bool = False,
    ) -> Iterator[Snapshot]:
        """
        Keep a snapshot readable for the time of a ``with`` block, and return it.

        Cleans, rollbacks, restores and archival of hudi_py keep what it shows. Apache Hudi does not know leases: where
        it cleans the table, ask for a savepoint, too. The lease is renewed while the block runs and released at its
        end, so *ttl* only decides how long it outlives a process that is killed.

        Args:
            ttl: Time to live, a span or text as ``"3h"``; counted again from each renewal.
            at: A time as for `resolve_time`; None for the latest snapshot.
            holder: Who reads, shown by ``hudi-py lease list``; default: user, host and process.
            savepoint: Keep a savepoint of the commit for as long, which Apache Hudi's cleaner respects.

        Yields:
            The snapshot.

        Raises:
            ConfigError: An argument is invalid, or the table has no commit.
            RefusedError: Files of that time are deleted or going to be; the message names the clean.
            ConflictError: The table changed while the lease was taken, or its lock is held; try again. Or the block was
                ended by a file that is gone, because the lease could not be renewed in time.
        """
        span = lease_span(ttl)
        snapshot, lease = self._leased(span, at, holder, savepoint=savepoint)
        with self._kept(lease, span) as keeper:
            # Now, because what its rows need to know of commits goes to the archive with them, and a lease keeps files.
            with suppress(HudiError):  # of a table whose rows are not read: its files are kept all the same
                snapshot.rows()
            try:
                yield snapshot
            except (ConflictError, NotFound) as error:
                why = keeper.loss()
                if not why:
                    raise
                raise ConflictError(
                    f"{self.storage.root}: {lease} was lost while its snapshot was read, so files that it kept may be "
                    f"deleted: {why}. Take a new one and read again ({error})"
                ) from error

    @contextmanager
    def kept_lease(
        self,
        *,
        ttl: str | timedelta,
        at: str | datetime | None = None,
        holder: str | None = None,
        savepoint: bool = False,
    ) -> Iterator[Lease]:
        """
        Take a lease as `lease` does, for another process to read under it; yields the lease itself.

        Raises:
            ConflictError: At the end of a block that succeeded: the lease was lost meanwhile. Readers of hudi_py notice
                files that are missing, those of Apache Hudi may show fewer rows.
            As `lease`.
        """
        span = lease_span(ttl)
        lease = self.take_lease(ttl=span, at=at, holder=holder, savepoint=savepoint)
        with self._kept(lease, span) as keeper:
            yield lease
        if keeper.why_lost:
            raise ConflictError(
                f"{self.storage.root}: {lease} was lost while it was needed, so that what was read may lack rows: "
                f"{keeper.why_lost}. Do it again"
            )

    @contextmanager
    def _kept(self, lease: Lease, span: timedelta) -> Iterator[LeaseKeeper]:
        from hudi_py.services.lease.keeper import LeaseKeeper

        keeper = LeaseKeeper(self._leases, lease, span)
        try:
            keeper.start()
            yield keeper
        finally:
            # Releases it at once, so that the next clean need not wait until it expires.
            keeper.stop()

    def take_lease(
        self,
        *,
        ttl: str | timedelta,
        at: str | datetime | None = None,
        holder: str | None = None,
        savepoint: bool = False,
    ) -> Lease:
        """
        Take a lease that nothing renews or releases by itself; arguments and errors as for `lease`.

        Returns:
            The lease; its ``instant`` is the requested time of the commit that stays readable.
        """
        return self._leased(lease_span(ttl), at, holder, savepoint=savepoint)[1]

    def leases(self) -> tuple[Lease, ...]:
        """
        All leases, expired ones too, oldest first.

        Raises:
            CorruptMetadata: The file of a lease does not decode.
        """
        return self._leases.list()

    def renew_lease(self, lease_id: str, ttl: str | timedelta) -> Lease:
        """
        Let a lease last for a time to live from now on; it is never shortened.

        Raises:
            ConfigError: There is no such lease, or the time to live is invalid.
            ConflictError: It has expired: files may be deleted, so take a new one. Or another process changed it.
        """
        check_texts(lease_id=lease_id)
        return self._leases.renew(lease_id, ttl)

    def release_lease(self, lease_id: str) -> bool:
        """Delete a lease, even one whose file is damaged; return False if there was none."""
        check_texts(lease_id=lease_id)
        return self._leases.release(lease_id)

    def consumer(self, name: str) -> Consumer:
        """
        An incremental reader of the table, by name; cleaning and archival keep the changes that it has not read.

        Raises:
            ConfigError: The name is invalid.
        """
        check_texts(name=name)
        # Only for its check of the name.
        consumer_id(name)
        return Consumer(self, lambda: self._consumers, name)

    def consumers(self) -> tuple[Lease, ...]:
        """The progress of all consumers, as leases with ``is_consumer``, the least first."""
        return self._consumers.list()

    @property
    def _consumers(self) -> ConsumerService:
        from hudi_py.services.lease.consumers import ConsumerService

        return ConsumerService(leases=self._leases)

    def _leased(
        self, span: timedelta, at: str | datetime | None, holder: str | None, *, savepoint: bool
    ) -> tuple[Snapshot, Lease]:
        check_flags(savepoint=savepoint)
        check_kinds(str, "who reads, in words", holder=holder)
        self.require(Use.READ)
        self.refresh()
        time = None if at is None else self.resolve_time(at)
        # First the snapshot, which refuses a time that is not readable, then the lease, which keeps it so.
        snapshot = self.snapshot(time)
        if time is not None:  # after cleans by file versions, only its files show whether an earlier time is whole
            snapshot.slices_with_rows()
        return snapshot, self._leases.take(
            self.timeline, time, ttl=span, holder=holder or who_runs_this(), savepoint=savepoint
        )

    @property
    def _leases(self) -> LeaseService:
        from hudi_py.mdt.keeper import MetadataTableKeeper
        from hudi_py.services.lease.service import LeaseService
        from hudi_py.services.savepoint.service import SavepointService

        keeper = MetadataTableKeeper(self.storage, self.settings, self._store.clock, self._store.lock)
        savepoints = SavepointService(contents=self._contents, table=self.config, metadata_table=keeper)
        return LeaseService(contents=self._contents, savepoints=savepoints)


@attrs.frozen
class Consumer:
    """
    An incremental reader; from `TableLeases.consumer`.

    Args:
        name: Its name.
    """

    _table: TableLeases = attrs.field(repr=False)
    _service: Callable[[], ConsumerService] = attrs.field(repr=False)
    name: str

    def at(self, time: str | datetime, *, ttl: str | timedelta = CONSUMER_TTL) -> Lease:
        """
        Note that it has read all changes up to a time: where its next call of `changes` begins.

        Args:
            time: A time as for `resolve_time`; mostly what `changed_until` returned before it read.
            ttl: How long this counts if it is not noted again.

        Raises:
            ConfigError: An argument is invalid, or the time has not come yet.
            RefusedError: Changes since that time are no longer complete; the message names the clean. Or commits that
                it has read were undone, as for `instant`.
            ConflictError: Another process holds the table's lock.
        """
        from hudi_py.timeline.following import progress_at

        self._table.require(Use.READ)
        contents, timeline = self._table.contents, self._table.timeline
        self._table.refresh()
        resolved = self._table.resolve_time(time)
        # What was undone since this process read it is not in the timeline of now.
        looked_at = progress_at(contents, timeline, resolved)
        return self._service().set(self._table.timeline, self.name, resolved, ttl=ttl, looked_at=looked_at)

    @property
    def instant(self) -> str | None:
        """
        The time up to which it has read, where its next call of `changes` begins; None if that is not known.

        Raises:
            RefusedError: A restore, or a rollback of a completed commit, has undone what it has read; the message names
                it. Read the table as a whole, `delete` the consumer, and go on from there.
        """
        timeline = self._timeline()
        return self._service().begin(timeline, self.name)

    @property
    def undone(self) -> str | None:
        """
        What has undone commits that it has read, in words that go on after "rows of"; None if nothing has.

        None, too, where nothing is known of it, or its progress was noted by a release that knew times alone.
        """
        timeline, service = self._timeline(), self._service()
        found = service.find(self.name)
        return None if found is None else service.undone(timeline, found)

    def _timeline(self) -> Timeline:
        """The timeline of now, whatever the table was opened with."""
        self._table.refresh_if_moved()
        return self._table.contents.store.load()

    def delete(self) -> bool:
        """Forget it; return False if it was not known."""
        return self._service().delete(self.name)
