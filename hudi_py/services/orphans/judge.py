"""
Which files belong to no instant, and which of those may be removed. Pure.

Two steps, because nearly all files of a table are in order: `Suspicion` looks at the name alone and passes over files
of known writes; `judge` asks about the few that are left everything that the check knows of the table. A file is
removed only if each of these is known, and speaks for it; otherwise it is kept, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import tzinfo
from typing import Final

import attrs

from hudi_py.fsview.fate import PartitionFates
from hudi_py.fsview.foreign import foreign_base_files
from hudi_py.fsview.needs import Needed
from hudi_py.fsview.origin import Origins
from hudi_py.model.files import (
    PARTITION_METAFILES,
    BaseFile,
    LogFile,
    base_file_key,
    base_file_keys,
    join_path,
    parse_data_file,
    parse_log_file,
)
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.model.removal_list import unlisted
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.judge_files import Expectation
from hudi_py.services.orphans.facts import OrphanFate, OrphanFile, OrphanVerdict
from hudi_py.storage.base import Entry
from hudi_py.timeline.completions import Undone

FEW: Final = 10
"""Up to this number of files the share is not looked at: in a small table one file is a large share."""
LISTED: Final = "the metadata table lists it, and would list it when it is gone; docs/orphans.md says how it can go"


class Suspicion:
    """
    Finds the files that may belong to no instant, by their names.

    Args:
        origins: The times of the table's writes.
        undone: What undid a write, by its requested time.
        cleaned: Partition path to names of files that completed cleans recorded, to the clean.
        clustered: Requested time of each completed clustering to the names of its files: no other name tells of a late
            task, whose file has an id of its own.
    """

    def __init__(
        self,
        origins: Origins,
        undone: Mapping[str, Undone],
        cleaned: Mapping[str, Mapping[str, str]],
        clustered: Mapping[str, frozenset[str]],
    ) -> None:
        self._origins, self._undone, self._cleaned, self._clustered = origins, undone, cleaned, clustered
        self._is_suspect: dict[str, bool] = {}
        self.files_seen = 0
        self.early: set[str] = set()
        """Times of files from before the active timeline."""

    def of(self, partition_path: str, entries: Collection[Entry]) -> list[OrphanFile]:
        """The suspects among the files of one folder."""
        cleaned = self._cleaned.get(partition_path, {})
        names = [entry.name for entry in entries]
        strange = None if cleaned else self._strange(names)
        if strange is not None:
            if not strange:
                return []
            entries = [entry for entry in entries if entry.name in strange]
        attempts: dict[tuple[str, str], Entry] = {}
        found: dict[str, Entry] = {}
        for entry in entries:
            name = entry.name
            # Without a value for each of what may be a million files.
            base = base_file_key(name)
            if base is None:
                log = parse_log_file(name)
                if log is None:
                    continue
                time = log.instant_time
            else:
                time = base[1]
            self.files_seen += 1
            named = self._clustered.get(time)
            if self._suspects(time) or name in cleaned or (named is not None and name not in named):
                found[name] = entry
            if base is not None:  # of two attempts of a task, one is left over
                other = attempts.setdefault(base, entry)
                if other is not entry:
                    found[name] = entry
                    # Both: the names do not say which of the attempts the commit recorded; `judge` reads that in its
                    # metadata.
                    found[other.name] = other
        return [
            OrphanFile(partition_path, name, each.size_bytes or 0, each.modified_ms) for name, each in found.items()
        ]

    def _strange(self, names: list[str]) -> frozenset[str] | None:
        """
        The suspects in a folder as most are: base files of which each is the only attempt of its task.

        None for any other folder: then each name is looked at.
        """
        # All others whose names begin with a dot may be log files.
        is_plain = f"/{'/'.join(names)}".count("/.") == len(PARTITION_METAFILES.intersection(names))
        keys = base_file_keys(names) if is_plain else []
        times = {time for _, time in keys}
        if not is_plain or len(set(keys)) < len(keys) or not times.isdisjoint(self._clustered):
            return None
        strange = [time for time in times if self._suspects(time)]
        # Found by the time anywhere in the name, so it may be a few more: they are looked at again.
        found = frozenset(name for name in names if any(time in name for time in strange)) if strange else frozenset()
        self.files_seen += len(keys) - sum(base_file_key(name) is not None for name in found)
        return found

    def _suspects(self, time: str) -> bool:
        # By time, of which a table has far fewer than files: a million names cost a look into a dictionary each.
        found = self._is_suspect.get(time)
        if found is None:
            found = self._is_suspect[time] = self._judge(time)
        return found

    def _judge(self, time: str) -> bool:
        start = self._origins.timeline.first_not_savepointed
        if start is not None and time < start:
            self.early.add(time)
        return time in self._undone or self._origins.is_orphan(time) or self._origins.looks_committed(time)


@attrs.frozen(kw_only=True)
class Surroundings:
    """
    What is known of the table around the suspects.

    Args:
        expected: What the instants say of the table's files.
        facts: The contents of all instants.
        undone: As for `Suspicion`.
        cleaned: As for `Suspicion`.
        fates: Who needs the files of each partition.
        listed: Names of the files that the metadata table lists, by partition path; None without metadata table.
        alive: Requested times of writes whose heartbeat is not expired.
        marked: Partition path and name of each file that has a marker of a pending write.
        before_ms: Only files from before this time are removed, in epoch milliseconds.
        zone: Of the times in names.
    """

    expected: Expectation
    facts: TableFacts
    undone: Mapping[str, Undone]
    cleaned: Mapping[str, Mapping[str, str]]
    fates: Mapping[str, PartitionFates]
    listed: Mapping[str, Collection[str]] | None
    alive: frozenset[str]
    marked: frozenset[tuple[str, str]]
    before_ms: int
    zone: tzinfo


def judge(seen: Surroundings, suspects: Iterable[OrphanFile]) -> Iterator[OrphanVerdict]:
    """Judge each suspect; those that turn out to be files of the table are left out."""
    for file in suspects:
        parsed = parse_data_file(file.name)
        assert parsed is not None  # only data files are suspects
        reason, doubt = _reason(seen, file, parsed)
        # An instant accounts for it after all: a commit names it, or its write is pending.
        if not reason:
            continue
        if _is_young(seen, file, parsed.instant_time):
            yield OrphanVerdict(
                file, OrphanFate.YOUNG, reason, "it is not old enough: a write that is running may need it"
            )
            continue
        why = doubt or _kept(seen, file, parsed)
        yield OrphanVerdict(file, OrphanFate.KEEP if why else OrphanFate.REMOVE, reason, why)


def _reason(seen: Surroundings, file: OrphanFile, parsed: BaseFile | LogFile) -> tuple[str, str]:
    """Why the file belongs to no instant, ``""`` if it belongs to one; and what makes that doubtful."""
    expected, time = seen.expected, parsed.instant_time
    if isinstance(parsed, BaseFile) and foreign_base_files([file.name], expected.extensions):
        return f"no instant has its time {time}", "it has another format than the table's files"
    # Asked before the instants: a file that a clean recorded belongs to a completed write, and would pass for a file
    # of the table.
    clean = seen.cleaned.get(file.partition_path, {}).get(file.name)
    if clean is not None:
        return f"clean {clean} was to delete it, and could not", ""
    if file.name in expected.named.get(file.partition_path, {}) or time in expected.pending:
        return "", ""
    if time in expected.decoded:
        return _left_by_a_task(seen, file, parsed)
    # A rollback is proof, a time that is missing only a sign; so the reason names the rollback where there is one.
    undone = seen.undone.get(time)
    reason = f"no instant has its time {time}" if undone is None else f"{undone.by} undid {time}, which wrote it"
    if expected.is_orphan(time):
        return reason, ""
    if undone is None and not expected.looks_committed(time):
        return "", ""
    if expected.archived is not None and time in expected.archived:
        return "", ""
    is_proven = undone is not None and expected.archived is not None and not undone.may_run_again
    return reason, "" if is_proven else "it is older than the active timeline, so readers take it for a committed one"


def _left_by_a_task(seen: Surroundings, file: OrphanFile, parsed: BaseFile | LogFile) -> tuple[str, str]:
    """
    A base file that its commit does not name.

    It holds rows that are nowhere else, unless it lies beside the file that the commit names instead, or the commit is
    of a rewrite: what a late task of that wrote is in its other files, too.
    """
    if isinstance(parsed, LogFile):
        return "", ""
    time, prefix = parsed.instant_time, f"{parsed.file_id}_"
    for name, named in seen.expected.named.get(file.partition_path, {}).items():
        if named.requested_time == time and name.startswith(prefix):
            return f"a task that was retried left it: {time} names {name} instead", ""
    operation = seen.facts.rewrites.get(time)
    if operation is not None:
        return f"a task of {time} left it: a {operation} only moves rows, and they are in the files that it names", ""
    return f"{time} does not name it", "readers show its rows; see hudi-py check (file-unnamed)"


def _is_young(seen: Surroundings, file: OrphanFile, time: str) -> bool:
    """By the storage's time and by the one in the name; without the former it counts as young."""
    if file.modified_ms is None or file.modified_ms >= seen.before_ms:
        return True
    try:
        begun = parse_instant_time(time, seen.zone)
    except ValueError:  # digits that are not a date: the storage's time decides
        return False
    return begun.timestamp() * 1000 >= seen.before_ms


def _kept(seen: Surroundings, file: OrphanFile, parsed: BaseFile | LogFile) -> str:
    """What keeps a file that is old enough; ``""`` for nothing."""
    expected, time = seen.expected, parsed.instant_time
    if time in seen.alive:
        return f"the heartbeat of {time} shows that its write is running"
    if (file.partition_path, file.name) in seen.marked:
        return "a pending write has a marker for it"
    if time in seen.facts.marker_times and time not in seen.undone and time not in expected.known:
        return f"the markers of {time} are there, so its write may still be running; see hudi-py recover"
    if seen.listed is not None and file.name in seen.listed.get(file.partition_path, ()):
        return LISTED
    fate = seen.fates[file.partition_path].of(file.name) if file.partition_path in seen.fates else None
    # Of two attempts of a task the fate is that of their slice, which the other one holds.
    if isinstance(fate, Needed) and not (isinstance(parsed, BaseFile) and time in expected.decoded):
        return str(fate)
    if seen.facts.log_naming.tells_slice and isinstance(parsed, LogFile) and expected.pending_deltas:
        return "a pending delta commit may be writing into it"
    if file.name in expected.going.get(file.partition_path, ()):
        return "a pending clean or rollback is going to delete it"
    return ""


def doubts(facts: TableFacts, expected: Expectation, early: Collection[str]) -> Iterator[str]:
    """
    Why no file of the table may be removed, however clear its own case.

    Args:
        facts: Of the table.
        expected: The same, as expectations.
        early: Times of files from before the active timeline.
    """
    if facts.archive_problem is not None:
        yield f"the archive cannot be read, so it is unknown which writes were completed: {facts.archive_problem}"
    lost = sorted(time for time in early if expected.is_of_lost_archive(time))
    if lost:
        yield f"the archive is missing as a whole: files of {lost[0]} are there, which was written before the timeline"
    for fact in facts.instants:
        if fact.problem is not None:
            yield f"{fact.instant} cannot be read: {fact.problem}"
        elif fact.is_empty and fact.instant.is_completed:
            yield f"{fact.instant} is empty"
        elif fact.lacks_plan:
            yield f"{fact.instant} has no plan, so it is unknown which files it needs"
    # Its files look like those of a failed write, and they are rows of the table.
    for time, why in facts.completed_once.items():
        yield f"the write {time} was completed once, and its completed file is missing: {why}"
    if facts.metadata is not None and facts.metadata.problem is not None:
        yield f"the metadata table cannot be read: {facts.metadata.problem}"
    if facts.properties_problem is not None:
        yield f"the properties cannot be used: {facts.properties_problem}"


def tripped(files_seen: int, suspects: int, remove: int, share_max: float) -> Iterator[str]:
    """
    Why so many files cannot all be garbage.

    Args:
        files_seen: Data files in the table's folders.
        suspects: Those that no instant knows.
        remove: Those that would be removed.
        share_max: Largest share of all files that may be removed, from 0 to 1.
    """
    # Whatever the limit is set to: a table path with another table's timeline has this look.
    if remove and suspects >= files_seen:
        yield "no instant knows any of the table's files: the timeline is probably not the one of these files"
    elif remove > FEW and remove > share_max * files_seen:
        yield (
            f"{remove} of {files_seen} files would be removed, more than hoodie_py.orphans.max.share={share_max:g}; "
            "if that is meant, set it higher"
        )


def empty_folders(folders: Mapping[str, bool], named: Collection[str]) -> tuple[str, ...]:
    """
    The folders without any file below them, deepest first.

    Args:
        folders: Path of each folder to whether files lie directly in it.
        named: Partition paths that an instant or the metadata table names; those stay.
    """
    # The table's own folder is never empty: it has .hoodie in it.
    full = {""}
    for path, has_files in folders.items():
        if has_files or path in named:
            parts = path.split("/")
            full.update("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))
    return tuple(sorted(folders.keys() - full, key=lambda path: (-path.count("/"), path)))


def rank(verdict: OrphanVerdict) -> tuple[int, str]:
    """The order in which files are removed: the oldest first."""
    return (verdict.file.modified_ms or 0, join_path(verdict.file.partition_path, verdict.file.name))


def in_turns(files: Iterable[OrphanFile]) -> list[dict[str, list[str]]]:
    """
    Which files go first: of each file group a log file only when those before it are deleted.

    In layout 1 the last log file of a write that was rolled back holds the block that undoes the others. Without it
    their rows would count as committed once the active timeline has moved on.

    Returns:
        Per turn the paths to remove, to the paths of the same file group in earlier turns.
    """
    groups: dict[tuple[str, str, str], list[tuple[tuple[str, int, str, bool], str]]] = {}
    turns: list[dict[str, list[str]]] = [{}]
    for file in files:
        log = parse_log_file(file.name)
        if log is None:
            turns[0][file.path] = []
        else:
            groups.setdefault((file.partition_path, log.file_id, log.instant_time), []).append((log.order, file.path))
    for members in groups.values():
        paths = [path for _, path in sorted(members)]
        turns += ({} for _ in range(len(paths) - len(turns)))
        for number, path in enumerate(paths):
            turns[number][path] = paths[:number]
    return turns


def only_approved(verdicts: Iterable[OrphanVerdict], approved: Mapping[str, int]) -> list[OrphanVerdict]:
    """
    The verdicts, in which files that nobody approved stay, and log files behind one that stays.

    Args:
        verdicts: By path.
        approved: Path of each file to its size in bytes.
    """
    found = list(verdicts)
    removed = [each.file for each in found if each.fate is OrphanFate.REMOVE]
    stays = {
        file.path: "it is not among the approved files, or has another size"
        for file in removed
        if unlisted(approved, [(file.path, file.size_bytes)]) is not None
    }
    for turn in in_turns(removed):
        for path, earlier in turn.items():
            there = next((each for each in earlier if each in stays), None)
            if there is not None:
                stays.setdefault(path, f"it may undo blocks of {there}, which stays")
    return [
        attrs.evolve(each, fate=OrphanFate.KEEP, why_kept=stays[each.file.path]) if each.file.path in stays else each
        for each in found
    ]
