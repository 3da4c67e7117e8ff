"""
Hudi's own ``StorageBasedLockProvider``, with requests to the store made by Python.

The classes that speak to S3 are in a bundle of their own (``hudi-aws``), which few registries have. What is the lock,
when it is taken, renewed, expired and released, is in the provider; its client reads the lock's file, and writes it if
it has not changed.
"""

from __future__ import annotations

from typing import Any, Final

from hudi_py.errors import NotFound
from hudi_py.storage.base import Storage
from hudi_py.storage.factory import open_storage
from hudi_py.txn.lease_lock import TABLE_LOCK
from real_hudi.session import HudiJvm

_PACKAGE: Final = "org.apache.hudi.client.transaction.lock."
_FUNCTION: Final = "org.apache.hudi.common.util.Functions$Function3"
_LOGGER: Final = "real_hudi"


class Leases:
    """Locks that this process holds by Hudi's provider, by the table's location."""

    def __init__(self, hudi: HudiJvm) -> None:
        self._hudi = hudi
        self._held: dict[str, tuple[Any, ...]] = {}

    def take(self, location: str, storage_options: dict[str, str], owner: str, settings: dict[str, str]) -> bool:
        """Ask once for the lock of a table; False when another holds it."""
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(self._hudi.gateway)
        properties = self._hudi.jvm.org.apache.hudi.common.config.TypedProperties()
        for key, value in {"hoodie.base.path": location, **settings}.items():
            properties.setProperty(key, value)
        client = _Client(self._hudi, open_storage(location, storage_options))
        # Kept, because Java refers to them.
        made = (_Function(self._hudi.heartbeat_manager), _Function(lambda *_: client))
        logger = self._hudi.jvm.org.slf4j.LoggerFactory.getLogger(_LOGGER)
        provider = self._hudi.construct_hidden(
            f"{_PACKAGE}StorageBasedLockProvider", [owner, properties, *made, logger, None]
        )
        if not provider.tryLock():
            provider.close()
            return False
        self._held[location] = (provider, client, *made)
        return True

    def refused(self, location: str) -> int:
        """How many of the provider's renewals found the lock to be another's."""
        return int(self._held[location][1].refused)

    def release(self, location: str) -> None:
        """Give it back."""
        provider = self._held.pop(location)[0]
        provider.unlock()
        provider.close()


class _Function:
    """A ``Function3`` of Hudi."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def apply(self, first: Any, second: Any, third: Any) -> Any:
        """Call it."""
        return self._call(first, second, third)

    class Java:
        """What py4j looks for."""

        implements: Final = [_FUNCTION]


class _Client:
    """A ``StorageLockClient`` of Hudi."""

    def __init__(self, hudi: HudiJvm, storage: Storage) -> None:
        self._hudi, self._storage, self.refused = hudi, storage, 0
        self._models = hudi.jvm.org.apache.hudi.client.transaction.lock.models

    def tryUpsertLockFile(self, data: Any, before: Any) -> Any:  # noqa: N802 - Java's names, also below
        """Write the lock's file if it still is as *before*."""
        content = bytes(self._models.StorageLockFile.toByteArray(data))
        known = before.get().getVersionId() if before.isPresent() else None
        version = self._storage.swap(TABLE_LOCK, content, known)
        results = self._models.LockUpsertResult
        if version is None:
            self.refused += known is not None
            return self._pair(results.ACQUIRED_BY_OTHERS, None)
        return self._pair(results.SUCCESS, self._models.StorageLockFile(data, version))

    def readCurrentLockFile(self) -> Any:  # noqa: N802
        """Read the lock's file, if there is one."""
        results = self._models.LockGetResult
        try:
            content, version = self._storage.read_version(TABLE_LOCK)
        except NotFound:
            return self._pair(results.NOT_EXISTS, None)
        stream = self._hudi.jvm.java.io.ByteArrayInputStream(bytearray(content))
        return self._pair(results.SUCCESS, self._models.StorageLockFile.createFromStream(stream, version))

    def readObject(self, _path: str, _is_checked: bool) -> Any:  # noqa: N802
        """Read the settings of an audit, of which there are none."""
        return self._hudi.option()

    def writeObject(self, _path: str, _content: str) -> bool:  # noqa: N802
        """Write an entry of an audit."""
        return True

    def close(self) -> None:
        """Nothing is open."""

    def _pair(self, result: Any, file: Any) -> Any:
        return self._hudi.jvm.org.apache.hudi.common.util.collection.Pair.of(result, self._hudi.option(file))

    class Java:
        """What py4j looks for."""

        implements: Final = [f"{_PACKAGE}StorageLockClient"]
