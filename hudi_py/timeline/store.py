"""
Reading and writing instant files.

The name on the timeline is the commit point: a state exists once its file does, and each file is created at most once
(``Storage.create_new``), so of two racing writers one gets `ConflictError`. No state's file is ever deleted here except
by `remove`, which rollback and recovery use, and rewritten only by `replace`, to mend it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol, TypeAlias

from hudi_py.config.table import TableConfig
from hudi_py.errors import (
    AlreadyExists,
    ConflictError,
    CorruptMetadata,
    HudiError,
    NotFound,
    OutcomeUnknown,
    StorageError,
)
from hudi_py.formats.instant_encoder import SYNC_BYTES, InstantRecord, encode_record
from hudi_py.model.files import METADATA_FOLDER, OWN_FOLDER
from hudi_py.model.instant import Action, Instant, State, advance
from hudi_py.model.instant_time import next_instant_time
from hudi_py.runtime.clock import Clock, clock_of, zone_of
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness
from hudi_py.storage.base import Storage
from hudi_py.timeline.deletion import DeletionSwitch
from hudi_py.timeline.leases import LeaseFolder
from hudi_py.timeline.lock import NO_LOCK, Lock
from hudi_py.timeline.lost import lacks_writes, sign_of_instants, timeline_lost
from hudi_py.timeline.properties_file import read_table_config
from hudi_py.timeline.timeline import Timeline, build_timeline
from hudi_py.versions.layout import LAYOUT_V1, LAYOUT_V2

_TIMES_FOLDER = f"{OWN_FOLDER}/times"
_NEXT_FOLDER: Final = "timeline"
"""Where an upgrade moves the instants of layout 1."""
_ATTEMPTS_MAX = 1000

Said: TypeAlias = InstantRecord | bytes
"""What an instant says; as bytes only where those of another instant are kept as they are. None for an empty file."""


class Told(Protocol):
    """Learns of what has completed on a timeline."""

    def completed(self, store: TimelineStore, instant: Instant) -> None:
        """An instant was completed; the lock may still be held."""

    def archived(self, store: TimelineStore, count: int) -> None:
        """So many instants were archived; the lock may still be held."""


class _Nobody:
    def completed(self, store: TimelineStore, instant: Instant) -> None:
        return

    def archived(self, store: TimelineStore, count: int) -> None:
        return


NOBODY: Final[Told] = _Nobody()


def reserve_time(storage: Storage, time: str) -> bool:
    """
    Reserve a time in a table, see `TimelineStore.new_time`; False if another process has it.

    Args:
        storage: The table's storage.
        time: Instant time.
    """
    try:
        # It speaks to processes that run now, and none of this machine outlives a loss of power. If its name is lost
        # then, either the instant of this time is durable, and on the timeline, or nothing of it is.
        storage.create_new(f"{_TIMES_FOLDER}/{time}", b"", lasts=False)
    except AlreadyExists:
        return False
    return True


class InstantGone(ConflictError, NotFound):
    """The file of an instant was there when the timeline was listed, and is not any more."""


class TimelineStore:
    """
    The active timeline of one table on its storage, and the lock that guards its changes.

    Args:
        storage: The table's storage.
        config: The table's configuration: where its timeline lies, and in which form.
        clock: Tells the time; the machine's by default.
        lock: The table's lock.
        randomness: Returns as many random bytes as it is asked for.
        ignores_leases: Whether deletions go on in spite of leases.
        forbids_deletion: Whether the settings forbid deletion; the table may forbid it, too.
        of_data: Whether it is that of a data table, which is refused if it is lost; not that of a metadata table, which
            others compare with the data table's.
    """

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        clock: Clock | None = None,
        *,
        lock: Lock = NO_LOCK,
        randomness: Randomness = MACHINE,
        ignores_leases: bool = False,
        forbids_deletion: bool = False,
        of_data: bool = True,
    ) -> None:
        self.storage = storage
        self.lock = lock
        self.config = config
        self.clock = clock_of(clock)
        self.leases = LeaseFolder(storage, self.clock, ignores_leases)
        self.deletion = DeletionSwitch(storage, forbids_deletion)
        self.zone = zone_of(config.timezone)
        self.layout = config.format.layout
        self.folder = config.timeline_folder
        self.told: Told = NOBODY
        """Learns what has completed; `hudi_py.txn.hooks` calls the user's hooks."""
        self._randomness = randomness
        self._is_of_data = of_data
        self._contents: dict[str, bytes] = {}
        self._passed_over: set[Instant] = set()

    @property
    def is_of_data(self) -> bool:
        """Whether it is the timeline of a data table, not that of a metadata table."""
        return self._is_of_data

    def is_passed_over_first(self, instant: Instant) -> bool:
        """Whether nobody has said before that this damaged instant is passed over; from now on somebody has."""
        is_first = instant not in self._passed_over
        self._passed_over.add(instant)
        return is_first

    def afresh(self, config: TableConfig | None = None) -> TimelineStore:
        """Return the same store without what it has read; with other properties of the table if given."""
        fresh = TimelineStore(
            self.storage,
            config or self.config,
            self.clock,
            lock=self.lock,
            randomness=self._randomness,
            ignores_leases=self.leases.is_ignored,
            of_data=self._is_of_data,
        )
        fresh.deletion = self.deletion
        fresh.told = self.told
        fresh._passed_over = self._passed_over
        return fresh

    def __getstate__(self) -> dict[str, Any]:
        # Each process reads for itself, and only the one that was given hooks calls them.
        return {**vars(self), "_contents": {}, "told": NOBODY}

    def load(self) -> Timeline:
        """
        The timeline as it is now: one listing, no content is read; without instants, it is looked for data files, too.

        Raises:
            CorruptMetadata: There is a folder in the place of an instant's file, so the state of that instant is
                unknown.
            TimelineLost: There is no instant of a write, and the table is not empty.
            ConflictError: An upgrade has moved the instants, or is moving them, so that some may be elsewhere.
        """
        timeline = self._listed()
        if not (self._is_of_data and lacks_writes(timeline)):
            return timeline
        if not timeline.instants and sign_of_instants(self.storage, self.config) is None:
            return timeline
        # The first write of the table, or an upgrade, may have come in between.
        timeline = self._listed()
        if lacks_writes(timeline):
            self.refuse_if_moved()
            raise timeline_lost(self.storage, self.config, timeline)
        return timeline

    def _listed(self) -> Timeline:
        entries = self.storage.list(self.folder)
        names = [entry.name for entry in entries if not entry.is_folder]
        # Layout 1 has folders beside its instants, which are none of our business; only the name of an instant counts.
        if len(names) < len(entries):
            folders = {entry.name for entry in entries if entry.is_folder}
            self._refuse_folders(folders.difference(names))
            if self.layout is LAYOUT_V1 and _NEXT_FOLDER in folders:
                self._refuse_moving()
        return build_timeline(names, self.layout)

    def _refuse_moving(self) -> None:
        """
        Raise if instants have moved: Apache Hudi moves them one by one, and then changes the properties (timeline 4.6).

        Raises:
            ConflictError: The table was upgraded since it was opened, or is being upgraded, or that was interrupted.
        """
        place = f"{self.folder}/{_NEXT_FOLDER}"
        if not any(LAYOUT_V2.parse(entry.name) for entry in self.storage.list(place) if not entry.is_folder):
            return
        self.refuse_if_moved()
        raise ConflictError(
            f"{self.storage.root} is being upgraded at this moment, or that was interrupted: {place} has instants, and "
            f"hoodie.properties still says version {self.config.version}, so neither folder has the whole timeline; "
            "try again when it is done, or let Apache Hudi finish it if nothing upgrades the table any more"
        )

    def doubts(self) -> list[str]:
        """Why some instants of layout 2 may be elsewhere; those of layout 1 are looked for by `load`."""
        if self.layout is LAYOUT_V1:
            return []
        names = sorted(entry.name for entry in self.storage.list(METADATA_FOLDER) if not entry.is_folder)
        left = next(filter(LAYOUT_V1.parse, names), None)
        if left is None:
            return []
        why = "lies where instants of table version 6 do, as if a downgrade went on or was interrupted"
        return [f"{METADATA_FOLDER}/{left} {why}; let Apache Hudi finish it"]

    def _refuse_folders(self, names: Iterable[str]) -> None:
        for instant in filter(None, map(self.layout.parse, sorted(names))):
            raise CorruptMetadata(
                f"{self.storage.root}/{self.path(instant)} is a folder, where the file of {instant} should be. Nothing "
                "was changed; put the file back from a copy of the table in its place"
            )

    def path(self, instant: Instant) -> str:
        """Path of the instant's file, relative to the table."""
        return f"{self.folder}/{instant.file_name or self.layout.file_name(instant)}"

    def refuse_if_moved(self) -> None:
        """
        Raise where a timeline is the table's no longer: before an action begins, and where its instant is not found.

        Raises:
            ConflictError: Another process has upgraded or downgraded the table since it was opened.
        """
        now = read_table_config(self.storage)
        if not now.is_laid_out_as(self.config):
            raise ConflictError(
                f"{self.storage.root} was changed from table version {self.config.version} to {now.version}, or its "
                "timeline moved, since it was opened here; nothing was changed, try again"
            )

    def read(self, instant: Instant) -> bytes:
        """
        Content of the instant's file, read at most once (instant files never change).

        Raises:
            InstantGone: Another process archived it or rolled it back since the timeline was listed.
            NotFound: There is no such file, and none was listed.
        """
        path = self.path(instant)
        content = self._contents.get(path)
        if content is None:
            content = self._contents[path] = self._read(instant)
        return content

    def look_through(self, instant: Instant) -> bytes:
        """As `read`, without keeping the content: commits may be large and many."""
        return self._contents.get(self.path(instant)) or self._read(instant)

    def _read(self, instant: Instant) -> bytes:
        try:
            return self.storage.read(self.path(instant))
        except NotFound as error:
            if instant.file_name is None:
                raise
            raise self._gone(instant) from error

    def read_plan(self, instant: Instant) -> bytes:
        """
        Content of the requested file: the stored plan, whatever the inflight file holds (rules/timeline 9.7).

        Raises:
            InstantGone: The instant was completed and archived, or withdrawn, since the timeline was listed.
            NotFound: The instant is there, and its plan is missing.
        """
        try:
            return self.read(Instant(instant.requested_time, instant.action, State.REQUESTED))
        except NotFound as error:
            now = self.load().find(instant.requested_time, instant.action)
            if now is not None and now.is_completed == instant.is_completed:
                raise
            raise self._gone(instant) from error

    def _gone(self, instant: Instant) -> InstantGone:
        return InstantGone(
            f"{self.storage.root}/{self.path(instant)} no longer exists: another process archived {instant} or rolled "
            "it back meanwhile; try again"
        )

    def request(self, action: Action, requested_time: str, said: Said | None = None) -> Instant:
        """
        Create a requested instant.

        Raises:
            ConflictError: An instant of that time and action exists.
        """
        instant = Instant(requested_time, action, State.REQUESTED)
        self._create(instant, said)
        return instant

    def open_savepoint(self, requested_time: str) -> Instant:
        """
        Create an inflight savepoint, the one action without a requested state (rules/timeline 3.1).

        Raises:
            ConflictError: There is an inflight savepoint of that time.
        """
        instant = Instant(requested_time, Action.SAVEPOINT, State.INFLIGHT)
        self._create(instant)
        return instant

    def transition(
        self,
        instant: Instant,
        said: Said | None = None,
        *,
        completion_time: str | None = None,
        before: Callable[[], None] | None = None,
    ) -> Instant:
        """
        Take *instant* one state further; *before* is called right before its file appears, and may refuse.

        Raises:
            TimelineStateError: It is completed.
            ConflictError: The next state exists already, or its own file is missing: another writer was faster, or
                rolled it back.
        """
        following = advance(instant, completion_time=completion_time)
        # Creating the next state would succeed, and bring back an action that was rolled back.
        if self.storage.size(self.path(instant)) is None:
            self.refuse_if_moved()
            raise ConflictError(
                f"{self.path(instant)} is missing: another writer rolled {instant} back; reload and start again"
            )
        self._create(following, said, before)
        return following

    def complete(self, instant: Instant, said: Said, *, after: str | None = None) -> Instant:
        """
        Publish an inflight instant: the commit point.

        Args:
            after: In layout 2 the completion time is larger than this as well as than every time on the timeline.

        A file whose creation was not confirmed is looked for: if it is there, the instant is completed.

        Raises:
            As `transition`; ConflictError also when another writer has completed it, or has our lock now.
            OutcomeUnknown: Creating the file failed, and it could not be looked for; or it may appear yet.
        """
        completion_time = None
        # In layout 2 the name has the completion time, so creating it would not collide with another writer's file.
        if self.layout.has_completion_times:
            timeline = self._listed()
            done = timeline.find(instant.requested_time, instant.action)
            if done is not None and done.is_completed:
                raise ConflictError(f"{instant} was completed by another writer as {done.file_name}")
            completion_time = self.new_time(timeline, after=after)
        # A process that slept through its lease must not complete: another one may have changed the table since. So it
        # is the very last look, after what takes time: the timeline, the new time, and a durable copy of the content.
        before = None if self.lock is NO_LOCK else self.lock.check
        return self.transition(instant, said, completion_time=completion_time, before=before)

    def reopen(self, instant: Instant) -> None:
        """
        Take a completed action back to inflight: readers stop seeing it (Hudi's ``revertToInflight``).

        Earlier states that are missing are created empty first, so that the write never looks archived. Repeatable.
        """
        files = self.files_of(instant)
        # Another process has done it, and may have removed the instant since: it must not come back, never to end.
        if not any(each.is_completed for each in files):
            return
        # The completed file goes last: at every moment the instant exists in some state, never in none.
        for state in (State.REQUESTED, State.INFLIGHT)[instant.action is Action.SAVEPOINT :]:
            if not any(file.state is state for file in files):
                self._create(Instant(instant.requested_time, instant.comparable_action, state))
        for each in files:
            if each.is_completed:
                self.remove(each)

    def files_of(self, instant: Instant) -> tuple[Instant, ...]:
        """One instant per file that the instant has now, under its pending and its completed action, by state."""
        return tuple(
            state
            for state in self._listed().all_states
            if state.requested_time == instant.requested_time and state.comparable_action is instant.comparable_action
        )

    def remove(self, instant: Instant) -> bool:
        """Delete one instant file; False if it did not exist."""
        # Before the file: an instant of the same name may be created again, by us too.
        self._contents.pop(self.path(instant), None)
        return self.storage.delete(self.path(instant))

    def replace(self, instant: Instant, content: bytes) -> None:
        """Write the content of a damaged instant file again; used by recovery only."""
        self.storage.replace(self.path(instant), content)
        self._contents[self.path(instant)] = content

    def new_time(self, timeline: Timeline | None = None, *, after: str | None = None) -> str:
        """
        A new time, larger than *after*, than all times on the timeline, and than those given to other processes.

        Times are reserved by an exclusively created name below ``.hoodie/.aux/hudi_py/times``; whoever reserves a
        larger one removes the smaller ones, so the largest time given out always stays visible, whatever the clocks
        of the processes say.

        Raises:
            ConflictError: Others were always faster.
            CorruptMetadata: The timeline has a time that no valid time exceeds.
            StorageError: The storage refused, or did not say what became of a name: no action has begun or ended by it.
        """
        try:
            return self._new_time(timeline, after)
        except OutcomeUnknown as error:
            raise StorageError(f"{self.storage.root}: no instant time was taken: {error}; try again", True) from error

    def _new_time(self, timeline: Timeline | None, after: str | None) -> str:
        timeline = self.load() if timeline is None else timeline
        last = max(filter(None, (timeline.last_time, after)), default=None)
        reserved = self._reserved_times()
        for _ in range(_ATTEMPTS_MAX):
            last = max(filter(None, (last, *reserved)), default=None)
            time = next_instant_time(self.clock.now().astimezone(self.zone), last)
            if not reserve_time(self.storage, time):
                last = time
                continue
            # Listed again after our own was created: whoever creates a larger one from now on sees ours.
            reserved = self._reserved_times()
            for other in reserved:
                if other < time:
                    self.storage.delete(f"{_TIMES_FOLDER}/{other}")
            if max(reserved, default="") == time:
                return time
            self.storage.delete(f"{_TIMES_FOLDER}/{time}")  # another process was given a larger one meanwhile
        raise ConflictError(f"{self.storage.root}: too many processes take instant times at this moment; try again")

    def _reserved_times(self) -> list[str]:
        return [entry.name for entry in self.storage.list(_TIMES_FOLDER) if entry.name.isdigit()]

    def _create(self, instant: Instant, said: Said | None = None, before: Callable[[], None] | None = None) -> None:
        path = f"{self.folder}/{self.layout.file_name(instant)}"
        content = self._encoded(said)
        try:
            self.storage.create_new(path, content, *((before,) if before else ()))
        except AlreadyExists as error:
            raise ConflictError(
                f"{path} exists already: another writer was faster; reload the timeline and try again"
            ) from error
        except (OutcomeUnknown, StorageError) as error:
            # Only what completes says something that nobody else says, so that it shows whose file is there.
            if not (instant.is_completed and self._has_come(path, content, error)):
                raise
            log.warning("instant.confirmed", instant=str(instant), why=str(error))
        self._contents[path] = content

    def _has_come(self, path: str, content: bytes, error: HudiError) -> bool:
        """Whether a file is there although its creation was reported as failed."""
        try:
            return bool(content) and self.storage.read(path) == content
        except NotFound:
            return False
        except HudiError as unseen:
            raise OutcomeUnknown(
                f"whether {self.storage.root}/{path} was created is not known: {error}; and it could not be looked for "
                f"afterwards: {unseen}. Look for the instant with hudi-py timeline before this is done again"
            ) from error

    def _encoded(self, said: Said | None) -> bytes:
        if said is None or isinstance(said, bytes):
            return said or b""
        return encode_record(
            said,
            table_format=self.config.format,
            sync=self._randomness(SYNC_BYTES),
        )
