"""Pending plans that hudi_py does not carry out: they stay as they are, and the rest of the table is rewritten."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from hudi_py.errors import UnsupportedTable
from hudi_py.fsview.build import GroupKey
from hudi_py.model.instant import Instant
from hudi_py.runtime.log import log
from hudi_py.services.rewriting.apart import why_not_apart
from hudi_py.storage.base import Storage
from hudi_py.txn.commit import cancelling


@attrs.frozen
class LeftPending:
    """
    A pending plan that is not carried out.

    Args:
        instant: The pending instant.
        reason: Why not, and what to do.
        groups: Partition path and file id of the groups in the plan, which no other plan can have.
    """

    instant: Instant
    reason: str
    groups: frozenset[GroupKey]


def left_pending_if(
    instant: Instant, groups: frozenset[GroupKey], storage: Storage, not_served: str | None
) -> LeftPending | None:
    """
    Judge a stored plan.

    Args:
        instant: The pending instant.
        groups: Partition path and file id of the groups in the plan.
        storage: Of the table.
        not_served: Why hudi_py does not carry it out, as the end of a sentence about it; None if it asks for nothing
            unknown.

    Returns:
        None if it is carried out.
    """
    withdraw = f"withdraw it with {cancelling(storage.root, instant)}"
    if not_served is not None:
        told = f"{not_served}; let Apache Hudi carry it out, or {withdraw}"
    else:
        apart = why_not_apart(storage, groups)
        if apart is None:
            return None
        told = f"{apart}; {withdraw}"
    return LeftPending(instant, f"{instant} of {storage.root} {told}", groups)


def note_left(left: Iterable[LeftPending]) -> None:
    """Tell the log."""
    for each in left:
        log.warning("rewrite.left_pending", instant=each.instant.requested_time, why=each.reason)


def refuse_in_the_way(left: Iterable[LeftPending], wanted: Collection[GroupKey]) -> None:
    """
    Refuse a run that has done nothing because of such a plan.

    Args:
        left: The plans.
        wanted: Groups that the run would have looked at, and has left out.

    Raises:
        UnsupportedTable: A plan has some of them.
    """
    for each in left:
        if not each.groups.isdisjoint(wanted):
            raise UnsupportedTable(each.reason)
