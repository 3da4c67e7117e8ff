"""
Sets and removes the switch of a table against all deletion of data, a property in ``hoodie.properties``.

Under the table's lock, by the rewrite of the properties that a crash cannot tear. A clean begins under the same lock,
so none begins afterwards; one that is deleting at this moment stops before its next round of files.
"""

from __future__ import annotations

import attrs

from hudi_py.timeline.contents import Contents
from hudi_py.timeline.deletion import SWITCH
from hudi_py.timeline.half_undone import refuse_undoing
from hudi_py.timeline.properties_file import read_properties, update_properties


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
            refuse_undoing(self.contents, "deletion stays allowed")
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
