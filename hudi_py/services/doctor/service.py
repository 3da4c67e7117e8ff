"""Examines a table: settings, timeline, files; what cannot be read is a finding. Nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.archive import ArchiveConfig, archive_config
from hudi_py.config.clean import CleanConfig
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig
from hudi_py.errors import ConfigError, CorruptMetadata, NotFound, RefusedError, UnsupportedTable
from hudi_py.fsview.loader import load_clustering_times
from hudi_py.model.instant import Action
from hudi_py.model.lease import Lease, progress_of
from hudi_py.services.archive.service import ArchiveService
from hudi_py.services.check.findings import Finding, Severity
from hudi_py.services.clean.planning.situation import Situation
from hudi_py.services.clean.service import CleanService
from hudi_py.services.doctor.findings import finding
from hudi_py.services.doctor.judge import Health, judge
from hudi_py.services.doctor.judge_leases import judge_leases
from hudi_py.services.usage.facts import FileUse, sum_up
from hudi_py.services.usage.service import UsageService
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.following import undone_since
from hudi_py.timeline.timeline import Timeline

_ORDER: Final = {severity: position for position, severity in enumerate(Severity)}
_UNREADABLE: Final = (CorruptMetadata, NotFound, UnsupportedTable, RefusedError)


class Examined:
    """
    Result of an examination.

    Args:
        findings: By severity, then code, then place.
        health: What they were judged by; None if the timeline is damaged.
        uses: Every file of the table, if that was asked for and could be found out.
    """

    __slots__ = ("findings", "health", "uses")

    def __init__(self, findings: tuple[Finding, ...], health: Health | None, uses: Sequence[FileUse] | None) -> None:
        self.findings, self.health, self.uses = findings, health, uses


@attrs.frozen(kw_only=True)
class DoctorService:
    """
    Examines one table.

    Args:
        contents: Of the table's timeline.
        table: Its properties.
        settings: All settings.
        clean: Settings of cleaning, with the options of this run.
        clean_service: Makes the clean service.
        keeps_files: Whether the result has every file, and not only sums; there may be a million.
    """

    contents: Contents
    table: TableConfig
    settings: Settings
    clean: Callable[[], CleanConfig]
    clean_service: Callable[[CleanConfig], CleanService]
    keeps_files: bool = False

    def run(self) -> Examined:
        """
        Examine the table.

        Raises:
            StorageError: The storage refused or cannot be reached.
        """
        found: list[Finding] = []
        store = self.contents.store
        try:
            timeline = store.load()
        except CorruptMetadata as error:  # without a timeline nothing else can be judged
            return Examined((finding("table-damaged", store.folder, str(error)),), None, None)
        # A contradiction is a finding, and the rest is judged without these settings.
        clean, archive = self._settings(found)
        health = Health(
            timeline=timeline,
            timeline_folder=store.folder,
            instant_files=len(timeline.all_states),
            now=store.clock.now(),
            zone=store.zone,
            clusterings=load_clustering_times(timeline, self.contents),
            clean=clean,
            archive=archive,
            is_clean_automatic=self.settings[keys.CLEAN_AUTOMATIC],
            has_lock=bool(self.settings[keys.LOCK_PROVIDER]),
            no_deletion=store.deletion.why_off(),
            small_bytes=max(self.settings[keys.PARQUET_SMALL_FILE_LIMIT], 0),
            target_bytes=max(self.settings[keys.PARQUET_MAX_FILE_SIZE], 1),
        )
        uses: Sequence[FileUse] | None = None
        # With settings that contradict each other there is no plan that could be judged.
        if clean is not None:
            health, uses = self._with_clean(health, clean, found)
            if archive is not None:
                health = self._with_archival(health, archive, clean, found)
        found += self._newest(timeline)
        # Each once: two parts of the examination may meet the same damage.
        findings = dict.fromkeys((*found, *judge(health), *self._leases(health)))
        return Examined(
            tuple(sorted(findings, key=lambda each: (_ORDER[each.severity], each.code, each.where))), health, uses
        )

    def _newest(self, timeline: Timeline) -> Iterator[Finding]:
        # Readers of the latest snapshot need it, and cleans may not.
        for instant in timeline.commits.completed()[-1:]:
            try:
                self.contents.commit(instant)
            except CorruptMetadata as error:
                yield finding("table-damaged", self.contents.store.path(instant), f"readers fail: {error}")
            except NotFound:  # undone meanwhile
                continue

    def _leases(self, health: Health) -> Iterator[Finding]:
        leases = self.contents.store.leases
        try:
            found = leases.all()
            cleans = health.timeline.of((Action.CLEAN,)) if found else ()
            found_plans = [(clean, self.contents.plan_of_pending_clean(clean)) for clean in cleans]
        except (CorruptMetadata, NotFound):  # a lease that does not decode stops the clean, which is a finding already
            return
        plans = [(clean, plan) for clean, plan in found_plans if plan is not None]
        yield from judge_leases(found, plans, dict(self._undone(found, health)), health.now, health.zone)

    def _undone(self, leases: Sequence[Lease], health: Health) -> Iterator[tuple[str, str]]:
        """Ids of consumers that have read what was undone since, and why."""
        for lease in leases:
            read = progress_of(lease)
            try:
                why = None if read is None else undone_since(self.contents, health.timeline, read)
            except CorruptMetadata:  # of the archive, which hudi-py check names
                continue
            if why is not None:
                yield lease.id, why

    def _settings(self, found: list[Finding]) -> tuple[CleanConfig | None, ArchiveConfig | None]:
        clean, archive = None, None
        try:
            clean = self.clean()
        except ConfigError as error:
            found.append(finding("settings-contradict", "settings", str(error)))
        try:
            archive = archive_config(self.settings)
        except ConfigError as error:
            found.append(finding("settings-contradict", "settings", str(error)))
        return clean, archive

    def _with_clean(
        self, health: Health, clean: CleanConfig, found: list[Finding]
    ) -> tuple[Health, Sequence[FileUse] | None]:
        try:
            # One situation for clean and usage: it is the expensive part of both.
            usage = UsageService(self.clean_service(clean), health.small_bytes)
            seen = usage.situation
            health = attrs.evolve(
                health,
                trigger=seen.trigger,
                scope=seen.scope,
                earliest=seen.earliest,
                warnings=tuple(_without_archival(seen.warnings)),
                is_overtaken=_is_overtaken(seen),
            )
            # The list and its sums are of one listing.
            uses = list(usage.files()) if self.keeps_files else None
            totals = usage.run() if uses is None else sum_up(uses, health.small_bytes)
        except _UNREADABLE as error:
            found.append(finding("table-damaged", ".", str(error)))
            return health, None
        return attrs.evolve(health, usage=totals), uses

    def _with_archival(
        self, health: Health, archive: ArchiveConfig, clean: CleanConfig, found: list[Finding]
    ) -> Health:
        service = ArchiveService(contents=self.contents, table=self.table, config=archive, cleaning=clean)
        try:
            return attrs.evolve(health, archival=service.plan())
        except _UNREADABLE as error:
            found.append(finding("table-damaged", ".", str(error)))
            return health


def _is_overtaken(seen: Situation) -> bool:
    """Whether the commit where the last clean stopped is archived."""
    start = "" if seen.last_clean is None else seen.last_clean.earliest_to_retain.strip()
    return bool(start) and seen.timeline.commits.is_before_start(start)


def _without_archival(warnings: tuple[str, ...]) -> Iterator[str]:
    """Without the warning that is a finding of its own, ``settings-never-clean``."""
    return (warning for warning in warnings if not warning.startswith("archival leaves at most"))
