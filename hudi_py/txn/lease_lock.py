"""
The lock of Hudi's ``StorageBasedLockProvider``: a file that says until when it is valid, and is renewed until then.

Every step is a conditional replacement, so only one of several processes that find it free gets it. A released lock is
kept, and marked as released. What a crash leaves: the file, which counts until it expires; then any process may take
it.

Source: rules/table-services F.1; Hudi 1.0.2 and 1.1.1 ``StorageBasedLockProvider``, ``StorageLockFile``.
"""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Final

import attrs

from hudi_py.config.lock import LockConfig
from hudi_py.errors import CorruptMetadata, NotFound, OutcomeUnknown, StorageError
from hudi_py.model.json_document import parse_json
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness, new_uuid
from hudi_py.runtime.repeated import RepeatedWork
from hudi_py.storage.base import Storage, Versioned

TABLE_LOCK: Final = ".hoodie/.locks/table_lock.json"
CLOCKS_MS_MAX: Final = 500
"""Assumed difference between the clocks of two machines, as in Hudi."""


@attrs.frozen
class Lease:
    """
    Content of the file.

    Args:
        is_released: Whether any process may take it.
        valid_until_ms: Time of expiry in epoch milliseconds; afterwards any process may take it.
        owner: Identifier of its writer.
    """

    is_released: bool
    valid_until_ms: int
    owner: str | None


def parse_lease(data: bytes) -> Lease | None:
    """The content; None if it is invalid. Unknown fields are ignored."""
    try:
        found = parse_json(data)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("expired"), bool):
        return None
    until, owner = found.get("validUntil"), found.get("owner")
    if not isinstance(until, int) or isinstance(until, bool):
        return None
    return Lease(found["expired"], until, owner if owner is None else str(owner))


def format_lease(lease: Lease) -> bytes:
    """As Hudi writes it."""
    content = {"expired": lease.is_released, "validUntil": lease.valid_until_ms, "owner": lease.owner}
    return json.dumps(content, separators=(",", ":")).encode()


class LeaseLock:
    """
    Args:
        storage: Storage of the table.
        config: How long it is valid, and how often it is renewed.
        clock: Decides whether it has expired.
    """

    def __init__(self, storage: Storage, config: LockConfig, clock: Clock, randomness: Randomness = MACHINE) -> None:
        self._storage, self._clock, self._randomness = storage, clock, randomness
        self._validity_ms = config.validity_ms
        self._guard = threading.Lock()  # the thread that renews it writes, too
        self._held: Versioned | None = None
        self._renewals = RepeatedWork(self.renew, config.renew_ms / 1000)

    def try_acquire(self, purpose: str) -> bool:
        """See `LockProvider`."""
        seen = self._read()
        lease = None if seen is None else self._parsed(seen.content)
        # With a margin, because the holder compares with its own clock: it must have given up before it is replaced.
        if lease is not None and not (lease.is_released or self._now_ms() > lease.valid_until_ms + CLOCKS_MS_MAX):
            return False
        if lease is not None and not lease.is_released:
            log.warning("lock.taken_over", path=f"{self._storage.root}/{TABLE_LOCK}", holder=lease.owner)
        # A new owner for each time that it is held: an older renewal of our own must not be taken for this one.
        mine = Lease(False, self._now_ms() + self._validity_ms, new_uuid(self._randomness))
        # Conditional on what was seen: of two that find it free, one loses here.
        if not self._write(mine, None if seen is None else seen.version):
            return False
        self._renewals.start(f"lock for {purpose}")
        return True

    def release(self) -> None:
        """See `LockProvider`."""
        # The thread first: a renewal after the release would make the lock valid again, without a holder.
        self._renewals.stop()
        held, lease = self._held, self._lease()
        if held is None or lease is None or not self._write(attrs.evolve(lease, is_released=True), held.version):
            log.warning("lock.lost", path=f"{self._storage.root}/{TABLE_LOCK}")
        self._held = None

    def is_ours(self) -> bool:
        """See `LockProvider`."""
        with self._guard:
            lease = self._lease()
            if self._held is None or lease is None or self._now_ms() >= lease.valid_until_ms:
                return False
            seen = self._read()
            return seen is not None and self._is_mine(seen, lease)

    def holder(self) -> str:
        """See `LockProvider`."""
        where = f"{self._storage.root}/{TABLE_LOCK}"
        seen = self._read()
        lease = None if seen is None else parse_lease(seen.content)
        if lease is None or lease.is_released:
            return f"{where} was released just now"
        left_s = (lease.valid_until_ms - self._now_ms()) // 1000
        return f"{where} is another writer's lock (owner {lease.owner}), valid for {max(0, left_s)} s more"

    def renew(self) -> bool:
        """Extend its validity; False if another process has it."""
        with self._guard:
            held, lease = self._held, self._lease()
            if held is None or lease is None:
                return False
            try:
                is_ours = self._write(
                    attrs.evolve(lease, valid_until_ms=self._now_ms() + self._validity_ms), held.version
                )
            except (
                StorageError,
                OutcomeUnknown,
            ) as error:  # it is renewed long before it expires, so there is time for another try
                log.warning("lock.not_renewed", why=str(error))
                return True
            if not is_ours:
                self._held = None
            return is_ours

    def _write(self, lease: Lease, version: str | None) -> bool:
        content = format_lease(lease)
        try:
            written = self._storage.swap(TABLE_LOCK, content, version)
        except (StorageError, OutcomeUnknown):
            seen = self._read()
            # The answer was lost, and the write may have arrived. The content has our unique owner, so it decides.
            if seen is None or seen.content != content:
                raise
            written = seen.version
        except BaseException:  # interrupted by hand: whoever releases it has to know whether it is ours
            with suppress(StorageError):
                seen = self._read()
                if seen is not None and seen.content == content:
                    self._held = seen
            raise
        if written is None and self._held is not None:  # a write that was reported as failed may have arrived late
            seen = self._read()
            if seen is not None and self._is_mine(seen, lease):
                written = self._storage.swap(TABLE_LOCK, content, seen.version)
        if written is None:
            return False
        self._held = Versioned(content, written)
        return True

    @staticmethod
    def _is_mine(seen: Versioned, lease: Lease) -> bool:
        found = parse_lease(seen.content)
        return found is not None and found.owner == lease.owner and not found.is_released

    def _read(self) -> Versioned | None:
        try:
            return self._storage.read_version(TABLE_LOCK)
        except NotFound:
            return None

    def _lease(self) -> Lease | None:
        return None if self._held is None else parse_lease(self._held.content)

    def _parsed(self, content: bytes) -> Lease:
        lease = parse_lease(content)
        if lease is None:
            raise CorruptMetadata(
                f"{self._storage.root}/{TABLE_LOCK} does not parse, so the holder of the table's lock is unknown; if "
                "no writer is running, delete it. Nothing was changed"
            )
        return lease

    def _now_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)
