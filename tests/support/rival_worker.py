"""
One of several processes that change a table at the same time: random things, each noted before and after.

The notes of all processes together say what the table may look like (`support.rival_judge`).
"""

from __future__ import annotations

import json
import logging
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import attrs
import pyarrow as pa

from hudi_py.errors import ConflictError, HudiError, OutcomeUnknown, ServiceFailed, StorageError
from hudi_py.runtime.clock import Clock, SystemClock
from hudi_py.storage.base import MUTATING_VERBS, Storage
from hudi_py.storage.factory import open_storage
from hudi_py.storage.wrappers import DelegatingStorage, Paths
from hudi_py.table import Table
from hudi_py.timeline import quarantine
from hudi_py.txn.file_lock import FileLock
from hudi_py.txn.table_lock import TableLock
from hudi_py.writing.result import WriteResult
from support.rival_readers import Follower, Leased, Told

T = TypeVar("T")
BATCH = 3
COUNTER = "counter"
REGIONS = ("eu", "us")
WEIGHTS = {"insert": 5, "increment": 4, "upsert": 3, "delete": 2, "read": 3, "clean": 1, "failed": 1, "savepoint": 1,
           "archive": 1, "compact": 1, "cluster": 1, "undone": 1, "lease": 2, "tag": 1, "orphans": 1, "undo": 1,
           "maintain": 1, "abandon": 1, "empty": 1, "policy": 1, "forbid": 1}  # fmt: skip
POLICIES = (
    "[keep]\ncommits = 3\n",
    "[keep]\nversions = 2\n",
    '[keep]\ncommits = 5\n[clean]\nquarantine = true\ngrace = "5s"\n',
)
KEEPING_LITTLE = (
    "[keep]\ncommits = 1\n",
    "[keep]\nversions = 1\n",
    '[keep]\ncommits = 1\n[clean]\nquarantine = true\ngrace = "5s"\n',
)
"""Beside a reader that follows the changes: cleans that keep more would seldom have to wait for it."""
SCHEMA = pa.schema([("id", pa.string()), ("region", pa.string()), ("batch", pa.string()), ("n", pa.int64())])


@attrs.frozen(kw_only=True)
class Arena:
    """
    Where the processes meet, and what hinders them.

    Args:
        location: Path or address of the table.
        settings: Of our processes.
        storage_options: Of a remote storage.
        is_troubled: Whether storage calls fail, lose their answers or dawdle now and then.
        clock_jumps: By how many seconds clocks are set, forwards or backwards.
        pins: Whether the first process keeps one snapshot under a lease from its beginning to its end.
        follows: Whether the second one follows the changes as a consumer.
        restores: Whether processes go back to savepoints of theirs.
        lease_savepoints: Whether leases keep savepoints, for a cleaner that knows no leases.
    """

    location: str
    settings: dict[str, Any]
    storage_options: dict[str, str] | None = None
    is_troubled: bool = False
    clock_jumps: tuple[float, ...] = (0, 0, 0, -2, 2)
    pins: bool = False
    follows: bool = False
    restores: bool = False
    lease_savepoints: bool = False

    def table(self, clock: Clock | None = None, wrap: Callable[[Storage], Storage] = lambda it: it) -> Table:
        """Open the table anew."""
        storage = wrap(open_storage(self.location, self.storage_options))
        return Table(storage, settings=self.settings, clock=clock)

    def store(self, path: Path) -> Path:
        """Write it where a process finds it."""
        path.write_text(json.dumps(attrs.asdict(self)), encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> Arena:
        """Read what `store` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))


class JumpingClock(SystemClock):
    """The machine's clock, some seconds ahead or behind, and now and then other ones."""

    def __init__(self, chance: random.Random, jumps: tuple[float, ...]) -> None:
        self._chance, self._jumps = chance, jumps
        self.jump()

    def jump(self) -> None:
        """Set it."""
        self._ahead = timedelta(seconds=self._chance.choice(self._jumps))

    def now(self) -> datetime:
        return datetime.now(timezone.utc) + self._ahead


class Troubled(DelegatingStorage):
    """Now and then a call fails, is carried out although it is said to have failed, or takes long."""

    def __init__(self, inner: Storage, chance: random.Random) -> None:
        super().__init__(inner)
        self._chance = chance

    def _around(self, verb: str, paths: Paths, call: Callable[[], T]) -> T:
        drawn = self._chance.random()
        if drawn < 0.002:
            raise StorageError(f"{verb} {paths[:1]}: simulated failure", retryable=True)
        if drawn < 0.005 and verb in MUTATING_VERBS:
            call()
            if verb in ("create_new", "replace", "swap"):
                raise OutcomeUnknown(f"{verb} {paths[:1]}: simulated loss of the answer")
            raise StorageError(f"{verb} {paths[:1]}: simulated failure after the call", retryable=True)
        if drawn < 0.02:
            time.sleep(self._chance.uniform(0, 0.2))
        return call()


def as_rows(given: list[tuple[str, str, str, int]]) -> pa.Table:
    """Rows of key, partition, batch and number."""
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in given], schema=SCHEMA)


class Worker:
    """
    Args:
        arena: Where it works.
        seed: What it does follows from it.
        notes: File of what it says.
    """

    weights: Mapping[str, int] = WEIGHTS

    def __init__(self, arena: Arena, seed: int, notes: Path) -> None:
        self.arena, self.notes, self.name = arena, notes, f"w{seed}"
        self.chance = random.Random(seed)
        self.clock = JumpingClock(random.Random(seed), arena.clock_jumps)
        self.batches: list[str] = []
        self.last_counted = 0
        self.leases_lost: list[float] = []
        self.leased: Leased | None = None
        self.tags: list[str] = []
        self.pinned: Leased | None = None
        self.point: str | None = None
        self.pins = arena.pins and seed % 100 == 0
        self.follows = arena.follows and seed % 100 == 1
        self.follower = Follower(lambda shown: self.note({"shown": shown}))
        if arena.follows:
            self.weights = {**self.weights, "clean": 3, "compact": 3}
        if arena.restores:
            self.weights = {**self.weights, "restore": 2}

    def table(self) -> Table:
        trouble = random.Random(self.chance.random())
        return self.arena.table(self.clock, lambda it: Troubled(it, trouble) if self.arena.is_troubled else it)

    def run(self, count: int) -> None:
        """Do so many things."""
        for number in range(count):
            self.read_along()
            what = self.chance.choices(list(self.weights), list(self.weights.values()))[0]
            batch = f"{self.name}-{number}"
            if what == "delete":
                batch = self.chance.choice(self.batches) if self.batches else ""
            if self.chance.random() < 0.2:
                self.clock.jump()
            self.do(what, batch)
        self.read_along()
        if self.leased is not None:
            self.do("lease")
        if self.pinned is not None:
            self.judge_leased(self.pinned, self.pinned.give_back())

    def do(self, what: str, batch: str = "") -> None:
        """Do one thing, noted before and after."""
        self.note({"what": what, "batch": batch})
        self.note(self.ended(what, batch))

    def read_along(self) -> None:
        """What two of the processes do between all other things."""
        if self.pins:
            self.do("pin")
        # At once, because there is nothing to keep before; then so rarely that others clean and archive in between.
        if self.follows and (not self.follower.has_begun or self.chance.random() < 0.3):
            self.do("follow")

    def ended(self, what: str, batch: str) -> dict[str, Any]:
        """Do it, and tell how it ended: ``failed`` promises that nothing happened."""
        try:
            getattr(self, "_" + what)(batch)
        except ServiceFailed as error:
            return {"end": "done", "error": str(error), **({"instant": error.instant} if error.instant else {})}
        except OutcomeUnknown as error:
            return {"end": "unknown", "error": str(error)}
        except HudiError as error:
            return {"end": "failed", "kind": type(error).__name__, "error": str(error)}
        return {"end": "done"}

    def note(self, said: dict[str, Any]) -> None:
        """Write a line that survives this process."""
        with self.notes.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    def given(self, batch: str) -> pa.Table:
        """The rows of a batch."""
        return as_rows([(f"{batch}-{i}", REGIONS[i % 2], batch, i) for i in range(BATCH)])

    def _insert(self, batch: str) -> None:
        self.note_instant(self.table().insert(self.given(batch)))
        self.batches.append(batch)

    def _upsert(self, batch: str) -> None:
        self.note_instant(self.table().upsert(self.given(batch)))
        self.batches.append(batch)

    def _increment(self, _: str) -> None:
        self.note_instant(self.table().update({"n": "n + 1"}, where=f"id = '{COUNTER}'"))

    def note_instant(self, result: WriteResult) -> None:
        """Note which commit it was, for a restore may undo it."""
        self.note({"instant": result.instant})

    def _delete(self, batch: str) -> None:
        if batch:
            self.batches.remove(batch)
            self.note_instant(self.table().delete(where=f"batch = '{batch}'"))

    def _undone(self, batch: str) -> None:
        """Rows that are taken back at once, if no later write has completed."""
        result = self.table().insert(self.given(batch))
        self.note({"also": "written"})
        self.table().rollback(result.instant)

    def _lease(self, _: str) -> None:
        """Take one, or read again what the one that is held keeps, and give it back."""
        if self.leased is None:
            self.leased = Leased.take(self.table(), savepoint=self.arena.lease_savepoints)
            return
        leased, self.leased = self.leased, None
        self.judge_leased(leased, leased.give_back())

    def judge_leased(self, leased: Leased, told: Told | None) -> None:
        """Note a second reading that differs from the first one; one that fails may do so if the lease was lost."""
        was_lost = self.may_expire or any(at >= leased.taken_s for at in self.leases_lost)
        if told is not None and (told.is_wrong or not was_lost):
            self.note({"violation": f"a lease since {leased.since:.0f} s: {told.text}"})

    def _pin(self, _: str) -> None:
        """Read again what one lease keeps the whole time."""
        if self.pinned is None:
            self.pinned = Leased.take(self.table(), savepoint=self.arena.lease_savepoints)
            return
        told = self.pinned.read_again()
        self.judge_leased(self.pinned, told)
        if told is not None:  # taken for dead by a clock that is ahead
            pinned, self.pinned = self.pinned, None
            pinned.held.close()

    def _follow(self, _: str) -> None:
        told = self.follower.follow(self.table())
        if told:
            self.note({"violation": told})

    def _abandon(self, _: str) -> None:
        """A lease that nobody renews or gives back, as of a process that has died."""
        self.table().take_lease(ttl="1s")

    def _empty(self, _: str) -> None:
        self.table().empty_quarantine()

    def _policy(self, _: str) -> None:
        """Another policy, or none; others go on with the one that they have read, or are refused."""
        document = self.chance.choice((*(KEEPING_LITTLE if self.arena.follows else POLICIES), ""))
        if document:
            self.table().apply_policy(document)
        else:
            self.table().remove_policy()

    def _forbid(self, _: str) -> None:
        """No deletion for a moment."""
        try:
            self.table().forbid_deletion()
        finally:
            self.table().allow_deletion()

    def _restore(self, batch: str) -> None:
        """Make a savepoint, or go back to the one before and delete it."""
        if self.point is None:
            self.point = self.table().create_savepoint(name=f"{batch}-point").requested_time
            return
        point, self.point = self.point, None
        try:
            self.table().restore(point)
        finally:
            self.table().delete_savepoint(point)

    @property
    def may_expire(self) -> bool:
        """Whether a lease that is renewed can be taken for dead by those whose clocks are ahead."""
        return max(map(abs, self.arena.clock_jumps)) > 5

    def _tag(self, batch: str) -> None:
        """Make one, or read the one before and delete it."""
        if not self.tags:
            self.table().create_savepoint(name=batch)
            self.tags.append(batch)
            return
        name = self.tags.pop()
        self.judge_whole(self.table().rows(as_of=name).to_arrow().to_pylist(), f"the tag {name}")
        self.table().delete_savepoint(name)

    def _orphans(self, _: str) -> None:
        self.table().orphans(older_than="0m", delete=self.chance.random() < 0.5)

    def _undo(self, _: str) -> None:
        table = self.table()
        for name in quarantine.removals(table.storage)[-1:]:
            table.undo(name)

    def _maintain(self, _: str) -> None:
        failed = self.table().maintain().failed
        if failed:
            raise ServiceFailed("; ".join(f"{each.step.value}: {each.error}" for each in failed))

    def _read(self, _: str) -> None:
        self.judge_read(self.table().rows().to_arrow().to_pylist())

    def judge_read(self, found: list[dict[str, Any]]) -> None:
        """Note what no snapshot can show: half a batch, a counter that went back."""
        counted = self.judge_whole(found, "a read")
        if counted < self.last_counted and not self.arena.restores:
            self.note({"violation": f"a read saw {counted} after {self.last_counted}"})
        self.last_counted = max(self.last_counted, counted)

    def judge_whole(self, found: list[dict[str, Any]], what: str) -> int:
        """Note half a batch, or another number of counters than one; return what it counted."""
        counts = Counter(row["batch"] for row in found if row["batch"])
        torn = {batch: count for batch, count in counts.items() if count != BATCH}
        counted = [row["n"] for row in found if row["id"] == COUNTER]
        if torn or len(counted) != 1:
            self.note({"violation": f"{what} saw {torn} and the counters {counted}"})
        return max(counted, default=0)

    def _clean(self, _: str) -> None:
        self.table().clean()

    def _failed(self, _: str) -> None:
        self.table().rollback_failed_writes()

    def _savepoint(self, _: str) -> None:
        table = self.table()
        newest = table.timeline.commits.completed()[-1].requested_time
        table.create_savepoint(newest)
        self.table().delete_savepoint(newest)

    def _archive(self, _: str) -> None:
        self.table().archive()

    def _compact(self, _: str) -> None:
        self.table().compact()

    def _cluster(self, _: str) -> None:
        self.table().cluster()


def tell_of_lost_locks(worker: Worker) -> None:
    """
    Let this process note each lock that it held and that somebody took away, as Apache Hudi does with its file.

    On a local file system it looks whether the file exists and then opens it: between the two it overwrites that of
    another process, and both hold the lock. The holder notices when it checks, or only when it releases.
    """
    check, release = TableLock.check, FileLock.release

    def noted(lock: TableLock) -> None:
        try:
            check(lock)
        except ConflictError:
            worker.note({"lock": "was taken away"})
            raise

    def released(lock: FileLock) -> None:
        if not lock.is_ours():
            worker.note({"lock": "was taken away"})
        release(lock)

    TableLock.check = noted  # type: ignore[method-assign]
    FileLock.release = released  # type: ignore[method-assign]


class TellOfLeases(logging.Handler):
    """Lets this process note each renewal of a lease that fails, and each lease that is lost."""

    def __init__(self, worker: Worker) -> None:
        super().__init__()
        self._worker = worker

    def emit(self, record: logging.LogRecord) -> None:
        event: str = getattr(record, "event", "")
        if event in ("lease.lost", "lease.not_renewed"):
            self._worker.note({event: record.getMessage()})
        if event == "lease.lost":
            self._worker.leases_lost.append(time.monotonic())


if __name__ == "__main__":
    working = Worker(Arena.load(Path(sys.argv[1])), int(sys.argv[2]), Path(sys.argv[3]))
    tell_of_lost_locks(working)
    logging.getLogger("hudi_py").addHandler(TellOfLeases(working))
    working.run(int(sys.argv[4]))
