"""Restores and rollbacks of completed commits that have begun: what would stop them half-way waits for their end."""

from __future__ import annotations

from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.model.instant import Action
from hudi_py.timeline.contents import Contents


def refuse_undoing(contents: Contents, stays: str) -> None:
    """
    Raise if a restore, or the rollback of a completed commit, has begun, which a change of the switch would stop.

    Args:
        contents: The table's timeline; the caller holds its lock.
        stays: What is not changed, for the message.

    Raises:
        RefusedError: Half undone, the table would be neither what it was nor what it is to be.
    """
    timeline = contents.store.load()
    begun = list(timeline.pending(Action.RESTORE))
    for rollback in timeline.pending(Action.ROLLBACK):
        try:
            target = contents.rollback_plan(rollback).instant_to_rollback
        except (CorruptMetadata, NotFound):  # it has done nothing, and never will (rule B-7)
            continue
        found = None if target is None else timeline.find(target.requested_time)
        if found is not None and found.is_completed and found.action is not Action.CLEAN:
            begun.append(rollback)
    if begun:
        raise RefusedError(
            f"{contents.store.storage.root}: {stays}, {begun[0]} is pending and has to delete files; finish it first: "
            "hudi-py recover"
        )
