"""
Checks that the latest rows still exist: the latest slices of all live file groups. Pure.

A missing file that a clean deleted is fine only if nothing needs it. The commits that superseded it, or the
replacecommit that replaced its group, may have been rolled back or undone by a restore since the clean was planned; and
Apache Hudi carries out a plan however old it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import Written, expected_slices, is_size_right, removals, replaced_groups
from hudi_py.model.files import BaseFile, join_path, parse_base_file
from hudi_py.model.instant import Action
from hudi_py.model.records import CommitMetadata, RestorePlan
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.findings import Finding, finding
from hudi_py.timeline.archive import ArchivedFile
from hudi_py.timeline.timeline import COMMITS, WRITES

_CODE: Final = "file-needed-again"
_UNDOES: Final = frozenset({Action.ROLLBACK, Action.RESTORE})


def _being_restored_away(facts: TableFacts) -> frozenset[str]:
    """Requested times of writes that a pending restore undoes: states in between may lack files that cleans deleted."""
    plans = (fact.content for fact in facts.instants if fact.instant.is_pending)
    return frozenset(
        target.requested_time for plan in plans if isinstance(plan, RestorePlan) for target in plan.instants_to_rollback
    )


class Needs:
    """
    Files that readers of the latest rows need, and the instants that deleted them.

    Args:
        facts: The facts. If a completed write does not decode, no file counts as needed, because that write may have
            superseded it.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._archived_replaced = facts.archived_replaced
        self._archived_cleans = facts.archived_cleans
        self._archived_bases: dict[str, dict[str, ArchivedFile]] = {}
        self._removals = removals((fact.instant, fact.content) for fact in facts.instants)
        self._latest: dict[str, dict[str, Written]] = {}
        self._replaced: set[GroupKey] = set()
        self._named: set[GroupKey] = set()
        self._cleaned: dict[str, dict[str, BaseFile]] = {}
        completed = [each for each in facts.instants if each.instant.is_completed and each.instant.action in WRITES]
        commits = [(each.instant, each.content) for each in completed if isinstance(each.content, CommitMetadata)]
        # See the class: without all commits nothing can be said to be the latest.
        if len(commits) < len(completed):
            return
        # Writes that are about to be undone do not decide what is the latest.
        undone = _being_restored_away(facts)
        commits = [(instant, content) for instant, content in commits if instant.requested_time not in undone]
        for key, each in expected_slices(commits, facts.log_naming).items():
            for file in each.files:
                self._latest.setdefault(file.partition_path, {})[file.name] = file
            if each.base is not None:
                self._named.add(key)
        for _, content in commits:
            self._replaced.update(replaced_groups(content))
        self._collect_cleaned(facts)
        for (partition, file_id), base in facts.archived_bases.items():
            self._archived_bases.setdefault(partition, {})[file_id] = base

    @property
    def partitions(self) -> frozenset[str]:
        """Every partition with files of commits that are archived by now."""
        return frozenset(self._cleaned) | frozenset(self._archived_bases)

    def is_latest(self, partition: str, name: str) -> bool:
        """Whether readers of the latest rows need the file, even if an instant records its deletion."""
        return self._needed(partition, name) is not None

    def judge(self, partition: str, files: Mapping[str, int | None]) -> Iterator[Finding]:
        """
        Findings about needed files that were deleted, and about files of archived commits.

        Args:
            partition: Relative path.
            files: Names of the files in its folder, to sizes in bytes.
        """
        there = frozenset(files)
        for name, file in self._latest.get(partition, {}).items():
            removed_by = None if name in there else self._removed_by(partition, name)
            if removed_by is not None and self.is_latest(partition, name):
                yield finding(_CODE, join_path(partition, name), f"{file.commit} wrote it, {removed_by} deleted it")
        left: dict[str, str] = {}
        for base in filter(None, map(parse_base_file, there)):
            left[base.file_id] = max(base.instant_time, left.get(base.file_id, ""))
        yield from self._judge_cleaned(partition, left)
        yield from self._judge_archived(partition, files, left)

    def _needed(self, partition: str, name: str) -> Written | None:
        """The file, unless a replacecommit that is archived after a savepoint has replaced it (D-7)."""
        file = self._latest.get(partition, {}).get(name)
        if file is None:
            return None
        replaced_at = self._archived_replaced.get((partition, file.file_id))
        # Replaced after the commit that names it, so no reader opens it any more.
        if replaced_at is not None and replaced_at >= file.commit.requested_time:
            return None
        by = self._removals.get((partition, name), ())
        return None if any(each.action in _UNDOES and each.is_pending for each in by) else file

    def _removed_by(self, partition: str, name: str) -> str | None:
        by = self._removals.get((partition, name))
        if by:
            # The last one, because what an earlier one deleted was not there any more.
            return str(by[-1])
        return "an archived clean" if name in self._archived_cleans.get(partition, ()) else None

    def _collect_cleaned(self, facts: TableFacts) -> None:
        """
        Collect the newest base file of each group that an archived commit wrote and a clean deleted.

        No active commit names it, so the clean was right only if a newer base file of the group exists.
        """
        archived = {i.requested_time for i in facts.archived or () if i.is_completed and i.action in COMMITS}
        cleaned = [key for key, by in self._removals.items() if any(each.action is Action.CLEAN for each in by)]
        cleaned += [(partition, name) for partition, names in self._archived_cleans.items() for name in names]
        for partition, name in cleaned if archived else ():
            base = parse_base_file(name)
            if base is None or base.instant_time not in archived:
                continue
            newest = self._cleaned.setdefault(partition, {})
            known = newest.get(base.file_id)
            if known is None or known.instant_time < base.instant_time:
                newest[base.file_id] = base

    def _is_superseded(self, key: GroupKey, time: str) -> bool:
        """Whether an active commit wrote to the group later, or its files of that time were replaced."""
        return key in self._replaced or key in self._named or self._archived_replaced.get(key, "") >= time

    def _judge_archived(
        self, partition: str, files: Mapping[str, int | None], left: Mapping[str, str]
    ) -> Iterator[Finding]:
        """Findings about the newest files of archived commits, except those that a clean deleted."""
        for file_id, base in self._archived_bases.get(partition, {}).items():
            path = join_path(partition, base.name)
            if base.name in files:
                size = files[base.name]
                if not is_size_right(base.size_bytes, size, is_log=False):
                    message = f"{size} bytes, {base.time}, which is archived, wrote {base.size_bytes}"
                    yield finding("file-size-differs", path, message)
                continue
            # A newer file of the group has its rows.
            is_newer_there = left.get(file_id, "") >= base.time
            if is_newer_there or self._is_superseded((partition, file_id), base.time):
                continue
            if self._removed_by(partition, base.name) is None:
                yield finding("file-missing", path, f"written by {base.time}, which is archived")

    def _judge_cleaned(self, partition: str, left: Mapping[str, str]) -> Iterator[Finding]:
        for file_id, base in self._cleaned.get(partition, {}).items():
            if self._is_superseded((partition, file_id), base.instant_time):
                continue
            # Superseded, as the clean had assumed.
            if left.get(file_id, "") >= base.instant_time:
                continue
            by = self._removed_by(partition, base.name)
            yield finding(_CODE, join_path(partition, base.name), f"an archived commit wrote it, {by} deleted it")
