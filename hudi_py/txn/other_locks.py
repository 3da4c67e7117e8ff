"""
Looks for a lock that somebody holds in the table with another provider: two locks keep nobody out.

Apache Hudi leaves nothing in the table with ZooKeeper, DynamoDB or the lock of one process, so only files and leases
are seen, and only while they are held. Asked under our own lock, so that what it says is true until we write.
"""

from __future__ import annotations

from typing import Final

from hudi_py.config.lock import LockConfig, LockKind
from hudi_py.errors import NotFound
from hudi_py.runtime.clock import Clock
from hudi_py.storage.base import Storage
from hudi_py.txn.file_lock import NAME, FileLock
from hudi_py.txn.lease_lock import CLOCKS_MS_MAX, TABLE_LOCK, parse_lease

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
    if config.kind is not LockKind.LEASE:
        try:
            lease = parse_lease(storage.read(TABLE_LOCK))
        except NotFound:
            lease = None
        now_ms = int(clock.now().timestamp() * 1000)
        if lease is not None and not lease.is_released and now_ms <= lease.valid_until_ms + CLOCKS_MS_MAX:
            return f"{TABLE_LOCK} is held by {lease.owner} ({LockKind.LEASE.value})"
    # Its size first, because a listing of that folder is a large one in layout 1.
    is_elsewhere = config.kind is not LockKind.FILE or _is_elsewhere(storage, config)
    if is_elsewhere and storage.size(f"{_FOLDER}/{NAME}") is not None:
        file = FileLock(storage, _FOLDER, config.expire_ms, clock)
        if file.is_held():
            return f"{file.holder()} ({LockKind.FILE.value})"
    return None


def _is_elsewhere(storage: Storage, config: LockConfig) -> bool:
    return config.folder.rstrip("/") not in ("", f"{storage.root}/{_FOLDER}")
