"""
Partition columns of time-based key generators, as readers of Apache Hudi show them. Pure.

The data files have the value that was written; the path has a time formatted from it, such as ``2026/11/22``. Hudi 0.15
shows the text of the path where it reads base files alone (table version 6: snapshots of copy-on-write tables, and
read-optimized ones), and the value in merged and incremental reads. Hudi 1.x shows the value, as text if the only key
generator is the time-based one. hudi_py does what the table's release does. If the text of the path is not a value of
the column, Hudi 0.15 fails; hudi_py shows the stored value.

Source: fixtures ``cow_timestamp_keygen``, ``cow_custom_keygen`` and ``kt_base``; Hudi 0.15.0
``HoodieSparkUtils.parsePartitionColumnValues``, 1.x ``SparkHoodieTableFileIndex``.
"""

from __future__ import annotations

from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.config.table import TableConfig
from hudi_py.formats.arrow_types import Field
from hudi_py.model.files import DEFAULT_PARTITION
from hudi_py.rows.path_columns import texts_of_path

_TIMESTAMP_CLASSES: Final = frozenset({"TimestampBasedKeyGenerator", "TimestampBasedAvroKeyGenerator"})
_CUSTOM_CLASSES: Final = frozenset({"CustomKeyGenerator", "CustomAvroKeyGenerator"})


@attrs.frozen(kw_only=True)
class TimePartitions:
    """
    How partition values of time-based keys are shown.

    Args:
        fields: Names of the partition columns, in the order of the path.
        is_path_shown: Whether the text of the path is shown, in the type of the column; otherwise the value as text.
        is_hive_style: Segments of the path begin with ``name=``.
        is_encoded: Segments of the path are URL-encoded.
    """

    fields: tuple[str, ...]
    is_path_shown: bool
    is_hive_style: bool = False
    is_encoded: bool = False

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """The columns with the types in which they are shown."""
        if self.is_path_shown:
            return stored
        return pa.schema([pa.field(f.name, pa.string()) if self._is_text(f) else f for f in stored])

    def shown(self, batch: pa.RecordBatch, partition_path: str) -> pa.RecordBatch:
        """A batch with partition values as they are shown; other columns are unchanged."""
        if not self.is_path_shown:
            schema = self.schema(batch.schema)
            columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        texts = texts_of_path(self.fields, partition_path, is_hive_style=self.is_hive_style, is_encoded=self.is_encoded)
        for at, field in enumerate(batch.schema):
            if field.name in texts:
                value = shown_value(texts[field.name], field.type)
                if value is not None:
                    batch = batch.set_column(at, field, pa.repeat(value, batch.num_rows))
        return batch

    def _is_text(self, field: Field) -> bool:
        return field.name in self.fields and pa.types.is_integer(field.type)


def time_partitions_of(table: TableConfig) -> TimePartitions | None:
    """How a table's partition values are shown; None if they are shown as stored."""
    generator = table.properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    kind = table.properties.get("hoodie.table.keygenerator.type", "").upper().removesuffix("_AVRO")
    is_by_time = generator in _TIMESTAMP_CLASSES or kind == "TIMESTAMP"
    # 0.15 shows texts of paths for CUSTOM, too; 1.x shows text only where all partition columns are times.
    if table.format.shows_time_paths:
        if not is_by_time and generator not in _CUSTOM_CLASSES:
            return None
    elif not is_by_time:
        return None
    return TimePartitions(
        fields=table.partition_fields,
        is_path_shown=table.format.shows_time_paths,
        is_hive_style=table.hive_style,
        is_encoded=table.url_encode,
    )


def shown_value(text: str, kind: pa.DataType) -> Any:
    """The text converted to the type of the column; None if it is not a valid value."""
    if text == DEFAULT_PARTITION:
        return pa.scalar(None, kind)
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowException:
        return None
