"""
What a check can find. Pure.

The codes are stable: scripts may rely on them. A code has one severity: ``error`` means that rows, a snapshot or a
writer is at risk, ``warning`` that something was left behind or waits for somebody, ``info`` that it is worth knowing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, NamedTuple

import attrs

from hudi_py.timeline.completions import WAY_OUT


class Severity(enum.Enum):
    """How bad it is; the values are what ``hudi-py check`` prints."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    __hash__ = object.__hash__


class Rule(NamedTuple):
    """What a code means and what to do about it."""

    severity: Severity
    meaning: str
    fix: str


@attrs.frozen(kw_only=True)
class Finding:
    """
    One thing that is not as it should be.

    Args:
        severity: Of the code.
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
_REBUILD: Final = (
    "hudi-py recover drops the metadata table where it is out of step, a write with hoodie.metadata.enable=false in "
    "any case; Apache Hudi, or a write with hoodie.metadata.enable=true, makes it anew"
)
_FROM_COPY: Final = "bring the file back from a copy of the table, or restore the table to a savepoint before it"

ARCHIVE: Final = "archived timeline"
"""Where findings about it are placed."""

RULES: Final[Mapping[str, Rule]] = {
    # --- properties
    "properties-damaged": Rule(
        _ERROR,
        "hoodie.properties is missing, torn or does not match its checksum",
        "hudi-py recover, or the next write, takes hoodie.properties.backup where that is whole; else bring the file "
        "back from a copy of the table",
    ),
    "properties-backup": Rule(
        _WARNING,
        "a rewrite of hoodie.properties was interrupted, or is under way",
        "hudi-py recover finishes it if no writer is at work; the next write does so too",
    ),
    "property-unknown": Rule(
        _WARNING,
        "hoodie.properties has a property that no release of Apache Hudi 0.15 to 1.2 is known to write",
        "correct it if it is misspelled, or upgrade hudi_py; until then what changes the table is refused, unless "
        "hoodie_py.conf.allow.unknown=true (--allow-unknown-conf)",
    ),
    "property-unserved": Rule(
        _INFO,
        "a property of the table asks for what hudi_py does not do, so that some uses of the table are refused",
        "nothing, where Apache Hudi does what is refused here",
    ),
    # --- instants
    "instant-unreadable": Rule(
        _ERROR,
        "an instant does not decode",
        "hudi-py recover --dry-run tells whether it can be run again or moved away; else bring the file back from a "
        "copy of the table",
    ),
    "instant-empty": Rule(
        _ERROR,
        "a completed instant holds nothing, so nobody knows what it did",
        "an empty clean is run again by hudi-py recover or the next clean; else bring the file back from a copy of "
        "the table",
    ),
    "instant-plan-missing": Rule(
        _ERROR,
        "a pending action has no plan, so nobody can finish it",
        "hudi-py recover moves it away where nothing was done by it, and the next clean a clean; else let Apache Hudi "
        "roll it back",
    ),
    "instant-request-missing": Rule(
        _WARNING,
        "an inflight instant has no requested file",
        "hudi-py recover, or the next write, rolls it back with the other failed writes",
    ),
    "instant-completion-lost": Rule(
        _ERROR,
        "a write is pending and was completed once, as a later clean, savepoint or commit, the metadata table or a "
        "checksum tells: its completed file is lost, and with it its rows are out of sight",
        WAY_OUT,
    ),
    "instant-outcome-unknown": Rule(
        _WARNING,
        "a write is pending, its data files are there, and the markers that were made before them are not: either it "
        "was completed and its completed file is lost, or it failed and its markers were removed by hand",
        "if its writer reported success, put the completed file back from a copy of the table before anybody writes: "
        "the next write takes its files back, as Apache Hudi would; if it failed, hudi-py rollback takes it back",
    ),
    "instant-stale": Rule(
        _WARNING,
        "an action is pending for so long that its process is likely dead",
        "if no writer is at work, hudi-py recover rolls it back or finishes it; so do the next write and clean",
    ),
    "instant-pending": Rule(_INFO, "an action is under way or planned", "nothing, while its process is at work"),
    "instant-twice": Rule(
        _WARNING,
        "an instant was completed more than once",
        "nothing by hand: the newest counts; do not run two processes on one instant",
    ),
    "instant-states-missing": Rule(
        _INFO,
        "a completed instant lacks its earlier states: an archival was interrupted",
        "nothing by hand: the next archival goes on",
    ),
    "timeline-unknown-file": Rule(
        _INFO,
        "a file in the timeline folder stands for no instant",
        "remove it if no writer is at work; a leftover of a writer that died",
    ),
    "archive-unreadable": Rule(
        _ERROR,
        "the archived timeline is damaged or lost",
        "bring its files back from a copy of the table; most cleaning and reading goes on without, archiving of a "
        "damaged one does not",
    ),
    "commits-all-archived": Rule(
        _ERROR,
        "every completed commit is archived and none is active, so readers see no rows",
        "commit again, rows or none: behind an active commit the archived ones count as committed, here and in Apache "
        "Hudi",
    ),
    "leftover-markers": Rule(
        _WARNING,
        "markers of a write that is not pending",
        "hudi-py recover removes them where that write is over; so does its archival",
    ),
    # --- files
    "file-missing": Rule(_ERROR, "a completed commit names a file that is gone, and nothing removed it", _FROM_COPY),
    "file-needed-again": Rule(
        _ERROR,
        "a file was deleted that holds the latest rows: what superseded it was undone since",
        f"{_FROM_COPY}; then run hudi-py recover",
    ),
    "snapshot-file-missing": Rule(
        _ERROR,
        "a clean deleted a file that held rows at a time which it recorded as whole: read as of then, rows are missing",
        _FROM_COPY,
    ),
    "file-size-differs": Rule(_ERROR, "a file is not as long as its commit says: torn or overwritten", _FROM_COPY),
    "file-unnamed": Rule(
        _ERROR,
        "a file has the time of a completed commit that does not name it; readers show its rows",
        "a leftover of a task that ran twice: compare with the file that the commit names, then remove it",
    ),
    "file-looks-committed": Rule(
        _ERROR,
        "a file of no known commit is older than the active timeline, so readers take it for a committed one",
        "hudi-py recover removes it where a rollback took its write back; else look at its rows, then remove it",
    ),
    "file-format-other": Rule(
        _WARNING,
        "a base file has another format than the table; reading its rows is refused, and so are writing, cleaning and "
        "savepoints where it lies",
        "leave it where it is: Apache Hudi may know what it holds; use that for this table",
    ),
    "file-orphaned": Rule(
        _WARNING,
        "a file belongs to no instant; readers do not see it",
        "hudi-py recover removes it where a rollback took its write back; else remove it if no writer is at work",
    ),
    "savepoint-file-missing": Rule(
        _ERROR, "a savepoint holds a file that is not there, so it cannot be restored", _FROM_COPY
    ),
    "savepoint-commit-missing": Rule(
        _ERROR,
        "the commit of a savepoint was rolled back, so nobody can go back to it",
        "delete the savepoint with hudi-py savepoint delete, and create one of a commit that is there",
    ),
    "partition-metafile-missing": Rule(
        _ERROR,
        "a folder with data files has no .hoodie_partition_metadata, so listings do not see it",
        "create the file with commitTime and partitionDepth, or bring it back from a copy of the table",
    ),
    "partition-metafile-damaged": Rule(
        _ERROR,
        "a .hoodie_partition_metadata does not tell the depth of its partition, so Apache Hudi fails on it",
        "write it again with commitTime and partitionDepth, the number of folders below the table",
    ),
    # --- metadata table
    "mdt-folder-missing": Rule(
        _ERROR,
        "the properties name a metadata table that is not there; Apache Hudi refuses to write",
        "hudi-py recover clears the property; so does a write with hoodie.metadata.enable=false",
    ),
    "mdt-unreadable": Rule(_ERROR, "the metadata table is damaged", _REBUILD),
    "mdt-file-missing": Rule(
        _ERROR, "a committed file is not in the metadata table, so its rows are invisible through it", _REBUILD
    ),
    "mdt-ghost": Rule(
        _ERROR, "the metadata table lists a file that is not there, as the newest of its group", _REBUILD
    ),
    "mdt-ghost-outdated": Rule(
        _WARNING,
        "the metadata table lists an older file that is not there",
        "a clean of Apache Hudi in its partition drops the entry; until then a savepoint or restore would name it",
    ),
    "mdt-size-differs": Rule(_ERROR, "the metadata table records another length; Apache Hudi reads up to it", _REBUILD),
    "mdt-instant-missing": Rule(_ERROR, "a completed instant was never recorded in the metadata table", _REBUILD),
    "mdt-instant-unknown": Rule(
        _INFO,
        "the metadata table has records of an instant that the table does not know",
        "nothing by itself: where they list files that are gone, that is a finding of its own",
    ),
    "mdt-instant-damaged": Rule(_ERROR, "an instant of the metadata table does not decode or is empty", _REBUILD),
    "mdt-partition-empty": Rule(
        _INFO, "a partition is listed without files; its folder is gone", "nothing: it holds no rows"
    ),
    "mdt-leftover": Rule(
        _INFO,
        "there is a folder of a metadata table that the properties do not name; nobody reads it",
        "hudi-py recover removes it; so does the next write that makes or drops a metadata table",
    ),
    # --- the check itself
    "table-changing": Rule(_INFO, "the table changed while it was looked at", "check again while no writer is at work"),
}


def finding(code: str, where: str, message: str = "") -> Finding:
    """A finding of a known code; *message* adds what is special about this one."""
    rule = RULES[code]
    return Finding(
        severity=rule.severity,
        code=code,
        where=where,
        message=f"{rule.meaning}: {message}" if message else rule.meaning,
        fix=rule.fix,
    )
