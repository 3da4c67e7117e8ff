"""The facts by which recovery judges a table. Frozen values; `gather` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import attrs

from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import InstantInfo
from hudi_py.services.check.facts import FileKey, Health
from hudi_py.services.check.findings import Finding
from hudi_py.timeline.completions import Undone
from hudi_py.timeline.timeline import Timeline


class FilesOfNoInstant(NamedTuple):
    """Data files of one time that is on no timeline."""

    paths: tuple[str, ...]
    logs_of_layout_1: bool


class Aged(NamedTuple):
    """A file and how long ago it was written."""

    path: str
    age_ms: int


class Lock(NamedTuple):
    """
    A lock of Hudi inside the table.

    Args:
        path: Path of its file.
        evidence: Sentences: what was seen.
        is_expired: Whether Hudi's own rule lets anyone take it, and long enough for clocks that differ; or its process
            is proven to have ended.
        way_out: What the user can do; None if there is nothing to do.
    """

    path: str
    evidence: tuple[str, ...]
    is_expired: bool = False
    way_out: str | None = None


@attrs.frozen(kw_only=True)
class RecoveryFacts:
    """
    A table at one moment.

    Args:
        timeline: Active.
        health: Of the files on the timeline that were read: all of pending instants, the last of completed ones.
        plan_damage: Why the content of a file does not decode, by the same key.
        clusterings: Requested times of pending layout-1 replacecommits that are clusterings.
        rollback_targets: Requested time of each pending or damaged rollback with a readable plan to what it undoes.
        policy: Failed-writes policy.
        heartbeats: Requested time to age in milliseconds.
        expiry_ms: From which age on a heartbeat is dead.
        markers: Times of all marker folders.
        failed: Requested time of each inflight compaction or clustering whose attempt is proven to have failed, to why.
        rewrites: Requested time of each completed compaction and clustering to which of them it is.
        carried: Times of compactions without a readable plan that occur in the name of a data file.
        undone: Writes that completed rollbacks and restores undid, by time.
        archived: Completed writes of the archived timeline; None when it was not needed or cannot be read.
        strangers: Data files of times that are on no timeline, by time.
        properties_problem: Why ``hoodie.properties`` has to be repaired, None if it is complete.
        metadata_problem: Why the metadata table has to be created again, None if nothing is wrong or it was not read.
        lost: Committed files that the metadata table lists and no partition holds, though nothing deleted them.
        temporary: Files of interrupted creations.
        locks: Those that are not released.
        found: Findings of a check; empty while the table is changing.
        stale_cleans: Requested time of each pending clean whose plan names needed files, to how many and why.
        metafiles: Path of each damaged partition metafile to its proper content, where that is proven.
    """

    timeline: Timeline
    health: Mapping[FileKey, Health] = attrs.field(factory=dict)
    plan_damage: Mapping[FileKey, str] = attrs.field(factory=dict)
    clusterings: frozenset[str] = frozenset()
    rollback_targets: Mapping[str, InstantInfo] = attrs.field(factory=dict)
    policy: str = "EAGER"
    heartbeats: Mapping[str, int] = attrs.field(factory=dict)
    # Hudi's defaults: two beats of a minute missed.
    expiry_ms: int = 120_000
    markers: tuple[str, ...] = ()
    failed: Mapping[str, str] = attrs.field(factory=dict)
    rewrites: Mapping[str, str] = attrs.field(factory=dict)
    carried: frozenset[str] = frozenset()
    undone: Mapping[str, Undone] = attrs.field(factory=dict)
    archived: frozenset[str] | None = None
    strangers: Mapping[str, FilesOfNoInstant] = attrs.field(factory=dict)
    properties_problem: str | None = None
    metadata_problem: str | None = None
    lost: tuple[str, ...] = ()
    temporary: tuple[Aged, ...] = ()
    locks: tuple[Lock, ...] = ()
    found: tuple[Finding, ...] = ()
    stale_cleans: Mapping[str, str] = attrs.field(factory=dict)
    metafiles: Mapping[str, bytes] = attrs.field(factory=dict)

    def files_of(self, instant: Instant) -> dict[State, Instant]:
        """The instant's files by state; of two completed ones the newest."""
        return self._files.get((instant.requested_time, instant.comparable_action), {})

    @cached_property
    def _files(self) -> Mapping[tuple[str, Action], dict[State, Instant]]:
        found: dict[tuple[str, Action], dict[State, Instant]] = {}
        for each in self.timeline.all_states:
            found.setdefault((each.requested_time, each.comparable_action), {})[each.state] = each
        return found

    def health_of(self, instant: Instant, state: State) -> Health:
        """Health of the file of that state; one that was not read counts as good."""
        found = self.files_of(instant).get(state)
        if found is None:
            return Health.ABSENT
        return self.health.get((found.requested_time, found.action, found.state), Health.GOOD)

    def completion_lost(self, instant: Instant) -> Finding | None:
        """The finding of the check that a pending write was completed once, or may have been; None if there is none."""
        lost = (each for each in self.found if each.code in ("instant-completion-lost", "instant-outcome-unknown"))
        return next((each for each in lost if each.where.rpartition("/")[2] == instant.file_name), None)

    def why(self, instant: Instant, state: State) -> str:
        """What is wrong with that file."""
        found = self.files_of(instant).get(state)
        if found is None:
            return f"its {state.name.lower()} file is not there"
        if self.health_of(instant, state) is Health.EMPTY:
            return f"{found.file_name} is empty"
        return self.plan_damage.get((found.requested_time, found.action, found.state), f"{found.file_name} is damaged")

    def may_be_archived(self, requested_time: str) -> bool:
        """Whether a completed write of that time could have left the active timeline."""
        return self.timeline.committed.is_before_start(requested_time)

    def is_alive(self, requested_time: str) -> bool:
        """Whether a heartbeat shows that the write is running."""
        age = self.heartbeats.get(requested_time)
        return age is not None and age <= self.expiry_ms
