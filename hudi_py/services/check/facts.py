"""Facts about a table for checks and repairs; frozen values, collected by `gather`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import attrs

from hudi_py.fsview.build import GroupKey
from hudi_py.model.instant import Action, Instant, State
from hudi_py.model.records import CommitMetadata
from hudi_py.timeline.archive import ArchivedFile
from hudi_py.timeline.timeline import Timeline
from hudi_py.versions.format import LogNaming

FileKey = tuple[str, Action, State]
"""(requested time, action, state) of an instant file."""


class Health(enum.Enum):
    """Health of one instant file."""

    GOOD = "good"
    EMPTY = "empty"
    DAMAGED = "does not decode"
    ABSENT = "not there"


# Operations that only move rows, so that a file which they do not name has no rows of its own.
_REWRITES: Final[Mapping[str | None, str]] = {"CLUSTER": "clustering", "COMPACT": "compaction"}


@attrs.frozen
class FewFiles:
    """
    The files that somebody asks about; of commits no other files are told.

    Args:
        partitions: Paths of their partitions.
        times: The times in their names: a commit of another time that names no such file is not decoded, and told as
            one without files. None to decode all.
    """

    partitions: frozenset[str]
    times: frozenset[str] | None = None


@attrs.frozen(kw_only=True)
class InstantFacts:
    """
    One instant and the contents of its files.

    Args:
        instant: The instant in its latest state.
        files: One per file on the timeline, by state.
        is_empty: Whether the file of the latest state has no bytes.
        content: Metadata of a completed instant, or the plan of a pending one if it has one, as in `model.records`.
        lacks_plan: Whether it is pending and its plan is empty or missing.
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
        timeline: Active instants.
        archived: Archived instants; empty if its archive is unreadable, see *problem*.
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
    All instants of a table with their contents, and the other files of the timeline.

    Args:
        timeline: The active timeline, loaded once.
        log_naming: How log files find their slice.
        instants: The instants of the timeline, in its order.
        health: Health of the files that were read: all of pending instants, the completed ones of others, and the plans
            of completed cleans and rollbacks.
        damage: Why the content of a damaged file does not decode.
        archived: The archived timeline; None if it is unreadable.
        archive_problem: Why it is unreadable.
        archived_cleans: Partition path to names of files that archived cleans deleted since the oldest active commit.
        archived_replaced: File group to the requested time of the archived replacecommit that replaced it.
        archived_bases: File group to the newest base file that archived commits wrote to it.
        archived_undone: Requested times of writes that archived rollbacks undid.
        marker_times: Instants that have markers.
        completed_once: Requested times of inflight writes that were completed once, to the proof: a checksum file, or
            the metadata table.
        unmarked_times: Requested times of inflight writes that may have been completed: they have data files but no
            markers, and there is no metadata table to ask.
        unknown_names: Files in the timeline folder that are not of an instant.
        stale_before: Pending instants requested before this time are stale.
        has_properties_backup: Whether a backup of the properties exists.
        properties_problem: Why hoodie.properties cannot be used; None otherwise.
        metadata: The metadata table; None if the properties name none.
        has_metadata_folder: Whether the folder of a metadata table exists.
        base_file_extensions: Extensions of the table's base files; empty if any is possible.
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
    archived_undone: frozenset[str] = frozenset()
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

    @cached_property
    def rewrites(self) -> Mapping[str, str]:
        """Requested time of each completed compaction and clustering to which of them it is: both only move rows."""
        done = ((each.instant.requested_time, each.content) for each in self.instants if each.instant.is_completed)
        return {
            time: _REWRITES[content.operation_type]
            for time, content in done
            if isinstance(content, CommitMetadata) and content.operation_type in _REWRITES
        }

    @property
    def is_archive_empty(self) -> bool:
        """Whether nothing was ever archived, or the whole archive is lost."""
        return self.archived is not None and not self.archived.instants
