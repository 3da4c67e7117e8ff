"""
The attempt of a compaction or clustering, as others see it: at work, failed, or over.

Every attempt has a heartbeat, whatever the failed-writes policy, and a note that names its process; an attempt that
fails adds why. So recovery can tell an attempt that is proven to have failed from one that may be running, which Apache
Hudi's services do not show. Both files are deleted once the attempt is completed or taken back; after a crash in
between they are of an instant that is not inflight, and mean nothing.

Source: rules/timeline 6.3, rules/table-services B-25.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final

from hudi_py.config.concurrency import shows_its_pulse
from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError, HudiError, NotFound
from hudi_py.model.files import OWN_FOLDER
from hudi_py.model.json_document import parse_json
from hudi_py.runtime.randomness import new_uuid
from hudi_py.storage.base import Storage
from hudi_py.timeline.heartbeat import Heart, Rhythm, delete_heartbeat, heartbeat_ages
from hudi_py.timeline.store import TimelineStore
from hudi_py.txn.commit import Begun, Requested
from hudi_py.txn.process import is_gone, this_process

if TYPE_CHECKING:
    from typing_extensions import Self

_FOLDER: Final = f"{OWN_FOLDER}/attempts"
_WHY_MAX: Final = 500


class Attempt:
    """
    One attempt, from before its inflight file exists; as a context manager it stops its heartbeat at the end.

    Args:
        store: The table's timeline.
        settings: Failed-writes policy, and rhythm of the heartbeat.
        instant_time: Requested time of the compaction or clustering.
    """

    def __init__(self, store: TimelineStore, settings: Settings, instant_time: str) -> None:
        self._storage, self._time = store.storage, instant_time
        self._is_shared = shows_its_pulse(settings)
        self._heart = Heart(store.storage, store.clock, Rhythm.of(settings))
        self._note = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._heart.stop()
        # A killed process cannot write that it failed; its number and its heartbeat show it. One that is interrupted by
        # hand (Ctrl-C) lives on, and can.
        if error is not None and self._note:
            with contextlib.suppress(HudiError):  # the error of the attempt is the one that counts
                # Another process may have taken this attempt back and made its own since.
                if _read(self._storage, self._time) == self._note:
                    self._say(f"{type(error).__name__}: {error}"[:_WHY_MAX])

    def begin(self, requested: Requested) -> Begun:
        """
        Make the service inflight.

        Raises:
            ConflictError: Another process has begun it, or withdrawn its plan, at the same time.
        """
        # Before the inflight file: from that moment other writers may take the attempt for dead.
        self._heart.start(self._time)
        begun = requested.begin()
        # Behind it: only now the attempt is ours. With a note of another process it would be proven to have failed.
        self._say()
        try:
            begun.look_for_plan(requested.instant)
        except ConflictError:
            self.end()
            raise
        return begun

    def check(self) -> None:
        """
        Check, right before completing, that nobody can have taken the attempt for dead.

        Raises:
            ConflictError: With several writers, or the failed-writes policy LAZY: the heartbeat expired or was removed.
        """
        # Otherwise there is one process by agreement, and whether it was taken over shows in its markers.
        if self._is_shared:
            self._heart.check()

    def end(self) -> None:
        """The attempt is completed, or never was one: remove what shows it."""
        self._note = b""
        self._heart.stop()
        forget_attempt(self._storage, self._time)

    def _say(self, failed: str | None = None) -> None:
        said = {"process": this_process(), "attempt": new_uuid(), **({} if failed is None else {"failed": failed})}
        self._note = json.dumps(said).encode()
        self._storage.replace(f"{_FOLDER}/{self._time}", self._note)


def forget_attempt(storage: Storage, instant_time: str) -> None:
    """Remove heartbeat and note of an attempt that is completed or was taken back."""
    delete_heartbeat(storage, instant_time)
    storage.delete(f"{_FOLDER}/{instant_time}")


def take_back(store: TimelineStore, settings: Settings, instant_time: str, roll_back: Callable[[str], object]) -> None:
    """
    Roll an inflight attempt back, of this or another process, and forget it.

    Args:
        store: The table's timeline.
        settings: Failed-writes policy.
        instant_time: Requested time of the compaction or clustering.
        roll_back: Rolls back the attempt; it refuses if a heartbeat shows that the attempt is running.
    """
    # Unless several processes work on the table, by agreement nobody else is at work, whatever the heartbeat's age.
    if not shows_its_pulse(settings):
        forget_attempt(store.storage, instant_time)
    roll_back(instant_time)
    forget_attempt(store.storage, instant_time)


def why_failed(storage: Storage, instant_time: str) -> str | None:
    """Why an inflight attempt is proven to have failed, by its note; None if it may be running, or has none."""
    try:
        note = parse_json(_read(storage, instant_time))
    except ValueError:
        return None
    if not isinstance(note, Mapping):
        return None
    if note.get("failed"):
        return f"its process has given it up: {note['failed']}"
    if is_gone(str(note.get("process", ""))):
        return "the process that carried it out has ended"
    return None


def proof_of_failure(store: TimelineStore, settings: Settings, instant_time: str) -> str | None:
    """As `why_failed`; an expired heartbeat is proof, too."""
    why = why_failed(store.storage, instant_time)
    if why is not None:
        return why
    age = heartbeat_ages(store.storage, store.clock).get(instant_time)
    # No heartbeat at all proves nothing: services of Apache Hudi have none.
    if age is None or not Rhythm.of(settings).is_expired(age):
        return None
    return f"its heartbeat is {age // 1000} s old, and a running attempt renews it"


def _read(storage: Storage, instant_time: str) -> bytes:
    try:
        return storage.read(f"{_FOLDER}/{instant_time}")
    except NotFound:
        return b""
