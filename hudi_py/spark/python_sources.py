"""The classes that data sources in Python are made from, and plain ones for Spark 3.5, which has none."""

from __future__ import annotations

from typing import Any, Final

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
except ImportError:
    DataSource = DataSourceReader = DataSourceStreamReader = object

    class InputPartition:  # type: ignore[no-redef]
        """As in Spark 4."""

        def __init__(self, value: Any) -> None:
            self.value = value


__all__ = ["HAS_SOURCES", "DataSource", "DataSourceReader", "DataSourceStreamReader", "InputPartition"]

HAS_SOURCES: Final = DataSource is not object
