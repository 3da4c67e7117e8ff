"""
Checks that no clustering has rewritten a file group that another action replaced, too, and that no commit lies below
the one that it was built upon. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
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


def judge_order(facts: TableFacts) -> Iterator[Finding]:
    """
    Findings about base files that were built upon one with a later time, which readers take for the newer one.

    Apache Hudi 0.15 gives a write its time before it creates the write's first file and, with a lock, before it takes
    that; the writes that complete in between are what it builds upon.
    """
    completed = {fact.instant.requested_time: fact.instant for fact in facts.instants if fact.instant.is_completed}
    for fact in facts.instants:
        content, instant = fact.content, fact.instant
        if not (instant.is_completed and isinstance(content, CommitMetadata)):
            continue
        for stat in chain.from_iterable(content.partition_to_write_stats.values()):
            before = completed.get(stat.prev_commit or "")
            is_base = not (stat.path or "").rpartition("/")[2].startswith(".")
            if is_base and before is not None and before.requested_time > instant.requested_time:
                yield finding("file-overlooked", stat.path or "", f"{instant} built it upon the file of {before}")
