"""Checks that no clustering has rewritten a file group that another action replaced, too. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import replaced_groups
from hudi_py.model.files import join_path
from hudi_py.model.records import CommitMetadata
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.findings import Finding, finding

_CLUSTER: Final = "CLUSTER"


def judge_rewrites(facts: TableFacts) -> Iterator[Finding]:
    """
    Findings about file groups that were replaced twice, once by a clustering.

    Of two clusterings each has written the rows of the group to files of its own. If the other one was an overwrite or
    a drop, the clustering has brought back rows that were to go. Two of these hide the same rows, which is no harm.
    """
    first: dict[GroupKey, tuple[str, bool]] = {key: (time, False) for key, time in facts.archived_replaced.items()}
    for fact in facts.instants:
        content = fact.content
        if not (fact.instant.is_completed and isinstance(content, CommitMetadata)):
            continue
        time, rewrites = fact.instant.requested_time, (content.operation_type or "").upper() == _CLUSTER
        for key in replaced_groups(content):
            earlier, rewrote = first.setdefault(key, (time, rewrites))
            if earlier != time and (rewrites or rewrote):
                yield finding("group-rewritten-twice", join_path(*key), f"by {earlier} and by {fact.instant}")
