"""
An opened table: what is loaded of it, when that is forgotten, and which times its users may name. Needs no JVM.

What is shown of it (partitions, files, rows) is in `hudi_py.table_view`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.door import admitted, require_served
from hudi_py.config.hooks import hook_config
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableConfig, TableType
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError, ConflictError, CorruptMetadata, NotFound
from hudi_py.model.instant import Action
from hudi_py.model.instant_time import is_time, resolve_time
from hudi_py.model.shown import Shown
from hudi_py.runtime.clock import Clock, FixedClock, clock_of
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage, refuse_tags
from hudi_py.storage.wrappers import ReadOnlyStorage
from hudi_py.timeline.contents import Contents
from hudi_py.timeline.policy_file import PROPERTY as POLICY
from hudi_py.timeline.policy_file import load_policy
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.store import TimelineStore
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.hooks import Hooks
from hudi_py.txn.table_lock import table_lock

if TYPE_CHECKING:
    from typing_extensions import Self

    from hudi_py.config.retention_policy import RetentionPolicy
    from hudi_py.fsview.build import ViewContext
    from hudi_py.fsview.listing import Listing

__all__ = ["OpenedTable"]
_REHEARSED_BYTES_MAX: Final = 256 * 1024 * 1024
"""What a rehearsal streams is the metadata table; its indexes may be larger than the memory of a small machine."""


class OpenedTable(Shown):
    """
    A table whose properties are read; everything else is loaded on first use.

    Args:
        storage: Storage whose root is the table's base path.
        settings: ``hoodie.*`` settings.
        clock: Replaces the machine's clock.

    Raises:
        ConfigError: A setting is unknown, invalid, or not supported even for reading.
    """

    def __init__(
        self, storage: Storage, *, settings: Mapping[str, Any] | None = None, clock: Clock | None = None
    ) -> None:
        self.storage = storage
        self.settings = admitted(settings)
        self.config: TableConfig = read_table_config(storage)
        require_served(self.settings, Use.LOOK)
        clock = clock_of(clock)
        # The lock is only built here, from the settings; nothing is locked by looking at a table.
        self._store = TimelineStore(
            storage,
            self.config,
            clock,
            lock=table_lock(storage, self.settings, clock),
            ignores_leases=self.settings[keys.LEASES_IGNORED],
            forbids_deletion=not self.settings[keys.GC_ENABLED],
        )
        # From what the caller gave, before the table's own policy joins the settings: no table has programs run.
        self._store.told = Hooks(hook_config(self.settings))
        self._contents = Contents(self._store)
        self._from_policy: tuple[str, ...] = ()
        self._follow_policy()

    def _follow_policy(self, trial: RetentionPolicy | None = None) -> None:
        """
        Let the settings of the table's retention policy take the place of those that were given.

        A policy that cannot be read leaves the settings as they are, and the table without deletion.

        Args:
            trial: A policy to follow instead, without deletions.
        """
        mark = self.config.properties.get(POLICY, "")
        try:
            policy = load_policy(self.storage, self.config.properties) if trial is None else trial
        except CorruptMetadata as error:
            log.warning("policy.unreadable", table=self.storage.root, why=str(error))
            policy, mark = None, ""
        settings = self.settings.as_dict()
        for name in self._from_policy:  # of a policy that is replaced
            settings.pop(name, None)
        self.settings = Settings(settings)
        self._from_policy = () if policy is None else tuple(policy.settings)
        if policy is not None:
            if keys.CLEAN_AGE_RETAINED.name in policy.settings:  # a window in hours would be a second one
                self.settings = self.settings.without(keys.CLEAN_HOURS_RETAINED)
            self.settings = self.settings.merged(policy.settings)
        self._store.deletion = attrs.evolve(self._store.deletion, policy=mark)

    def _facts(self) -> Mapping[str, object]:
        config = self.config
        return {"location": self.storage.root, "name": config.name, "type": config.table_type.value,
                "version": config.version, "partitioned_by": ", ".join(config.partition_fields)}  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), settings=self.settings.as_dict(), clock=self._store.clock), (self.storage,)

    def require(self, use: Use) -> None:
        """
        Raise if the settings or the table's properties ask for something that hudi_py does not do in an operation.

        Raises:
            ConfigError: A setting is not supported.
            UnsupportedTable: A property of the table is not supported.
        """
        from hudi_py.config.property_verdicts import require_table_served, unknown_properties

        require_served(self.settings, use)
        require_table_served(self.config, self.settings, use, self.storage.root)
        if (
            use & (Use.CLEAN | Use.WRITE)
            and not self.storage.capabilities.tags
            and self.settings[keys.QUARANTINE_TAG] is not None
        ):
            raise refuse_tags(self.storage.root)
        # A warning only: releases of Hudi add properties, and most of them do not change how files are read.
        unknown = unknown_properties(self.config.properties)
        if unknown:
            log.warning("table.properties.unknown", table=self.storage.root, properties=unknown)

    @cached_property
    def timeline(self) -> Timeline:
        """The active timeline, loaded on first use; `refresh` forgets it."""
        try:
            # Timeline and listing are loaded together, so that both show the table at the same moment.
            return self._opened[0]
        except (CorruptMetadata, NotFound):  # the metadata table is damaged; `listing` raises this for its users
            return self._store.load()

    @property
    def listing(self) -> Listing:
        """Lists partitions and files: from the metadata table if there is one, else from the folders."""
        return self._opened[1]

    @cached_property
    def _opened(self) -> tuple[Timeline, Listing]:
        from hudi_py.mdt.listing import open_snapshot

        try:
            opened = open_snapshot(self._store, self.config, self.settings, to_read=True)
        except ConflictError:
            if not self.refresh_if_moved():
                raise
            opened = open_snapshot(self._store, self.config, self.settings, to_read=True)
        if not opened[0].instants and self.refresh_if_moved():  # else the table is new
            opened = open_snapshot(self._store, self.config, self.settings, to_read=True)
        self.__dict__.pop("timeline", None)  # after `refresh_timeline` there is an older one
        return opened

    @property
    def contents(self) -> Contents:
        """Decoded contents of the instants."""
        return self._contents

    def refresh(self) -> Self:
        """Forget what was loaded, so that the next call reads the current state of the table."""
        self.config = read_table_config(self.storage)
        if not self.config.is_laid_out_as(self._store.config):  # upgraded since: its instants are in another place
            self._store = self._store.afresh(self.config)
            self._contents = Contents(self._store)
        if self.config.properties.get(POLICY, "") != self._store.deletion.policy:
            self._follow_policy()
        self._forget()
        return self

    def refresh_if_moved(self) -> bool:
        """As `refresh`, if another process has upgraded or downgraded the table since: nothing is where it was."""
        has_moved = not read_table_config(self.storage).is_laid_out_as(self._store.config)
        if has_moved:
            self.refresh()
        return has_moved

    def refresh_timeline(self) -> Self:
        """
        As `refresh`, and load the timeline without the listing, which a small write does not ask for.

        A listing that is asked for all the same is loaded with a timeline of its own moment, which then takes the place
        of this one; what was taken from this one before must not be used beside it.
        """
        self.refresh()
        self.__dict__["timeline"] = self._store.load()
        return self

    def _forget(self) -> None:
        # Timeline and listing belong together: one without the other would mix two times of the table.
        for name in ("timeline", "_opened", "_context"):
            self.__dict__.pop(name, None)

    @property
    def view_context(self) -> ViewContext:
        """The facts of the timeline that are needed to build the view of any partition."""
        return self._context_of(self.timeline)

    def _context_of(self, timeline: Timeline) -> ViewContext:
        """The same for a timeline that was taken with its listing: the table's may be another one by now."""
        from hudi_py.fsview.loader import load_context

        kept: tuple[Timeline, ViewContext] | None = self.__dict__.get("_context")
        if kept is None or kept[0] != timeline:
            self.__dict__["_context"] = kept = timeline, load_context(timeline, self._contents)
        return kept[1]

    def _listing_at(self, timeline: Timeline) -> Callable[[], Listing]:
        """
        Return what gives the listing of the moment at which a timeline was loaded.

        Not the table's own at any later moment: beside a timeline that lacks its newest commits it lacks rows, too.
        """
        opened: tuple[Timeline, Listing] | None = self.__dict__.get("_opened")
        if opened is not None and opened[0] == timeline:
            return lambda: opened[1]

        def loaded() -> Listing:
            found, listing = self._opened
            if found != timeline:
                raise ConflictError(
                    f"{self.storage.root} has changed since this snapshot was opened, and its files were not listed "
                    "then; open it again"
                )
            return listing

        return loaded

    def archived_timeline(self) -> Timeline:
        """
        Return the archived instants, completed and pending, oldest first. In layout 2 only completed ones are archived.

        Raises:
            CorruptMetadata: A file of the archive is damaged.
        """
        from hudi_py.timeline.archive import load_archived

        return load_archived(self.storage, self.config)

    @property
    def is_merge_on_read(self) -> bool:
        """Whether updates are stored in log files."""
        return self.config.table_type is TableType.MERGE_ON_READ

    @property
    def zone(self) -> tzinfo:
        """The time zone of the table's instant times."""
        return self._store.zone

    def resolve_time(self, time: str | datetime, *, exact: bool = False) -> str:
        """
        Return the instant time that a user's input stands for.

        Args:
            time: A datetime, or a text: digits of an instant time, ISO 8601, a duration before now, or the name of a
                savepoint. A text with whole seconds (``2026-11-21 06:30:00``) is the end of that second, as for the
                readers of Hudi: what was committed within it is in.
            exact: It is the beginning of that second: for what names an instant or a moment instead of a state.

        Raises:
            ConfigError: *time* has none of these forms.
            RefusedError: Two savepoints have this name.
        """
        from hudi_py.services.savepoint.plan import time_of_name

        try:
            return self._time_in(time, exact=exact)
        # Names of savepoints come last, so that none can stand for another time than its text says.
        except ConfigError as error:
            if not isinstance(time, str):
                raise
            savepoints = self.timeline.completed(Action.SAVEPOINT)
            found = time_of_name(time, ((savepoint, self._contents.savepoint(savepoint)) for savepoint in savepoints))
            if found is None:
                raise ConfigError(f"{error}; and there is no savepoint {time!r}") from error
            return found

    def _time_in(self, time: str | datetime, *, exact: bool = False) -> str:
        """As `resolve_time`, without names of savepoints."""
        try:
            return resolve_time(time, now=self._store.clock.now(), zone=self.zone, to_end_of_second=not exact)
        except ConfigError:
            if isinstance(time, str) and is_time(time.strip()) and self._knows(time.strip()):
                return time.strip()  # not a valid date, but the table has an instant with this time
            raise

    def _is_name(self, time: str | datetime) -> bool:
        """Whether a user's input can only be the name of a savepoint."""
        try:
            self._time_in(time)
        except ConfigError:
            return isinstance(time, str)
        return False

    def _knows(self, requested_time: str) -> bool:
        """Return whether an instant of the timeline, active or archived, has this requested time."""
        if self.timeline.find(requested_time) is not None:
            return True
        try:
            return self.archived_timeline().find(requested_time) is not None
        except (CorruptMetadata, NotFound):
            return False

    def read_only(self, now: datetime | None = None) -> Self:
        """
        Return the same table on a storage that refuses all changes.

        Args:
            now: Timezone-aware; the table's clock stands still at this time. None for the clock that it has.
        """
        clock = self._store.clock if now is None else FixedClock(now)
        # On the storage itself, so that a mistake in a dry run is an error instead of a change.
        return type(self)(ReadOnlyStorage(self.storage), settings=self.settings.as_dict(), clock=clock)

    def rehearsed(self) -> Self:
        """
        Return the same table with what is changed kept in memory: a step of a dry run finds what those before it did.

        The lock is taken for free, and a policy that is only tried stays in force.
        """
        from hudi_py.storage.rehearsal import RehearsalStorage

        clock = self._store.clock
        storage = RehearsalStorage(
            self.storage, clock_ms=lambda: int(clock.now().timestamp() * 1000), bytes_max=_REHEARSED_BYTES_MAX
        )
        found = type(self)(storage, settings=self.settings.as_dict(), clock=clock)
        found.settings, found._from_policy = self.settings, self._from_policy  # noqa: SLF001 - of the same class
        store = found._store  # noqa: SLF001
        store.deletion = attrs.evolve(store.deletion, policy=self._store.deletion.policy)
        return found

    def rehearsal(self, now: datetime | None = None) -> Self:
        """
        Return the table as `read_only` does, for a dry run: also checks that the lock provider is known.

        Raises:
            ConfigError: The settings name an unknown lock provider.
        """
        self._store.lock.examine()
        return self.read_only(now)
