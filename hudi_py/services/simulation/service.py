"""Reads the commits of a table and replays them under other settings. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Any

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
        found = dict(self._contents(timeline))
        counted = self._counted(timeline, found)
        writes = tuple(
            self._replayed(instant, found[instant], instant in counted) for instant in sorted(found, key=_time)
        )
        context = load_context(timeline, self.contents, for_planning=True, with_clustering=False)
        times = frozenset(instant.requested_time for instant in found)
        completions = {i.requested_time: i.completion_time for i in found if i.completion_time is not None}
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
        return Recorded(writes=writes, context=whole, protection=protection, zone=self.contents.store.zone)

    def _contents(self, timeline: Timeline) -> Iterator[tuple[Instant, Any]]:
        archived = load_archived_contents(self.contents.store.storage, self.table)
        for instant, content in archived.items():
            if instant.is_completed and instant.action in WRITES:
                yield instant, content
        for instant in timeline.writes.completed():
            yield instant, self.contents.plain(instant)

    def _counted(self, timeline: Timeline, found: dict[Instant, Any]) -> frozenset[Instant]:
        whole = Timeline(tuple(sorted(found, key=_time)))
        return frozenset(whole.table_commits(self.table.table_type).completed())

    def _replayed(self, instant: Instant, content: Any, counts: bool) -> Replayed:
        source = f"{self.contents.store.storage.root}: {instant}"
        commit = commit_of(content if isinstance(content, dict) else {}, source)
        files: dict[str, dict[str, int]] = {}
        for partition, stats in commit.partition_to_write_stats.items():
            for stat in stats:
                name = (stat.path or "").rpartition("/")[2]
                if is_data_file(name):
                    # A size below 0 is unknown.
                    files.setdefault(partition, {})[name] = max(stat.file_size_in_bytes or 0, 0)
        replaced = commit.partition_to_replace_file_ids or {}
        groups = tuple((partition, file_id) for partition, ids in replaced.items() for file_id in ids)
        return Replayed(instant=instant, files=files, replaced=groups, counts=counts)


def _refuse_moments(config: CleanConfig) -> None:
    # They depend on the moment of a clean, and a replay has none but the times of the commits.
    if config.has_ladder or config.older_than is not None or config.max_old_bytes is not None:
        raise ConfigError(
            "a simulation takes no calendar ladder, no cut-off and no limit on the bytes of older versions; leave "
            "them out"
        )


def _time(instant: Instant) -> str:
    return instant.requested_time
