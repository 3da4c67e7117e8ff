"""
What differs between table versions in a table's metadata. Pure.

Source: rules/timeline 1.2, 2.1 and 9; docs/rules explain the meaning of each field.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

from hudi_py.model.records import CommitMetadata, RequestedReplaceMetadata
from hudi_py.versions.layout import Layout


class LogNaming(enum.Enum):
    """Which instant time a log file has in its name."""

    BY_SLICE = "that of the base file it follows; several writes append to it, a rollback adds a block"
    BY_WRITE = "that of the write that created it; a rollback of that write deletes it"

    @property
    def tells_slice(self) -> bool:
        """Whether the name says to which slice the file belongs; otherwise it says which write created it."""
        return self is LogNaming.BY_SLICE


class ArchiveForm(enum.Enum):
    """How the archived timeline is stored."""

    LOGS = "log files of Avro entries, one entry for each state of an instant"
    HISTORY = "Parquet files below a manifest, one row for each instant"


@attrs.frozen(kw_only=True)
class MetadataTableFormat:
    """
    What differs between versions of the metadata table, which always has the same version as its table.

    Args:
        properties: Properties of a new metadata table, in addition to those of all versions and those from its table.
        init_suffix: Its first instant gets the time of the table's last completed instant plus this suffix; None if it
            gets the fixed earliest time.
        compaction_suffix: A compaction gets the time of the last delta commit plus this suffix; None for a new time.
        clean_suffix: The same for a clean.
        plan_extras: Whether compaction plans contain the maps that Hudi added later, even when these are empty.
        defines_record_index: Whether the index definitions list a record index.
        tells_tight_bounds: Whether statistics say if their bounds are values of the column (rules/data-files 11.1).
        indexes_all_columns: Whether statistics are kept of all columns where the writer names none.
        leaves_out_wide_decimals: Whether they are not kept then of decimals that they cannot hold.
    """

    properties: Mapping[str, str]
    init_suffix: str | None = None
    compaction_suffix: str | None = None
    clean_suffix: str | None = None
    plan_extras: bool = True
    defines_record_index: bool = False
    tells_tight_bounds: bool = True
    indexes_all_columns: bool = False
    leaves_out_wide_decimals: bool = False


@attrs.frozen(kw_only=True)
class TableFormat:
    """
    Everything that hudi_py reads or writes differently in different table versions.

    Args:
        version: Value of ``hoodie.table.version``.
        layout: Names of instant files.
        properties: Properties of a new table, in addition to those of all versions.
        timeline_folder: Folder of the active timeline; ``{timeline}`` is replaced by the table's property.
        history_folder: Folder of the archived timeline; ``{timeline}``, ``{history}`` and ``{archive}`` are replaced
            in the same way.
        archive: How the archived timeline is stored.
        commits_are_json: Whether commit metadata is JSON; otherwise it is Avro.
        inflight_commit: Content of the inflight file of a new write; None for an empty file.
        requested_drop: Content of the requested file of a delete_partition.
        log_naming: Which instant time log files have in their names.
        has_merge_mode: Whether a property says how rows are merged; otherwise the payload class decides.
        names_payload: Whether the payload class, and ordering fields under their old name, are written in addition to
            the merge mode.
        prefixes_single_key: Whether record keys of one column are written as ``column:value`` when no other setting
            decides it.
        restores_by_completion: Whether a restore undoes what was completed after the savepoint; otherwise it undoes
            what was requested after it.
        ranges_come_first: Whether a reader of what changed in a range of time leaves rows of base files that did not
            change out before it merges log files with them; otherwise it does so afterwards.
        shows_time_paths: Whether readers show the text of the path in partition columns of time-based key generators.
        avro_widens_floats: Whether a float in an Avro log block of a column that is a double by now becomes the double
            of the same value (0.10000000149011612), as Avro reads it; otherwise that with the same text (0.1).
        ids_keep_float_texts: Whether, in a table with schema on read, it is the one with the same text all the same.
        forgets_deleted_keys: Whether a global index of files that moves no rows takes a key that log files have
            deleted for a new one; otherwise its next row goes to the partition where it was.
        merges_logs_by_commits: Whether a log compaction waits for as many delta commits as it wants log blocks, and
            takes that many log files for enough of them; otherwise the blocks of each slice decide alone.
        reads_repeated_deletes: Whether readers of the release read log files that delete a key twice (1.0.2 fails).
        compares_text_deletes: Whether the release compares a delete in log files with the log records before it where
            the ordering values are texts; otherwise it wins over them.
        tells_positions: Whether log blocks say at which rows of the base file their records are.
        splits_bucket_keys: Whether releases differ on the bucket of keys of a single field that have a colon.
        metadata_table: The same for the metadata table.
    """

    version: int
    layout: Layout
    properties: Mapping[str, str]
    timeline_folder: str
    history_folder: str
    archive: ArchiveForm
    commits_are_json: bool
    inflight_commit: CommitMetadata | None
    requested_drop: RequestedReplaceMetadata
    log_naming: LogNaming
    has_merge_mode: bool
    names_payload: bool
    prefixes_single_key: bool
    restores_by_completion: bool
    ranges_come_first: bool
    shows_time_paths: bool
    avro_widens_floats: bool
    ids_keep_float_texts: bool
    forgets_deleted_keys: bool
    merges_logs_by_commits: bool
    reads_repeated_deletes: bool
    compares_text_deletes: bool
    tells_positions: bool
    splits_bucket_keys: bool
    metadata_table: MetadataTableFormat
