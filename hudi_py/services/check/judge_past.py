"""
Checks that the rows of earlier times, which no clean has given up, and of savepoints still exist. Pure.

A clean by commits or by hours records since when every snapshot is complete; a clean by file versions gives up all
earlier times. Readers of later times rely on that. So does Apache Hudi, which silently reads fewer rows otherwise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from hudi_py.fsview.build import GroupKey
from hudi_py.fsview.expected import Written, expected_slices, removals, replaced_groups, written_files
from hudi_py.model.files import join_path
from hudi_py.model.holes import holes_of
from hudi_py.model.instant import Action, Instant
from hudi_py.model.records import CleanMetadata, CommitMetadata, SavepointMetadata
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.findings import Finding, finding
from hudi_py.timeline.timeline import COMMITS, WRITES
from hudi_py.versions.format import LogNaming

_Commit = tuple[Instant, CommitMetadata]


class Promises:
    """
    Superseded base files that a readable time needs although a completed clean deleted them, and files that a savepoint
    should have and does not. Usually there are none.

    Args:
        facts: The facts. If a completed write or clean does not decode, it is unknown which times are readable.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._broken: dict[str, list[tuple[Written, str]]] = {}
        completed = [fact for fact in facts.instants if fact.instant.is_completed]
        commits = [(each.instant, each.content) for each in completed if isinstance(each.content, CommitMetadata)]
        cleans = [(each.instant, each.content) for each in completed if isinstance(each.content, CleanMetadata)]
        self._not_held: dict[str, list[tuple[Written, str]]] = {}
        wanted = sum(each.instant.action in WRITES or each.instant.action is Action.CLEAN for each in completed)
        # A commit that does not decode may have superseded or replaced anything.
        if len(commits) + len(cleans) < wanted:
            return
        for each in completed:
            if isinstance(each.content, SavepointMetadata):
                self._look_into(each.instant, each.content, commits, facts)
        if not cleans:
            return
        promised = _promised([i.requested_time for i, _ in commits if i.action in COMMITS], cleans)
        removed = removals(cleans)
        replaced = dict(facts.archived_replaced)
        replaced.update({key: i.requested_time for i, content in commits for key in replaced_groups(content)})
        for file, until in _superseded(commits, facts.log_naming, replaced):
            if (file.partition_path, file.name) not in removed:
                continue
            place = bisect_left(promised, file.slice_time)
            # The first readable time that is not before the file: if it is before the end, its readers need the file.
            if place < len(promised) and promised[place] < until:
                self._broken.setdefault(file.partition_path, []).append((file, promised[place]))

    def judge(self, partition: str, files: Iterable[str]) -> Iterator[Finding]:
        """
        Findings about one partition.

        Args:
            partition: Relative path.
            files: Names of the files in its folder.
        """
        there = frozenset(files)
        for file, time in self._broken.get(partition, ()):
            if file.name not in there:
                yield finding(
                    "snapshot-file-missing", join_path(partition, file.name), f"the table as of {time} needs it"
                )
        for file, time in self._not_held.get(partition, ()):
            if file.name not in there:
                message = f"savepoint {time} does not name it, though its commit needs it"
                yield finding("savepoint-file-missing", join_path(partition, file.name), message)

    def _look_into(
        self, savepoint: Instant, held: SavepointMetadata, commits: Iterable[_Commit], facts: TableFacts
    ) -> None:
        """A savepoint that was created while a clean was running lacks the files that were deleted by then."""
        time = savepoint.requested_time
        for file_slice in expected_slices(
            (c for c in commits if c[0].requested_time <= time), facts.log_naming
        ).values():
            file = file_slice.base
            if file is None or file.name in held.files.get(file.partition_path, ()):
                continue
            replaced_at = facts.archived_replaced.get((file.partition_path, file.file_id), "")
            if not file.commit.requested_time <= replaced_at <= time:
                self._not_held.setdefault(file.partition_path, []).append((file, time))


def _promised(times: Iterable[str], cleans: Sequence[tuple[Instant, CleanMetadata]]) -> list[str]:
    """The times whose snapshots all cleans kept complete, ascending."""
    left = sorted(times)
    for clean, metadata in cleans:
        holes = holes_of(metadata)
        start = holes.window or metadata.earliest_commit_to_retain.strip() or clean.requested_time
        # A time is readable only if all cleans have left it whole, one after the other.
        left = [time for time in left if time >= start or time in holes.snapshots]
    return left


def _superseded(
    commits: Iterable[tuple[Instant, CommitMetadata]], log_naming: LogNaming, replaced: Mapping[GroupKey, str]
) -> Iterator[tuple[Written, str]]:
    """Base files with the time since which readers do not need them: of the next version, or of a replacement."""
    versions: dict[GroupKey, list[Written]] = {}
    for commit, metadata in commits:
        for file in written_files(commit, metadata, log_naming):
            if not file.is_log:
                versions.setdefault((file.partition_path, file.file_id), []).append(file)
    for key, group in versions.items():
        group.sort(key=lambda each: each.slice_time)
        end = replaced.get(key)
        for file, following in zip_longest(group, group[1:]):
            times = [time for time in (end, following and following.slice_time) if time is not None]
            if times:
                yield file, min(times)
