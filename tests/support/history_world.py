"""
A table, what it must hold, and the laws that apply after every step.

The model is a plain mapping: requested time of each commit → the rows after it. Which commits there are, the timeline
tells; that a commit appears or goes although nobody asked for it is a violation itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from hudi_py.config.new_table import new_table_properties
from hudi_py.config.settings import Settings
from hudi_py.config.table import TableType
from hudi_py.engine.inline import LocalEngine
from hudi_py.errors import HudiError, RefusedError, UnsupportedTable
from hudi_py.model.files import BaseFile, join_path
from hudi_py.model.instant import Action, Instant
from hudi_py.runtime.clock import FixedClock
from hudi_py.services.check.findings import Severity
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from hudi_py.timeline.properties_file import create_properties
from support.history_deltas import FileModel
from support.history_laws import AFTER_A_CRASH, Kind, Rows, Violation, compare
from support.history_promises import Promises
from support.history_writer import SCHEMA, Row, pending_clusterings, rows_of_file

if TYPE_CHECKING:
    from typing_extensions import Self

START = datetime(2026, 1, 1, tzinfo=timezone.utc)
STEP = timedelta(minutes=7)
LOCK = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    "hoodie.write.lock.wait_time_ms": 0,
    "hoodie.write.lock.client.num_retries": 0,
    "hoodie.write.lock.client.wait_time_ms_between_retry": 0,
}
LAZY = {"hoodie.clean.failed.writes.policy": "LAZY"}
ONE_THREAD: Final = LocalEngine(1)


class World:
    """
    A table in memory, and the model.

    Attributes:
        rows: After each commit that ever was, by requested time.
        chain: Requested times of the commits that count, ascending.
        clusterings: Those that change no rows, whenever they complete.
        unknown: Commits of a fixture after which nobody could tell the rows any more, as we began.
        cut: Commits of a fixture of which a snapshot as of their time, in Apache Hudi too, may lack rows.
        condemned: Commits that somebody asked to roll back, and was not refused.
        savepoints: Requested times with the end of life of each, None for ever.
        saved: Rows of each savepoint.
        names: Of savepoints that have one, by requested time.
        saved_files: Of a merge-on-read table, the files that were needed when the savepoint was made.
        is_dirty: A process died or two worked at once, and nothing has recovered the table since.
        is_beside: Another process stands still in the middle of a step, except for its threads.
        counts: What was asked and how it was answered.
        promises: What readers were promised.
        strays: Paths of files that were put into the table and belong to no instant.
        found_before: Code and place of what a check says of a table of Apache Hudi as we begin.
        intent: Rows before a write of the current step to the rows after it, until the write completes.
    """

    def __init__(self, kind: Kind, root: str, templates: Mapping[str, Row], start: datetime = START) -> None:
        self.kind, self.templates = kind, dict(templates)
        self.clock = FixedClock(start)
        self.storage = MemoryStorage(root, clock_ms=lambda: int(self.clock.now().timestamp() * 1000))
        self.rows: dict[str, Rows] = {}
        self.chain: list[str] = []
        self.condemned: set[str] = set()
        self.clusterings: set[str] = set()
        self.unknown: set[str] = set()
        self.cut: set[str] = set()
        self.savepoints: dict[str, datetime | None] = {}
        self.saved: dict[str, Rows] = {}
        self.names: dict[str, str] = {}
        self.saved_files: dict[str, set[str]] = {}
        self.is_beside = False
        self.is_dirty = False
        self.told: list[str] = []
        self.counts: Counter[str] = Counter()
        self.intent: Callable[[Rows], Rows] | None = None
        self.files = FileModel()
        self.promises = Promises()
        self.strays: set[str] = set()
        self.found_before: frozenset[tuple[str, str]] = frozenset()
        self.is_mor = False
        self.next_id = 0
        self.next_ts = 1_000_000
        self._columns: tuple[str, ...] = ()
        self._paths: dict[tuple[Any, ...], str] | None = None
        self._files: dict[tuple[str, int], list[tuple[str, Row]]] = {}

    # ------------------------------------------------------------------ making one
    @classmethod
    def empty(cls, kind: Kind) -> World:
        """A new table."""
        settings = {
            "hoodie.table.name": "trips",
            "hoodie.write.table.version": kind.version,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "region",
            "hoodie.table.ordering.fields": "ts",
            "hoodie.table.cdc.enabled": kind.changes,
            "hoodie.table.cdc.supplemental.logging.mode": ("OP_KEY_ONLY", "DATA_BEFORE_AFTER")[kind.version > 6],
        }
        templates = {
            region: dict.fromkeys(SCHEMA.names) | {"region": region, "ts": 0, "note": ""}
            for region in ("eu", "us", "ap")
        }
        world = cls(kind, "/lake/trips", templates)
        properties = new_table_properties(Settings(settings))
        if kind.deltas:
            properties |= {"hoodie.table.type": TableType.MERGE_ON_READ.value}
        create_properties(world.storage, properties, world.clock)
        world.is_mor = kind.deltas
        return world

    @classmethod
    def of_fixture(cls, kind: Kind, files: Mapping[str, bytes]) -> World:
        """A table of Apache Hudi: what it holds at each time is asked before the first step, and checked elsewhere."""
        world, table = cls.with_files(kind, files)
        world.is_mor = table.config.table_type is TableType.MERGE_ON_READ
        if world.is_mor:
            world.chain = world.completed(table)
            world.rows = {time: {} for time in world.chain}
            world.rows |= {i.requested_time: {} for i in table.timeline.pending(Action.COMPACTION)}
            world.savepoints = dict.fromkeys(i.requested_time for i in table.timeline.completed(Action.SAVEPOINT))
            world.settle()
            return world
        world.ask_rows(table, pending_clusterings(table))
        return world

    @classmethod
    def with_files(cls, kind: Kind, files: Mapping[str, bytes]) -> tuple[Self, Table]:
        """A table with these files, opened a while after its last instant."""
        last = Table(MemoryStorage.from_files(files)).timeline.last_time
        start = START if last is None else datetime.strptime(last[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc)
        world = cls(kind, "/lake/fixture", {}, start)
        for path, data in files.items():
            world.storage.replace(path, data)
        world.clock.move(STEP)
        table = world.open(metadata=None)
        world.is_dirty = bool(table.timeline.pending())
        world.found_before = frozenset((each.code, each.where) for each in table.check())
        return world, table

    def ask_rows(self, table: Table, changeless: Iterable[Instant]) -> None:
        """Ask a table for its rows after each commit and at each savepoint; *changeless* ones are pending."""
        for instant in changeless:
            self.rows[instant.requested_time] = {}
            self.clusterings.add(instant.requested_time)
        for time in self.completed(table):
            self.chain.append(time)
            try:
                self.rows[time] = self.rows_at(table, as_of=time)
            except HudiError:
                self.unknown.add(time)
                self.rows[time] = {}
            if _is_cut_by_a_rollback(table, time):
                self.cut.add(time)
                self.unknown.add(time)
        if self.chain:
            self.rows[self.chain[-1]] = self.rows_at(table)
            self.unknown.discard(self.chain[-1])
        for instant in table.timeline.completed(Action.SAVEPOINT):
            time = instant.requested_time
            self.savepoints[time] = None
            self.saved[time] = self.rows[time] = self.rows_at(table, savepoint=time)
            if time not in self.cut:
                self.unknown.discard(time)
        for rows in self.rows.values():
            self.templates |= {partition: row for (partition, _), row in rows.items()}

    # ------------------------------------------------------------------ looking
    def open(self, storage: Storage | None = None, *, metadata: bool | str | None = "kind", **settings: Any) -> Table:
        """The table as a process that begins now sees it."""
        wanted = self.kind.metadata if metadata == "kind" else metadata
        given = {} if wanted is None else {"hoodie.metadata.enable": wanted}
        return Table(
            storage if storage is not None else self.storage,
            settings={**given, **(LOCK if self.kind.lock else {}), **(LAZY if self.kind.lazy else {}), **settings},
            clock=self.clock,
        )

    @staticmethod
    def completed(table: Table) -> list[str]:
        """Requested times of all completed writes, archived ones too, ascending."""
        archived = {
            each.requested_time
            for each in table.archived_timeline()
            if each.is_completed and each.action in (Action.COMMIT, Action.DELTA_COMMIT, Action.REPLACE_COMMIT)
        }
        return sorted(archived | {each.requested_time for each in table.timeline.writes.completed()})

    def rows_at(self, table: Table, **when: str) -> Rows:
        """Rows of a snapshot, by partition path and id."""
        return self.rows_in(table.base_files(**when))

    def rows_in(self, files: Iterable[tuple[str, BaseFile]]) -> Rows:
        found: dict[tuple[str, str], Row] = {}
        for partition, base in files:
            path = join_path(partition, base.name)
            size = self.storage.size(path)
            if size is None:
                raise Violation("read: a file is not there", f"{path} is shown and is not there")
            cached = self._files.get((path, size))
            if cached is None:
                cached = self._files[path, size] = rows_of_file(self.storage, path)
            for in_partition, row in cached:
                key = (in_partition, row["id"])
                if key in found:
                    raise Violation("read: a row twice", f"{key} stands in {path} and in another file")
                found[key] = row
        return found

    def key(self, row: Row) -> tuple[str, str]:
        """Partition path and id, the former as rows of the same partition columns have it."""
        if self._paths is None:
            self._columns = self.open().config.partition_fields
            self._paths = {self._values(template): path for path, template in self.templates.items()}
        return self._paths[self._values(row)], row["id"]

    def _values(self, row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in self._columns)

    @property
    def latest(self) -> Rows:
        """What the table must hold now."""
        return self.expected_at("9" * 20)

    def expected_at(self, time: str) -> Rows:
        """What the table held at that time, without commits that were rolled back."""
        decisive = self.decisive(time)
        return {} if decisive is None else self.rows[decisive]

    def decisive(self, time: str) -> str | None:
        """The commit whose rows the table held at that time, None for none."""
        before = [each for each in self.chain if each <= time and each not in self.clusterings]
        return before[-1] if before else None

    def is_known(self, time: str) -> bool:
        """Whether the rows of that time are known."""
        decisive = self.decisive(time)
        return decisive not in self.unknown | self.cut and (decisive is not None or self.kind.fixture is None)

    @property
    def has_ranges(self) -> bool:
        """Whether `Table.changes` can be asked: all files hold rows as users write them."""
        return False

    def new_ordering_value(self) -> int:
        """Larger than all before it, so that the newest rows win."""
        self.next_ts += 1
        return self.next_ts

    def add_savepoint(self, time: str, *, end: datetime | None, name: str | None) -> None:
        """A savepoint was made; with the end of its life."""
        self.savepoints[time] = end
        self.names |= {} if name is None else {time: name}
        if self.is_mor or self.is_known(time):
            self.saved[time] = {} if self.is_mor else self.expected_at(time)
        else:  # of a table of Apache Hudi, which could not be asked for that time as we began
            self.saved[time] = self.rows_at(self.open(), savepoint=time)
        if self.is_mor:
            self.saved_files[time] = self.files.needed(each for each in self.chain if each <= time)

    def forget_savepoint(self, time: str) -> datetime | None:
        """It is deleted; gives the end of its life."""
        self.names.pop(time, None)
        return self.savepoints.pop(time, None)

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Another process takes a step while the one that was at work is stopped."""
        yield

    def announce_files(self, time: str) -> None:
        """A write to a merge-on-read table begins."""
        self.settle()
        self.rows[time] = {}

    # ------------------------------------------------------------------ the laws
    def settle(self) -> None:
        """Take over from the timeline which commits there are; what nobody asked for is a violation."""
        table = self.open()
        live = self.completed(table)
        if self.is_mor:
            self.files.learn(table)
        gone = [time for time in self.chain if time not in live]
        for time in gone:
            if time not in self.condemned:
                raise Violation("timeline: a commit is gone", f"commit {time} is gone, and nobody asked for that")
            self.told.append(f"    commit {time} is rolled back")
        for time in live:
            if time not in self.rows:
                if self.intent is None:
                    raise Violation("timeline: a commit from nowhere", f"commit {time} completed, and nobody wrote it")
                self.chain = [each for each in live if each < time]
                self.rows[time], self.intent = self.intent(self.latest), None
        self.chain = live

    def check(self, *, times: Iterable[str] | None = None) -> None:
        """
        Every law.

        Args:
            times: Which times are asked for; default: all.
        """
        table = self.open()
        if self.is_mor:
            self._check_files(table)
            self.promises.check(self, table)
            self._check_findings(table)
            return
        self._check_latest(table)
        self._check_savepoints(table)
        for time in self.rows if times is None else times:
            self._check_past(table, time)
        self.promises.check(self, table)
        self._check_findings(table)

    def _check_files(self, table: Table) -> None:
        """Of a merge-on-read table: what each commit that counts has written and nothing has superseded."""
        there = self.storage.files()
        needed = self.files.needed(self.chain)
        lost = sorted(needed - there.keys())
        if lost:
            raise Violation("latest: files lost", f"{len(lost)} of {len(needed)} files of latest slices: {lost[:3]}")
        if not table.timeline.pending(Action.COMPACTION, Action.LOG_COMPACTION):
            shown = {
                join_path(partition, name)
                for partition in table.partitions()
                for file_slice in table.file_slices(partition)
                for name in file_slice.file_names
            }
            if needed - shown:
                raise Violation("latest: files not shown", f"{sorted(needed - shown)[:3]}")
        for instant in table.timeline.completed(Action.SAVEPOINT):
            held = {join_path(p, n) for p, names in table.contents.savepoint(instant).files.items() for n in names}
            needed = self.saved_files.get(instant.requested_time) or self.files.needed(
                time for time in self.chain if time <= instant.requested_time
            )
            held -= self.files.written_after(instant.requested_time)  # a whole slice is held, and a restore cuts it
            for what, paths in (("held", held - there.keys()), ("not held", needed - held)):
                if paths:
                    raise Violation(f"savepoint: files {what}", f"{instant}: {sorted(paths)[:3]}")
        gone = set(self.savepoints) - {i.requested_time for i in table.timeline.completed(Action.SAVEPOINT)}
        for time in gone:
            end = self.forget_savepoint(time)
            if end is None or self.clock.now() < end:
                raise Violation("savepoint: gone", f"savepoint {time} is gone, and nobody asked for that")

    def _check_latest(self, table: Table) -> None:
        try:
            files = table.base_files()
        except HudiError as error:
            if table.timeline.pending(Action.RESTORE) and "finish it first" in str(error):
                self.counts["latest: refused halfway of a restore"] += 1  # a clean took what only now is the latest
                return
            raise Violation("latest: cannot be read", f"the latest rows cannot be read: {error}") from error
        decisive = self.decisive("9" * 20)
        if decisive in self.unknown:  # a table of Apache Hudi went back to where it could not be asked as we began
            self.rows[str(decisive)] = self.rows_in(files)
            self.unknown.discard(str(decisive))
            self.counts["rows taken for granted"] += 1
        compare("latest", self.latest, self.rows_in(files), f"latest rows, of commit {(self.chain or ['none'])[-1]}")
        plain = self.open(metadata=False).base_files()
        if plain != files:
            raise Violation(
                "listing: metadata table and folders differ", f"{_names(files)} by one, {_names(plain)} by the folders"
            )

    def _check_savepoints(self, table: Table) -> None:
        there = {each.requested_time for each in table.timeline.completed(Action.SAVEPOINT)}
        for time, end in list(self.savepoints.items()):
            if time not in there:
                if end is None or self.clock.now() < end:
                    raise Violation("savepoint: gone", f"savepoint {time} is gone, and nobody asked for that")
                self.forget_savepoint(time)
                continue
            try:
                found = self.rows_at(table, savepoint=self.names.get(time, time))
            except HudiError as error:
                raise Violation("savepoint: cannot be read", f"savepoint {time} cannot be read: {error}") from error
            compare("savepoint", self.saved[time], found, f"savepoint {time}")

    def _check_past(self, table: Table, time: str) -> None:
        try:
            found = self.rows_at(table, as_of=time)
        except (RefusedError, UnsupportedTable):
            self.counts["as of: refused"] += 1
            return
        except HudiError as error:
            kind = type(error).__name__
            raise Violation(f"as of: {kind}", f"as of {time}: {kind}: {error}") from error
        self.counts["as of: answered"] += 1
        if not self.is_known(time):
            return
        expected, shown = (self.told_at(table, time, rows) for rows in (self.expected_at(time), found))
        compare("as of", expected, shown, f"rows as of {time}")

    def told_at(self, table: Table, time: str, rows: Rows) -> Rows:
        """What is compared of the rows as of a time."""
        return rows

    def _check_findings(self, table: Table) -> None:
        allowed = AFTER_A_CRASH if self.is_dirty else frozenset({"instant-stale"} if table.timeline.pending() else ())
        for finding in table.check():
            if finding.severity is Severity.INFO or (finding.code, finding.where) in self.found_before:
                continue
            if finding.code not in allowed:
                raise Violation(f"check: {finding.code}", f"{finding.code} at {finding.where}: {finding.message}")


def _names(files: Iterable[tuple[str, BaseFile]]) -> list[str]:
    return [join_path(partition, base.name) for partition, base in files]


def _is_cut_by_a_rollback(table: Table, time: str) -> bool:
    """
    Whether a snapshot as of a time may lack rows of its newest commit, as it does with Apache Hudi 0.x.

    In layout 1 the first block of a later instant ends a log file, also that of a rollback which began after the commit
    and was faster.
    """
    following = [i for i in table.timeline if i.requested_time > time and i.action is not Action.CLEAN]
    is_by_blocks = table.config.format.log_naming.tells_slice
    return is_by_blocks and bool(following) and following[0].action is Action.ROLLBACK


Do = Callable[[World, Storage, Mapping[str, Any]], None]
"""Takes a step, through a storage that may fail, with the arguments of the step."""
