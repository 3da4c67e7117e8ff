"""Apache Hudi as one of those who change a table at the same time (`support.rival_worker`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from real_hudi import RealHudi, RealHudiError

from hudi_py.model.instant import Action
from hudi_py.services.clean.executing.recheck import promise_of
from hudi_py.timeline.timeline import Timeline
from support.rival_places import Place
from support.rival_processes import SETTINGS, Play, play
from support.rival_worker import Arena, Worker

WEIGHTS = {"insert": 4, "upsert": 4, "delete": 2, "read": 2, "clean": 1}
_LOST = "WriteConflictException"


class HudiWorker(Worker):
    """
    Writes and cleans with a release of Apache Hudi; rows that it deletes are its own.

    Args:
        arena: Where it works.
        seed: What it does follows from it.
        notes: File of what it says.
        peer: Apache Hudi.
        settings: Of Apache Hudi.
    """

    weights = WEIGHTS

    def __init__(self, arena: Arena, seed: int, notes: Path, peer: RealHudi, settings: dict[str, Any]) -> None:
        super().__init__(arena, seed, notes)
        self.name, self.peer, self.settings = f"hudi{seed}", peer, settings

    def ended(self, what: str, batch: str) -> dict[str, Any]:
        """Its other errors promise nothing: some come from services after the commit."""
        try:
            getattr(self, "_" + what)(batch)
        except RealHudiError as error:
            end = "failed" if what in ("read", "clean") or _LOST in f"{error.kind} {error}" else "unknown"
            return {"end": end, "kind": error.kind.rpartition(".")[2], "error": str(error)[:2000]}
        return {"end": "done"}

    def _insert(self, batch: str) -> None:
        self._write(batch, "insert")
        self.batches.append(batch)

    def _upsert(self, batch: str) -> None:
        self._write(batch, "upsert")
        self.batches.append(batch)

    def _delete(self, batch: str) -> None:
        if batch:
            self.batches.remove(batch)
            self._write(batch, "delete")

    def _write(self, batch: str, operation: str) -> None:
        self.peer.write(self.arena.location, self.given(batch), operation, self.settings)

    def _read(self, _: str) -> None:
        before = self.arena.table().timeline
        found = self.peer.read(self.arena.location)
        if not self._is_overtaken(before):
            self.judge_read(found)

    def _is_overtaken(self, before: Timeline) -> bool:
        """
        Whether files may have gone that its reader saw; it holds no lease, and leaves rows out without an error.

        The rollback of a write that another process made and took back at once counts, too.
        """
        table = self.arena.table()
        if {*table.timeline.completed(Action.ROLLBACK)} - {*before.completed(Action.ROLLBACK)}:
            return True
        done = {each.requested_time for each in before.completed(Action.CLEAN)}
        plans = [
            table.contents.plan_of_pending_clean(each)
            for each in (*table.timeline.completed(Action.CLEAN), *table.timeline.pending(Action.CLEAN))
            if each.requested_time not in done
        ]
        starts = [promise_of(plan).earliest for plan in plans if plan is not None]
        newest = before.commits.completed()[-1].requested_time
        return any(start is None or start > newest for start in starts)

    def _clean(self, _: str) -> None:
        self.peer.clean(self.arena.location, self.settings)


def play_beside(peer: RealHudi, folder: Path, seed: int, place: Place, *, count: int) -> tuple[list[str], Counter[str]]:
    """
    Let two of our processes and Apache Hudi change a table at once; see `play`.

    Its readers hold no leases, so cleans keep more commits than are made while it reads, unless the machine is slow or
    a policy keeps fewer. It knows no leases either, so those of our processes keep a savepoint. Nor does it notice that
    its session with ZooKeeper has ended, and goes on as if it held the lock, so its session is long.

    Args:
        peer: Apache Hudi.
        folder: Of the table.
        seed: What everybody does follows from it, also the type of the table and whether a process of ours is killed.
        place: Storage and lock.
        count: How many things everybody does.
    """
    theirs = {**SETTINGS, **place.lock, **_LONG_SESSION, **_MORE, **_LAZY, "hoodie.cleaner.commits.retained": 10}
    wanted = Play(
        version=peer.table_version,
        kind=("COPY_ON_WRITE", "MERGE_ON_READ")[seed // 2 % 2],
        workers=2,
        count=count,
        faults=seed % 2,
        # Apache Hudi relies on clocks that agree, and takes times that are older than those of others.
        clock_jumps=(0,),
        has_metadata_table=seed % 3 == 0,  # Apache Hudi makes one itself, without our indexes
    )
    return play(
        folder,
        seed,
        wanted,
        place,
        more=_MORE,
        lease_savepoints=True,
        other=lambda *given: HudiWorker(*given, peer, theirs),
    )


_MORE = {
    "hoodie.client.heartbeat.interval_in_ms": 5000,
    "hoodie.client.heartbeat.tolerable.misses": 4,
    "hoodie.clean.commits.retained": 10,
    "hoodie.keep.min.commits": 12,
    "hoodie.keep.max.commits": 15,
}
_LONG_SESSION = {"hoodie.write.lock.zookeeper.session_timeout_ms": 60_000}
_LAZY = {
    "hoodie.write.concurrency.mode": "optimistic_concurrency_control",
    "hoodie.cleaner.policy.failed.writes": "LAZY",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.datasource.write.precombine.field": "n",
}
