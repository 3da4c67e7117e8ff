"""Which lock to take for a table, and how long to wait for it. Pure. Source: rules/table-services F-2, F.1."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.keys import Settings
from hudi_py.errors import ConfigError

_PACKAGE: Final = "org.apache.hudi.client.transaction.lock."


class LockKind(enum.Enum):
    """The supported lock providers of Apache Hudi; values are their classes."""

    FILE = _PACKAGE + "FileSystemBasedLockProvider"
    LEASE = _PACKAGE + "StorageBasedLockProvider"
    IN_PROCESS = _PACKAGE + "InProcessLockProvider"


_NOT_SERVED: Final = frozenset(
    {
        _PACKAGE + "NoopLockProvider",
        _PACKAGE + "ZookeeperBasedImplicitBasePathLockProvider",
        _PACKAGE + "ZookeeperBasedLockProvider",
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedImplicitPartitionKeyLockProvider",
        "org.apache.hudi.aws.transaction.lock.DynamoDBBasedLockProvider",
        "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider",
    }
)
"""Lock providers of Apache Hudi 0.15 to 1.2 that hudi_py does not support."""


@attrs.frozen(kw_only=True)
class LockConfig:
    """
    The lock of a table.

    Args:
        kind: The lock provider.
        attempts_max: Number of attempts to take the lock.
        pause_ms: Pause between two attempts.
        wait_ms: Duration of one attempt, for providers that can wait.
        expire_ms: Age from which on the lock file of `LockKind.FILE` counts as left by a crash; 0 for never.
        folder: Folder of that file; empty for the table's ``.hoodie``.
        validity_ms: How long a lock of `LockKind.LEASE` lasts unless it is renewed.
        renew_ms: How often it is renewed.
        atomic_schemes: URL schemes of storages of which the user says that they create files atomically.
    """

    kind: LockKind
    attempts_max: int
    pause_ms: int
    wait_ms: int
    expire_ms: int
    folder: str
    validity_ms: int
    renew_ms: int
    atomic_schemes: frozenset[str]


def lock_config(settings: Settings) -> LockConfig:
    """
    Return the lock configuration in *settings*.

    Raises:
        ConfigError: The provider is not supported, or the lock is valid for too short a time to be renewed safely.
    """
    validity_s, renew_s = settings[keys.LOCK_VALIDITY_S], settings[keys.LOCK_RENEW_S]
    if validity_s < 10 * renew_s:
        raise ConfigError(
            f"{keys.LOCK_VALIDITY_S.name}={validity_s} must be at least ten times {keys.LOCK_RENEW_S.name}={renew_s}, "
            "so that the lock does not expire on a slow storage; nothing was changed"
        )
    schemes: tuple[str, ...] = settings[keys.ATOMIC_CREATION_SCHEMES]
    return LockConfig(
        kind=_kind(settings[keys.LOCK_PROVIDER]),
        attempts_max=settings[keys.LOCK_CLIENT_RETRIES] + 1,
        pause_ms=settings[keys.LOCK_CLIENT_RETRY_WAIT_MS],
        wait_ms=settings[keys.LOCK_WAIT_MS],
        expire_ms=settings[keys.LOCK_FILE_EXPIRE_MINUTES] * 60_000,
        folder=settings[keys.LOCK_FILE_FOLDER],
        validity_ms=validity_s * 1000,
        renew_ms=renew_s * 1000,
        atomic_schemes=frozenset(schemes),
    )


def check_lock_provider(settings: Settings) -> None:
    """
    Raise if the lock provider is unknown; for dry runs, which take no lock and so work with unsupported providers too.

    Raises:
        ConfigError: The class is not a lock provider of Apache Hudi; perhaps it is misspelled.
    """
    provider = settings[keys.LOCK_PROVIDER]
    if provider not in _NOT_SERVED:
        _kind(provider)


def _kind(provider: str) -> LockKind:
    try:
        return LockKind(provider)
    except ValueError:
        names = ", ".join(kind.value.rpartition(".")[2] for kind in LockKind)
        raise ConfigError(
            f"{keys.LOCK_PROVIDER.name}={provider} is not supported, so nothing was changed. hudi_py supports {names} "
            f"of {_PACKAGE.rstrip('.')}: configure one of these for all writers, or stop all writers and run this "
            "without the setting"
        ) from None
