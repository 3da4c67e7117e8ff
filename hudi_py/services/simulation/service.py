"""Reads the commits of a table and replays them under other settings. Nothing is written."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any, Final

import attrs

from hudi_py.config.clean import CleanConfig
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError
from hudi_py.formats.commit_codec import commit_of
from hudi_py.fsview.build import ViewContext
from hudi_py.fsview.fate import Protection
from hudi_py.fsview.loader import load_context, load_savepoints, protection_of
from hudi_py.model.files import is_data_file
from hudi_py.model.instant import Instant
from hudi_py.services.simulation.plan import Replayed, Simulation, simulate
from hudi_py.timeline.archive import load_archived_contents
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import WRITES, Timeline


@attrs.frozen(kw_only=True)
class Recorded:
    """
    What a table recorded of its writes: read once, it can be replayed under any number of settings.

    Args:
        writes: All completed ones, archived ones too, in order of requested time.
        context, protection, zone: As for `hudi_py.services.simulation.plan.simulate`.
    """

    writes: tuple[Replayed, ...]
    context: ViewContext
    protection: Protection
    zone: tzinfo

    def under(self, config: CleanConfig) -> Simulation:
        """
        Replay the writes.

        Raises:
            ConfigError: The settings keep snapshots by the calendar, or a limit of a run is set.
        """
        _refuse_moments(config)
        return simulate(self.writes, self.context, config, self.protection, self.zone)


@attrs.frozen(kw_only=True)
class SimulationService:
    """
    Replays one table.

    Args:
        contents: Of the table's timeline.
        table: Its properties.
    """

    contents: Contents
    table: TableConfig

    def run(self, config: CleanConfig) -> Simulation:
        """
        Replay all completed writes, archived ones too.

        Raises:
            ConfigError: The settings keep snapshots by the calendar, or a limit of a run is set.
            CorruptMetadata: A commit, a savepoint or the archive is damaged.
        """
        _refuse_moments(config)  # before anything is read
        return self.recorded().under(config)

    def recorded(self) -> Recorded:
        """
        Read what is replayed.

        Raises:
            CorruptMetadata: A commit, a savepoint or the archive is damaged.
        """
        timeline = self.contents.store.load()
        storage = self.contents.store.storage
        writes = Writes(storage.root)
        for instant, content in load_archived_contents(storage, self.table).items():
            writes.add(instant, content)
        for instant in timeline.writes.completed():
            writes.add(instant, self.contents.plain(instant))
        return self.recorded_of(timeline, writes)

    def recorded_of(self, timeline: Timeline, writes: Writes) -> Recorded:
        """
        Take what is replayed from a caller that has read all instants.

        Args:
            timeline: The active timeline.
            writes: All completed ones, archived ones too.

        Raises:
            CorruptMetadata: A savepoint is damaged.
        """
        found = writes.in_order(self.table)
        context = load_context(timeline, self.contents, for_planning=True, with_clustering=False)
        times = frozenset(write.instant.requested_time for write in found)
        done = (write.instant for write in found)
        completions = {i.requested_time: i.completion_time for i in done if i.completion_time is not None}
        whole = attrs.evolve(
            context,
            visible_times=context.visible_times | times,
            completed_times=context.completed_times | times,
            first_time=min((*times, *([] if context.first_time is None else [context.first_time])), default=None),
            last_time=max(times, default=context.last_time),
            completion_times={**context.completion_times, **completions},
            # All commits are known here, archived ones included.
            unknown_commits=None,
        )
        protection = protection_of(context, load_savepoints(timeline, self.contents), {})
        return Recorded(writes=found, context=whole, protection=protection, zone=self.contents.store.zone)


class Writes:
    """
    Collects of each completed write what a replay needs, so that whoever reads all instants reads them once.

    Args:
        root: The table, for messages.
    """

    def __init__(self, root: str) -> None:
        self._root: Final = root
        self._found: dict[Instant, Replayed] = {}

    def add(self, instant: Instant, content: Any) -> None:
        """
        Take an instant with its decoded content, in any order; anything but a completed write is left out.

        Raises:
            CorruptMetadata: The content is not that of a commit.
        """
        if not instant.is_completed or instant.action not in WRITES:
            return
        commit = commit_of(content if isinstance(content, dict) else {}, f"{self._root}: {instant}")
        files: dict[str, dict[str, int]] = {}
        for partition, stats in commit.partition_to_write_stats.items():
            for stat in stats:
                name = (stat.path or "").rpartition("/")[2]
                if is_data_file(name):
                    # A size below 0 is unknown.
                    files.setdefault(partition, {})[name] = max(stat.file_size_in_bytes or 0, 0)
        replaced = commit.partition_to_replace_file_ids or {}
        groups = tuple((partition, file_id) for partition, ids in replaced.items() for file_id in ids)
        self._found[instant] = Replayed(instant=instant, files=files, replaced=groups)

    def in_order(self, table: TableConfig) -> tuple[Replayed, ...]:
        """Return what was collected, in order of requested time."""
        whole = Timeline(tuple(sorted(self._found, key=_time)))
        counted = frozenset(whole.table_commits(table.table_type).completed())
        return tuple(attrs.evolve(self._found[instant], counts=instant in counted) for instant in whole)


def _refuse_moments(config: CleanConfig) -> None:
    # They depend on the moment of a clean, and a replay has none but the times of the commits.
    if config.has_ladder or config.older_than is not None or config.max_old_bytes is not None:
        raise ConfigError(
            "a simulation takes no calendar ladder, no cut-off and no limit on the bytes of older versions; leave "
            "them out"
        )


def _time(instant: Instant) -> str:
    return instant.requested_time
