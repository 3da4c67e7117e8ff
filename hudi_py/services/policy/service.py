"""
Puts a retention policy in force, under the table's lock.

The document first, then the property that names it: a crash in between leaves the policy that was in force before. The
document before goes last, because until then it may be needed.
"""

from __future__ import annotations

import attrs

from hudi_py.config.retention_policy import RetentionPolicy
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.half_undone import refuse_undoing
from hudi_py.timeline.policy_file import PROPERTY, forget_policy, store_policy
from hudi_py.timeline.properties_file import read_properties, update_properties


@attrs.frozen(kw_only=True)
class PolicyService:
    """
    Args:
        contents: The table's timeline.
    """

    contents: Contents

    def apply(self, policy: RetentionPolicy | None) -> bool:
        """
        Put a policy in force, or none; return False if it was in force already.

        Raises:
            RefusedError: A restore, or the rollback of a completed commit, has begun: it would stop half-way.
            ConflictError: Another process holds the table's lock, or rewrites the properties; nothing was changed.
        """
        store = self.contents.store
        storage = store.storage
        with store.lock.held("policy apply"):
            before, mark = read_properties(storage).get(PROPERTY, ""), "" if policy is None else policy.mark
            if before != mark:
                refuse_undoing(self.contents, "the retention policy stays as it is")
            if policy is not None:
                store_policy(storage, policy)  # in any case: the document in force may have been lost
            if before != mark:
                update_properties(storage, {PROPERTY: mark or None}, store.clock)
                forget_policy(storage, before)
        return before != mark
