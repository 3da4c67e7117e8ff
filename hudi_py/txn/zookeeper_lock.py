"""
The lock of Hudi's ``ZookeeperBasedLockProvider``: the first of the nodes below ``base_path/lock_key`` holds it.

Each contender creates a node that ZooKeeper numbers, and deletes with the session of its creator. Hudi uses the
``InterProcessMutex`` of Curator, which orders nodes by the number after ``-lock-``; so our nodes have that name, too.

What a crash leaves: the node, until ZooKeeper ends the session (``session_timeout_ms``); then the next one holds it.

Source: rules/table-services F.1; Hudi 0.15.0 to 1.2.0 ``ZookeeperBasedLockProvider``; Curator
``StandardLockInternalsDriver``.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hudi_py.config import keys
from hudi_py.config.lock import ZookeeperConfig
from hudi_py.errors import ConfigError, StorageError
from hudi_py.runtime.log import log

if TYPE_CHECKING:
    from kazoo.client import KazooClient

_SHOWN_MAX: Final = 200
_AT_ONCE_S: Final = 0.1


class ZookeeperLock:
    """
    Args:
        config: Servers, path and time-outs.
        wait_ms: How long an attempt waits in the queue of contenders.
    """

    def __init__(self, config: ZookeeperConfig, wait_ms: int) -> None:
        _require_kazoo()
        # Kazoo's own words about connections; what comes of them is in our errors.
        logging.getLogger("kazoo").addHandler(logging.NullHandler())
        self._config, self._wait_ms = config, wait_ms
        self._client: KazooClient | None = None
        self._lock: Any = None
        self._waits = False

    def try_acquire(self, purpose: str) -> bool:
        """See `LockProvider`. The first attempt hardly waits, so that the caller can report who holds the lock."""
        from kazoo.exceptions import KazooException, LockTimeout
        from kazoo.handlers.threading import KazooTimeoutError

        waits, self._waits = self._waits, True
        patience_s = self._wait_ms / 1000 if waits else _AT_ONCE_S
        try:
            lock = self._new_lock(self._connected(), purpose)
            if lock.acquire(timeout=patience_s):
                self._lock, self._waits = lock, False
        except LockTimeout:
            pass
        except (KazooException, KazooTimeoutError) as error:
            raise StorageError(
                f"{self._where}: ZooKeeper did not answer ({error!r}), so the lock was not taken; check "
                f"{keys.ZOOKEEPER_URL.name}, and that its servers can be reached from here, then try again"
            ) from error
        finally:
            if self._lock is None:
                # A lost request may have created a node of ours, which would keep everybody out, us included. It goes
                # with the session.
                self._close()
        return self._lock is not None

    def release(self) -> None:
        """See `LockProvider`. The end of the session deletes the node."""
        if not self.is_ours():
            log.warning("lock.lost", path=self._where)
        self._close()

    def is_ours(self) -> bool:
        """See `LockProvider`. False, too, if ZooKeeper does not answer: nobody knows who holds it then."""
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        if self._lock is None or self._client is None:
            return False
        try:
            # Asked of the server: a process that was stopped believes in its session long after it has ended. With a
            # time-out, as a request of a client that is not connected waits for ever.
            asked = self._client.exists_async(f"{self._config.path}/{self._lock.node}")
            stat = asked.get(timeout=self._config.connection_timeout_ms / 1000)
        except (KazooException, KazooTimeoutError):
            return False
        session = self._client.client_id  # none if it ended since ZooKeeper answered
        return stat is not None and session is not None and stat.ephemeralOwner == session[0]

    def holder(self) -> str:
        """See `LockProvider`."""
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            names = self._new_lock(self._connected(), "").contenders()
        except (KazooException, KazooTimeoutError):
            names = []
        self._close()
        # Curator leaves its nodes empty.
        who = (names[0] or "which does not name itself") if names else "which released it just now"
        return f"{self._where} is held by another writer, {who[:_SHOWN_MAX]}"

    @property
    def _where(self) -> str:
        return f"the lock {self._config.path} of ZooKeeper {self._config.servers}"

    def _connected(self) -> KazooClient:
        from kazoo.client import KazooClient

        if self._client is None:
            client = KazooClient(hosts=self._config.servers, timeout=self._config.session_timeout_ms / 1000)
            self._client = client  # also before it is connected, so that its threads end with _close
            client.start(timeout=self._config.connection_timeout_ms / 1000)
        return self._client

    def _new_lock(self, client: KazooClient, purpose: str) -> Any:
        return _mutex_class()(
            client, self._config.path, f"hudi_py {purpose} on {socket.gethostname()} (process:{os.getpid()})"
        )

    def _close(self) -> None:
        from kazoo.exceptions import KazooException

        client, self._client, self._lock = self._client, None, None
        if client is None:
            return
        try:
            client.stop()
            client.close()
        except KazooException as error:  # ZooKeeper ends the session itself after its time-out
            log.warning("lock.session_not_closed", path=self._where, why=repr(error))


def _mutex_class() -> type:
    """Kazoo's lock with nodes named as those of Curator; made late, because kazoo is not always installed."""
    from kazoo.recipe.lock import Lock

    class CuratorMutex(Lock):  # type: ignore[misc]  # kazoo has no types
        """Curator takes what follows the last ``lock-`` for the number of a node, and orders all nodes by it."""

        _NODE_NAME = "-lock-"
        _EXCLUDE_NAMES: ClassVar = ["-lock-"]

    return CuratorMutex


def _require_kazoo() -> None:
    try:
        import kazoo  # noqa: F401
    except ImportError:
        raise ConfigError(
            "locks of ZooKeeper need the package kazoo, which is not installed; nothing was changed. "
            "pip install 'hudi_py[zookeeper]'"
        ) from None
