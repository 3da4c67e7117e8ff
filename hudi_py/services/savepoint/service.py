"""
Creates and deletes savepoints, and deletes expired ones.

What a crash leaves, and what the next call does:

1. creation, only ``.savepoint.inflight``: it protects nothing; creating it again continues, deleting it removes it;
2. deletion, the completed file is deleted: the same.

Source: rules/table-services C-1 to C-9; Hudi ``SavepointActionExecutor``, ``SavepointHelpers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import attrs

from hudi_py.config.arguments import check_kinds, check_texts
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, NotFound, RefusedError
from hudi_py.fsview.as_of import context_as_of
from hudi_py.fsview.checked import CheckedListing
from hudi_py.fsview.foreign import refuse_foreign
from hudi_py.fsview.gone import Left, first_gone
from hudi_py.fsview.loader import load_context, load_undoing
from hudi_py.mdt.keeper import MetadataTableKeeper
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.lease import Lease, needs_savepoint, savepoint_name
from hudi_py.model.records import SavepointMetadata
from hudi_py.runtime.log import log
from hudi_py.services.savepoint.gather import (
    contents_of_savepoints,
    earliest_retained,
    names_of_savepoints,
    partitions_of,
    planned_deletions,
    watermarks,
    whole_files,
)
from hudi_py.services.savepoint.plan import (
    begins_timeline,
    check_all_there,
    check_bound,
    check_name,
    check_no_hole,
    check_not_undone,
    check_nothing_is_gone,
    check_pending_cleans,
    expiry_ms,
    held_files,
    savepoint_target,
    time_of_name,
)
from hudi_py.services.savepoint.schedule import DueTag, TagSchedule, due_tags, passed_tags
from hudi_py.services.savepoint.words import Expired
from hudi_py.timeline.archive import is_archived, load_archived
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Begun, Prepared, not_recorded
from hudi_py.txn.pairs import Answer, Relation, Service, judge

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.services.savepoint.words import SavepointWords

_Made = TypeVar("_Made")


@attrs.frozen(kw_only=True)
class SavepointService:
    """
    Savepoints of one table.

    Args:
        contents: The table's timeline.
        table: Its properties.
        metadata_table: Decides where files are listed; a savepoint changes nothing in it.
    """

    contents: Contents
    table: TableConfig
    metadata_table: MetadataTableKeeper

    def plan(
        self,
        requested_time: str | None = None,
        *,
        user: str = "",
        comment: str = "",
        name: str | None = None,
        ttl: str | timedelta | None = None,
    ) -> tuple[str, SavepointMetadata]:
        """
        The content of a savepoint; nothing is written.

        Returns:
            The requested time of the commit, and the content.

        Raises:
            ConfigError: There is no such completed commit, or name or time to live are invalid.
            RefusedError: Its files may be deleted or are going to be, it is savepointed already, or the name is taken.
            CorruptMetadata: One of its files is missing, or is not of the size that its commit recorded.
        """
        check_texts(user=user, comment=comment)
        check_kinds(str, "a text", requested_time=requested_time, name=name)
        now = self.contents.store.clock.now()
        expires_at_ms = None if ttl is None else expiry_ms(ttl, now)
        timeline, listing = open_snapshot(self.contents.store, self.table, self.metadata_table.settings)
        target = savepoint_target(timeline, self.table.table_type, requested_time)
        time = target.requested_time
        existing = timeline.find(time, Action.SAVEPOINT)
        if existing is not None and existing.is_completed:
            raise RefusedError(f"{time} is savepointed already; delete that savepoint first to change it")
        if name is not None:
            check_name(name, names_of_savepoints(self.contents, timeline), now)
        check_not_undone(timeline, target, load_undoing(timeline, self.contents))
        # The cheap checks first: what follows lists every partition.
        check_bound(target, *earliest_retained(self.contents, timeline))
        context = context_as_of(load_context(timeline, self.contents, with_clustering=False), time)
        if isinstance(listing, CheckedListing):
            listing = listing.until(time)  # files of later commits do not matter, even if they are lost
        # What was logged behind a later plan is of later writes, which a restore undoes.
        planned = [each.requested_time for each in timeline.pending(Action.COMPACTION) if each.requested_time <= time]
        held = held_files(context, partitions_of(context, listing), planned)
        for partition, names in held.items():
            refuse_foreign(partition, names, self.table.base_file_extensions, "a savepoint")
        check_pending_cleans(held, planned_deletions(self.contents, timeline))
        gone = first_gone(self.contents, timeline, context, time, Left.of_names(held), with_pending=True)
        check_nothing_is_gone(time, gone)
        # Listed by the metadata table, which says what should be there. A savepoint without its files is worth nothing.
        if not listing.is_fresh:
            there = whole_files(held, CheckedListing(self.contents, timeline, time), self.contents.store.storage)
            check_all_there(held, there, self.contents.store.storage.root)
        return time, SavepointMetadata(
            savepointed_by=user,
            savepointed_at_ms=int(now.timestamp() * 1000),
            comments=comment,
            files=held,
            name=name or "",
            expires_at_ms=expires_at_ms,
        )

    def create(self, requested_time: str | None = None, **words: Unpack[SavepointWords]) -> Instant:
        """
        Protect the files of a commit.

        Args:
            requested_time: Requested time of a completed commit; None for the last one.
            words: What the savepoint records; see `SavepointWords`.

        Returns:
            The completed savepoint; its requested time is that of the commit.

        Raises:
            As `plan`; ConflictError: Another process created it at the same time, or holds the table's lock.
        """
        store = self.contents.store
        with store.lock.held("savepoint"):  # already for the plan: a clean in between could delete the files
            time, metadata = self.plan(requested_time, **words)
            begun = Prepared(store, Action.SAVEPOINT, time).open()
            looked = self._validate_again(begun, metadata)
            with begun.ready() as ready:
                done = ready.record(not_recorded).publish(metadata)
            self._require_kept(time, metadata, looked)
        log.info("savepoint.created", instant=time, files_held=sum(map(len, metadata.files.values())))
        return done

    def _require_kept(self, requested_time: str, metadata: SavepointMetadata, looked: Timeline) -> None:
        """
        Delete the savepoint again if a clean was stored since the last look that deletes its files.

        The lock does not prevent that: Apache Hudi plans a clean without it (A-15).

        Raises:
            ConflictError: It is deleted again.
        """
        try:
            found = planned_deletions(self.contents, self.contents.store.load(), looked)
            check_pending_cleans(metadata.files, found)
        except RefusedError as error:
            self._delete(requested_time)
            raise ConflictError(f"another process was faster, nothing was changed: {error}") from error

    def _validate_again(self, begun: Begun, metadata: SavepointMetadata) -> Timeline:
        """
        Withdraw the savepoint if its commit is being undone or archived, or a clean was planned that deletes its files.

        Archival looks for savepoints after it has written its archive. This looks into the archive after the inflight
        file of the savepoint was created. So without a lock at least one of them notices the other.

        Returns:
            The timeline that was looked at.

        Raises:
            ConflictError: The savepoint is withdrawn; nothing is protected.
        """
        with begun.withdrawn_if_refused() as timeline:
            target = savepoint_target(timeline, self.table.table_type, begun.instant.requested_time)
            check_not_undone(timeline, target, load_undoing(timeline, self.contents))
            check_pending_cleans(metadata.files, planned_deletions(self.contents, timeline))
            store = self.contents.store
            if not store.lock.is_used and is_archived(store.storage, self.table, target.requested_time):
                raise RefusedError(
                    f"{target} is archived and about to leave the active timeline, so it could not be restored; "
                    "create a savepoint of a later commit"
                )
        return timeline

    def due_tags(self, schedule: TagSchedule, timeline: Timeline | None = None) -> tuple[DueTag, ...]:
        """
        The tags that a schedule asks for and that do not exist yet, oldest first; nothing is written.

        Args:
            schedule: How many of each kind to keep.
            timeline: The timeline; None to load it.

        Raises:
            CorruptMetadata: A savepoint does not decode, so its name is unknown.
        """
        store = self.contents.store
        timeline = timeline or store.load()
        times = [each.requested_time for each in timeline.table_commits(self.table.table_type).completed()]
        asked = (schedule, store.clock.now(), store.zone)
        if schedule.watermark is not None:
            return passed_tags(watermarks(self.contents, timeline, schedule.watermark), self._names(timeline), *asked)
        # Names cost a read for each savepoint, so first without them: after most commits nothing is due.
        held = {each.requested_time: "" for each in timeline.completed(Action.SAVEPOINT)}
        if not due_tags(times, held, *asked):
            return ()
        return due_tags(times, self._names(timeline), *asked)

    def _names(self, timeline: Timeline) -> dict[str, str]:
        """Requested time of each savepoint to its name, ``""`` for one without."""
        return {each.requested_time: content.name for each, content in contents_of_savepoints(self.contents, timeline)}

    def create_due(self, schedule: TagSchedule) -> tuple[Instant, ...]:
        """
        Create the tags that are due. A commit whose files a clean has deleted meanwhile gets none.

        Returns:
            The created savepoints, oldest first.

        Raises:
            As `create`, but for commits that cannot be savepointed.
        """
        return tuple(made for _, made in self._each_due(schedule, self.create))

    def creatable_tags(self, schedule: TagSchedule) -> dict[DueTag, SavepointMetadata]:
        """
        Return the tags that `create_due` would create, oldest first, with what each would keep; nothing is written.

        Raises:
            As `plan`, but for commits that cannot be savepointed.
        """
        return {due: metadata for due, (_, metadata) in self._each_due(schedule, self.plan)}

    def _each_due(self, schedule: TagSchedule, make: Callable[..., _Made]) -> Iterator[tuple[DueTag, _Made]]:
        """Each due tag with what *make* returns for it, but for commits that cannot be savepointed."""
        for due in self.due_tags(schedule):
            left = due.expires - self.contents.store.clock.now()
            if left <= timedelta(0):  # while the tags before it were created
                continue
            try:
                yield due, make(due.requested_time, name=due.name, comment="on schedule", ttl=left)
            except RefusedError as error:
                log.warning("tag.left_out", tag=due.name, instant=due.requested_time, why=str(error))

    def delete(self, requested_time: str) -> bool:
        """
        Delete a savepoint: it becomes inflight again, then the inflight file is deleted (rule C-6).

        Returns:
            False if there was none.

        Raises:
            RefusedError: Archival has passed it, and without it later commits would count as never completed; or a
                restore to it is pending.
            CorruptMetadata: The archive is damaged, so it is unknown whether archival has passed it.
        """
        with self.contents.store.lock.held(f"deletion of savepoint {requested_time}"):
            lease = self._needed_by(requested_time)
            if lease is not None:
                raise RefusedError(f"savepoint {requested_time} is kept for {lease}: release that lease first")
            return self._delete(requested_time)

    def withdraw(self, requested_time: str) -> bool:
        """
        Delete a savepoint that is not completed, also one that a lease began: it protects nothing.

        Returns:
            False if there is none, or if it is completed by now.

        Raises:
            As `delete`, but for leases.
        """
        with self.contents.store.lock.held(f"withdrawal of savepoint {requested_time}"):
            found = self.contents.store.load().find(requested_time, Action.SAVEPOINT)
            return found is not None and found.is_pending and self._delete(requested_time)

    def _needed_by(self, requested_time: str) -> Lease | None:
        """
        A lease that has a savepoint of this commit, if it counts.

        Raises:
            CorruptMetadata: A lease does not decode, so it is unknown.
        """
        store = self.contents.store
        return needs_savepoint(store.leases.all(), requested_time, store.clock.now())

    def _delete(self, requested_time: str) -> bool:
        store = self.contents.store
        timeline = store.load()
        savepoint = timeline.find(requested_time, Action.SAVEPOINT)
        if savepoint is None:
            return False
        for restore in timeline.pending(Action.RESTORE):
            is_to_it = self.contents.restore_plan(restore).savepoint_to_restore_timestamp == requested_time
            pair = judge(Service.SAVEPOINT_DELETE, restore, {Relation.SAME} if is_to_it else ())
            if pair.answer is Answer.REFUSED:
                raise RefusedError(f"savepoint {requested_time} is kept: {restore} is pending: {pair.reason}")
        self._check_no_hole(timeline, requested_time)
        # Inflight in between, as Hudi does: a crash leaves a savepoint that protects nothing and can be deleted again.
        store.reopen(savepoint)
        store.remove(Instant(requested_time, Action.SAVEPOINT, State.INFLIGHT))
        log.info("savepoint.deleted", instant=requested_time)
        return True

    def remove_of_leases(self, requested_time: str) -> bool:
        """
        Delete the savepoint that leases on a commit share, if none of them is left; False if it stays or there is none.

        One that archival has passed stays until a clean can delete it, with a warning.
        """
        found = (
            each for each in self.expired(self.contents.store.load()) if each.instant.requested_time == requested_time
        )
        expired = next(found, None)
        # That of a person goes with the clean, like any other whose time is over.
        if expired is None or self.contents.savepoint(expired.instant).name != savepoint_name(requested_time):
            return False
        if expired.stays_because is not None:
            log.warning("savepoint.expired.kept", instant=requested_time, why=expired.stays_because)
            return False
        return self.delete(requested_time)

    def is_passed_by_archival(self, requested_time: str) -> bool:
        """
        Whether the savepoint exists and archival has passed it, so that it cannot be deleted without its commit.

        Raises:
            CorruptMetadata: The archive is damaged, so that is unknown.
        """
        timeline = self.contents.store.load()
        found = timeline.find(requested_time, Action.SAVEPOINT)
        if found is None or not found.is_completed:
            return False
        try:
            self._check_no_hole(timeline, requested_time)
        except RefusedError:
            return True
        return False

    def savepoints(self) -> tuple[tuple[Instant, SavepointMetadata], ...]:
        """Every completed savepoint with its content, oldest first."""
        return contents_of_savepoints(self.contents, self.contents.store.load())

    def time_of(self, savepoint: str) -> str:
        """
        Requested time of a savepoint, given by its name or that time.

        Raises:
            ConfigError: It is not a time, and no savepoint has that name.
            RefusedError: Two savepoints have that name.
            CorruptMetadata: A savepoint does not decode, so its name is unknown.
        """
        check_texts(savepoint=savepoint)
        if savepoint.isdigit():
            return savepoint
        found = time_of_name(savepoint, self.savepoints())
        if found is None:
            raise ConfigError(f"there is no savepoint {savepoint!r}; see hudi-py savepoint list")
        return found

    def expired(self, timeline: Timeline) -> tuple[Expired, ...]:
        """
        Savepoints whose time to live is over, oldest first; nothing is written.

        Savepoints without a time to live, and those that do not decode, never expire.
        """
        now_ms = int(self.contents.store.clock.now().timestamp() * 1000)
        found = []
        for instant in timeline.completed(Action.SAVEPOINT):
            try:
                name, expires_at_ms = self.contents.savepoint_head(instant)
                # Those of leases have no time of their own: they go with the last lease.
                is_of_lease = name == savepoint_name(instant.requested_time)
                is_expired = is_of_lease or (expires_at_ms is not None and expires_at_ms <= now_ms)
                if is_expired and self._needed_by(instant.requested_time) is not None:
                    continue
                if is_expired:
                    self.contents.savepoint(instant)  # as a whole: one that is damaged must not go
            # Whether it is expired is unknown, so it stays, and protects.
            except (CorruptMetadata, NotFound):
                continue
            if is_expired:
                found.append(Expired(instant, self._stays_because(timeline, instant.requested_time)))
                if found[-1].stays_because is None:
                    # So that the next one is judged as if this one were deleted: the hole of D-7 depends on what is
                    # left.
                    timeline = timeline.without_savepoints({instant.requested_time})
        return tuple(found)

    def remove_expired(self, before: Callable[[], None] = lambda: None) -> tuple[Instant, ...]:
        """
        Delete every savepoint whose time to live is over, as `delete` does.

        Args:
            before: Called once before the first one is deleted; what it raises leaves all of them.

        Returns:
            The deleted savepoints, oldest first.
        """
        gone: list[Instant] = []
        expired = self.expired(self.contents.store.load())
        if any(each.stays_because is None for each in expired):
            before()
        for instant, stays_because in expired:
            if stays_because is not None:
                log.warning("savepoint.expired.kept", instant=instant.requested_time, why=stays_because)
            elif self.delete(instant.requested_time):
                log.info("savepoint.expired", instant=instant.requested_time)
                gone.append(instant)
        return tuple(gone)

    def _stays_because(self, timeline: Timeline, requested_time: str) -> str | None:
        if timeline.pending(Action.RESTORE):
            return "a restore is pending, and may be to it"
        try:
            self._check_no_hole(timeline, requested_time)
        except (RefusedError, CorruptMetadata) as error:
            return str(error)
        return None

    def _check_no_hole(self, timeline: Timeline, requested_time: str) -> None:
        if begins_timeline(timeline, requested_time):
            check_no_hole(timeline, load_archived(self.contents.store.storage, self.table), requested_time)
