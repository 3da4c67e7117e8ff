"""Which lock to take for a table, and how long to wait for it. Pure. Source: rules/table-services F-2, F.1."""

from __future__ import annotations

import enum
import re
from collections.abc import Collection
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.http_address import is_http_address
from hudi_py.config.keys import Key
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

_PACKAGE: Final = "org.apache.hudi.client.transaction.lock."
_AWS: Final = "org.apache.hudi.aws.transaction.lock."


class LockKind(enum.Enum):
    """The supported lock providers of Apache Hudi; values are their classes."""

    FILE = _PACKAGE + "FileSystemBasedLockProvider"
    LEASE = _PACKAGE + "StorageBasedLockProvider"
    IN_PROCESS = _PACKAGE + "InProcessLockProvider"
    ZOOKEEPER = _PACKAGE + "ZookeeperBasedLockProvider"
    DYNAMODB = _AWS + "DynamoDBBasedLockProvider"


_IMPLICIT: Final = (
    "derives the name of the lock from the text of the table's path, so writers that spell the path differently would "
    "not exclude each other; use {} with an explicit name for all writers"
)
_NOT_SERVED: Final = {
    _PACKAGE + "NoopLockProvider": "excludes nobody; leave the setting out if there is one writer only",
    _PACKAGE + "ZookeeperBasedImplicitBasePathLockProvider": _IMPLICIT.format(LockKind.ZOOKEEPER.value),
    _AWS + "DynamoDBBasedImplicitPartitionKeyLockProvider": _IMPLICIT.format(LockKind.DYNAMODB.value),
    "org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider": "is not supported",
}
"""Lock providers of Apache Hudi 0.15 to 1.2 that hudi_py does not support, and why."""

LEASE_MS_MIN: Final = 3000
"""A shorter lease of DynamoDB could expire between two renewals on a slow network."""
_ZOOKEEPER_PORT: Final = 2181
_PORT_MAX: Final = 65535
_SERVER: Final = r"(?:[\w.-]+|\[[\da-fA-F:.]+\])(?::\d{1,5})?"
_SERVERS: Final = re.compile(rf"{_SERVER}(?:,{_SERVER})*(?:/.*)?")
_PORTS: Final = re.compile(r"[\w.\]-]:(\d+)(?=,|/|$)")


@attrs.frozen(kw_only=True)
class ZookeeperConfig:
    """
    Where the lock of `LockKind.ZOOKEEPER` is.

    Args:
        servers: ``host[:port]``, separated by commas.
        path: Node below which contenders queue.
        session_timeout_ms: After this time without contact, ZooKeeper gives the lock to the next one.
        connection_timeout_ms: How long to wait for a server or its answer.
    """

    servers: str
    path: str
    session_timeout_ms: int
    connection_timeout_ms: int


@attrs.frozen(kw_only=True)
class DynamoConfig:
    """
    Where the lock of `LockKind.DYNAMODB` is.

    Args:
        table: Name of the table that holds locks; created if it does not exist, as Apache Hudi does.
        key: Value of the table's key ``key`` that stands for this lock.
        region: AWS region; empty for that of the environment.
        endpoint: URL of the service; empty for that of the region.
        lease_ms: How long a lock that is not renewed stays with its holder.
        billing_mode: ``PAY_PER_REQUEST`` or ``PROVISIONED``, for a new table.
        read_units, write_units: Capacity of a new table that is ``PROVISIONED``.
        creation_timeout_ms: How long to wait for a new table.
    """

    table: str
    key: str
    region: str
    endpoint: str
    lease_ms: int
    billing_mode: str
    read_units: int
    write_units: int
    creation_timeout_ms: int


@attrs.frozen(kw_only=True)
class LockConfig:
    """
    The lock of a table.

    Args:
        kind: The lock provider; None for one that is installed as a plug-in.
        provider: Its name, as it was given.
        attempts_max: Number of attempts to take the lock.
        pause_ms: Pause between two attempts.
        wait_ms: Duration of one attempt, for providers that can wait.
        expire_ms: Age from which on the lock file of `LockKind.FILE` counts as left by a crash; 0 for never.
        folder: Folder of that file; empty for the table's ``.hoodie``.
        validity_ms: How long a lock of `LockKind.LEASE` lasts unless it is renewed.
        renew_ms: How often it is renewed.
        atomic_schemes: URL schemes of storages of which the user says that they create files atomically.
        zookeeper: Of a lock of `LockKind.ZOOKEEPER`.
        dynamodb: Of a lock of `LockKind.DYNAMODB`.
    """

    kind: LockKind | None
    provider: str
    attempts_max: int
    pause_ms: int
    wait_ms: int
    expire_ms: int
    folder: str
    validity_ms: int
    renew_ms: int
    atomic_schemes: frozenset[str]
    zookeeper: ZookeeperConfig | None = None
    dynamodb: DynamoConfig | None = None


def lock_config(settings: Settings, plugins: Collection[str] = ()) -> LockConfig:
    """
    Return the lock configuration in *settings*.

    Args:
        settings: Of the table.
        plugins: Names of the installed providers that are not part of hudi_py.

    Raises:
        ConfigError: The provider is not supported or lacks a setting, or the lock is valid for too short a time to be
            renewed safely.
    """
    validity_s, renew_s = settings[keys.LOCK_VALIDITY_S], settings[keys.LOCK_RENEW_S]
    # Hudi's own rule (F.1): a holder that misses a few renewals must not lose the lock.
    if validity_s < 10 * renew_s:
        raise ConfigError(
            f"{keys.LOCK_VALIDITY_S.name}={validity_s} must be at least ten times {keys.LOCK_RENEW_S.name}={renew_s}, "
            "so that the lock does not expire on a slow storage; nothing was changed"
        )
    schemes: tuple[str, ...] = settings[keys.ATOMIC_CREATION_SCHEMES]
    kind = _kind(settings[keys.LOCK_PROVIDER], plugins)
    return LockConfig(
        kind=kind,
        provider=settings[keys.LOCK_PROVIDER],
        # Hudi's setting counts the attempts after the first.
        attempts_max=settings[keys.LOCK_CLIENT_RETRIES] + 1,
        pause_ms=settings[keys.LOCK_CLIENT_RETRY_WAIT_MS],
        wait_ms=settings[keys.LOCK_WAIT_MS],
        expire_ms=settings[keys.LOCK_FILE_EXPIRE_MINUTES] * 60_000,
        folder=settings[keys.LOCK_FILE_FOLDER],
        validity_ms=validity_s * 1000,
        renew_ms=renew_s * 1000,
        atomic_schemes=frozenset(schemes),
        zookeeper=_zookeeper(settings) if kind is LockKind.ZOOKEEPER else None,
        dynamodb=_dynamodb(settings) if kind is LockKind.DYNAMODB else None,
    )


def check_lock_provider(settings: Settings, plugins: Collection[str] = ()) -> None:
    """
    Raise if the lock provider is unknown; for dry runs, which take no lock and so work with unsupported providers too.

    Raises:
        ConfigError: The class is not a lock provider of Apache Hudi; perhaps it is misspelled.
    """
    provider = settings[keys.LOCK_PROVIDER]
    # A dry run beside writers with such a lock is harmless, because it takes none.
    if provider not in _NOT_SERVED:
        _kind(provider, plugins)


def _kind(provider: str, plugins: Collection[str]) -> LockKind | None:
    if provider in plugins:
        return None
    try:
        return LockKind(provider)
    except ValueError:
        names = ", ".join(kind.value for kind in LockKind)
        why = _NOT_SERVED.get(provider, "is not a lock provider of Apache Hudi, nor one that is installed as a plug-in")
        raise ConfigError(
            f"{keys.LOCK_PROVIDER.name}={provider} {why}; nothing was changed. hudi_py supports {names}: configure one "
            "of these for all writers, or stop all writers and run this without the setting"
        ) from None


def _zookeeper(settings: Settings) -> ZookeeperConfig:
    servers = ",".join(each.strip() for each in _required(settings, keys.ZOOKEEPER_URL).split(","))
    if not _SERVERS.fullmatch(servers) or any(int(port) > _PORT_MAX for port in _PORTS.findall(servers)):
        raise ConfigError(
            f"{keys.ZOOKEEPER_URL.name}={servers} names no servers: write host:port, several separated by commas, "
            "without a scheme. Nothing was changed"
        )
    port = settings[keys.ZOOKEEPER_PORT]
    # A path may follow the port: ZooKeeper's connect strings can end in a chroot.
    has_ports = len(_PORTS.findall(servers)) == len(servers.split(","))
    if port not in (None, _ZOOKEEPER_PORT) and not has_ports:
        # Apache Hudi connects to the URL alone, so the two would take different locks.
        raise ConfigError(
            f"{keys.ZOOKEEPER_PORT.name}={port} has no effect in Apache Hudi, which takes the port from "
            f"{keys.ZOOKEEPER_URL.name}; write {keys.ZOOKEEPER_URL.name}={servers}:{port}. Nothing was changed"
        )
    base = _required(settings, keys.ZOOKEEPER_BASE_PATH).rstrip("/")
    # Apache Hudi takes the table's name, too, where no key is set.
    lock_key = settings[keys.ZOOKEEPER_LOCK_KEY] or _required(settings, keys.TABLE_NAME)
    root, *nodes = f"{base}/{lock_key}".split("/")
    # ZooKeeper has no such nodes, and Curator refuses what this client would shorten to another path.
    if root or not base or any(node in ("", ".", "..") for node in nodes):
        raise ConfigError(
            f"{keys.ZOOKEEPER_BASE_PATH.name}={settings[keys.ZOOKEEPER_BASE_PATH]} and lock key {lock_key} make no "
            "path of a node: the first must begin with / and name a node, such as /hudi, and neither may have empty "
            "parts, . or .. between slashes; nothing was changed"
        )
    return ZookeeperConfig(
        servers=servers,
        path="/".join([root, *nodes]),
        session_timeout_ms=settings[keys.ZOOKEEPER_SESSION_TIMEOUT_MS],
        connection_timeout_ms=settings[keys.ZOOKEEPER_CONNECTION_TIMEOUT_MS],
    )


def _dynamodb(settings: Settings) -> DynamoConfig:
    lease_ms = settings[keys.LOCK_WAIT_MS]  # Apache Hudi has no setting of its own for it
    if lease_ms < LEASE_MS_MIN:
        raise ConfigError(
            f"{keys.LOCK_WAIT_MS.name}={lease_ms} is also how long a lock of DynamoDB is valid without renewal, and "
            f"must be at least {LEASE_MS_MIN}; nothing was changed"
        )
    endpoint = settings[keys.DYNAMODB_ENDPOINT]
    if endpoint and not is_http_address(endpoint):
        raise ConfigError(
            f"{keys.DYNAMODB_ENDPOINT.name}={endpoint} is no address of a service: write http://host:port or "
            "https://host. Nothing was changed"
        )
    return DynamoConfig(
        table=_required(settings, keys.DYNAMODB_TABLE),
        key=settings[keys.DYNAMODB_PARTITION_KEY] or _required(settings, keys.TABLE_NAME),
        region=settings[keys.DYNAMODB_REGION],
        endpoint=endpoint,
        lease_ms=lease_ms,
        billing_mode=settings[keys.DYNAMODB_BILLING_MODE],
        read_units=settings[keys.DYNAMODB_READ_UNITS],
        write_units=settings[keys.DYNAMODB_WRITE_UNITS],
        creation_timeout_ms=settings[keys.DYNAMODB_CREATION_TIMEOUT_MS],
    )


def _required(settings: Settings, key: Key[str]) -> str:
    if not settings[key]:
        raise ConfigError(
            f"{keys.LOCK_PROVIDER.name}={settings[keys.LOCK_PROVIDER]} needs {key.name}, which is not set; set it to "
            "the same value for all writers. Nothing was changed"
        )
    return settings[key]
