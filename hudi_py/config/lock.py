"""Which lock a table has, and how long to wait for it. Pure. Source: rules/table-services F-2, F.1."""

from __future__ import annotations

import enum
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.keys import Settings
from hudi_py.errors import ConfigError

_PACKAGE: Final = "org.apache.hudi.client.transaction.lock."


class LockKind(enum.Enum):
    """Lock providers of Apache Hudi that are served; values are their classes."""

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
"""Those of Apache Hudi 0.15 to 1.2 that hudi_py cannot take."""


@attrs.frozen(kw_only=True)
class LockConfig:
    """
    The lock of one table.

    Args:
        kind: Of the provider.
        attempts_max: How often to try.
        pause_ms: Between two tries.
        wait_ms: How long one try of a provider that can wait takes.
        expire_ms: Age from which on the file of `LockKind.FILE` counts as left behind; 0 for never.
        folder: Where that file is; empty for the table's ``.hoodie``.
        validity_ms: How long a lock of `LockKind.LEASE` lasts when it is not renewed.
        renew_ms: How often it is renewed.
        atomic_schemes: Schemes of storage that the user says to create files atomically.
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
    The lock that the settings ask for.

    Raises:
        ConfigError: Its provider is not served, or it would expire before it is renewed.
    """
    validity_s, renew_s = settings[keys.LOCK_VALIDITY_S], settings[keys.LOCK_RENEW_S]
    if validity_s < 10 * renew_s:
        raise ConfigError(
            f"{keys.LOCK_VALIDITY_S.name}={validity_s} has to be ten times {keys.LOCK_RENEW_S.name}={renew_s} or more, "
            "so that a slow storage does not lose the lock; nothing was changed"
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
    Refuse a lock provider that is none of Apache Hudi's, for a dry run: what is not served may still be looked at.

    Raises:
        ConfigError: The class is not known; it is misspelt, or another's.
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
            f"{keys.LOCK_PROVIDER.name}={provider} is a lock that hudi_py cannot take, so nothing was changed: it "
            f"serves {names} of {_PACKAGE.rstrip('.')}. Let all writers use one of these, or run this while no "
            "writer is at work, without the setting"
        ) from None
