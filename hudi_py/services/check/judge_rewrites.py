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
from hudi_py.model.files import join_path, parse_base_file, parse_log_file
from hudi_py.model.instant import Action, Instant
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
    Findings about files that readers pass over, because a write was built upon something else than what it follows.

    Apache Hudi 0.15 gives a write its time before it creates the write's first file and, with a lock, before it takes
    that: what completes in between has later times and is what the write builds upon. And where a write that failed has
    left a base file in a file group, it adds rows to the base file below as if that had no log files.
    """
    completed = {fact.instant.requested_time: fact.instant for fact in facts.instants if fact.instant.is_completed}
    written = [
        (fact.instant, stat, stat.path or "")
        for fact in facts.instants
        if fact.instant.is_completed and isinstance(fact.content, CommitMetadata)
        for stat in chain.from_iterable(fact.content.partition_to_write_stats.values())
    ]
    logs: dict[tuple[GroupKey, str], list[tuple[Instant, str]]] = {}
    """By file group and time of the base file below, where names tell it: in layout 1."""
    for instant, _, path in written:
        partition, _, name = path.rpartition("/")
        log = parse_log_file(name)
        if log is not None and not log.is_cdc and facts.log_naming.tells_slice:
            logs.setdefault(((partition, log.file_id), log.instant_time), []).append((instant, path))
    for instant, stat, path in written:
        partition, _, name = path.rpartition("/")
        base, before = parse_base_file(name), completed.get(stat.prev_commit or "")
        if base is None:
            continue
        if before is not None and before.requested_time > instant.requested_time:
            yield finding("file-overlooked", path, f"{instant} built it upon the file of {before}")
        if instant.action is Action.DELTA_COMMIT:  # a compaction merges them
            for by, log_path in logs.get(((partition, base.file_id), stat.prev_commit or ""), ()):
                yield finding("log-overlooked", log_path, f"{by} wrote it, and {instant} {path}")
