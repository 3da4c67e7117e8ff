"""
Looks for a lock that somebody holds in the table with another provider, or where none is set: it keeps nobody out.

Apache Hudi leaves nothing in the table with ZooKeeper, DynamoDB or the lock of one process, so only files and leases
are seen, and only while they are held. Asked under our own lock, so that what it says is true until we write.
"""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.concurrency import SEVERAL_WRITERS, SINGLE_WRITER
from hudi_py.config.lock import LockConfig, LockKind
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, NotFound
from hudi_py.runtime.clock import Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage
from hudi_py.timeline.lock import NoLock
from hudi_py.txn.file_lock import NAME, FileLock
from hudi_py.txn.lease_lock import CLOCKS_MS_MAX, TABLE_LOCK, parse_lease
from hudi_py.txn.turns import place_of

_FOLDER: Final = ".hoodie"


def other_holder(storage: Storage, config: LockConfig, clock: Clock) -> str | None:
    """
    Return a text about a lock of another provider, or at another place, that is held in the table; None if none is.

    Locks that count as left behind do not count, by the same rules by which they would be taken over.

    Args:
        storage: Storage of the table.
        config: The lock that all writers should use.
        clock: Tells ages.
    """
    if config.kind is None:  # a plug-in may well use one of these two itself
        return None
    found = None if config.kind is LockKind.LEASE else _leased(storage, clock)
    if found is None and (config.kind is not LockKind.FILE or _is_elsewhere(storage, config)):
        found = _locked(storage, config.expire_ms, clock)
    return found


@attrs.frozen
class Unlocked(NoLock):
    """
    The lock of a table for which none is set: it keeps nobody out, but sees whether somebody holds one.

    Looked at where an action begins and where it completes. Another job's lock is held for moments, so not every such
    set-up is found at once.

    Args:
        storage: Storage of the table.
        settings: Say at which age a lock file counts as left behind.
        clock: Tells that age.
    """

    storage: Storage
    settings: Settings
    clock: Clock

    def look(self) -> None:
        """See `Lock`. Writes and clusterings are refused instead of warned: `hudi_py.config.concurrency_of`."""
        mode = self.settings[keys.CONCURRENCY_MODE]
        if mode != SINGLE_WRITER:
            log.warning(
                "lock.missing",
                path=self.storage.root,
                why=f"{keys.CONCURRENCY_MODE.name}={mode} says that several writers are at work, and nothing keeps "
                f"this action apart from them; set the {keys.LOCK_PROVIDER.name} that they share",
            )
        self.check()

    def check(self) -> None:
        """See `Lock`."""
        found = _leased(self.storage, self.clock)
        # On an object store neither Apache Hudi nor hudi_py takes a file for a lock, and the look is a request.
        if found is None and self.storage.root.partition("://")[0] in (self.storage.root, "memory"):
            expire_ms = self.settings[keys.LOCK_FILE_EXPIRE_MINUTES] * 60_000
            found = _locked(self.storage, expire_ms, self.clock)
        if found is not None:
            raise ConfigError(
                f"{self.storage.root}: {found}, and {keys.LOCK_PROVIDER.name} is not set here: nothing keeps these two "
                "apart, and rows of one of them could be lost, so this was not completed. Set the lock provider and "
                f"{keys.CONCURRENCY_MODE.name}={SEVERAL_WRITERS} of the other writers; or, if no writer is running, "
                "hudi-py recover --dry-run shows how to release that lock"
            )


def _leased(storage: Storage, clock: Clock) -> str | None:
    try:
        lease = parse_lease(storage.read(TABLE_LOCK))
    except NotFound:
        return None
    now_ms = int(clock.now().timestamp() * 1000)
    if lease is None or lease.is_released or now_ms > lease.valid_until_ms + CLOCKS_MS_MAX:
        return None
    return f"{TABLE_LOCK} is held by {lease.owner} ({LockKind.LEASE.value})"


def _locked(storage: Storage, expire_ms: int, clock: Clock) -> str | None:
    # Its size first, because a listing of that folder is a large one in layout 1.
    if storage.size(f"{_FOLDER}/{NAME}") is None:
        return None
    file = FileLock(storage, _FOLDER, expire_ms, clock)
    return f"{file.holder()} ({LockKind.FILE.value})" if file.is_held() else None


def _is_elsewhere(storage: Storage, config: LockConfig) -> bool:
    return bool(config.folder) and place_of(config.folder) != place_of(f"{storage.root}/{_FOLDER}")
