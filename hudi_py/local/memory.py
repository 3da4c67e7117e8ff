"""How much memory the rows of a write may take, and where the others go."""

from __future__ import annotations

from typing import Final

import attrs

from hudi_py.config import keys
from hudi_py.config.settings import Settings

_COPIES: Final = 4
"""Rows are there about four times: as they were given, converted, sorted by partition, and in the file's buffers."""


@attrs.frozen
class Memory:
    """
    Limits of a write.

    Args:
        rows_bytes: Given rows that are held at a time, in bytes of Arrow.
        folder: Folder of temporary files; None for the machine's (``TMPDIR``).
    """

    rows_bytes: int
    folder: str | None = None


def memory_of(settings: Settings) -> Memory:
    """Return the limits that settings say."""
    return Memory(max(settings[keys.MERGE_MEMORY_BYTES] // _COPIES, 1), settings[keys.SPILL_FOLDER] or None)
