"""Pending plans that hudi_py does not carry out: they stay as they are, and the rest of the table is rewritten."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from hudi_py.errors import UnsupportedTable
from hudi_py.fsview.build import GroupKey
from hudi_py.model.instant import Instant
from hudi_py.runtime.log import log
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


def way_out(root: str, instant: Instant) -> str:
    """Return what to do about such a plan."""
    return f"let Apache Hudi carry it out, or withdraw it with {cancelling(root, instant)}"


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
