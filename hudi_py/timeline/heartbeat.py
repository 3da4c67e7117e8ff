"""
Heartbeats: files which show that a write under the failed-writes policy LAZY is still running.

An empty file ``.hoodie/.heartbeat/<instant>`` is written again in every interval; its age is the time since its
modification. A write counts as dead if its file has not been renewed for *interval x tolerable misses*, or does not
exist. The file is created before the requested instant and deleted after the completed one; a write that fails leaves
it behind.

Source: rules/timeline 6.3, rules/table-services B-3, B-5, B-6; Hudi ``HoodieHeartbeatClient``, ``HeartbeatUtils``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError, HudiError, OutcomeUnknown, StorageError
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.runtime.repeated import RepeatedWork
from hudi_py.storage.base import Storage

FOLDER: Final = ".hoodie/.heartbeat"
CLOCKS_APART_MS_MAX: Final = 2000
"""Object stores tell modification times in whole seconds."""


class ClocksApart(ConfigError):
    """The clock of this machine is ahead of the storage's, by more than a heartbeat lasts: no attempt would succeed."""


@attrs.frozen
class Rhythm:
    """
    How often a heart beats, and when it counts as dead.

    Args:
        interval_ms: Time between two beats.
        expiry_ms: Age from which on a heartbeat is expired.
    """

    interval_ms: int
    expiry_ms: int

    @classmethod
    def of(cls, settings: Settings) -> Rhythm:
        """As the settings say; Hudi's default is 60 s and 120 s."""
        interval = settings[keys.HEARTBEAT_INTERVAL_MS]
        return cls(interval, interval * settings[keys.HEARTBEAT_TOLERABLE_MISSES])

    def is_expired(self, age_ms: int | None) -> bool:
        """Whether a heartbeat of that age is dead; None stands for no heartbeat at all (rule B-5)."""
        return age_ms is None or age_ms > self.expiry_ms


def heartbeat_ages(storage: Storage, clock: Clock) -> Mapping[str, int]:
    """
    Requested time to age in milliseconds, for all heartbeats.

    On a storage without modification times the age is 0: in doubt a writer counts as running.
    """
    now = int(clock.now().timestamp() * 1000)
    return {
        entry.name: 0 if entry.modified_ms is None else now - entry.modified_ms
        for entry in storage.list(FOLDER, details=True)
        if not entry.is_folder and entry.name.isdigit()
    }


@attrs.frozen
class Pulse:
    """
    The heartbeat of a running writer.

    Args:
        path: Path of its file, relative to the table.
        age_ms: Time since it was renewed.
        expiry_ms: See `Rhythm`.
    """

    path: str
    age_ms: int
    expiry_ms: int

    def __str__(self) -> str:
        return f"{self.path} is {self.age_ms // 1000} s old and expires after {self.expiry_ms // 1000} s"


def pulses(storage: Storage, clock: Clock, rhythm: Rhythm) -> Mapping[str, Pulse]:
    """Requested time to heartbeat of every running write, of hudi_py and of Apache Hudi."""
    return {
        time: Pulse(f"{FOLDER}/{time}", age, rhythm.expiry_ms)
        for time, age in heartbeat_ages(storage, clock).items()
        if not rhythm.is_expired(age)
    }


def delete_heartbeat(storage: Storage, instant_time: str) -> None:
    """Remove the heartbeat of a write that is over, if there is one."""
    storage.delete(f"{FOLDER}/{instant_time}")


class Heart:
    """
    Beats for one write, from a thread that dies with its process.

    Args:
        storage: The table's storage.
        clock: Tells how old our own last beat is.
        rhythm: See `Rhythm`.
    """

    def __init__(self, storage: Storage, clock: Clock, rhythm: Rhythm) -> None:
        self._storage, self._clock, self._rhythm = storage, clock, rhythm
        self._time = ""
        self._beaten_ms = 0
        self._beats = RepeatedWork(self._beat_again, rhythm.interval_ms / 1000)

    def start(self, instant_time: str) -> None:
        """Beat once, and start the thread that continues; whoever calls it stops it, also after an error."""
        self._time = instant_time
        self.beat()
        self._beats.start(f"heartbeat-{instant_time}")

    def beat(self) -> None:
        """Write the file again, so that its age is 0."""
        self._beaten_ms = self._now_ms()
        self._storage.replace(f"{FOLDER}/{self._time}", b"")

    def check(self) -> None:
        """
        Check that no other process can have taken this write for failed; call it right before completing (rule B-6).

        Raises:
            ConflictError: The heartbeat expired or was removed.
            ClocksApart: It only seems expired, by a clock that is not the storage's.
        """
        # By the file, not by what this process remembers: other writers judge by the file, too.
        age = heartbeat_ages(self._storage, self._clock).get(self._time)
        if self._rhythm.is_expired(age):
            since_ms = self._now_ms() - self._beaten_ms
            if age is not None and not self._rhythm.is_expired(since_ms):
                raise ClocksApart(
                    f"{self._storage.root}/{FOLDER}/{self._time} was renewed {since_ms // 1000} s ago and is "
                    f"{age // 1000} s old by the clock of this machine, which is {(age - since_ms) // 1000} s ahead of "
                    "the storage's: by it nobody can tell which writers are running, so nothing of this write is "
                    "visible; set the clock right, then write again"
                )
            what = "was removed" if age is None else f"is {age // 1000} s old"
            raise ConflictError(
                f"{self._storage.root}/{FOLDER}/{self._time} {what}: other writers may have rolled this write back; "
                "nothing of it is visible, write again"
            )
        if age:  # 0 stands for a storage that does not tell
            self._warn_of_clock(age)

    def _warn_of_clock(self, age_ms: int) -> None:
        """
        Say if our clock and that of the storage differ, by the file of our last beat, which costs no request.

        Apache Hudi never looks at the times of others: a write of it that begins after ours, and by a clock that is
        behind ours, builds on our files with an earlier time, and its rows are seen by nobody.
        """
        ahead_ms = self._beaten_ms - (self._now_ms() - age_ms)
        if abs(ahead_ms) > CLOCKS_APART_MS_MAX:
            log.warning("clock.apart", path=self._storage.root, ahead_s=round(ahead_ms / 1000, 1), instant=self._time)

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def stop(self) -> None:
        """Stop beating; the file stays, and shows that the write failed."""
        # Waited for, so that no beat comes after the caller has deleted the file: it would look like a running write.
        self._beats.stop()

    def forget(self) -> None:
        """Delete the file of a write that goes no further; if that fails, others wait until it expires."""
        if self._time:
            with suppress(HudiError):
                delete_heartbeat(self._storage, self._time)

    @property
    def is_beating(self) -> bool:
        """Whether the thread is alive."""
        return self._beats.is_running

    def _beat_again(self) -> bool:
        try:
            self.beat()
        except (StorageError, OutcomeUnknown) as error:  # the next beat may go through; `check` has the last word
            log.warning("heartbeat.missed", instant=self._time, why=str(error))
        return True
