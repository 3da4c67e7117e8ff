"""
Sets and removes the switch of a table against all deletion of data, a property in ``hoodie.properties``.

Under the table's lock, by the rewrite of the properties that a crash cannot tear. A clean begins under the same lock,
so none begins afterwards; one that is deleting at this moment stops before its next round of files.
"""

from __future__ import annotations

import attrs

from hudi_py.errors import CorruptMetadata, NotFound, RefusedError
from hudi_py.model.instant import Action
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import SWITCH
from hudi_py.timeline.properties_file import read_properties, update_properties
from hudi_py.timeline.timeline import Timeline


@attrs.frozen(kw_only=True)
class DeletionService:
    """
    Args:
        contents: The table's timeline.
    """

    contents: Contents

    def forbid(self) -> bool:
        """
        Forbid deletion; return False if it was forbidden already.

        Raises:
            RefusedError: A restore, or the rollback of a completed commit, has begun: half undone, the table would be
                neither what it was nor what it is to be.
            ConflictError: Another process holds the table's lock, or rewrites the properties; nothing was changed.
        """
        store = self.contents.store
        with store.lock.held("deletion forbid"):
            self._refuse_undoing(store.load())
            if read_properties(store.storage).get(SWITCH) == "false":
                return False
            update_properties(store.storage, {SWITCH: "false"}, store.clock)
        return True

    def allow(self) -> bool:
        """
        Allow deletion again; return False if it was allowed. The settings of a process may forbid it all the same.

        Raises:
            ConflictError: As `forbid`.
        """
        store = self.contents.store
        with store.lock.held("deletion allow"):
            if SWITCH not in read_properties(store.storage):
                return False
            update_properties(store.storage, {SWITCH: None}, store.clock)
        return True

    def _refuse_undoing(self, timeline: Timeline) -> None:
        begun = list(timeline.pending(Action.RESTORE))
        for rollback in timeline.pending(Action.ROLLBACK):
            try:
                target = self.contents.rollback_plan(rollback).instant_to_rollback
            except (CorruptMetadata, NotFound):  # it has done nothing, and never will (rule B-7)
                continue
            found = None if target is None else timeline.find(target.requested_time)
            if found is not None and found.is_completed and found.action is not Action.CLEAN:
                begun.append(rollback)
        if begun:
            raise RefusedError(
                f"{self.contents.store.storage.root}: deletion stays allowed, {begun[0]} is pending and has to delete "
                "files; finish it first: hudi-py recover"
            )
