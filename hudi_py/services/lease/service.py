"""
Takes leases: a reader asks for a commit to stay readable while it reads.

The lease is stored first; then it is checked that nothing deletes files that it needs. Whatever deletes looks for
leases after it has put its plan on the timeline, and before it deletes. So of a lease and a clean that begin at the
same time at least one notices the other: the lease is refused, or the clean makes a new plan, or both. No order loses a
file.

What a crash leaves: a lease that is not renewed. It counts until it expires.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import attrs

from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, HudiError, RefusedError
from hudi_py.fsview.fate import judge_partition_files
from hudi_py.fsview.listing import FolderListing
from hudi_py.fsview.loader import load_facts, load_undoing
from hudi_py.fsview.needs import Lease as LeaseNeed
from hudi_py.fsview.needs import Needed
from hudi_py.model.files import join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.model.lease import Lease, check_holder, lease_span, savepoint_name
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness
from hudi_py.services.clean.executing.recheck import covers
from hudi_py.services.clean.planning.stored_plan import planned_names
from hudi_py.services.savepoint.service import SavepointService
from hudi_py.services.savepoint.words import SavepointWords
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.hidden_leases import hidden_by_undo
from hudi_py.timeline.quarantine import pending_undos
from hudi_py.timeline.timeline import Timeline

_ID_BYTES = 6


@attrs.frozen(kw_only=True)
class LeaseService:
    """
    Leases of one table.

    Args:
        contents: The table's timeline.
        savepoints: Creates and deletes the savepoints of leases that ask for one.
        randomness: Gives the ids of leases.
    """

    contents: Contents
    savepoints: SavepointService
    randomness: Randomness = MACHINE

    def take(
        self,
        seen: Timeline,
        requested_time: str | None = None,
        *,
        ttl: str | timedelta,
        holder: str,
        savepoint: bool = False,
    ) -> Lease:
        """
        Take a lease on a commit that is readable as a whole.

        Args:
            seen: The timeline of the moment when it was found to be readable.
            requested_time: Requested time of the commit, or a later time before the next one; None for the last one.
            ttl: How long the lease counts, a span or text as ``"3h"``.
            holder: Who reads, in words.
            savepoint: Keep a savepoint of the commit, too, so that cleaners that know no leases keep its files.

        Raises:
            ConfigError: There is no such commit, or an argument is invalid.
            RefusedError: Files of the commit are deleted or going to be; the message names the clean.
            ConflictError: The commit was undone meanwhile, or another process holds the table's lock.
        """
        store = self.contents.store
        now = store.clock.now()
        commit = _commit_at(seen, requested_time)
        lease = Lease(
            id=self.randomness(_ID_BYTES).hex(),
            holder=check_holder(holder),
            instant=commit.requested_time,
            # Not visible to the reader although they are older: if they complete later, their files are none that it
            # needs. But what the reader needs may have been logged behind the plan of a later compaction.
            pending=tuple(
                each.requested_time
                for each in seen.writes.pending()
                if each.requested_time < commit.requested_time or each.action is Action.COMPACTION
            ),
            created=now,
            expires=now + lease_span(ttl),
            has_savepoint=savepoint,
        )
        with store.lock.held(f"lease of {lease.holder}"):
            try:
                # Stored before it is checked: between a check and the storing a clean could plan without seeing the
                # lease.
                store.leases.create(lease)
                self.check_taken(lease, seen, commit)
                self._hold(lease)
            # Ctrl-C, too: a refused lease that stayed would hold files until it expires, for nobody.
            except BaseException:
                self._give_up(lease)
                raise
        log.info("lease.taken", lease=lease.id, holder=lease.holder, instant=lease.instant)
        return lease

    def _hold(self, lease: Lease) -> None:
        """Create the savepoint of a lease that asks for one, unless its commit has a savepoint, whoever made it."""
        if not lease.has_savepoint:
            return
        found = self.contents.store.load().find(lease.instant, Action.SAVEPOINT)
        if found is None or not found.is_completed:
            words = SavepointWords(name=savepoint_name(lease.instant), user=lease.holder, comment=f"for {lease}")
            self.savepoints.create(lease.instant, **words)

    def _give_up(self, lease: Lease) -> None:
        """Delete a lease that was refused; if that fails, it counts until it expires."""
        try:
            self._release(lease)
        except HudiError as error:
            log.warning("lease.not_released", lease=lease.id, why=str(error))

    def check_taken(self, lease: Lease, seen: Timeline, commit: Instant | None = None) -> None:
        """
        Check after a lease is stored that nothing deletes what it needs; the caller deletes it if this raises.

        Args:
            lease: The lease.
            seen: The timeline of the moment when what it needs was found to be there.
            commit: The commit that is read; None for the progress of a consumer.

        Raises:
            RefusedError: As `take`, or the undo of a clean is pending, after which the lease's time is not readable.
            ConflictError: As `take`.
        """
        now = self.contents.store.load()
        found = None if commit is None else now.find(commit.requested_time, commit.action)
        if commit is not None and (found is None or not found.is_completed):
            raise ConflictError(f"{self._root}: {commit} was undone or archived meanwhile; take the lease again")
        for time, by in load_undoing(now, self.contents).items():
            if lease.shows(time):
                raise RefusedError(
                    f"{self._root}: no {lease}: {by.action.value} {by.time} is pending and deletes files of "
                    f"{time}; wait until it is completed"
                )
        for time, rollback in pending_undos(self.contents, now).items():
            start = hidden_by_undo(self.contents, now, time, lease)
            if start:
                raise RefusedError(
                    f"{self._root}: no {lease}: {rollback} undoes clean {time}, and then only times from {start} on "
                    "are readable; read one of those"
                )
        last = seen.completed(Action.CLEAN)[-1:]
        if any(now.find(each.requested_time, Action.CLEAN) is None for each in last):
            raise ConflictError(f"{self._root}: {last[0]} was undone or archived meanwhile; take the lease again")
        for clean in now.of([Action.CLEAN]):
            before = seen.find(clean.requested_time, Action.CLEAN)
            if before is None or not before.is_completed:
                self._check_clean(lease, clean, now)

    def _check_clean(self, lease: Lease, clean: Instant, timeline: Timeline) -> None:
        """
        Raises:
            RefusedError: The clean, which was not completed when everything was found to be there, takes a file.
        """
        store = self.contents.store
        plan = self.contents.plan_of_pending_clean(clean)
        # Also if it was withdrawn since the timeline was loaded.
        if plan is None or covers(plan, lease):
            return
        facts = load_facts(timeline, self.contents, leases=(lease,))
        listing = FolderListing(store.storage)
        for path, names in planned_names(plan, store.storage.root, store.path(clean)).items():
            there = {*names, *(entry.name for entry in listing.partition(path))}  # as it was before the clean
            fates = judge_partition_files(facts, path, sorted(there))
            for name in names:
                fate = fates.of(name)
                if isinstance(fate, Needed) and any(isinstance(need, LeaseNeed) for need in fate.by):
                    raise RefusedError(
                        f"{self._root}: no {lease}: {clean} deletes {join_path(path, name)}, which it needs; ask for a "
                        "later time, or wait until the clean is completed"
                    )

    @property
    def _root(self) -> str:
        return self.contents.store.storage.root

    def renew(self, id_: str, ttl: str | timedelta) -> Lease:
        """
        Let a lease last for a time to live from now on; it is never shortened.

        Raises:
            ConfigError: There is no such lease, or the time to live is invalid.
            ConflictError: It has expired, or another process changed it.
        """
        store = self.contents.store
        renewed = store.leases.renew(id_, store.clock.now() + lease_span(ttl))
        # Again: whoever made a savepoint that was there may have deleted it.
        if renewed.has_savepoint:
            with store.lock.held(f"savepoint of {renewed.holder}"):
                self._hold(renewed)
        return renewed

    def release(self, id_: str) -> bool:
        """Delete a lease, and its savepoint unless another lease needs it; False if there was none."""
        try:
            lease = self.contents.store.leases.find(id_)
        except CorruptMetadata:
            # Whatever it needs it cannot tell; a savepoint of it goes with the next clean.
            lease = None
        return self.contents.store.leases.release(id_) if lease is None else self._release(lease)

    def _release(self, lease: Lease) -> bool:
        store = self.contents.store
        if not lease.has_savepoint:
            return store.leases.release(lease.id)
        with store.lock.held(f"release of {lease.holder}"):
            is_released = store.leases.release(lease.id)
            # The lease first: after a crash in between the next clean finds a savepoint that no lease needs.
            self.savepoints.remove_of_leases(lease.instant)
        return is_released

    def list(self) -> tuple[Lease, ...]:
        """All leases but those of consumers, expired ones too, oldest first."""
        return tuple(each for each in self.contents.store.leases.all() if not each.is_consumer)


def _commit_at(timeline: Timeline, requested_time: str | None) -> Instant:
    completed: Iterable[Instant] = timeline.commits.completed()
    found = [i for i in completed if requested_time is None or i.requested_time <= requested_time]
    if not found:
        what = "the table has no completed commit" if requested_time is None else f"no commit up to {requested_time}"
        raise ConfigError(f"{what} on the active timeline, so there is nothing to lease; see hudi-py timeline")
    return found[-1]
