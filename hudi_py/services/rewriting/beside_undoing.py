"""Refuses to plan a rewrite while a completed commit is being undone: its rows would come back in the new files."""

from __future__ import annotations

from hudi_py.errors import ConflictError
from hudi_py.fsview.loader import load_undoing
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline


def refuse_beside_undoing(timeline: Timeline, contents: Contents, word: str) -> None:
    """
    Check that no rollback or restore has begun that still leaves a commit of its own completed.

    One that begins later finds the plan, and withdraws it or gives way (`hudi_py.txn.pairs`).

    Args:
        timeline: What the plan is made of, or what it is held against once it is stored.
        contents: Contents of the table's timeline.
        word: ``compaction``, ``log compaction`` or ``clustering``.

    Raises:
        ConflictError: There is one; trying again helps once it has ended.
    """
    for time, by in load_undoing(timeline, contents).items():
        raise ConflictError(
            f"{contents.store.storage.root}: no {word} was planned: {by.action.value} {by.time} is pending and undoes "
            f"{time}, whose rows the new files would keep; try again when it has ended, or finish it: hudi-py recover"
        )
