"""
The lock of a table: waits for the lock of a provider as configured, and takes it once, however deep calls are nested.

Source: rules/table-services F-2, F.1; Hudi ``LockManager``, ``TransactionManager``.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from typing import Any

from hudi_py.config import keys
from hudi_py.config.lock import LockConfig, LockKind, check_lock_provider, lock_config
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, ConflictError, HudiError, OutcomeUnknown, ServiceFailed, StorageError
from hudi_py.runtime.clock import MONOTONIC, SLEEP, Clock
from hudi_py.runtime.log import log
from hudi_py.storage.base import Storage
from hudi_py.storage.factory import open_storage
from hudi_py.timeline.lock import Lock, LockHeld, RehearsedLock
from hudi_py.txn.dynamodb_lock import DynamoDBLock
from hudi_py.txn.file_lock import FileLock
from hudi_py.txn.lease_lock import LeaseLock
from hudi_py.txn.other_locks import Unlocked, other_holder
from hudi_py.txn.providers import InProcessLock, LockProvider, plugin, plugin_names
from hudi_py.txn.turns import place_of
from hudi_py.txn.zookeeper_lock import ZookeeperLock

_META_FOLDER = ".hoodie"
_SAY_ENOUGH = (ConfigError, ConflictError, OutcomeUnknown, ServiceFailed)
_POLL_MS = 1000
_OLD_MS = 600_000
_WAIT_FOR_OLD_MS = 10_000
"""Who holds a lock file for longer than anybody waits is most likely dead, on a machine that cannot be asked. Each
command that waited as long as for a live holder would cost minutes."""


def table_lock(storage: Storage, settings: Settings, clock: Clock) -> Lock:
    """
    The configured lock; without a provider there is none (rule F-2), and only that of others is looked for.

    The provider is checked when the lock is first held, so that tables with an unsupported provider can be read.
    """
    if settings[keys.LOCK_PROVIDER]:
        lock = TableLock(storage, settings, clock)
        return RehearsedLock(lock) if storage.capabilities.is_rehearsal else lock
    return Unlocked(storage, settings, clock)


class TableLock:
    """
    See `Lock`.

    Args:
        storage: Storage of the table.
        settings: Provider, and how long to wait.
        clock: Tells the age of a lock.
        sleep: Waits for a number of seconds.
    """

    is_used = True

    def __init__(
        self, storage: Storage, settings: Settings, clock: Clock, *, sleep: Callable[[float], None] = SLEEP
    ) -> None:
        self._storage, self._settings, self._clock, self._sleep = storage, settings, clock, sleep
        self._mutex = threading.RLock()  # two threads with one opened table are two writers
        self._depth = 0
        self._owner: int | None = None  # the thread that holds it
        self._afterwards: list[Callable[[], None]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy does not hold it.
        return partial(type(self), sleep=self._sleep), (self._storage, self._settings, self._clock)

    @contextmanager
    def held(self, purpose: str) -> Iterator[None]:
        """See `Lock`."""
        self._enter(purpose)
        try:
            yield
        except BaseException as error:
            is_lost = self._explains(error)
            try:
                self._leave()
            # The error of the body is the one that the caller has to see.
            except HudiError as unreleased:
                log.warning("lock.not_released", why=str(unreleased))
            if is_lost:
                raise ConflictError(f"{self._lost} was met: {error}; try again") from error
            raise
        self._leave()

    def _explains(self, error: BaseException) -> bool:
        """Whether what the body met was made by another writer that has the lock now: no damage, and worth a retry."""
        if self._depth != 1 or not isinstance(error, HudiError) or isinstance(error, _SAY_ENOUGH):
            return False
        try:
            return not self._provider.is_ours()
        except HudiError:  # unknown
            return False

    @property
    def _lost(self) -> str:
        return f"{self._storage.root}: the table's lock was taken over or removed while it was held, so another writer"

    def examine(self) -> None:
        """See `Lock`."""
        check_lock_provider(self._settings, plugin_names())

    def require_usable(self) -> None:
        """
        Raise if the lock could not be held, before a table is created.

        Raises:
            ConfigError: The provider is not supported, or not on this storage.
            StorageError: Its service does not answer, or no file can be created in its folder.
            ConflictError: Another writer holds it.
        """
        # A lock that is a file in the table would itself create the table's folder.
        provider = self._provider
        is_elsewhere = isinstance(provider, FileLock) and not provider.is_in(self._storage)
        if is_elsewhere or self._config.kind in (LockKind.ZOOKEEPER, LockKind.DYNAMODB):
            with self.held("creation of the table"):
                pass

    def afterwards(self, action: Callable[[], None]) -> None:
        """See `Lock`."""
        if self._owner == threading.get_ident():
            self._afterwards.append(action)
        else:
            action()

    def look(self) -> None:
        """Nothing: looked for when the lock was taken."""

    def check(self) -> None:
        """See `Lock`. Also raises StorageError: nobody knows whether it is still held."""
        try:
            is_ours = not self._depth or self._provider.is_ours()
        except StorageError as error:
            raise StorageError(
                f"{error}. So nobody knows whether the lock of {self._storage.root} is still held here, and nothing "
                "was completed; try again when it can be asked"
            ) from error
        if not is_ours:
            raise ConflictError(f"{self._lost} may be running; nothing was completed, try again")

    @cached_property
    def _config(self) -> LockConfig:
        return lock_config(self._settings, plugin_names())

    @cached_property
    def _provider(self) -> LockProvider:
        config = self._config
        if config.kind is None:
            return plugin(config.provider)(self._storage, self._settings, self._clock)
        if config.kind is LockKind.IN_PROCESS:
            return InProcessLock(self._storage.root, config.wait_ms)
        if config.zookeeper is not None:
            return ZookeeperLock(config.zookeeper, config.wait_ms)
        if config.dynamodb is not None:
            return DynamoDBLock(config.dynamodb)
        if config.kind is LockKind.LEASE:
            if not self._storage.capabilities.conditional_replace:
                raise ConfigError(
                    f"{self._storage.root}: {keys.LOCK_PROVIDER.name}={config.kind.value} needs conditional writes, "
                    "which hudi_py has on S3; nothing was changed. Let all writers use another lock provider"
                )
            return LeaseLock(self._storage, config, self._clock)
        storage, folder = _place(self._storage, config)
        return FileLock(storage, folder, config.expire_ms, self._clock)

    def _enter(self, purpose: str) -> None:
        config = self._config
        # Two threads of one process wait for each other as long as two processes would.
        patience_s = max(config.wait_ms, sum(_pauses_ms(config))) / 1000
        if not self._mutex.acquire(timeout=min(patience_s, threading.TIMEOUT_MAX)):
            raise LockHeld(f"{self._storage.root}: another thread holds the table's lock; try again")
        try:
            # Nested calls hold it once: services call each other, and Hudi's providers are not re-entrant.
            if self._depth == 0:
                self._acquire(purpose)
                self._refuse_another()
            self._depth += 1
            self._owner = threading.get_ident()
        except BaseException as error:
            try:
                if self._depth == 0 and not isinstance(error, HudiError):
                    self._let_go()
            finally:
                self._mutex.release()
            raise

    def _let_go(self) -> None:
        """
        Release what is ours when the taking or the releasing was interrupted, most likely by hand (Ctrl-C).

        This process may live on for long, as in a notebook, and to all others the lock would be held.
        """
        with suppress(HudiError):
            if self._provider.is_ours():
                self._provider.release()

    def _leave(self) -> None:
        self._depth -= 1
        due: list[Callable[[], None]] = []
        try:
            if self._depth == 0:
                due, self._afterwards, self._owner = self._afterwards, [], None
                self._provider.release()
        except HudiError:
            raise
        except BaseException:
            self._let_go()
            raise
        finally:
            self._mutex.release()
            for action in due:
                action()

    def _refuse_another(self) -> None:
        """Raise, without the lock, if somebody holds another lock of the table."""
        try:
            other = other_holder(self._storage, self._config, self._clock)
            if other is not None:
                raise ConfigError(
                    f"{self._storage.root}: {other}, and {keys.LOCK_PROVIDER.name}={self._config.provider} is set "
                    "here: writers with different locks do not keep each other out; nothing was changed. Set the same "
                    "lock provider for all writers and services, or, if no writer uses that lock any more, delete it"
                )
        except BaseException:
            self._provider.release()
            raise

    def _acquire(self, purpose: str) -> None:
        config = self._config
        inside_s = -MONOTONIC()  # some providers wait by themselves
        if self._tried(purpose):
            return
        inside_s += MONOTONIC()
        log.warning("lock.waiting", purpose=purpose, holder=self._provider.holder())
        waited_ms = 0
        pauses_ms = list(_pauses_ms(config))
        is_old = isinstance(self._provider, FileLock) and self._provider.age_ms() > max(_OLD_MS, sum(pauses_ms))
        for pause_ms in pauses_ms:
            if is_old and waited_ms >= _WAIT_FOR_OLD_MS:
                break
            self._sleep(pause_ms / 1000)
            waited_ms += pause_ms
            inside_s -= MONOTONIC()
            if self._tried(purpose):
                return
            inside_s += MONOTONIC()
        # The locks of services end by themselves some time after their holder; files may stay.
        is_file = config.kind in (LockKind.FILE, LockKind.LEASE)
        way_out = (
            f". If no writer is running, hudi-py recover --dry-run {self._storage.root} shows how to release it"
            if is_file
            else ""
        )
        why_short = " only, because its holder is most likely dead" if is_old else ""
        raise LockHeld(
            f"{self._provider.holder()}; {purpose} waited {waited_ms // 1000 + int(inside_s)} s for it{why_short}: try "
            f"again{way_out}"
        )

    def _tried(self, purpose: str) -> bool:
        try:
            return self._provider.try_acquire(purpose)
        except StorageError as error:
            if self._config.kind is not LockKind.FILE or not self._config.folder:
                raise
            raise StorageError(
                f"{error}, so the lock was not taken; {keys.LOCK_FILE_FOLDER.name}={self._config.folder} has to be a "
                "folder in which this process may create files",
                error.retryable,
            ) from error


def _pauses_ms(config: LockConfig) -> Iterator[int]:
    """Pauses before every try but the first. A lease can expire at any time, so it is tried every second."""
    polls = config.wait_ms // _POLL_MS if config.kind in (LockKind.LEASE, LockKind.DYNAMODB) else 0
    for attempt in range(config.attempts_max):
        if attempt:
            yield config.pause_ms
        for _ in range(polls):
            yield _POLL_MS


def _place(storage: Storage, config: LockConfig) -> tuple[Storage, str]:
    """
    Storage and folder of the lock's file.

    Raises:
        ConfigError: That storage does not create files atomically, or Hudi does not count on it.
    """
    given = config.folder.rstrip("/") or f"{storage.root}/{_META_FOLDER}"
    # By the place and not by the text, so that the lock in the table is known for what it is however it is called.
    root, place = place_of(storage.root), place_of(given)
    if place == root or place.startswith(root + "/"):
        folder = place[len(root) + 1 :]
    elif "://" not in given and not os.path.isabs(given.removeprefix("file:")):
        raise ConfigError(
            f"{storage.root}: {keys.LOCK_FILE_FOLDER.name}={given} is relative to the folder in which a process runs, "
            "so two writers could have two locks; nothing was changed. Give the whole path to all writers"
        )
    else:
        storage, folder = open_storage(given), ""
    scheme, separator, _ = storage.root.partition("://")
    # Hudi has a list of schemes on which it trusts creation to be atomic; a lock that only we trust locks nobody out.
    is_listed = not separator or scheme == "memory" or scheme in config.atomic_schemes
    if not (is_listed and storage.capabilities.atomic_create):
        raise ConfigError(
            f"{storage.root}: {keys.LOCK_PROVIDER.name}={config.provider} needs a storage on which Apache Hudi "
            "creates files atomically, as a local disk; nothing was changed. Let all writers use another lock provider"
        )
    return storage, folder
