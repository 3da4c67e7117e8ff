"""
What the change logs of a table with change data capture hold, by its properties. Pure.

Source: rules/data-files 9.4; Hudi ``HoodieCDCSupplementalLoggingMode``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final

from hudi_py.errors import UnsupportedTable

ENABLED: Final = "hoodie.table.cdc.enabled"
MODE: Final = "hoodie.table.cdc.supplemental.logging.mode"


class LoggingMode(enum.Enum):
    """What the change logs of a table hold; words as in ``hoodie.table.cdc.supplemental.logging.mode``."""

    KEYS = "op_key_only"
    BEFORE = "data_before"
    BOTH = "data_before_after"

    @property
    def name_of_hudi(self) -> str:
        """The word as today's releases write it into the properties."""
        return self.value.upper()

    @property
    def columns(self) -> tuple[str, ...]:
        """Fields of a record, in their order."""
        return {
            LoggingMode.KEYS: ("op", "record_key"),
            LoggingMode.BEFORE: ("op", "record_key", "before"),
            LoggingMode.BOTH: ("op", "ts_ms", "before", "after"),
        }[self]


def logging_mode(properties: Mapping[str, str], source: str) -> LoggingMode | None:
    """
    Return the mode of a table's change data capture; None if it has none.

    Args:
        properties: Properties of the table, or those that a new table is to get.
        source: Where they come from, for messages.

    Raises:
        UnsupportedTable: The mode is not known.
    """
    if properties.get(ENABLED, "false").strip().lower() != "true":
        return None
    # Without a word the mode of Hudi's default is meant, which 0.15.0 wrote with a prefix.
    word = (properties.get(MODE, "").strip() or LoggingMode.BOTH.value).lower()
    found = next((each for each in LoggingMode if word.removeprefix("cdc_") == each.value), None)
    if found is None:
        known = ", ".join(each.value for each in LoggingMode)
        raise UnsupportedTable(f"{source}: {MODE}={word} is not known (known: {known}); use Apache Hudi")
    return found
