"""What a check, or whoever repairs a table, needs to know of it; frozen values, gathered by `gather`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

from hudi_py.fsview.build import GroupKey
from hudi_py.model.instant import Action, Instant, State
from hudi_py.timeline.archive import ArchivedFile
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import LogNaming

FileKey = tuple[str, Action, State]
"""(requested time, action, state) of an instant file."""


class Health(enum.Enum):
    """Of one instant file."""

    GOOD = "good"
    EMPTY = "empty"
    DAMAGED = "does not decode"
    ABSENT = "not there"


@attrs.frozen(kw_only=True)
class InstantFacts:
    """
    One instant and what its files hold.

    Args:
        instant: In its highest state.
        files: One per file on the timeline, by state.
        is_empty: Whether the file of the highest state has no bytes.
        content: Of a completed instant its metadata, of a pending one its plan where it has one, as `model.records`.
        lacks_plan: Whether it is pending and needs a plan that is empty or gone.
        problem: Why the content does not decode, None otherwise.
    """

    instant: Instant
    files: tuple[Instant, ...]
    is_empty: bool = False
    content: Any = None
    lacks_plan: bool = False
    problem: str | None = None


@attrs.frozen(kw_only=True)
class MetadataFacts:
    """
    The metadata table's own timeline.

    Args:
        timeline: Active.
        archived: Archived instants; empty when its archive is unreadable, see *problem*.
        problem: Why the metadata table, or its archive, cannot be read; None otherwise.
        damaged: Active instants whose content does not decode, and why.
    """

    timeline: Timeline
    archived: Timeline
    problem: str | None = None
    damaged: Mapping[Instant, str] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class TableFacts:
    """
    A table's instants, read to the last one, and what lies around them.

    Args:
        timeline: Active, as loaded once.
        log_naming: How log files find their slice.
        instants: One for each of *timeline*, in its order.
        health: Of each file that was looked into: all of pending instants, the completed ones of others, and the plans
            behind completed cleans and rollbacks.
        damage: Why the content of a damaged file does not decode.
        archived: The archived timeline; None when it is unreadable.
        archive_problem: Why.
        archived_cleans: Partition path to names that archived cleans removed since the oldest active commit.
        archived_replaced: File group to the requested time of the archived replacecommit that replaced it.
        archived_bases: File group to the newest base file that archived commits wrote to it.
        marker_times: Instants that have markers.
        completed_once: Requested times of the inflight writes that were completed once, as checksums and the metadata
            table tell, to the proof.
        unmarked_times: Of inflight writes that may have been completed: data files are there, but no markers, and there
            is no metadata table to ask.
        unknown_names: Files in the timeline folder that stand for no instant.
        stale_before: Pending instants requested before this time are stale.
        has_properties_backup: Whether a backup of the properties is there.
        properties_problem: Why hoodie.properties itself is not usable; None otherwise.
        metadata: The metadata table; None when the properties name none.
        has_metadata_folder: Whether there is a folder of one.
        base_file_extensions: Of the table's base files; empty where they may have any.
    """

    timeline: Timeline
    log_naming: LogNaming
    instants: tuple[InstantFacts, ...]
    health: Mapping[FileKey, Health] = attrs.field(factory=dict)
    damage: Mapping[FileKey, str] = attrs.field(factory=dict)
    archived: Timeline | None
    archive_problem: str | None = None
    archived_cleans: Mapping[str, frozenset[str]] = attrs.field(factory=dict)
    archived_replaced: Mapping[GroupKey, str] = attrs.field(factory=dict)
    archived_bases: Mapping[GroupKey, ArchivedFile] = attrs.field(factory=dict)
    marker_times: tuple[str, ...] = ()
    completed_once: Mapping[str, str] = attrs.field(factory=dict)
    unmarked_times: frozenset[str] = frozenset()
    unknown_names: tuple[str, ...] = ()
    stale_before: str
    has_properties_backup: bool = False
    properties_problem: str | None = None
    metadata: MetadataFacts | None = None
    has_metadata_folder: bool = False
    base_file_extensions: frozenset[str] = frozenset()

    @property
    def is_archive_empty(self) -> bool:
        """Whether nothing was ever archived, or the archive is lost as a whole."""
        return self.archived is not None and not self.archived.instants
