"""
Partition columns of time-based key generators, as readers of Apache Hudi show them. Pure.

The data files hold the value that was written; the path holds a time that was formatted from it, as ``2026/11/22``.
Hudi 0.15 shows the text of the path in snapshots (table version 6), and the value in incremental reads. Hudi 1.x shows
the value, as text where the key generator is the time-based one alone. hudi_py follows the release of the table.
Where the text of the path is not a value of the column, on which Hudi 0.15 fails, the stored value is shown.

Source: fixtures ``cow_timestamp_keygen`` and ``cow_custom_keygen``; Hudi 0.15.0
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
    What is shown in the place of stored partition values.

    Args:
        fields: Names of the partition columns, in the order of the path.
        is_path_shown: The text of the path is shown, in the type of the column; otherwise the value as text.
        is_hive_style: Segments of the path begin with ``name=``.
        is_encoded: Segments of the path are URL-encoded.
    """

    fields: tuple[str, ...]
    is_path_shown: bool
    is_hive_style: bool = False
    is_encoded: bool = False

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """The columns as they are shown."""
        if self.is_path_shown:
            return stored
        return pa.schema([pa.field(f.name, pa.string()) if self._is_text(f) else f for f in stored])

    def shown(self, batch: pa.RecordBatch, partition_path: str) -> pa.RecordBatch:
        """A batch of stored values as it is shown; columns without partition values are the same."""
        if not self.is_path_shown:
            schema = self.schema(batch.schema)
            columns = [c.cast(f.type) for c, f in zip(batch.columns, schema, strict=True)]
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        texts = texts_of_path(self.fields, partition_path, is_hive_style=self.is_hive_style, is_encoded=self.is_encoded)
        for at, field in enumerate(batch.schema):
            if field.name in texts:
                value = _value(texts[field.name], field.type)
                if value is not None:
                    batch = batch.set_column(at, field, pa.repeat(value, batch.num_rows))
        return batch

    def _is_text(self, field: Field) -> bool:
        return field.name in self.fields and pa.types.is_integer(field.type)


def time_partitions_of(table: TableConfig) -> TimePartitions | None:
    """How a table's partition values are shown; None for as they are stored."""
    generator = table.properties.get("hoodie.table.keygenerator.class", "").rpartition(".")[2]
    kind = table.properties.get("hoodie.table.keygenerator.type", "").upper().removesuffix("_AVRO")
    is_by_time = generator in _TIMESTAMP_CLASSES or kind == "TIMESTAMP"
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


def _value(text: str, kind: pa.DataType) -> Any:
    """The text as a value of the column; None if it is not valid."""
    if text == DEFAULT_PARTITION:
        return pa.scalar(None, kind)
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowException:
        return None
