"""An object store on which folders are listed at the same time while writers wait for the table's lock."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from hudi_py.storage.base import Details, Listing
from hudi_py.storage.memory import MemoryStorage
from hudi_py.txn.lease_lock import TABLE_LOCK

LOCKED = {"hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider"}
_PARTITIONS = ("r0", "r1")


class Together(MemoryStorage):
    """
    Once somebody has taken the lock (`LOCKED`), the folders of two partitions are listed together, or none is.

    Args:
        files: What it holds.
        modified_ms: When that was written.
    """

    def __init__(self, files: Mapping[str, bytes], modified_ms: int = 0) -> None:
        super().__init__("s3://lake/trips", clock_ms=lambda: modified_ms)
        for path, content in files.items():
            self.replace(path, content)
        self.both = threading.Barrier(len(_PARTITIONS))
        self.is_locked = False

    def swap(self, path: str, data: bytes, version: str | None) -> str | None:
        self.is_locked |= path == TABLE_LOCK
        return super().swap(path, data, version)

    def list(self, folder: str, *, details: Details = False) -> Listing:
        if self.is_locked and folder.endswith(_PARTITIONS):
            self.both.wait(timeout=10)
        return super().list(folder, details=details)
