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
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hudi_py.config import keys
from hudi_py.config.lock import ZookeeperConfig
from hudi_py.errors import ConfigError, StorageError
from hudi_py.runtime.clock import MONOTONIC, Seconds
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
        seconds: Stopwatch that tells how long no server has answered.
    """

    def __init__(self, config: ZookeeperConfig, wait_ms: int, seconds: Seconds = MONOTONIC) -> None:
        _require_kazoo()
        # Kazoo's own words about connections; what comes of them is in our errors.
        logging.getLogger("kazoo").addHandler(logging.NullHandler())
        self._config, self._wait_ms, self._seconds = config, wait_ms, seconds
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
            client = self._connected()
            lock = self._new_lock(client, purpose)
            with self._ended_after(client, patience_s):
                is_taken = lock.acquire(timeout=patience_s)
            if is_taken:
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
        try:
            if not self.is_ours():
                log.warning("lock.lost", path=self._where)
        except StorageError as error:
            log.warning("lock.lost", path=self._where, why=str(error))
        finally:
            self._close()

    def is_ours(self) -> bool:
        """
        See `LockProvider`.

        ZooKeeper may restart at this moment, and the session outlive that; so it is asked again in its time-out.
        """
        from kazoo.exceptions import ConnectionLoss, KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        if self._lock is None or self._client is None:
            return False
        patience_s = self._config.connection_timeout_ms / 1000
        until = self._seconds() + patience_s
        while True:
            try:
                # Asked of the server: a process that was stopped believes in its session long after it has ended. With
                # a time-out, as a request of a client that is not connected waits for ever.
                asked = self._client.exists_async(f"{self._config.path}/{self._lock.node}")
                stat = asked.get(timeout=max(0.0, until - self._seconds()))
                break
            except ConnectionLoss:  # asked again, the request waits until there is a connection
                continue
            except KazooException:  # the session has ended
                return False
            except KazooTimeoutError as error:
                raise StorageError(f"{self._where}: ZooKeeper did not answer for {patience_s:g} s") from error
        session = self._client.client_id  # none if it ended since ZooKeeper answered
        return stat is not None and session is not None and stat.ephemeralOwner == session[0]

    def holder(self) -> str:
        """See `LockProvider`."""
        from kazoo.exceptions import KazooException
        from kazoo.handlers.threading import KazooTimeoutError

        try:
            client = self._connected()
            with self._ended_after(client, 0):
                names = self._new_lock(client, "").contenders()
        except (KazooException, KazooTimeoutError):
            return f"{self._where} is held by another writer, or was, for ZooKeeper does not answer now"
        finally:
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

    @contextmanager
    def _ended_after(self, client: KazooClient, patience_s: float) -> Iterator[None]:
        """
        End the client, and with it the session, unless the body ends in the time for answers and *patience_s* more.

        Requests of kazoo wait for ever where no server is there any more.

        Raises:
            KazooTimeoutError: It was ended.
        """
        from kazoo.handlers.threading import KazooTimeoutError

        is_ended = threading.Event()
        timer = threading.Timer(patience_s + self._config.connection_timeout_ms / 1000, _stop, [client, is_ended])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
            # Whatever kazoo made of it: it takes a client that was ended for a lock that is held by another one.
            if is_ended.is_set():
                raise KazooTimeoutError("no answer")

    def _new_lock(self, client: KazooClient, purpose: str) -> Any:
        return _mutex_class()(
            client, self._config.path, f"hudi_py {purpose} on {socket.gethostname()} (process:{os.getpid()})"
        )

    def _close(self) -> None:
        client, self._client, self._lock = self._client, None, None
        if client is None:
            return
        try:
            client.stop()
            client.close()
        except Exception as error:  # noqa: BLE001 - ZooKeeper ends the session itself; kazoo raises plain ones, too
            log.warning("lock.session_not_closed", path=self._where, why=repr(error))


def _stop(client: KazooClient, is_ended: threading.Event) -> None:
    from kazoo.exceptions import KazooException

    is_ended.set()
    with suppress(KazooException):  # told when the lock is given up
        client.stop()


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
