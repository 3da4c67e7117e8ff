"""Settings about several writers on one table. Pure. Source: rules/table-services A.1, B.1, F."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError

SINGLE_WRITER: Final = "SINGLE_WRITER"
SEVERAL_WRITERS: Final = "OPTIMISTIC_CONCURRENCY_CONTROL"
_PACKAGE: Final = "org.apache.hudi.client.transaction."


class Strategy(enum.Enum):
    """Conflict resolution strategies of Apache Hudi; values are their classes."""

    FILES = _PACKAGE + "SimpleConcurrentFileWritesConflictResolutionStrategy"
    BUCKETS = _PACKAGE + "BucketIndexConcurrentFileWritesConflictResolutionStrategy"
    PREFER_WRITER = _PACKAGE + "PreferWriterConflictResolutionStrategy"


class Isolation(enum.Enum):
    """
    What a write is protected from; values are texts for people.

    Of two writes, at each level, one at most completes if both touched one file group.
    """

    SERIALIZABLE = "all writes end as if they had run one after another, in the order of the timeline"
    WRITE_SERIALIZABLE = (
        "all writes end as if they had run one after another, in some order; to delete a key that is not there counts "
        "as done at any moment"
    )
    SNAPSHOT = (
        "as Apache Hudi: only file groups count. Two writes may each add a row with the same key, and of two "
        "statements each may miss the rows that meet its condition because of the other one"
    )


@attrs.frozen(kw_only=True)
class Concurrency:
    """
    How a write deals with other writers.

    Args:
        is_shared: Whether other writers are expected, so that conflicts are looked for.
        strategy: What counts as a conflict.
        isolation: What the write may have missed.
        retries_max: How often it is begun again after a conflict.
        patience: Time after which it is not begun again.
        looks_early: Whether it looks, before it writes a file, for running writes that touch the same file group.
    """

    is_shared: bool = False
    strategy: Strategy = Strategy.FILES
    isolation: Isolation = Isolation.WRITE_SERIALIZABLE
    retries_max: int = 0
    patience: timedelta | None = None
    looks_early: bool = False


def failed_writes_policy(settings: Settings) -> str:
    """
    Return when failed writes are rolled back: ``EAGER``, ``LAZY`` or ``NEVER``.

    Unless it is set, ``LAZY`` for several writers: rolling back at once could undo a write that is still running.
    """
    # Asked of the key, because the default depends on the mode and so is not that of the key.
    if keys.FAILED_WRITES_POLICY in settings:
        return settings[keys.FAILED_WRITES_POLICY]
    return "EAGER" if settings[keys.CONCURRENCY_MODE] == SINGLE_WRITER else "LAZY"


def shows_its_pulse(settings: Settings) -> bool:
    """
    Return whether others tell by heartbeats whether a write or rewrite is running.

    So with several writers under every policy: one that never rolls back failed writes itself may run beside others
    that do, and these take a write without a heartbeat for dead.
    """
    return failed_writes_policy(settings) == "LAZY" or settings[keys.CONCURRENCY_MODE] != SINGLE_WRITER


def concurrency_of(settings: Settings) -> Concurrency:
    """
    Return how a write deals with other writers.

    Raises:
        ConfigError: The settings contradict each other, or ask for what hudi_py does not do.
    """
    mode = settings[keys.CONCURRENCY_MODE]
    if mode == SINGLE_WRITER:
        return Concurrency()
    name = keys.CONCURRENCY_MODE.name
    if mode != SEVERAL_WRITERS:
        raise ConfigError(
            f"{name}={mode}: in this mode nobody looks for conflicts, because all writers name the file group of a "
            f"new bucket alike, and hudi_py gives it its own name; let all writers use {SEVERAL_WRITERS} (reading, and "
            "everything that writes no rows, works with it)"
        )
    # Without a lock two writers could both look for conflicts, find none, and both complete.
    if not settings[keys.LOCK_PROVIDER]:
        raise ConfigError(
            f"{name}={mode} needs a lock that all writers share, and {keys.LOCK_PROVIDER.name} is not set; set it to "
            "the lock provider of the other writers, or use SINGLE_WRITER and one writer at a time"
        )
    policy = failed_writes_policy(settings)
    if policy == "EAGER":
        raise ConfigError(
            f"{keys.FAILED_WRITES_POLICY.name}={policy} with {name}={mode}: each writer would roll back the running "
            "writes of the others; set LAZY, or leave the setting out"
        )
    return Concurrency(
        is_shared=True,
        strategy=_strategy(settings[keys.CONFLICT_STRATEGY]),
        isolation=Isolation[settings[keys.ISOLATION]],
        retries_max=settings[keys.WRITE_RETRIES],
        patience=settings[keys.WRITE_RETRY_TIMEOUT],
        looks_early=settings[keys.EARLY_CONFLICTS],
    )


def require_checked_by_writers(settings: Settings) -> None:
    """
    Raise if a rewrite of rows would have to look for conflicts itself when it completes.

    With the other strategies each writer looks for planned rewrites, and gives way to them (F-11).

    Raises:
        ConfigError: By the strategy, writers do not look for planned rewrites; or as `concurrency_of`.
    """
    concurrency = concurrency_of(settings)
    if concurrency.is_shared and concurrency.strategy is Strategy.PREFER_WRITER:
        raise ConfigError(
            f"{keys.CONFLICT_STRATEGY.name}={concurrency.strategy.value}: by it, a clustering gives way to writers, "
            "which hudi_py does not do yet; let Apache Hudi cluster the table, or use another strategy for all writers"
        )


def _strategy(given: str) -> Strategy:
    try:
        # Hudi, too, takes the strategy by files where none is named.
        return Strategy(given) if given else Strategy.FILES
    except ValueError:
        known = ", ".join(strategy.value.rpartition(".")[2] for strategy in Strategy)
        raise ConfigError(
            f"{keys.CONFLICT_STRATEGY.name}={given}: hudi_py knows {known} of {_PACKAGE.rstrip('.')}; set one of these "
            "for all writers, or leave the setting out"
        ) from None
