"""What hooks receive about a completed action. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

ARCHIVE: Final = "archive"
"""Action of an archival, which has no instant."""
_COMMITS: Final = frozenset({"commit", "deltacommit", "replacecommit"})
_REWRITES: Final = frozenset({"COMPACT", "LOG_COMPACT", "CLUSTER"})


@attrs.frozen(kw_only=True)
class Completed:
    """
    An action on a table that has just completed.

    Args:
        location: Base path or URL of the table.
        table_name: Its name.
        action: Action as on the timeline (``commit``, ``clean``, ...), or ``archive``.
        requested_time: Requested time of the instant; None for an archival.
        completion_time: Its completion time; None where the table's version has none.
        content: Decoded content of the instant, as ``hudi-py instant --json`` shows it; of an archival the number of
            instants, ``{"archived": 12}``. None if it could not be read any more.
    """

    location: str
    table_name: str
    action: str
    requested_time: str | None
    completion_time: str | None
    content: Mapping[str, Any] | None

    @property
    def is_commit(self) -> bool:
        """Whether rows were written or dropped; else it is a service: clean, compaction, clustering and the like."""
        operation = None if self.content is None else self.content.get("operationType")
        # Compactions and clusterings have the action of a commit on the timeline.
        return self.action in _COMMITS and operation not in _REWRITES

    @property
    def document(self) -> dict[str, Any]:
        """As JSON: what commands and addresses are given."""
        return {
            "table": self.location,
            "name": self.table_name,
            "kind": "commit" if self.is_commit else "service",
            "action": self.action,
            "requested_time": self.requested_time,
            "completion_time": self.completion_time,
            "content": self.content,
        }

    @property
    def hudi_message(self) -> dict[str, Any]:
        """The message of Apache Hudi's callback after a commit (``HoodieWriteCommitCallbackMessage``)."""
        content = self.content or {}
        by_partition = content.get("partitionToWriteStats") or {}
        return {
            "commitTime": self.requested_time,
            "tableName": self.table_name,
            "basePath": self.location,
            "hoodieWriteStat": [stat for stats in by_partition.values() for stat in stats],
            "commitActionType": self.action,
            "extraMetadata": content.get("extraMetadata") or {},
        }
