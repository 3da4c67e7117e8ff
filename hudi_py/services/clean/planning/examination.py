"""
Examines the partitions of a table until the time limit.

A plan that is cut short still records the whole window: the partitions that it left out were not touched, so all files
of the window can still be read there. But the next incremental plan takes that window for done, so the partitions left
out are named in a file of hudi_py. If that file is lost, they are cleaned after their next write, or by the next plan
that examines all partitions. The archiver trusts the window too, so partitions with replaced groups are never left out
(rule D-9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import attrs

from hudi_py.model.files import is_partition_path
from hudi_py.runtime.clock import Deadline
from hudi_py.services.clean.memory.notes import Note
from hudi_py.services.clean.planning.scope import Unseen
from hudi_py.services.clean.retention.policy import PartitionJudgement
from hudi_py.storage.base import Entry, Storage


def _parse(document: Any) -> Unseen:
    partitions = document["partitions"]
    # A note that names something other than a partition counts as damaged: everything is looked at.
    if partitions is None or not all(map(is_partition_path, partitions)):
        return Unseen(everything=True)
    return Unseen(partitions=frozenset(partitions))


UNSEEN: Final = Note[Unseen](name="unseen", parse=_parse, absent=Unseen(), damaged=Unseen(everything=True))
"""Partitions that were left out at the time limit. If the note is damaged, any partition may be among them."""


def remember_unseen(storage: Storage, known: Unseen, unseen: Unseen) -> None:
    """Replace *known* by *unseen*. Raises `StorageError`; then the plan must not be stored."""
    if unseen == known:
        return
    partitions = None if unseen.everything else sorted(unseen.partitions)
    UNSEEN.store(storage, {"partitions": partitions} if unseen else None)


@attrs.define
class Examination:
    """
    Judges partition by partition until the deadline.

    It goes on until a file to delete is found, however long that takes: otherwise a table whose listing takes longer
    than the limit would never be cleaned beyond its first partitions.

    Args:
        judge: Judges one partition by its files.
        listed: Lists the files of one partition.
        deadline: Time limit of the run.
        always: Partitions that are always examined.
        seen: The examined partitions; filled only if the time is limited.
        is_cut: Whether partitions were left out.
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
