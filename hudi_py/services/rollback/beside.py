"""
Decides about pending instants beside a rollback or restore, by the table of pairs (`txn.pairs`).

A plan is withdrawn after the rollback or restore is on the timeline, and before anything is undone. So a crash in
between leaves at worst one plan less, which its service makes again, and never one that deletes needed files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs

from hudi_py.config.settings import Settings
from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.loader import load_context
from hudi_py.model.files import join_path, parse_log_file
from hudi_py.model.instant import Action, Instant
from hudi_py.services.rollback.before import Before
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.heartbeat import Pulse, Rhythm, pulses
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.attempt import why_failed
from hudi_py.txn.pairs import REWRITES, Answer, Pair, Relation, Service, judge


@attrs.frozen(kw_only=True)
class Beside:
    """
    Args:
        contents: The table's timeline.
        service: The service that runs: rollback or restore.
        undone: Requested times of the writes to undo, pending ones among them.
        same: Requested times that rollbacks, restores and savepoints of the same commits have as their target.
        before: The state to go back to, which has to exist afterwards.
        alive: Requested times of running writes, to their heartbeats.
    """

    contents: Contents
    service: Service
    undone: frozenset[str]
    same: frozenset[str]
    before: Before
    alive: Mapping[str, Pulse] = attrs.field(factory=dict)

    def to_withdraw(self, timeline: Timeline) -> tuple[Instant, ...]:
        """
        The pending instants whose plans have to be withdrawn first.

        Raises:
            RefusedError: A pending instant forbids it; the message says what to do.
            CorruptMetadata: A pending plan does not decode, so what it needs is unknown.
        """
        found = []
        for instant, pair in self._pairs(timeline):
            if pair.answer is Answer.REFUSED:
                pulse = f" ({self.alive[instant.requested_time]})" if pair.relation is Relation.ALIVE else ""
                raise RefusedError(
                    f"{self.service.value} {max(self.undone, default='')} refused, nothing was changed: {instant} is "
                    f"pending: {pair.reason}{pulse}"
                )
            if pair.answer is Answer.WITHDRAWN:
                self._check_nothing_lies_on(instant)
                found.append(instant)
        return tuple(found)

    def _pairs(self, timeline: Timeline) -> Iterator[tuple[Instant, Pair]]:
        groups: dict[str, set[GroupKey]] | None = None
        for instant in timeline.pending():
            relations: set[Relation] = set()
            if instant.action is Action.CLEAN:
                relations = self._of_clean(instant)
            elif instant.action in (Action.ROLLBACK, Action.RESTORE, Action.SAVEPOINT):
                relations = self._of_same(instant)
            elif instant.requested_time in self.undone:
                relations = {Relation.ALIVE if instant.requested_time in self.alive else Relation.SAME}
            elif self._rewrites(instant):
                # Only now: it reads all pending plans, and most tables have none.
                groups = self._planned_groups(timeline) if groups is None else groups
                # A plan that is older than what is undone cannot have read it.
                is_newer = instant.requested_time > max(self.undone, default="")
                # It reads a file group that one of the undone commits wrote to.
                if is_newer and not self.before.groups.isdisjoint(groups.get(instant.requested_time, ())):
                    relations = {Relation.BUILT_ON}
            # The table of pairs has one row for clusterings, whatever the layout calls them.
            judged = attrs.evolve(instant, action=Action.CLUSTERING) if self._is_clustering(instant) else instant
            yield instant, judge(self.service, judged, relations)

    def _is_clustering(self, instant: Instant) -> bool:
        return instant.action is Action.REPLACE_COMMIT and self.contents.is_clustering(instant)

    def _rewrites(self, instant: Instant) -> bool:
        return instant.action in REWRITES or self._is_clustering(instant)

    def _of_clean(self, instant: Instant) -> set[Relation]:
        plan = self.contents.plan_of_pending_clean(instant)
        if plan is None:
            return set()
        for partition, files in plan.files_to_delete.items():
            if not self.before.needed.get(partition, frozenset()).isdisjoint(file.name for file in files):
                return {Relation.NEEDED}
        return set()

    def _of_same(self, instant: Instant) -> set[Relation]:
        if instant.action is Action.SAVEPOINT:
            targets = {instant.requested_time}
        elif instant.action is Action.RESTORE:
            targets = {self.contents.restore_plan(instant).savepoint_to_restore_timestamp or ""}
        else:
            targets = self._rolled_back_by(instant)
        return {Relation.SAME} if not self.same.isdisjoint(targets) else set()

    def _rolled_back_by(self, instant: Instant) -> set[str]:
        """A plan that does not decode was never begun and cannot be (rule B-7)."""
        try:
            target = self.contents.rollback_plan(instant).instant_to_rollback
        except (CorruptMetadata, NotFound):
            return set()
        return set() if target is None else {target.requested_time}

    def _planned_groups(self, timeline: Timeline) -> dict[str, set[GroupKey]]:
        """Requested time of each pending compaction and clustering to the file groups that it rewrites."""
        context = load_context(timeline, self.contents)
        found: dict[str, set[GroupKey]] = {}
        for key, operation in context.pending_compactions.items():
            found.setdefault(operation.instant_time, set()).add(key)
        for key, time in context.pending_clustering.items():
            found.setdefault(time, set()).add(key)
        return found

    def _check_nothing_lies_on(self, instant: Instant) -> None:
        """
        Raises:
            RefusedError: Log files of layout 1 belong to slices that the pending compaction is going to write; without
                it readers would take them for the latest rows once the timeline starts later.
        """
        if instant.action is not Action.COMPACTION or not self.contents.store.config.format.log_naming.tells_slice:
            return
        storage = self.contents.store.storage
        for operation in self.contents.compaction_plan(instant).operations:
            partition = operation.partition_path or ""
            for entry in storage.list(partition):
                parsed = parse_log_file(entry.name)
                if parsed is not None and parsed.instant_time == instant.requested_time:
                    raise RefusedError(
                        f"{self.service.value} {max(self.undone)} refused, nothing was changed: {instant} is pending, "
                        f"and {join_path(partition, entry.name)} belongs on the base file that it will write; let "
                        "Apache Hudi carry it out, and restore to a savepoint"
                    )


def refuse_alive(contents: Contents, settings: Settings, what: str, undone: Iterable[Instant | None]) -> None:
    """
    Refuse to undo a pending write whose writer is running.

    Args:
        contents: The table's timeline.
        settings: Interval and expiry of heartbeats.
        what: The action, for the message.
        undone: The writes to undo; None for those that are no longer on the timeline.

    Raises:
        RefusedError: The heartbeat of one of them is not expired; nothing was changed.
    """
    pending = [each for each in undone if each is not None and each.is_pending]
    if not pending:
        return
    alive = pulses_of(contents, settings)
    for each in pending:
        if each.requested_time in alive:
            service = Service.RESTORE if what.startswith(Service.RESTORE.value) else Service.ROLLBACK
            reason = judge(service, each, (Relation.ALIVE,)).reason
            raise RefusedError(
                f"{what} refused, nothing was changed: {each} is pending: {reason} ({alive[each.requested_time]})"
            )


def pulses_of(contents: Contents, settings: Settings) -> Mapping[str, Pulse]:
    """Heartbeats of running writers, by requested time; without attempts of services that are proven to have failed."""
    storage = contents.store.storage
    found = pulses(storage, contents.store.clock, Rhythm.of(settings))
    return {time: pulse for time, pulse in found.items() if why_failed(storage, time) is None}
