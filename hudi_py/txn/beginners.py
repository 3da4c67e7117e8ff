"""
Waits, before an action completes, for writers whose time is before ours and who have not looked at the table yet.

Apache Hudi takes the time of a write, and only then loads the timeline that it takes for its starting point. If ours
completes in between with a later time, Hudi builds on our files without ever comparing itself with us, and its own
files count as older than ours by their names: its rows are in the table, and nobody sees them. Two writers of Apache
Hudi lose rows of each other in this way. As long as such a write is only requested, it has not chosen its files.

Our own writes become inflight under the same lock under which they are requested, so they are never waited for.

Source: `tests/interop/test_many_writers.py`; Hudi ``SparkRDDWriteClient.upsert`` (``initTable``, then ``preWrite``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.concurrency import SEVERAL_WRITERS
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.model.instant import Action, Instant, State
from hudi_py.runtime.clock import MONOTONIC, SLEEP, Seconds
from hudi_py.runtime.log import log
from hudi_py.timeline.heartbeat import Pulse, Rhythm, pulses
from hudi_py.timeline.timeline import Timeline
from hudi_py.txn.commit import Begun, Ready

_BUILDS_ON_FILES: Final = frozenset({Action.COMMIT, Action.DELTA_COMMIT})
"""Overwrites replace whole file groups, ours too if they see them, and write none of their own into them."""
_PAUSE_S: Final = 0.5


@attrs.frozen(kw_only=True)
class Beginners:
    """
    Other writers that have begun and not looked at the table.

    Args:
        rhythm: When their heartbeats count as expired.
        patience_s: How long they are waited for.
        sleep: Waits for a number of seconds.
        seconds: Stopwatch.
    """

    rhythm: Rhythm
    patience_s: float
    sleep: Callable[[float], None] = SLEEP
    seconds: Seconds = MONOTONIC

    @classmethod
    def of(cls, settings: Settings) -> Beginners | None:
        """Return as the settings say; None where no other writer is expected."""
        if settings[keys.CONCURRENCY_MODE] != SEVERAL_WRITERS:
            return None
        # The same patience as for a write that is repeated after a conflict.
        return cls(rhythm=Rhythm.of(settings), patience_s=settings[keys.WRITE_RETRY_TIMEOUT].total_seconds())

    @contextmanager
    def ready(self, begun: Begun) -> Iterator[Ready]:
        """
        As `Begun.ready`, once nobody has to be waited for; the lock is not held meanwhile.

        Raises:
            ConflictError: As there; or such a writer is still there when patience ends.
        """
        until_s = self.seconds() + self.patience_s
        while True:
            with begun.ready() as ready:
                found = self._first(ready.timeline, begun)
                if found is None:
                    yield ready
                    return
            log.warning("commit.waiting", instant=begun.instant.requested_time, beginner=str(found[0]))
            while found is not None:
                if self.seconds() >= until_s:
                    raise ConflictError(
                        f"{begun.store.storage.root}: {found[0]} is only requested, and its writer is running "
                        f"({found[1]}): completing {begun.instant} now could hide its rows, because it may build on "
                        "this commit with an earlier time; nothing was committed, try again when it has gone on"
                    )
                # Without the lock, which the other writer needs to go on.
                self.sleep(_PAUSE_S)
                found = self._first(begun.store.load(), begun)

    def _first(self, now: Timeline, begun: Begun) -> tuple[Instant, Pulse] | None:
        ours, store = begun.instant, begun.store
        early = [
            each
            for each in now.writes.pending()
            if each.state is State.REQUESTED
            and each.action in _BUILDS_ON_FILES
            and each.requested_time < ours.requested_time
        ]
        # A writer without a heartbeat will not go on, so nothing is to be waited for.
        alive = pulses(store.storage, store.clock, self.rhythm) if early else {}
        return next(((each, alive[each.requested_time]) for each in early if each.requested_time in alive), None)


@contextmanager
def ready_after(beginners: Beginners | None, begun: Begun) -> Iterator[Ready]:
    """As `Begun.ready`, after *beginners* if there may be any."""
    with begun.ready() if beginners is None else beginners.ready(begun) as ready:
        yield ready
