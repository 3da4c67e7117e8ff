"""
Partition columns of time-based key generators, as readers of Apache Hudi 1.x show them. Pure.

The data files have the value that was written; the path has a time formatted from it, such as ``2026/11/22``. Hudi 1.x
shows the value, as text if the only key generator is the time-based one; hudi_py does the same. What 0.15 shows is in
`hudi_py.rows.partition_values`.

Source: fixtures ``cow_timestamp_keygen``, ``cow_custom_keygen`` and ``kt_base``; Hudi 1.x
``SparkHoodieTableFileIndex``.
"""

from __future__ import annotations

import attrs
import pyarrow as pa

from hudi_py.config.table import TableConfig
from hudi_py.formats.arrow_types import Field
from hudi_py.rows.partition_values import key_generator_of
from hudi_py.rows.predicate import Filter


@attrs.frozen(kw_only=True)
class TimePartitions:
    """
    Values of time-based keys as text.

    Args:
        fields: Names of the partition columns, in the order of the path.
    """

    fields: tuple[str, ...]

    def decides(self, condition: Filter, stored: pa.Schema) -> bool:
        """Whether a condition is about a text that *stored* columns do not hold."""
        shown = [field.name for field in stored if self._is_text(field)]
        return any(leaf.path[0] in shown for leaf in condition.leaves)

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """The columns with the types in which they are shown."""
        return pa.schema([pa.field(f.name, pa.string()) if self._is_text(f) else f for f in stored])

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch with partition values as they are shown; other columns are unchanged."""
        schema = self.schema(batch.schema)
        columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _is_text(self, field: Field) -> bool:
        return field.name in self.fields and pa.types.is_integer(field.type)


def time_partitions_of(table: TableConfig) -> TimePartitions | None:
    """How a table's partition values are shown; None if they are not shown as text."""
    is_by_time = not table.format.shows_time_paths and key_generator_of(table) == "TIMESTAMP"
    return TimePartitions(fields=table.partition_fields) if is_by_time else None
