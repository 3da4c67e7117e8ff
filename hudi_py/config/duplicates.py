"""
What an insert does with keys that the table has already. Pure.

Source: Hudi 0.15.0, 1.0.2, 1.1.1 ``HoodieSparkSqlWriter.handleInsertDuplicates``; real Hudi says the same in
tests/interop/test_insert_duplicates.py.
"""

from __future__ import annotations

from enum import Enum

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError


class Duplicates(Enum):
    """What becomes of an inserted row whose key the table has."""

    ADDED = "NONE"  # no key is looked up
    DROPPED = "DROP"
    REFUSED = "FAIL"


def duplicates_of(settings: Settings, operation: str, *, by_bucket: bool = False) -> Duplicates:
    """
    Return what the settings ask for.

    Args:
        settings: Settings of the write.
        operation: ``INSERT``, ``UPSERT`` and so on.
        by_bucket: Whether the table has a bucket index.

    Raises:
        ConfigError: They contradict each other, or the operation does not do what they say.
    """
    policy = Duplicates(settings[keys.INSERT_DUPLICATES])
    name = f"{keys.INSERT_DUPLICATES.name}={policy.value.lower()}"
    if settings[keys.INSERT_DROPS_DUPLICATES]:
        if policy is Duplicates.REFUSED:
            raise ConfigError(f"{name} and {keys.INSERT_DROPS_DUPLICATES.name} ask for different things; keep one")
        policy, name = Duplicates.DROPPED, f"{keys.INSERT_DROPS_DUPLICATES.name}=true"
    if policy is Duplicates.ADDED or operation == "DELETE":
        return Duplicates.ADDED
    if operation == "UPSERT":
        raise ConfigError(f"with {name} Apache Hudi inserts where an upsert is asked for; use insert, or leave it out")
    if operation != "INSERT":
        raise ConfigError(f"{name} is only for insert: {operation.lower()} looks up no keys; leave it out")
    if by_bucket:
        raise ConfigError(f"{name}: keys are not looked up in a table with a bucket index; use upsert")
    return policy


def combines_inserts(settings: Settings) -> bool:
    """Return whether an insert writes only one of several given rows with the same key."""
    if keys.COMBINE_BEFORE_INSERT in settings:
        return settings[keys.COMBINE_BEFORE_INSERT]
    return settings[keys.INSERT_DROPS_DUPLICATES]
