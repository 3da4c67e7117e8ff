"""
All findings of ``hudi-py doctor``. Pure.

Codes and severities are stable, as those of `hudi_py.services.check.findings`, whose `Finding` is used. An ``error``
means that cleaning, archival or reading does not work as it is set up, a ``warning`` that it will get worse by itself,
``info`` that it is worth knowing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from hudi_py.services.check.findings import Rule, Severity, finding_of

_ERROR, _WARNING, _INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

RULES: Final[Mapping[str, Rule]] = {
    # --- settings
    "settings-contradict": Rule(
        _ERROR,
        "settings contradict each other or are invalid, so cleans or archival refuse to run",
        "correct the settings that the message names",
    ),
    "settings-never-clean": Rule(
        _ERROR,
        "archival leaves fewer commits active than a clean keeps, so no clean ever deletes anything",
        "set hoodie.keep.min.commits and hoodie.keep.max.commits above the number of commits that cleans retain",
    ),
    "settings-archive-before-clean": Rule(
        _WARNING,
        "archival may reach commits that the next clean still has to look at; cleans then list every partition",
        "set hoodie.keep.min.commits above the number of commits that cleans retain",
    ),
    "settings-questionable": Rule(_WARNING, "settings are allowed, but hardly meant", "see the message"),
    "services-off": Rule(
        _WARNING,
        "hoodie.table.services.enabled=false: neither cleans nor archival run",
        "leave the setting out, or run hudi-py clean and hudi-py archive without it",
    ),
    "deletion-off": Rule(
        _WARNING,
        "hoodie_py.gc.enabled=false: hudi_py deletes no data from this table; Apache Hudi does not know this switch",
        "switch off the cleans of Apache Hudi's writers (hoodie.clean.automatic=false); when it is to end, "
        "hudi-py deletion allow",
    ),
    "clean-automatic-off": Rule(
        _INFO,
        "hoodie.clean.automatic=false: commits do not clean",
        "run hudi-py clean by a scheduler",
    ),
    # --- timeline and instants
    "table-damaged": Rule(
        _ERROR,
        "something that readers, cleans or archival need is damaged, so they fail or refuse to run",
        "see what is damaged with hudi-py check; hudi-py recover --dry-run shows what can be repaired",
    ),
    "instant-stuck": Rule(
        _WARNING,
        "an action is pending for so long that its process has probably ended",
        "if no writer is running, hudi-py recover rolls it back or finishes it",
    ),
    "plan-waiting": Rule(
        _INFO,
        "a compaction or clustering was planned and not carried out for a week; cleans and archival wait for it",
        "hudi-py compact and hudi-py cluster carry it out; with --cancel they withdraw its plan",
    ),
    "clean-blocked": Rule(
        _WARNING,
        "a pending instant holds the retention window back, so cleans delete less and less",
        "finish it or roll it back: hudi-py recover, if no writer is running",
    ),
    "clean-unfinished": Rule(
        _WARNING,
        "a clean was planned and not finished; no other clean is planned before",
        "hudi-py clean finishes it",
    ),
    "clean-overdue": Rule(
        _WARNING,
        "many commits have completed since the last clean",
        "run hudi-py clean, and find out why writers do not",
    ),
    "clean-overtaken": Rule(
        _WARNING,
        "archival has passed the commit where the last clean stopped, so incremental cleans may miss files",
        "run hudi-py clean --full once, and keep more commits active (hoodie.keep.min.commits)",
    ),
    "archival-blocked": Rule(
        _WARNING,
        "archival is due and cannot go on, so the timeline grows and every command gets slower",
        "remove what blocks it; hudi-py archive then continues",
    ),
    "archival-overdue": Rule(
        _WARNING,
        "many more commits are active than the settings ask for, and nothing blocks archival",
        "run hudi-py archive, and find out why writers do not",
    ),
    "timeline-long": Rule(
        _WARNING,
        "the active timeline has so many files that listing it takes long",
        "hudi-py archive; set hoodie.keep.max.commits lower if it stays long",
    ),
    "clock-ahead": Rule(
        _WARNING,
        "an instant lies in the future: a clock was wrong, or a writer used another time zone",
        "compare the clocks of all writers and hoodie.table.timeline.timezone; retention by time is wrong until then",
    ),
    "clock-backwards": Rule(
        _WARNING,
        "an instant was completed before it was requested: two clocks differ, or a clock was set back",
        "synchronize the clocks of all writers (NTP)",
    ),
    "writers-overlap": Rule(
        _WARNING,
        "two writes ran at the same time, and these settings name no lock",
        "set hoodie.write.lock.provider to the same lock for all writers and services",
    ),
    "writers-mixed": Rule(
        _INFO,
        "instants have times of different lengths, so different releases write to the table",
        "use the same lock and the same settings of cleaning in all of them",
    ),
    # --- readers
    "reader-risk": Rule(
        _WARNING,
        "cleans keep one version of each file group, so a query fails when its files are replaced while it runs",
        "keep at least 2 versions, or retain by commits or hours (hoodie.clean.policy)",
    ),
    "reader-window": Rule(
        _INFO,
        "queries and incremental readers that are older than the retention window fail",
        "retain more commits or hours if queries take longer",
    ),
    "consumer-undone": Rule(
        _WARNING,
        "an incremental reader has read commits that a restore or rollback has undone since: what it made of them is "
        "no longer true",
        "let it read the table as a whole, hudi-py consumer delete TABLE NAME, and go on from there",
    ),
    "lease-unheeded": Rule(
        _WARNING,
        "a clean that knew no lease was planned, as by Apache Hudi: files that a reader needs may be deleted",
        "let hudi_py clean this table, or protect readers by savepoints: hudi-py tag create --ttl",
    ),
    "lease-expired": Rule(
        _INFO,
        "a lease has expired: its reader was killed, or takes longer than it asked for",
        "nothing if the reader has ended, the next hudi-py clean deletes the lease; else let it renew its lease",
    ),
    # --- storage
    "files-small": Rule(
        _WARNING,
        "a partition has many small files, which makes every query slower",
        "cluster the table, or write larger batches",
    ),
    "storage-unexamined": Rule(
        _WARNING,
        "files are not needed any more, but the next clean does not look at their partitions",
        "hudi-py clean --full deletes them",
    ),
    "storage-orphaned": Rule(
        _WARNING,
        "files belong to no instant; nothing deletes them",
        "hudi-py check names them; hudi-py recover deletes those whose write was rolled back",
    ),
    "storage-outdated": Rule(
        _WARNING,
        "old versions take many times more space than the newest rows",
        "hudi-py du --by-reason shows what keeps them; hudi-py clean deletes what nothing keeps",
    ),
    "storage-savepoint": Rule(
        _INFO,
        "files are kept by savepoints alone",
        "hudi-py savepoint delete, if it is not needed any more",
    ),
    "storage-removable": Rule(_INFO, "files that the next clean that is due deletes", "hudi-py clean"),
}


finding = partial(finding_of, RULES)
