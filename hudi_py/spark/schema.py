"""Columns of Arrow as columns of Spark."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


def spark_schema(arrow: pa.Schema) -> StructType:
    """As Spark shows what it reads from files: everything may be null, inside of nested types too."""
    return _nullable(from_arrow_schema(arrow, prefer_timestamp_ntz=True))


def _nullable(schema: StructType) -> StructType:
    return StructType([StructField(each.name, _nullable_type(each.dataType)) for each in schema])


def _nullable_type(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return _nullable(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_nullable_type(kind.elementType))
    if isinstance(kind, MapType):
        return MapType(_nullable_type(kind.keyType), _nullable_type(kind.valueType))
    return kind
