"""Gathers the facts about partitions, and has `plan` decide which of them expire. Nothing is written here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final
from urllib.parse import unquote

import attrs

from hudi_py.config.expiry import ExpiryBy, ExpiryConfig
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError, ConflictError, NotFound
from hudi_py.fsview.build import ViewContext, build_partition, latest_slices
from hudi_py.fsview.listing import Listing, other_tables
from hudi_py.fsview.loader import load_context
from hudi_py.mdt.listing import open_snapshot
from hudi_py.model.files import PARTITION_METAFILE, FileSlice, join_path
from hudi_py.rows.path_columns import texts_of_path
from hudi_py.services.expiry.plan import ExpiryPlan, PartitionFacts, plan
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.timeline import Timeline

_CREATED: Final = re.compile(rb"^commitTime=(\d+)\s*$", re.MULTILINE)


@attrs.frozen(kw_only=True)
class ExpiryService:
    """
    Args:
        contents: The table's timeline.
        table: Its properties.
        settings: As given.
        config: When partitions expire.
        now: Replaces the clock.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    config: ExpiryConfig
    now: datetime | None = None

    def plan(self) -> ExpiryPlan:
        """
        Which partitions expire.

        Raises:
            ConfigError: The table has no partitions, or not the column that is to be looked at.
            CorruptMetadata: An instant or the metadata table is damaged.
        """
        if not self.table.is_partitioned:
            raise ConfigError(f"{self._root} has no partition columns, so nothing in it expires")
        if self.config.value_field and self.config.value_field not in self.table.partition_fields:
            raise ConfigError(
                f"{self._root} has no partition column {self.config.value_field}, only "
                f"{', '.join(self.table.partition_fields)}"
            )
        store = self.contents.store
        timeline, listing = open_snapshot(store, self.table, self.settings)
        context = load_context(timeline, self.contents)
        facts = list(self._facts(timeline, listing, context))
        now = self.now or store.clock.now()
        found = plan(self.config, facts, now=now, zone=store.zone)
        # A metadata table that Apache Hudi made of the folders lists partitions of tables below, too.
        others = other_tables(store.storage, found.expired)
        if others:
            facts = [attrs.evolve(each, other_table=others.get(each.path)) for each in facts]
            found = plan(self.config, facts, now=now, zone=store.zone)
        return found

    def refuse_changed(self, expired: tuple[str, ...]) -> None:
        """
        Look again once the commit that drops the partitions has begun: rows may have come since the plan was made.

        Raises:
            ConflictError: One of the partitions does not expire any more.
        """
        # With the limit of the run, other partitions could now take the places of these.
        limitless = attrs.evolve(self.config, selected=expired, partitions_max=len(expired))
        fresh = attrs.evolve(self, contents=Contents(self.contents.store.afresh()), config=limitless)
        young = set(expired) - set(fresh.plan().expired)
        if young:
            raise ConflictError(
                f"{self._root}: partition {min(young)} was changed at this moment, and does not expire any more; "
                "nothing was dropped, try again"
            )

    def _facts(self, timeline: Timeline, listing: Listing, context: ViewContext) -> Iterator[PartitionFacts]:
        there = {path for path, _ in listing.walk()}
        changed = self._changed(timeline)
        for path in self.config.selected or there:
            if path not in there:
                yield PartitionFacts(path=path, is_there=False)
                continue
            value = self._value(path)
            entries = listing.partition(path, details=True)
            slices = latest_slices(context, build_partition(context, path, ((e.name, e.size_bytes) for e in entries)))
            yield PartitionFacts(
                path=path,
                is_empty=not slices,
                since=self._since(path, slices, timeline, changed),
                value=value,
                waits_for=_waits_for(context, path, slices),
            )

    def _since(
        self, path: str, slices: tuple[FileSlice, ...], timeline: Timeline, changed: dict[str, str]
    ) -> str | None:
        if self.config.by is ExpiryBy.CREATION:
            return self._created(path)
        if not slices:
            return None
        newest = max(each.base_instant_time for each in slices)
        logs = [log.instant_time for each in slices for log in each.log_files]
        if logs and self.table.format.log_naming.tells_slice:
            # Their names do not tell when they were written. What the active timeline does not tell was before it.
            return max(newest, changed.get(path, timeline.first_not_savepointed or ""))
        return max([newest, *logs])

    def _changed(self, timeline: Timeline) -> dict[str, str]:
        """Partition path to the last completed write with files there; only where names do not tell it."""
        if self.config.by is not ExpiryBy.LAST_CHANGE or not self.table.format.log_naming.tells_slice:
            return {}
        found: dict[str, str] = {}
        for instant in timeline.commits.completed():
            # Each completed commit is read, so this is done only where it is the only source.
            for path in self.contents.commit(instant).partition_to_write_stats:
                found[path] = max(found.get(path, ""), instant.requested_time)
        return found

    def _created(self, path: str) -> str | None:
        try:
            found = _CREATED.search(self.contents.store.storage.read(join_path(path, PARTITION_METAFILE)))
        except NotFound:  # in the form of a base file, which is not read: of unknown age, the partition stays
            return None
        return None if found is None else found[1].decode()

    def _value(self, path: str) -> str:
        table, field = self.table, self.config.value_field
        if field:
            texts = texts_of_path(
                table.partition_fields, path, is_hive_style=table.hive_style, is_encoded=table.url_encode
            )
            return texts.get(field, "")
        parts = path.split("/")
        if table.hive_style:
            parts = [part.partition("=")[2] if "=" in part else part for part in parts]
        return "/".join(map(unquote, parts) if table.url_encode else parts)

    @property
    def _root(self) -> str:
        return self.contents.store.storage.root


def _waits_for(context: ViewContext, path: str, slices: tuple[FileSlice, ...]) -> str | None:
    for each in slices:
        clustering = context.pending_clustering.get((path, each.file_id))
        if clustering is not None:
            return f"clustering {clustering}"
        compaction = context.pending_compactions.get((path, each.file_id))
        if compaction is not None:
            return f"compaction {compaction.instant_time}"
    return None
