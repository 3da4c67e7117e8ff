"""
Partition columns that data files lack (``hoodie.datasource.write.drop.partition.columns``). Pure.

Their values are in the path only. Apache Hudi 0.15 and 1.1 show such columns after all others, in the order of the
path, as text; null in the default partition. Incremental reads of 0.15 show null in all of them; hudi_py does not.

Source: tables ``cow_dropped_columns``, as both releases wrote and read them; ``TableSchemaResolver``,
``HoodieBaseRelation.shouldExtractPartitionValuesFromPartitionPath``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import unquote

import attrs
import pyarrow as pa

from hudi_py.config.table import TableConfig
from hudi_py.errors import UnsupportedTable
from hudi_py.formats.arrow_types import Array
from hudi_py.model.files import DEFAULT_PARTITION


def texts_of_path(
    fields: Sequence[str], partition_path: str, *, is_hive_style: bool, is_encoded: bool
) -> Mapping[str, str]:
    """
    Column to its segment of a path; empty if there are several columns and another number of segments.

    Args:
        fields: Names of the partition columns, in the order of the path.
        partition_path: The path.
        is_hive_style: Segments begin with ``name=``.
        is_encoded: Segments are URL-encoded.
    """
    # A single column may have slashes in its values, so its path is one segment however deep the folder is.
    segments = [partition_path] if len(fields) == 1 else partition_path.split("/")
    if len(segments) != len(fields):
        return {}
    found = {}
    for field, segment in zip(fields, segments, strict=True):
        text = segment.removeprefix(f"{field}=") if is_hive_style else segment
        found[field] = unquote(text) if is_encoded else text
    return found


@attrs.frozen(kw_only=True)
class PathColumns:
    """
    Columns whose values are taken from the path.

    Args:
        fields, is_hive_style, is_encoded: As for `texts_of_path`.
    """

    fields: tuple[str, ...]
    is_hive_style: bool = False
    is_encoded: bool = False

    def schema(self, stored: pa.Schema) -> pa.Schema:
        """All columns of the table; *stored* are the columns that files have."""
        more = [pa.field(name, pa.string()) for name in self.fields if name not in stored.names]
        return pa.schema([*stored, *more])

    def values(self, partition_path: str) -> Mapping[str, str | None]:
        """
        Column to its value in a partition.

        Raises:
            UnsupportedTable: The path does not have a segment for each column.
        """
        texts = texts_of_path(self.fields, partition_path, is_hive_style=self.is_hive_style, is_encoded=self.is_encoded)
        if not texts:
            raise UnsupportedTable(
                f"the files lack the partition columns {', '.join(self.fields)}, and the path {partition_path!r} does "
                "not have one part for each of them; read the table with Apache Hudi"
            )
        # Hudi writes null and empty values into the default partition, and reads null.
        return {name: None if text in ("", DEFAULT_PARTITION) else text for name, text in texts.items()}

    def filled(self, batch: pa.RecordBatch, partition_path: str) -> pa.RecordBatch:
        """
        A batch of rows of a partition, with its path columns filled in from the path.

        Raises:
            UnsupportedTable: As `values`, or a value does not fit the column's type in the committed schema.
        """
        values = self.values(partition_path)
        for at, field in enumerate(batch.schema):
            if field.name not in values:
                continue
            try:
                column: Array = pa.array([values[field.name]] * len(batch), pa.string()).cast(field.type)
            except pa.ArrowException as error:
                raise UnsupportedTable(f"the path {partition_path!r} has no valid {field.name}: {error}") from error
            batch = batch.set_column(at, field, column)
        return batch


def path_columns_of(table: TableConfig) -> PathColumns | None:
    """The columns of a table that its files lack; None if the files have all columns."""
    if not lacks_partition_columns(table.properties):
        return None
    return PathColumns(fields=table.partition_fields, is_hive_style=table.hive_style, is_encoded=table.url_encode)


def lacks_partition_columns(properties: Mapping[str, str]) -> bool:
    """Whether partition columns are in the paths only; a table without partitions has none."""
    is_dropped = properties.get("hoodie.datasource.write.drop.partition.columns", "false").strip().lower() == "true"
    return is_dropped and bool(properties.get("hoodie.table.partition.fields", "").strip())
