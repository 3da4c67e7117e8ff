"""
All findings of ``hudi-py check``. Pure.

The codes are stable: scripts may rely on them. A code has one severity: ``error`` means that rows, a snapshot or a
writer is at risk, ``warning`` that something was left behind or needs attention, ``info`` that it is worth knowing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

import attrs

from hudi_py.timeline.completions import WAY_OUT


class Severity(enum.Enum):
    """How bad it is; the values are what ``hudi-py check`` prints."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    # By identity, which is faster than Enum's hash of the name.
    __hash__ = object.__hash__


class Rule(NamedTuple):
    """What a code means and what to do about it."""

    severity: Severity
    meaning: str
    fix: str


@attrs.frozen(kw_only=True)
class Finding:
    """
    One thing that is wrong or worth knowing.

    Args:
        severity: Severity of the code.
        code: Stable word, a key of `RULES`.
        where: Path relative to the table, or an instant.
        message: What is wrong there.
        fix: What to do about it.
    """

    severity: Severity
    code: str
    where: str
    message: str
    fix: str


_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO
_REBUILD_INDEX: Final = (
    "a write with hoodie.metadata.enable=false drops the metadata table with its indexes; Apache Hudi makes them again "
    "where it is configured to, a write with hoodie.metadata.record.index.enable=true the record index"
)
_REBUILD: Final = (
    "hudi-py recover drops the metadata table if it is out of step; a write with hoodie.metadata.enable=false drops it "
    "in any case. Apache Hudi, or a write with hoodie.metadata.enable=true, creates it again"
)
_FROM_COPY: Final = "put the file back from a copy of the table, or restore the table to a savepoint before it"
_NESTED: Final = (
    "if the outer one holds no data files, delete its .hoodie_partition_metadata; otherwise write the rows of the "
    "inner one to a partition that lies in no other one, then delete them from the inner one by their keys"
)
_COLUMNS: Final = (
    "put the newest file of the folder back from a copy of the table, under the time of an active commit, or restore "
    "the table to a savepoint before it"
)

ARCHIVE: Final = "archived timeline"
"""Place of findings about it."""

RULES: Final[Mapping[str, Rule]] = {
    # --- properties
    "properties-damaged": Rule(
        _ERROR,
        "hoodie.properties is missing, torn or does not match its checksum",
        "hudi-py recover, or the next write, takes hoodie.properties.backup if that is complete; otherwise put the "
        "file back from a copy of the table; earlier contents are in .hoodie/.aux/hudi_py/properties",
    ),
    "properties-backup": Rule(
        _WARNING,
        "a rewrite of hoodie.properties was interrupted, or is running",
        "hudi-py recover finishes it if no writer is running; so does the next write",
    ),
    "property-unknown": Rule(
        _WARNING,
        "hoodie.properties has a property that no release of Apache Hudi 0.15 to 1.2 is known to write",
        "correct it if it is misspelled, or upgrade hudi_py; until then changes to the table are refused, unless "
        "hoodie_py.conf.allow.unknown=true (--allow-unknown-conf)",
    ),
    "property-unserved": Rule(
        _INFO,
        "a property of the table asks for something that hudi_py does not do, so some uses of the table are refused",
        "nothing, if you leave to Apache Hudi what is refused here",
    ),
    # --- instants
    "timeline-lost": Rule(
        _ERROR,
        "the table has files and no instants: its timeline is lost or lies elsewhere, so reads and changes are refused",
        "put the folder of the timeline back from a copy of the table, or correct hoodie.timeline.path or "
        "hoodie.table.version; delete no data file before that",
    ),
    "instant-unreadable": Rule(
        _ERROR,
        "an instant does not decode",
        "hudi-py recover --dry-run shows whether it can be run again or moved away; otherwise put the file back from "
        "a copy of the table",
    ),
    "instant-empty": Rule(
        _ERROR,
        "the file of a completed instant is empty, so it is unknown what it did",
        "an empty clean is run again by hudi-py recover or the next clean; otherwise put the file back from a copy "
        "of the table",
    ),
    "instant-plan-missing": Rule(
        _ERROR,
        "a pending action has no plan, so it cannot be finished",
        "hudi-py recover moves it away if it has not done anything; the next clean does so with a clean; otherwise let "
        "Apache Hudi roll it back",
    ),
    "instant-request-missing": Rule(
        _WARNING,
        "an inflight instant has no requested file",
        "hudi-py recover, or the next write, rolls it back with the other failed writes",
    ),
    "instant-completion-lost": Rule(
        _ERROR,
        "a write is pending and was completed once, as a later clean, savepoint or commit, the metadata table or a "
        "checksum file shows: its completed file is lost, and readers no longer see its rows",
        WAY_OUT,
    ),
    "instant-outcome-unknown": Rule(
        _WARNING,
        "a write is pending and has data files, but not the markers that are created before them: either it was "
        "completed and its completed file is lost, or it failed and its markers were deleted by hand",
        "if its writer reported success, put the completed file back from a copy of the table before the next write: "
        "that would roll it back, as Apache Hudi would; if it failed, hudi-py rollback rolls it back",
    ),
    "instant-stale": Rule(
        _WARNING,
        "an action is pending for so long that its process has probably ended",
        "if no writer is running, hudi-py recover rolls it back or finishes it; so do the next write and clean, unless "
        "it is a savepoint",
    ),
    "instant-pending": Rule(_INFO, "an action is running or planned", "nothing, while its process is running"),
    "instant-twice": Rule(
        _WARNING,
        "an instant was completed more than once",
        "nothing: the newest counts; do not run two processes on one instant",
    ),
    "instant-states-missing": Rule(
        _INFO,
        "a completed instant lacks its earlier states: an archival was interrupted",
        "nothing: the next archival continues",
    ),
    "timeline-unknown-file": Rule(
        _INFO,
        "a file in the timeline folder is not of an instant",
        "delete it if no writer is running; a writer that was stopped left it",
    ),
    "archive-unreadable": Rule(
        _ERROR,
        "the archived timeline is damaged or lost",
        "put its files back from a copy of the table; most cleans and reads work without them, archival does not if it "
        "is damaged",
    ),
    "commits-all-archived": Rule(
        _ERROR,
        "every completed commit is archived and none is active, so readers see no rows",
        "commit again, with or without rows: before an active commit the archived ones count as committed, here and in "
        "Apache Hudi",
    ),
    "leftover-markers": Rule(
        _WARNING,
        "markers of a write that is not pending",
        "hudi-py recover deletes them if that write is over; so does its archival",
    ),
    # --- files
    "file-missing": Rule(_ERROR, "a completed commit names a file that is missing, and nothing deleted it", _FROM_COPY),
    "file-needed-again": Rule(
        _ERROR,
        "a file with the latest rows was deleted: what superseded it was undone since",
        f"{_FROM_COPY}; then run hudi-py recover",
    ),
    "snapshot-file-missing": Rule(
        _ERROR,
        "a clean deleted a file with rows of a time that it recorded as complete: rows are missing in reads as of then",
        _FROM_COPY,
    ),
    "file-size-differs": Rule(
        _ERROR, "a file has another size than its commit recorded: cut off or overwritten", _FROM_COPY
    ),
    "file-content-differs": Rule(
        _ERROR,
        "a base or log file holds other rows than its name and its commits say: it was swapped for another file, or "
        "overwritten (only looked for with --contents)",
        _FROM_COPY,
    ),
    "file-unreadable": Rule(
        _ERROR,
        "a file has the size that its commit recorded, and no readable footer or blocks (only looked for with "
        "--contents)",
        _FROM_COPY,
    ),
    "file-unnamed": Rule(
        _ERROR,
        "a file has the time of a completed commit that does not name it; readers show its rows",
        "a task that ran twice left it: compare it with the file that the commit names, then delete it",
    ),
    "file-looks-committed": Rule(
        _ERROR,
        "a file of no known commit is older than the active timeline, so readers take it for a committed one",
        "hudi-py recover deletes it if its write was rolled back; otherwise look at its rows, then delete it",
    ),
    "group-rewritten-twice": Rule(
        _ERROR,
        "a file group was replaced twice, once by a clustering that did not know of it: readers show its rows twice, "
        "or rows that were overwritten or dropped",
        "roll the later clustering back with hudi-py rollback before anything is written; two processes planned it "
        "without a lock that both shared",
    ),
    "file-overlooked": Rule(
        _ERROR,
        "a write whose time is earlier than that of the file it was built upon: all readers, those of Apache Hudi too, "
        "take that older file for the newer one, so the write's rows are hidden",
        "write its rows again, from this file before a clean deletes it; Apache Hudi 0.15 does this to others and to "
        "itself, with a lock, too: let it write when nobody else does",
    ),
    "log-overlooked": Rule(
        _ERROR,
        "a write added rows to the base file below a log file without merging it: readers pass over the log file, so "
        "rows that it deleted are back, and its updates are lost",
        "do its changes again, from this file before a clean deletes it; Apache Hudi 0.15 does this where a write that "
        "failed has left a base file in the file group: have failed writes rolled back before it writes again "
        "(hudi-py recover)",
    ),
    "log-undone": Rule(
        Severity.INFO,
        "a log file began with a write that was rolled back; blocks in the log files of its file group undo it, "
        "so readers see no row of it",
        "leave it, or delete all log files of the file group together: without the last one the rows would show again",
    ),
    "file-format-other": Rule(
        _WARNING,
        "a base file has another format than the table; reading its rows is refused, and so are writes, cleans and "
        "savepoints in its partition",
        "leave it there, and use Apache Hudi for this table, which may know its format",
    ),
    "file-orphaned": Rule(
        _WARNING,
        "a file belongs to no instant; readers do not see it",
        "hudi-py recover deletes it if its write was rolled back; otherwise delete it when no writer is running",
    ),
    "savepoint-file-missing": Rule(_ERROR, "a file of a savepoint is missing, so it cannot be restored", _FROM_COPY),
    "savepoint-commit-missing": Rule(
        _ERROR,
        "the commit of a savepoint was rolled back, so it cannot be restored",
        "delete the savepoint with hudi-py savepoint delete, and create one of an existing commit",
    ),
    "lease-damaged": Rule(
        _ERROR,
        "a file among the leases does not decode, so it is unknown what a reader needs and nothing is deleted",
        "find out whether its reader still runs, then hudi-py lease release TABLE ID; another file there, remove it",
    ),
    "policy-unreadable": Rule(
        _ERROR,
        "the retention policy in force is missing or was changed, so nothing is deleted",
        "hudi-py policy apply TABLE --file policy.toml, or hudi-py policy remove TABLE",
    ),
    "columns-history-missing": Rule(
        _ERROR,
        "commits have the ids of the columns (schema on read), and no file in .hoodie/.schema has their history, so "
        "writes, and reads of renamed columns in files of archived commits, are refused",
        _COLUMNS,
    ),
    "columns-history-damaged": Rule(
        _ERROR,
        "the newest file in .hoodie/.schema is torn, or lacks the columns of the newest commit, so reads and writes "
        "are refused",
        _COLUMNS,
    ),
    "columns-ids-lost": Rule(
        _ERROR,
        "the newest write has no ids of the columns and an earlier one has them (schema on read): renamed columns of "
        "older files are null to every reader",
        "roll that write back or restore the table to a savepoint before it, then write with hudi_py, or with Apache "
        "Hudi and its setting hoodie.schema.on.read.enable",
    ),
    "partition-metafile-missing": Rule(
        _ERROR,
        "a folder with data files has no .hoodie_partition_metadata, so listings do not see it",
        "create the file with commitTime and partitionDepth, or put it back from a copy of the table",
    ),
    "partition-metafile-damaged": Rule(
        _ERROR,
        "a .hoodie_partition_metadata does not have the depth of its partition, so Apache Hudi fails on it",
        "write it again with commitTime and partitionDepth, the number of folders below the table",
    ),
    "partition-hidden": Rule(
        _ERROR,
        "a partition lies inside of another one and no metadata table lists it, so readers do not see its rows",
        _NESTED,
    ),
    "partition-of-other-table": Rule(
        _ERROR,
        "the metadata table lists a partition of another table below this one, so readers take its rows for this one's",
        "move the other table elsewhere; or drop the metadata table with a write with hoodie.metadata.enable=false. "
        "Where Apache Hudi makes a new one, it lists those partitions again; hudi_py does not",
    ),
    "partition-in-partition": Rule(
        _WARNING,
        "a partition lies inside of another one, so its rows are seen only as long as the metadata table lists it",
        _NESTED,
    ),
    # --- metadata table
    "mdt-folder-missing": Rule(
        _ERROR,
        "the properties name a metadata table that does not exist; readers list the folders, and writers refuse, as "
        "those of Apache Hudi",
        "hudi-py recover clears the property; so does a write with hoodie.metadata.enable=false",
    ),
    "mdt-unreadable": Rule(_ERROR, "the metadata table is damaged", _REBUILD),
    "mdt-file-missing": Rule(
        _ERROR, "a committed file is not in the metadata table, so its rows are invisible through it", _REBUILD
    ),
    "mdt-ghost": Rule(_ERROR, "the metadata table lists a missing file as the newest of its group", _REBUILD),
    "mdt-ghost-outdated": Rule(
        _WARNING,
        "the metadata table lists an older file that is missing",
        "a clean of Apache Hudi in its partition drops the entry; until then a savepoint or restore would name it",
    ),
    "mdt-size-differs": Rule(
        _ERROR, "the metadata table has another size of a file; Apache Hudi reads up to that", _REBUILD
    ),
    "mdt-index-row-missing": Rule(
        _ERROR,
        "the record index of the metadata table lacks rows; writers that look keys up there insert them again. A key "
        "with several rows leaves the index with the row that it names, in tables of Apache Hudi, too",
        _REBUILD_INDEX,
    ),
    "mdt-index-group-missing": Rule(
        _ERROR, "the record index of the metadata table knows rows in a file group that is not there", _REBUILD_INDEX
    ),
    "mdt-filter-differs": Rule(
        _ERROR,
        "the metadata table has another Bloom filter than the file; writers that ask it may not find keys",
        _REBUILD_INDEX,
    ),
    "mdt-statistics-differ": Rule(
        _ERROR,
        "the statistics in the metadata table do not hold values of a file; readers that ask them do not see its rows",
        _REBUILD_INDEX,
    ),
    "mdt-instant-missing": Rule(_ERROR, "a completed instant was never recorded in the metadata table", _REBUILD),
    "mdt-instant-unknown": Rule(
        _INFO,
        "the metadata table has records of an instant that the table does not know",
        "nothing: if they list missing files, that is another finding",
    ),
    "mdt-instant-damaged": Rule(_ERROR, "an instant of the metadata table does not decode or is empty", _REBUILD),
    "mdt-partition-empty": Rule(
        _INFO, "a partition is listed without files; its folder is missing", "nothing: it has no rows"
    ),
    "mdt-leftover": Rule(
        _INFO,
        "there is a folder of a metadata table that the properties do not name; it is never read",
        "hudi-py recover deletes it; so does the next write that creates or drops a metadata table",
    ),
    # --- the check itself
    "table-changing": Rule(_INFO, "the table changed during the check", "check again while no writer is running"),
}


def finding_of(rules: Mapping[str, Rule], code: str, where: str, message: str = "") -> Finding:
    """A finding of a code of *rules*; the message adds its details."""
    rule = rules[code]
    return Finding(
        severity=rule.severity,
        code=code,
        where=where,
        message=f"{rule.meaning}: {message}" if message else rule.meaning,
        fix=rule.fix,
    )


finding = partial(finding_of, RULES)
