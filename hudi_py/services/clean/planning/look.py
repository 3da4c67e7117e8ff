"""
One look at a table's partitions, ending early when the time is up.

A plan that is cut short is made for the whole window nevertheless: what it leaves lies in partitions that nobody looked
at, where every file of the window is still there to be read. Its recorded window tells the next incremental plan that
those partitions are done, so they are named in a file of our own; where that is lost, they are cleaned when they are
written again or by the next look at everything. The archiver trusts the window too, so that partitions with replaced
groups are never left out (rule D-9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from hudi_py.model.files import is_partition_path
from hudi_py.runtime.clock import Deadline
from hudi_py.services.clean.memory.notes import Note
from hudi_py.services.clean.planning.plan import Unseen
from hudi_py.services.clean.retention.policy import PartitionJudgement
from hudi_py.storage.base import Entry, Storage


def _parse(document: Any) -> Unseen:
    partitions = document["partitions"]
    if partitions is None or not all(map(is_partition_path, partitions)):
        return Unseen(everything=True)
    return Unseen(partitions=frozenset(partitions))


UNSEEN: Final = Note[Unseen](name="unseen", parse=_parse, absent=Unseen(), damaged=Unseen(everything=True))
"""Partitions that were left out for want of time."""


def remember_unseen(storage: Storage, known: Unseen, unseen: Unseen) -> None:
    """Store *unseen* in the place of *known*. Raises `StorageError`: then the plan must not be stored."""
    if unseen == known:
        return
    partitions = None if unseen.everything else sorted(unseen.partitions)
    UNSEEN.store(storage, {"partitions": partitions} if unseen else None)


@attrs.define
class Look:
    """
    Judges partition by partition until the deadline.

    At least something to delete is found first, however long that takes: otherwise a table that takes longer to list
    than the time allows would never be cleaned beyond its first partitions.

    Args:
        judge: Judges one partition by its files.
        listed: The files of one partition.
        deadline: When the run has to stop.
        always: Partitions that are looked at in any case.
        seen: Partitions looked at, where the time is limited.
        is_cut: Set once partitions were left out.
    """

    judge: Callable[[str, list[Entry]], PartitionJudgement]
    listed: Callable[[str], list[Entry]]
    deadline: Deadline
    always: frozenset[str] = frozenset()
    seen: set[str] = attrs.field(factory=set)
    is_cut: bool = False

    def judgements(self, partitions: Iterable[tuple[str, list[Entry]]]) -> Iterator[PartitionJudgement]:
        """The judgements of *partitions*, in the same order."""
        has_found = False
        for path, entries in partitions:
            if has_found and self.deadline.is_over:
                self.is_cut = True
                break
            judged = self.judge(path, entries)
            if self.deadline.is_limited:
                self.seen.add(path)
                has_found = has_found or judged.condemned_count > 0
            yield judged
        if self.is_cut:
            for path in sorted(self.always - self.seen):
                self.seen.add(path)
                yield self.judge(path, self.listed(path))
