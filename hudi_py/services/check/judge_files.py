"""
What is wrong with the files of a partition: what commits name, what lies there, what the metadata table lists. Pure.

A file that a commit names may be gone when a clean, active or archived, tried to remove it, or when a pending clean or
rollback is about to; unless the latest rows need it (`judge_rows`). Everything else that is missing is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from hudi_py.fsview.expected import is_size_right
from hudi_py.fsview.foreign import foreign_base_files
from hudi_py.fsview.origin import Origins
from hudi_py.model.files import (
    BaseFile,
    LogFile,
    join_path,
    parse_base_file,
    parse_data_file,
    parse_log_file,
)
from hudi_py.model.instant import Action
from hudi_py.model.records import (
    CleanerPlan,
    CleanMetadata,
    CommitMetadata,
    RollbackMetadata,
    RollbackPlan,
    SavepointMetadata,
)
from hudi_py.services.check.facts import TableFacts
from hudi_py.services.check.findings import ARCHIVE, Finding, finding
from hudi_py.services.check.judge_past import Promises
from hudi_py.services.check.judge_rows import Needs
from hudi_py.timeline.before_start import Before
from hudi_py.versions.format import LogNaming

_TAKEN_BACK_SIZE: Final = 1  # how Hudi lists log files of a delta commit that it rolled back on layout 1


class Named(NamedTuple):
    """
    A file that a completed commit wrote.

    Args:
        rows: Their number in a base file.
        written: Of a log file: requested time of each commit that wrote to it to the number of rows.
    """

    size_bytes: int
    requested_time: str
    is_log: bool
    rows: int | None = None
    written: Mapping[str, int] = {}


class Expectation:
    """
    What the instants say of the table's files.

    Args:
        facts: As gathered.
    """

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts
        timeline = facts.timeline
        self._origins = Origins(timeline, facts.archived)
        self.pending = self._origins.pending
        # A log compaction writes log files as a delta commit does, and completes as one.
        self.pending_deltas = bool(timeline.pending(Action.DELTA_COMMIT, Action.LOG_COMPACTION))
        self.is_undoing = any(map(timeline.pending, (Action.RESTORE, Action.ROLLBACK)))
        self.is_clean_half_undone = False
        """Whether an undo is pending: the metadata table lists what it brings back when it completes."""
        self.known = self._origins.known
        self.decoded = frozenset(
            each.instant.requested_time
            for each in facts.instants
            if each.instant.is_completed and isinstance(each.content, CommitMetadata)
        )
        self.archived = self._origins.archived
        self.extensions = facts.base_file_extensions
        self.named: dict[str, dict[str, Named]] = {}
        # Archived cleans, too: what they deleted is not lost.
        self.gone: dict[str, set[str]] = {path: set(names) for path, names in facts.archived_cleans.items()}
        self.going: dict[str, set[str]] = {}
        """Files that a pending clean or rollback may have deleted without having recorded it yet."""
        self.gone_partitions: dict[str, str] = {}
        self.blocks: dict[str, dict[str, tuple[int, str]]] = {}
        """Log files of layout 1 with rollback blocks, to size in bytes and rollback; a clean may delete them."""
        self.savepointed: dict[str, dict[str, str]] = {}
        self._undone = set(facts.archived_undone)
        # Only without an archive: with one, it says itself which times are archived.
        self._before = None
        if facts.is_archive_empty:
            self._before = Before(timeline, [(fact.instant, fact.content) for fact in facts.instants])
        for each in facts.instants:
            self._learn(each.instant.requested_time, each.content)

    # Each looks at every file of every commit, and whoever asks about a few files needs neither.
    @cached_property
    def needs(self) -> Needs:
        """The files that readers of the latest rows need."""
        return Needs(self._facts)

    @cached_property
    def promises(self) -> Promises:
        """The files that readers of earlier times and of savepoints need."""
        return Promises(self._facts)

    @cached_property
    def partitions(self) -> frozenset[str]:
        """Every partition that an instant names."""
        return frozenset(self.named) | frozenset(self.savepointed) | self.needs.partitions

    def is_explained(self, partition: str, name: str, requested_time: str) -> bool:
        """Whether an instant deleted the file, or is going to; `Needs` decides whether it is needed nevertheless."""
        return self.is_removed(partition, name) or requested_time < self.gone_partitions.get(partition, "")

    def is_removed(self, partition: str, name: str) -> bool:
        """Whether a clean or rollback names the file."""
        return name in self.gone.get(partition, ()) or name in self.going.get(partition, ())

    def is_orphan(self, requested_time: str) -> bool:
        """Whether no instant has that time, and readers can see that."""
        return self._origins.is_orphan(requested_time)

    def looks_committed(self, requested_time: str) -> bool:
        """Whether the time is before the active timeline, and the archive, which begins earlier, does not have it."""
        return self._origins.looks_committed(requested_time)

    def is_undone_log(self, file: BaseFile | LogFile) -> bool:
        """
        Whether a log file began with a write that a rollback undid.

        In layout 1 a rollback leaves the log files of a write where they are and appends blocks that undo it, so
        readers see no row of them however old they get. In layout 2 it deletes them.
        """
        is_log = isinstance(file, LogFile) and self._facts.log_naming.tells_slice
        return is_log and file.instant_time in self._undone

    def is_of_lost_archive(self, requested_time: str) -> bool:
        """Whether a file of that time proves an archived write, though there is no archive."""
        return self._before is not None and self._before.is_archived(requested_time)

    def _learn(self, time: str, content: object) -> None:
        if isinstance(content, CommitMetadata):
            for partition, stats in content.partition_to_write_stats.items():
                for stat in stats:
                    for path, size in (stat.cdc_stats or {}).items():
                        self._name(partition, path.rpartition("/")[2], size, time)
                    if stat.path is not None:
                        name = stat.path.rpartition("/")[2]
                        # A delta commit may record a log file in which it wrote nothing.
                        is_told = stat.num_writes > 0 or stat.num_deletes > 0
                        rows = stat.num_writes if is_told or parse_log_file(name) is None else None
                        self._name(partition, name, stat.file_size_in_bytes, time, rows=rows)
        elif isinstance(content, CleanMetadata):
            for path, done in content.partitions.items():
                self.gone.setdefault(path, set()).update(done.delete_path_patterns)
                # A dropped partition is deleted with its folder; its files are not named one by one.
                if done.is_partition_deleted:
                    self.gone_partitions[path] = time
        elif isinstance(content, CleanerPlan):
            for path, files in content.files_to_delete.items():
                self.going.setdefault(path, set()).update(file.name for file in files)
            self.gone_partitions.update(dict.fromkeys(content.partitions_to_delete, time))
        elif isinstance(content, RollbackMetadata):
            self._undone.update(content.commits_rollback)
            for path, undone in content.partitions.items():
                # Failed ones, too: another process may have deleted the file since.
                names = (*undone.success_delete_files, *undone.failed_delete_files)
                self.gone.setdefault(path, set()).update(name.rpartition("/")[2] for name in names)
                blocks = self.blocks.setdefault(path, {})
                blocks.update((log.rpartition("/")[2], (size, time)) for log, size in undone.rollback_log_files.items())
        elif isinstance(content, RollbackPlan):
            target = content.instant_to_rollback
            self.is_clean_half_undone |= target is not None and target.action == Action.CLEAN.value
            for request in content.rollback_requests:
                names = request.files_to_be_deleted
                self.going.setdefault(request.partition_path, set()).update(n.rpartition("/")[2] for n in names)
        elif isinstance(content, SavepointMetadata):
            for path, held in content.files.items():
                self.savepointed.setdefault(path, {}).update(dict.fromkeys(held, time))

    def _name(self, partition: str, name: str, size: int, time: str, *, rows: int | None = None) -> None:
        known = self.named.setdefault(partition, {}).get(name)
        larger = max(size, known.size_bytes if known is not None else 0)  # a log file grows with each delta commit
        is_log = parse_log_file(name) is not None
        written = dict(known.written) if known is not None else {}
        if is_log and rows is not None:
            written[time] = rows
        self.named[partition][name] = Named(larger, time, is_log, rows, written)


def judge_partition(
    expected: Expectation,
    partition: str,
    files: Mapping[str, int | None],
    listed: Mapping[str, int] | None,
    *,
    log_naming: LogNaming,
) -> list[Finding]:
    """
    Findings about one partition.

    Args:
        expected: What the table is expected to have.
        partition: Relative path.
        files: Name and size in bytes of what lies in its folder.
        listed: The same as the metadata table has it; None when that is not to be compared.
        log_naming: How log files find their slice.
    """
    found = [*_named(expected, partition, files), *expected.needs.judge(partition, files)]
    found += expected.promises.judge(partition, files)
    found += _held(expected, partition, files, log_naming)
    found += _lying(expected, partition, files)
    if listed is not None:
        found += _unlisted(expected, partition, files, listed, log_naming)
        found += _ghosts(expected, partition, files, listed)
    return found


def readable_files(
    expected: Expectation, partition: str, files: Mapping[str, int | None]
) -> Iterator[tuple[str, BaseFile]]:
    """
    Paths of the base files of completed commits in Parquet that have the size which their commits say.

    Args:
        expected, partition, files: As for `judge_partition`.
    """
    named = expected.named.get(partition, {})
    for name, size in files.items():
        base = parse_base_file(name)
        if base is None or base.extension != "parquet" or size == 0:  # written empty: no Parquet file
            continue
        # Of archived commits the number of rows is unknown here, but the name in each row can be checked.
        is_archived = base.instant_time not in expected.known and base.instant_time in (expected.archived or ())
        if is_archived or (name in named and is_size_right(named[name].size_bytes, size, is_log=False)):
            yield join_path(partition, name), base


def readable_logs(
    expected: Expectation, partition: str, files: Mapping[str, int | None]
) -> Iterator[tuple[str, LogFile]]:
    """The same of the log files that completed commits of the active timeline wrote rows to, without change logs."""
    for name, named in expected.named.get(partition, {}).items():
        log = parse_log_file(name)
        if log is None or log.is_cdc or not named.written or name not in files:
            continue
        if is_size_right(named.size_bytes, files[name], is_log=True):
            yield join_path(partition, name), log


def _named(expected: Expectation, partition: str, files: Mapping[str, int | None]) -> Iterator[Finding]:
    for name, named in expected.named.get(partition, {}).items():
        path = join_path(partition, name)
        if name not in files:
            if not expected.is_explained(partition, name, named.requested_time):
                yield finding("file-missing", path, f"written by {named.requested_time}")
            continue
        size = files[name]
        if not is_size_right(named.size_bytes, size, is_log=named.is_log):
            yield finding("file-size-differs", path, f"{size} bytes, {named.requested_time} wrote {named.size_bytes}")
    for name, (size, time) in expected.blocks.get(partition, {}).items():
        if name in files and not is_size_right(size, files[name], is_log=True):
            message = f"{files[name]} bytes, rollback {time} wrote {size}: blocks that it undid may count again"
            yield finding("file-size-differs", join_path(partition, name), message)


def _held(
    expected: Expectation, partition: str, files: Mapping[str, int | None], log_naming: LogNaming
) -> Iterator[Finding]:
    """
    A savepoint of an older commit holds whole slices, log files of later delta commits included. A restore takes those
    back, so they may be missing; only layout 2 tells by the name which they are, and only there log files are deleted.
    """
    for name, time in expected.savepointed.get(partition, {}).items():
        log = parse_log_file(name) if not log_naming.tells_slice else None
        if name not in files and (log is None or log.instant_time <= time):
            yield finding("savepoint-file-missing", join_path(partition, name), f"savepoint {time}")


def _lying(expected: Expectation, partition: str, files: Mapping[str, int | None]) -> Iterator[Finding]:
    named = expected.named.get(partition, {})
    for name in files:
        parsed = parse_data_file(name)
        if parsed is None:
            continue
        path, time = join_path(partition, name), parsed.instant_time
        # First: of a format that is not the table's, nothing else can be said.
        if isinstance(parsed, BaseFile) and foreign_base_files([name], expected.extensions):
            yield finding("file-format-other", path, f"instant {time}")
        elif expected.is_of_lost_archive(time):
            yield finding(
                "archive-unreadable", ARCHIVE, f"it is missing as a whole: {path} was written before the start"
            )
        elif expected.is_orphan(time):
            yield finding("file-orphaned", path, f"instant {time}")
        elif expected.looks_committed(time) and expected.is_undone_log(parsed):
            yield finding("log-undone", path, f"a rollback undid {time}")
        elif expected.looks_committed(time):
            yield finding("file-looks-committed", path, f"instant {time} is neither active nor archived")
        elif time in expected.decoded and name not in named and isinstance(parsed, BaseFile):
            yield finding("file-unnamed", path, f"commit {time}")


def _unlisted(
    expected: Expectation,
    partition: str,
    files: Mapping[str, int | None],
    listed: Mapping[str, int],
    log_naming: LogNaming,
) -> Iterator[Finding]:
    for name, size in files.items():
        parsed = parse_data_file(name)
        # It is recorded there when its action completes.
        if parsed is None or parsed.instant_time in expected.pending:
            continue
        if log_naming.tells_slice and isinstance(parsed, LogFile) and expected.pending_deltas:
            continue  # the name does not show whether a pending delta commit wrote it
        is_of_commit = name in expected.named.get(partition, {})
        if log_naming.tells_slice and isinstance(parsed, LogFile) and expected.is_undoing and not is_of_commit:
            continue  # of a write that is being undone, or of a rollback itself: recorded when that completes
        path = join_path(partition, name)
        if name in listed:
            is_taken_back = listed[name] == _TAKEN_BACK_SIZE and log_naming.tells_slice and isinstance(parsed, LogFile)
            if is_taken_back and not is_of_commit:
                continue
            if size is not None and size != listed[name]:
                yield finding("mdt-size-differs", path, f"{listed[name]} bytes there, {size} in the folder")
        elif not (
            expected.is_clean_half_undone
            or foreign_base_files([name], expected.extensions)
            or expected.is_orphan(parsed.instant_time)
            or _is_unnamed(expected, partition, name, parsed)
            or (expected.is_removed(partition, name) and not expected.needs.is_latest(partition, name))
        ):
            yield finding("mdt-file-missing", path)


def _is_unnamed(expected: Expectation, partition: str, name: str, parsed: BaseFile | LogFile) -> bool:
    """Whether the file is a finding already, and the metadata table is right not to list it."""
    return (
        isinstance(parsed, BaseFile)
        and parsed.instant_time in expected.decoded
        and name not in expected.named.get(partition, {})
    )


def _ghosts(
    expected: Expectation, partition: str, files: Mapping[str, int | None], listed: Mapping[str, int]
) -> Iterator[Finding]:
    # A listed file that is missing is harmless below a newer one: no reader opens it (rules/data-files 10.2).
    newest = _newest(listed)
    for name in listed:
        # A pending clean has deleted it, and records that when it completes.
        if name in files or name in expected.going.get(partition, ()):
            continue
        parsed = parse_data_file(name)
        is_newest = parsed is None or parsed.instant_time >= newest.get(parsed.file_id, "")
        yield finding("mdt-ghost" if is_newest else "mdt-ghost-outdated", join_path(partition, name))


def _newest(names: Iterable[str]) -> dict[str, str]:
    """File id to the time of its newest base file."""
    newest: dict[str, str] = {}
    for name in names:
        base = parse_base_file(name)
        if base is not None:
            newest[base.file_id] = max(base.instant_time, newest.get(base.file_id, ""))
    return newest
