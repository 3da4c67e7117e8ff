"""Settings about several writers on one table. Pure. Source: rules/table-services A.1, B.1, F."""

from __future__ import annotations

from typing import Final

from hudi_py.config import keys
from hudi_py.config.keys import Settings
from hudi_py.errors import ConfigError

SINGLE_WRITER: Final = "SINGLE_WRITER"


def failed_writes_policy(settings: Settings) -> str:
    """
    Return when failed writes are rolled back: ``EAGER``, ``LAZY`` or ``NEVER``.

    Unless it is set, ``LAZY`` for several writers: rolling back at once could undo a write that is still running.
    """
    if keys.FAILED_WRITES_POLICY in settings:
        return settings[keys.FAILED_WRITES_POLICY]
    return "EAGER" if settings[keys.CONCURRENCY_MODE] == SINGLE_WRITER else "LAZY"


def require_single_writer(settings: Settings) -> None:
    """
    Raise if the settings allow several writers: even under a lock, one could overwrite what another just committed.

    Raises:
        ConfigError: The concurrency mode is for several writers.
    """
    mode = settings[keys.CONCURRENCY_MODE]
    if mode != SINGLE_WRITER:
        raise ConfigError(
            f"{keys.CONCURRENCY_MODE.name}={mode}: hudi_py does not detect yet that two writes change the same rows, "
            f"so one could undo the other; run one writer at a time, with {SINGLE_WRITER} or without the setting "
            "(reading, and everything that writes no rows, works with it)"
        )
