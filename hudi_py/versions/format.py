"""
The form of a table's metadata, as far as table versions differ in it. Pure.

Source: rules/timeline 1.2, 2.1 and 9; docs/rules for what each field stands for.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from hudi_py.model.records import CommitMetadata
from hudi_py.versions.layout import Layout


class LogNaming(enum.Enum):
    """Which time a log file bears in its name."""

    BY_SLICE = "that of the base file it follows; several writes append to it, a rollback adds a block"
    BY_WRITE = "that of the write that made it; it is deleted with that write"

    @property
    def tells_slice(self) -> bool:
        """Whether the name tells to which slice the file belongs; otherwise it tells which write made it."""
        return self is LogNaming.BY_SLICE


class ArchiveForm(enum.Enum):
    """How the archived timeline is stored."""

    LOGS = "log files of Avro entries, one entry for each state of an instant"
    HISTORY = "Parquet files below a manifest, one row for each instant"


@attrs.frozen(kw_only=True)
class MetadataTableFormat:
    """
    A metadata table, which has the version of its table.

    Args:
        properties: Of a new one, besides those that all versions have and those of its table.
        init_suffix: What the time of its first instant adds to that of the last completed one of the table; None where
            it begins at the zero of time.
        compaction_suffix: What the time of a compaction adds to that of the last delta commit; None for a new time.
        clean_suffix: The same for a clean.
        plan_extras: Whether compaction plans hold the maps that came later, though empty.
    """

    properties: Mapping[str, str]
    init_suffix: str | None = None
    compaction_suffix: str | None = None
    clean_suffix: str | None = None
    plan_extras: bool = True


@attrs.frozen(kw_only=True)
class TableFormat:
    """
    What hudi_py reads and writes otherwise in one table version than in another.

    Args:
        version: ``hoodie.table.version``.
        layout: Names of instant files.
        properties: Of a new table, besides those that all versions have.
        timeline_folder: Of the active timeline; ``{timeline}`` stands for the table's own property.
        history_folder: Of the archived timeline; ``{timeline}``, ``{history}`` and ``{archive}`` likewise.
        archive: How the archived timeline is stored.
        commits_are_json: Whether commits are JSON; Avro otherwise.
        inflight_commit: What the inflight file of a new write holds; None for nothing.
        log_naming: See there.
        has_merge_mode: Whether properties say how rows are merged; the payload class does, otherwise.
        names_payload: Whether the payload class is named beside that, and ordering fields as they were before it.
        prefixes_single_key: Whether the key of a single column bears its name, where nothing else tells.
        restores_by_completion: Whether a restore undoes what completed after the savepoint; what was requested after
            it, otherwise.
        metadata_table: Of its metadata table.
    """

    version: int
    layout: Layout
    properties: Mapping[str, str]
    timeline_folder: str
    history_folder: str
    archive: ArchiveForm
    commits_are_json: bool
    inflight_commit: CommitMetadata | None
    log_naming: LogNaming
    has_merge_mode: bool
    names_payload: bool
    prefixes_single_key: bool
    restores_by_completion: bool
    metadata_table: MetadataTableFormat
