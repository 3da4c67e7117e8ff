"""Judges leases: expired ones, and cleans that did not know of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo

from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import format_instant_time
from hudi_py.model.lease import Lease, iso
from hudi_py.model.records import CleanerPlan
from hudi_py.services.check.findings import Finding
from hudi_py.services.clean.executing.recheck import covers
from hudi_py.services.doctor.findings import finding
from hudi_py.timeline.leases import FOLDER


def judge_leases(
    leases: Iterable[Lease],
    cleans: Iterable[tuple[Instant, CleanerPlan]],
    undone: Mapping[str, str],
    now: datetime,
    zone: tzinfo,
) -> Iterator[Finding]:
    """
    What is worth knowing about leases.

    Args:
        leases: All of them.
        cleans: Cleans of the active timeline with their plans, ascending.
        undone: Ids of consumers that have read commits which were undone since, to the reason.
        now: With a time zone.
        zone: Time zone of the table's instants.
    """
    planned = tuple(cleans)
    for lease in leases:
        where = f"{FOLDER}/{lease.id}.json"
        if lease.id in undone:
            what = f"what it has read until {lease.instant} has rows of {undone[lease.id]}"
            yield finding("consumer-undone", where, f"consumer {lease.holder}: {what}")
        if not lease.is_usable(now):
            yield finding("lease-expired", where, f"{lease.holder}: expired at {iso(lease.expires)}")
            continue
        if lease.has_savepoint:
            continue  # such a clean keeps the files for the savepoint
        taken = format_instant_time(lease.created.astimezone(zone))
        for clean, plan in planned:
            # A plan of hudi_py covers every lease; with writes that were pending, its times alone do not show it.
            if clean.requested_time > taken and not lease.pending and not covers(plan, lease):
                yield finding("lease-unheeded", where, f"{clean} was planned without {lease}")
                break
