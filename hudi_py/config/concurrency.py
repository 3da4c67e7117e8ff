"""How writers share a table. Pure. Source: format/table-services A.1, B.1, F."""

from __future__ import annotations

from typing import Final

from hudi_py.config import keys
from hudi_py.config.keys import Settings

SINGLE_WRITER: Final = "SINGLE_WRITER"


def failed_writes_policy(settings: Settings) -> str:
    """``EAGER``, ``LAZY`` or ``NEVER``: as set, else ``LAZY`` for several writers and ``EAGER`` for one."""
    if keys.FAILED_WRITES_POLICY in settings:
        return settings[keys.FAILED_WRITES_POLICY]
    return "EAGER" if settings[keys.CONCURRENCY_MODE] == SINGLE_WRITER else "LAZY"
