"""
The lock of Hudi's ``DynamoDBBasedLockProvider``: an item that its holder replaces by a new version again and again.

Hudi uses Amazon's lock client for DynamoDB, whose protocol this is. A holder renews the item (``recordVersionNumber``)
each third of its lease. Who finds an item waits; if the version stays the same for the whole lease, by the clock of
the one who waits, the holder is gone, and the item is replaced on condition that it still has this version. So clocks
of different machines need not agree.

What a crash leaves: the item, which others take over after one lease.

Source: rules/table-services F.1; Hudi 0.15.0 to 1.2.0 ``DynamoDBBasedLockProvider``; ``AmazonDynamoDBLockClient``.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Final

import attrs

from hudi_py.config import keys
from hudi_py.config.lock import DynamoConfig
from hudi_py.errors import ConfigError, StorageError
from hudi_py.runtime.clock import MONOTONIC, Seconds
from hudi_py.runtime.log import log
from hudi_py.runtime.randomness import MACHINE, Randomness, new_uuid
from hudi_py.runtime.repeated import RepeatedWork

_KEY: Final = "key"
_OWNER: Final = "ownerName"
_LEASE: Final = "leaseDuration"
_VERSION: Final = "recordVersionNumber"
_RELEASED: Final = "isReleased"
_RENEWALS_PER_LEASE: Final = 3
_REGION: Final = "us-east-1"
"""As Apache Hudi: where the environment names none."""

_NAMES: Final = {"#k": _KEY, "#v": _VERSION, "#o": _OWNER}
_IS_FREE: Final = "attribute_not_exists(#k)"
_IS_VERSION: Final = "attribute_exists(#k) AND #v = :v"
_IS_OURS: Final = f"{_IS_VERSION} AND #o = :o"
_IS_BY_US: Final = "attribute_exists(#k) AND #o = :o"


@attrs.frozen
class _Seen:
    """Version of another process's item, and when it was first seen, in seconds of the stopwatch."""

    version: str
    since: float


class DynamoDBLock:
    """
    Args:
        config: Table, key and lease.
        randomness: Source of versions.
        seconds: Stopwatch that tells whether a lease is over.
    """

    def __init__(self, config: DynamoConfig, randomness: Randomness = MACHINE, seconds: Seconds = MONOTONIC) -> None:
        _boto3()  # before a call, whose errors are classes of what comes with it
        self._config, self._randomness, self._seconds = config, randomness, seconds
        self._owner = f"hudi_py {socket.gethostname()} {os.getpid()} {new_uuid(randomness)}"
        self._guard = threading.Lock()  # the thread that renews it replaces the version, too
        self._version: str | None = None
        self._renewed = 0.0
        self._seen: _Seen | None = None
        self._renewals = RepeatedWork(self.renew, config.lease_ms / 1000 / _RENEWALS_PER_LEASE)

    def try_acquire(self, purpose: str) -> bool:
        """See `LockProvider`."""
        try:
            return self._try_acquire(purpose)
        except StorageError as error:
            raise StorageError(
                f"{error}, so the lock was not taken; check {keys.DYNAMODB_REGION.name}, "
                f"{keys.DYNAMODB_ENDPOINT.name} and the credentials, then try again",
                error.retryable,
            ) from error

    def _try_acquire(self, purpose: str) -> bool:
        found, now = self._read(), self._seconds()
        item = self._new_item()
        if found is None:
            condition, values = _IS_FREE, {}
        else:
            version, lease_ms = _text(found, _VERSION), int(_text(found, _LEASE) or self._config.lease_ms)
            # A new version shows that its holder lives, so the lease is counted from now.
            if self._seen is None or self._seen.version != version:
                self._seen = _Seen(version, now)
            is_released = _text(found, _RELEASED) == "1"
            if not is_released and now - self._seen.since <= lease_ms / 1000:
                return False
            if not is_released:
                log.warning("lock.taken_over", path=self._where, holder=_text(found, _OWNER))
            condition, values = _IS_VERSION, {":v": {"S": version}}
        try:
            if not self._put(item, condition, values):
                return False
            # Counted from before the request: the lease of another process's view begins no earlier than that.
            self._version, self._renewed, self._seen = item[_VERSION]["S"], now, None
            self._renewals.start(f"lock for {purpose}")
        except BaseException:
            # The item may be ours all the same, and nobody would release it; its owner is unique to this object.
            self._renewals.stop()
            self._version = None
            with suppress(StorageError):
                self._conditional("delete_item", _IS_BY_US, {})
            raise
        return True

    def release(self) -> None:
        """See `LockProvider`."""
        # The thread first: a renewal after the release would find no item, and report a lost lock.
        self._renewals.stop()
        # Whatever its version: the answer to the last renewal may have been lost.
        if self._version is None or not self._conditional("delete_item", _IS_BY_US, {}):
            log.warning("lock.lost", path=self._where)
        self._version = None  # last: interrupted by hand before, it is released once more

    def is_ours(self) -> bool:
        """See `LockProvider`."""
        with self._guard:
            if self._version is None or self._seconds() - self._renewed >= self._config.lease_ms / 1000:
                return False
            found = self._read()
            return found is not None and (_text(found, _VERSION), _text(found, _OWNER)) == (self._version, self._owner)

    def holder(self) -> str:
        """See `LockProvider`."""
        found = self._read()
        if found is None:
            return f"{self._where} was released just now"
        return f"{self._where} is another writer's lock (owner {_text(found, _OWNER)[:200]})"

    def renew(self) -> bool:
        """Give the item a new version; False if another process has it."""
        with self._guard:
            if self._version is None:
                return False
            began, version = self._seconds(), new_uuid(self._randomness)
            values = {":v": {"S": self._version}, ":n": {"S": version}, ":l": {"S": str(self._config.lease_ms)}}
            try:
                is_ours = self._conditional(
                    "update_item", _IS_OURS, values, names={"#l": _LEASE}, UpdateExpression="SET #l = :l, #v = :n"
                )
            except StorageError as error:
                log.warning("lock.not_renewed", why=str(error))
                is_ours = False
            self._version = version if is_ours else self._held_version()
            if self._version == version:
                self._renewed = began
            return self._version is not None

    def _held_version(self) -> str | None:
        """Version of the item if it has our name, as after a renewal whose answer was lost; None if it has not."""
        try:
            found = self._read()
        except StorageError:  # nobody knows: the lease is not over, there is time for another try
            return self._version
        return None if found is None or _text(found, _OWNER) != self._owner else _text(found, _VERSION)

    def _has_version(self, version: str) -> bool:
        """Whether the item is known to have it."""
        try:
            found = self._read()
        except StorageError:
            return False
        return found is not None and _text(found, _VERSION) == version

    def _new_item(self) -> dict[str, dict[str, str]]:
        return {
            _KEY: {"S": self._config.key},
            _OWNER: {"S": self._owner},
            _LEASE: {"S": str(self._config.lease_ms)},
            _VERSION: {"S": new_uuid(self._randomness)},
        }

    def _put(self, item: Mapping[str, Any], condition: str, values: Mapping[str, Any]) -> bool:
        version = item[_VERSION]["S"]
        try:
            # The client repeats a request whose answer was lost, and the repetition is refused because the first one
            # arrived: the item is ours, and waiting for it would take a whole lease.
            return self._conditional("put_item", condition, values, Item=item) or self._has_version(version)
        except StorageError:
            if self._has_version(version):
                return True
            raise

    def _conditional(
        self,
        verb: str,
        condition: str,
        values: Mapping[str, Any],
        *,
        names: Mapping[str, str] | None = None,
        **arguments: Any,
    ) -> bool:
        """Send a request that succeeds only under *condition*; False if that is not met."""
        used = {**values, **({":o": {"S": self._owner}} if ":o" in condition else {})}
        if verb != "put_item":
            arguments["Key"] = {_KEY: {"S": self._config.key}}
        if used:
            arguments["ExpressionAttributeValues"] = used
        arguments["ExpressionAttributeNames"] = {
            **{short: name for short, name in _NAMES.items() if short in condition}, **(names or {})
        }  # fmt: skip
        with _storage_errors(self._where):
            try:
                getattr(self._client, verb)(TableName=self._config.table, ConditionExpression=condition, **arguments)
            except self._client.exceptions.ConditionalCheckFailedException:
                return False
        return True

    def _read(self) -> Mapping[str, Any] | None:
        with _storage_errors(self._where):
            answer = self._client.get_item(
                # Another replica might still have the version of before.
                TableName=self._config.table,
                Key={_KEY: {"S": self._config.key}},
                ConsistentRead=True,
            )
        found: Mapping[str, Any] | None = answer.get("Item")
        return found

    @property
    def _where(self) -> str:
        return f"the lock {self._config.key} in the DynamoDB table {self._config.table}"

    @cached_property
    def _client(self) -> Any:
        """The client of the service; the table exists afterwards."""
        boto3, config = _boto3(), self._config
        from botocore.config import Config

        session = boto3.session.Session()
        client = session.client(
            "dynamodb",
            region_name=config.region or session.region_name or _REGION,
            endpoint_url=config.endpoint or None,
            # Its default of ten attempts would keep a renewal busy for longer than a lease.
            config=Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=5, read_timeout=10),
        )
        with _storage_errors(self._where):
            try:
                client.describe_table(TableName=config.table)
            except client.exceptions.ResourceNotFoundException:
                _create_table(client, config)
        return client


def _create_table(client: Any, config: DynamoConfig) -> None:
    units = {"ReadCapacityUnits": config.read_units, "WriteCapacityUnits": config.write_units}
    is_provisioned = config.billing_mode == "PROVISIONED"
    with suppress(client.exceptions.ResourceInUseException):  # another writer creates it
        client.create_table(
            TableName=config.table,
            KeySchema=[{"AttributeName": _KEY, "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": _KEY, "AttributeType": "S"}],
            BillingMode=config.billing_mode,
            **({"ProvisionedThroughput": units} if is_provisioned else {}),
        )
    pause_s = 2
    waiter = client.get_waiter("table_exists")
    waiter.wait(
        TableName=config.table,
        WaiterConfig={"Delay": pause_s, "MaxAttempts": max(1, config.creation_timeout_ms // (pause_s * 1000))},
    )
    log.info("lock.table_created", table=config.table)


def _text(item: Mapping[str, Any], name: str) -> str:
    return str(item.get(name, {}).get("S", ""))


@contextmanager
def _storage_errors(where: str) -> Iterator[None]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise StorageError(f"{where}: {str(error).rstrip('.')}") from error


def _boto3() -> Any:
    try:
        import boto3
    except ImportError:
        raise ConfigError(
            "locks of DynamoDB need the package boto3, which is not installed; nothing was changed. "
            "pip install 'hudi_py[dynamodb]'"
        ) from None
    return boto3
