"""
Replays the commits of a table and cleans after each as the settings say, with the planner's own rules. Pure.

Only what commits recorded is known: files of commits before the first one replayed do not exist here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.fsview.build import GroupKey, ViewContext, build_of_parsed
from hudi_py.fsview.fate import Protection
from hudi_py.model.files import BaseFile, LogFile, parse_data_file
from hudi_py.model.instant import Instant
from hudi_py.model.instant_time import parse_instant_time
from hudi_py.services.clean.retention.policy import judge_partition
from hudi_py.services.clean.retention.windows import earliest_of, keeps_of, windows
from hudi_py.timeline.timeline import Timeline


@attrs.frozen(kw_only=True)
class Replayed:
    """
    One completed write.

    Args:
        instant: The completed instant.
        files: Partition path to names of the data files that it wrote, with sizes in bytes.
        replaced: File groups that it superseded.
        counts: Whether it counts as a commit of the table (``TL.table``).
    """

    instant: Instant
    files: Mapping[str, Mapping[str, int]]
    replaced: tuple[GroupKey, ...] = ()
    counts: bool = True


@attrs.frozen
class Moment:
    """
    The table after one write and the clean behind it.

    Args:
        time: Requested time of the write.
        earliest: Where the retention window begins; None without one.
        files_deleted, bytes_deleted: By the clean.
        files, bytes: Afterwards.
    """

    time: str
    earliest: str | None
    files_deleted: int
    bytes_deleted: int
    files: int
    bytes: int


@attrs.frozen(kw_only=True)
class Simulation:
    """
    A replay.

    Args:
        retention: The policy as a sentence.
        steps: One per write, oldest first.
        deleted: Paths of all deleted files.
    """

    retention: str
    steps: tuple[Moment, ...]
    deleted: tuple[str, ...]

    @property
    def bytes_max(self) -> int:
        """Most bytes that there were after a clean."""
        return max((step.bytes for step in self.steps), default=0)

    @property
    def bytes_deleted(self) -> int:
        """Bytes of all deleted files."""
        return sum(step.bytes_deleted for step in self.steps)


def simulate(
    writes: Sequence[Replayed], context: ViewContext, config: CleanConfig, protection: Protection, zone: tzinfo
) -> Simulation:
    """
    Replay writes.

    Args:
        writes: In order of requested time.
        context: View of the whole table; which groups are replaced is replayed.
        config: How to clean; limits of a run and the calendar ladder do not count.
        protection: What savepoints and pending actions need now counts as needed all the time.
        zone: Time zone of the table's instants.
    """
    replay = _Replay(context, config, protection, zone)
    return Simulation(
        retention=config.retention, steps=tuple(map(replay.step, writes)), deleted=tuple(sorted(replay.deleted))
    )


class _Replay:
    """The table so far."""

    def __init__(self, context: ViewContext, config: CleanConfig, protection: Protection, zone: tzinfo) -> None:
        # From the beginning: what is replaced or pending today was not when the first write was replayed.
        self._context = attrs.evolve(context, replaced={}, pending_compactions={}, pending_clustering={})
        self._config, self._protection, self._zone = config, protection, zone
        # Parsed once, not at each clean that looks at them.
        self._files: dict[str, dict[str, BaseFile | LogFile]] = {}
        self._replaced: dict[GroupKey, str] = {}
        self._recent: list[Replayed] = []  # those that the window may still begin with
        self._commits = self._due = self._bytes = self._count = 0
        self._touched: set[str] = set()
        self.deleted: list[str] = []

    def step(self, write: Replayed) -> Moment:
        """Add a write and clean if that is due."""
        for partition, files in write.files.items():
            there = self._files.setdefault(partition, {})
            for name, size in files.items():
                # A log file of layout 1 is written by several commits, and each records its whole size.
                known = there.get(name)
                self._bytes += size - (0 if known is None else known.size_bytes or 0)
                self._count += known is None
                parsed = parse_data_file(name, size)
                assert parsed is not None, name  # only data files are replayed
                there[name] = parsed
        time = write.instant.requested_time
        if write.replaced:
            self._replaced.update(dict.fromkeys(write.replaced, time))
            self._context = attrs.evolve(self._context, replaced=dict(self._replaced))
        self._recent.append(write)
        self._touched.update(_partitions(write))
        self._commits += write.counts
        self._due += write.counts
        # After the write, before the clean: the difference is what the clean deletes.
        bytes_before, files_before = self._bytes, self._count
        earliest = self._clean(time) if self._due >= max(self._config.trigger_max_commits, 1) else None
        return Moment(time, earliest, files_before - self._count, bytes_before - self._bytes, self._count, self._bytes)

    def _clean(self, time: str) -> str | None:
        self._due = 0
        # Without a window nothing looks back, and the list would grow with the timeline.
        if not self._config.has_window:
            self._recent.clear()
        timeline = Timeline(tuple(each.instant for each in self._recent))
        try:
            now = parse_instant_time(time, self._zone)
        except (ValueError, OverflowError):  # no date, as the time of a bootstrap: no window ends there
            return None
        kept = windows(timeline, self._config, now=now, zone=self._zone)
        found = earliest_of(kept)
        earliest = None if found is None else found.requested_time
        # As a real clean: without an earliest commit nothing is planned (rule A-27).
        if self._config.has_window and earliest is None:
            return None
        keeps = keeps_of(kept, (), self._config)
        for partition in self._scope(earliest):
            judged = judge_partition(
                self._context,
                build_of_parsed(self._context, partition, self._files.get(partition, {}).values()),
                self._config,
                self._protection,
                earliest=earliest,
                commit_count=self._commits,
                keeps=keeps,
            )
            for verdict in judged.verdicts:
                if not verdict.keep:
                    self._delete(partition, verdict.file_slice.file_names)
        return earliest

    def _scope(self, earliest: str | None) -> Iterator[str]:
        """
        Partitions in which something may have become removable since the last clean.

        A window has passed what was written before it begins (rules A-26 to A-33); versions count where one was added.
        """
        touched = set(self._touched)
        self._touched.clear()
        if earliest is not None:
            passed = [each for each in self._recent if each.instant.requested_time < earliest]
            self._recent = [each for each in self._recent if each.instant.requested_time >= earliest]
            behind = {path for each in passed for path in _partitions(each)}
            # The write that the window begins with superseded older slices, and those before it are needed no more.
            behind.update(path for each in self._recent[:1] for path in _partitions(each))
            touched = behind | (touched if self._config.versions else set())
        return iter(sorted(touched))

    def _delete(self, partition: str, names: Sequence[str]) -> None:
        there = self._files[partition]
        for name in names:
            self._bytes -= there.pop(name).size_bytes or 0
            self._count -= 1
            self.deleted.append(f"{partition}/{name}" if partition else name)


def _partitions(write: Replayed) -> set[str]:
    return {*write.files, *(partition for partition, _ in write.replaced)}
