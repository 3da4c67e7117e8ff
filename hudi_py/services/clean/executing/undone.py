"""
Refuses to clean while a completed commit is being undone.

Such a clean would count slices that are about to be deleted as the newest ones, and delete those before them.
"""

from __future__ import annotations

from hudi_py.errors import CorruptMetadata, RefusedError
from hudi_py.model.instant import Action
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def refuse_under_undoing(contents: Contents, timeline: Timeline) -> None:
    """
    Raise while a restore, or the rollback of a commit that still counts as completed, is pending.

    The undo of a clean counts as well, but not the rollback of a failed write, because no view shows its files. Apache
    Hudi plans in all of these cases.

    Raises:
        RefusedError: Finish the rollback or restore first.
    """
    for restore in timeline.pending(Action.RESTORE):
        raise RefusedError(_text(contents, f"{restore} is pending"))
    for rollback in timeline.pending(Action.ROLLBACK):
        try:
            target = contents.rollback_plan(rollback).instant_to_rollback
        except CorruptMetadata:  # without a readable plan it has undone nothing, and never will (rule B-7)
            continue
        # The undo of a clean: its files, which come back, would be planned again before all of them are there. In its
        # last steps the clean has left the timeline already.
        if target is not None and target.action == Action.CLEAN.value:
            raise RefusedError(_text(contents, f"{rollback} is pending, which undoes clean {target.requested_time}"))
        undone = None if target is None else timeline.find(target.requested_time)
        if undone is not None and not undone.is_pending:
            raise RefusedError(_text(contents, f"{rollback} is pending, which undoes {undone}"))


def _text(contents: Contents, what: str) -> str:
    root = contents.store.storage.root
    return f"{root}: nothing was planned and nothing was deleted: {what}. Finish it: hudi-py recover"
