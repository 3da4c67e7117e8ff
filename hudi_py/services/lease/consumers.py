"""
Consumers: how far incremental readers have read, so that cleaning and archival keep the changes that they still need.

The progress of a consumer is stored as a lease on all times from it on (`hudi_py.model.lease`); the smallest one is a
floor for cleaning and archival.

It has the name of the consumer, and is stored in the place of the one before. Only where that has expired and the table
has no lock is it a new file: a clean may be about to delete the expired one, and would delete what has its name.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from hudi_py.errors import ConfigError, HudiError, RefusedError
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import format_instant_time
from hudi_py.model.lease import CLOCKS_DIFFER_BY, Lease, consumer_id, lease_span, progress_of
from hudi_py.model.progress import Progress
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness
from hudi_py.services.lease.service import LeaseService
from hudi_py.timeline.cleaned import whole_from
from hudi_py.timeline.following import next_begin, progress_at, undone_since
from hudi_py.timeline.timeline import Timeline

_NAME_BYTES: Final = 6


@attrs.frozen(kw_only=True)
class ConsumerService:
    """
    Consumers of one table.

    Args:
        leases: The leases of the table.
        randomness: For names of files.
    """

    leases: LeaseService
    randomness: Randomness = attrs.field(default=MACHINE, eq=False, repr=False)

    def set(
        self, seen: Timeline, name: str, time: str, *, ttl: str | timedelta, looked_at: Progress | None = None
    ) -> Lease:
        """
        Note how far a consumer has read.

        Args:
            seen: The timeline, just loaded.
            name: Name of the consumer.
            time: The time up to which it has read, as `changes` compares it: completion times in layout 2.
            ttl: How long this counts if it is not noted again; an abandoned consumer must not keep files for ever.
            looked_at: The writes that its process saw up to then, if it read the timeline before.

        Returns:
            Its progress, as a lease.

        Raises:
            ConfigError: The name or the time to live is invalid, or the time has not come yet.
            RefusedError: Changes since that time are no longer complete, or a clean is deleting them; or commits that
                it has read were undone.
            ConflictError: Another process holds the table's lock.
        """
        store = self.leases.contents.store
        now = store.clock.now()
        self._refuse_to_come(seen, name, time, now)
        progress = Lease(
            id=consumer_id(name),
            holder=name,
            instant=time,
            pending=tuple(
                i.requested_time
                for i in seen.writes
                if i.requested_time <= time < (i.completion_time or time) or (i.is_pending and i.requested_time <= time)
            ),
            created=now,
            expires=now + lease_span(ttl),
            is_consumer=True,
            read=progress_at(self.leases.contents, seen, time).writes,
        )
        # Under the lock, so that of two processes of one consumer the later one sees the progress of the other.
        with store.lock.held(f"progress of consumer {name}"):
            before = self.find(name)
            for read in (looked_at, None if before is None else progress_of(before)):
                if read is not None:
                    self._begin_after(seen, name, read)
            if before is not None and before.is_usable(now):
                progress = attrs.evolve(progress, id=before.id)
                if progress.needs_no_more_than(before):
                    store.leases.put(progress)
                    return progress
            elif not store.lock.is_used:
                progress = attrs.evolve(progress, id=f"{progress.id}.{self.randomness(_NAME_BYTES).hex()}")
            self._refuse_incomplete(seen, progress)
            try:
                store.leases.put(progress)
                self.leases.check_taken(progress, seen)
            # Ctrl-C, too: the former progress must come back, or a clean deletes what the consumer still has to read.
            except BaseException:
                self._give_up(progress, before)
                raise
        log.info("consumer.noted", consumer=name, instant=time)
        return progress

    def _refuse_to_come(self, seen: Timeline, name: str, time: str, now: datetime) -> None:
        """Nothing would be kept, and all that comes until then would count as read, as with local time for UTC."""
        store = self.leases.contents.store
        # Another writer's clock may be ahead: what it has completed can be read.
        known = (each.completion_time or each.requested_time for each in seen.writes.completed())
        last = max((format_instant_time((now + CLOCKS_DIFFER_BY).astimezone(store.zone)), *known))
        if time > last:
            raise ConfigError(
                f"{store.storage.root}: consumer {name} cannot have read until {time}, which has not come yet; nothing "
                "was changed. Give what changed_until returned before it read"
            )

    def _refuse_incomplete(self, seen: Timeline, progress: Lease) -> None:
        contents = self.leases.contents
        cleans = seen.completed(Action.CLEAN)
        start = whole_from(contents.clean(cleans[-1])) if cleans else ""
        # Cleans delete what completed writes superseded. So of the writes up to that time, those that completed later
        # count, and those that are still pending do not.
        time = progress.instant
        read = [i.requested_time for i in seen.writes.completed() if (i.completion_time or i.requested_time) <= time]
        later = (i.requested_time for i in seen.writes.completed() if i.requested_time in progress.pending)
        if min((max(read, default=time), *later)) < start:
            raise RefusedError(
                f"{contents.store.storage.root}: consumer {progress.holder} cannot be set to {progress.instant}: "
                f"{cleans[-1]} left everything only from {start} on, so changes after {progress.instant} may be missing"
                "; read the table as a whole and go on from now"
            )

    def _give_up(self, progress: Lease, before: Lease | None) -> None:
        """Put the former progress back; if that fails, the new one counts until it expires."""
        folder = self.leases.contents.store.leases
        try:
            if before is None or before.id != progress.id:
                folder.release(progress.id)
            else:
                folder.put(before)
        except HudiError as error:
            log.warning("consumer.not_withdrawn", consumer=progress.holder, why=str(error))

    def begin(self, timeline: Timeline, name: str) -> str | None:
        """
        Where the next range of a consumer begins, as ranges compare times; None if it is not known.

        Args:
            timeline: The active timeline, just loaded.
            name: Its name.

        Raises:
            RefusedError: Commits that it has read were undone.
        """
        found = self.find(name)
        if found is None:
            return None
        read = progress_of(found)
        # Without it, it was noted by an earlier release, which knew its time alone.
        return found.instant if read is None else self._begin_after(timeline, name, read)

    def _begin_after(self, timeline: Timeline, name: str, read: Progress) -> str:
        anew = f"after hudi-py consumer delete TABLE {name}"
        return next_begin(self.leases.contents, timeline, read, anew=anew)

    def undone(self, timeline: Timeline, progress: Lease) -> str | None:
        """What has undone commits that a consumer has read, as for `undone_since`; None if nothing is known of it."""
        read = progress_of(progress)
        return None if read is None else undone_since(self.leases.contents, timeline, read)

    def find(self, name: str) -> Lease | None:
        """The progress of a consumer that was noted last; None if it is not known."""
        store = self.leases.contents.store
        found = store.leases.find(consumer_id(name))
        if found is not None and found.is_usable(store.clock.now()):
            return found
        noted = (*(() if found is None else (found,)), *store.leases.beside(consumer_id(name)))
        return max(noted, key=_age, default=None)

    def list(self) -> tuple[Lease, ...]:
        """The progress of all consumers, expired ones too, the least first."""
        noted = sorted((each for each in self.leases.contents.store.leases.all() if each.is_consumer), key=_age)
        found = {each.holder: each for each in noted}
        return tuple(sorted(found.values(), key=lambda each: (each.instant, each.id)))

    def delete(self, name: str) -> bool:
        """Forget a consumer; False if it was not known."""
        folder = self.leases.contents.store.leases
        ids = (consumer_id(name), *(each.id for each in folder.beside(consumer_id(name))))
        gone = [folder.release(each) for each in ids]
        return any(gone)


def _age(progress: Lease) -> tuple[datetime, str]:
    return progress.created, progress.id
