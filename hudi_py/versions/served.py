"""The table versions that hudi_py reads and writes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from hudi_py.versions.format import TableFormat
from hudi_py.versions.v6 import V6
from hudi_py.versions.v8 import V8
from hudi_py.versions.v9 import V9

FORMATS: Final[Mapping[int, TableFormat]] = MappingProxyType({known.version: known for known in (V6, V8, V9)})
NEWEST: Final = max(FORMATS)


def format_of(properties: Mapping[str, str]) -> TableFormat:
    """Return the format of the table with these properties; the oldest format if they name no known version."""
    # Old tables may lack the property.
    # `read_table_config` refuses versions that are not served; who asks here has properties that need not be valid.
    return FORMATS.get(int(properties.get("hoodie.table.version", "0")), V6)
