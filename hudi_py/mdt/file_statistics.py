"""
Records of `column_stats` and `partition_stats` for the files that an action of ours writes and deletes. Pure.

Bounds of a partition are written as not tight: they are merged with what is recorded, and so stay true of every file,
if wider than need be; Apache Hudi writes tight ones at its next write to the partition. Where a column has a NaN, the
upper bound is NaN, which Java orders last; Apache Hudi writes 0.0 and 0.0, and passes over such files.

Source: rules/data-files 11.1; tables of Hudi 0.15.0, 1.0.2 and 1.1.1 with columns of all types;
``HoodieTableMetadataUtil``, ``HoodieColumnRangeMetadata``, ``ValueType``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.mdt.records import RECORD
from hudi_py.mdt.shares import Encoded
from hudi_py.mdt.statistics import (
    COLUMN_STATS,
    PARTITION_STATS,
    TYPES,
    StatisticsRecord,
    column_prefix,
    encode_statistics,
    key_suffix,
    partition_suffix,
)
from hudi_py.rows.column_ranges import ColumnRange, has_range, joined
from hudi_py.versions.format import MetadataTableFormat

COLUMNS_MAX: Final = 32
"""``hoodie.metadata.index.column.stats.max.columns.to.index``: how many of the first columns Hudi 1.x takes."""
INDEXED_META: Final = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
_MODEL: Final = "org.apache.hudi.avro.model."
_SCALE: Final = 15
_EXACT: Final = Context(prec=100)


@attrs.frozen(kw_only=True)
class StatisticsForm:
    """
    How a table's statistics are written.

    Args:
        table_version: The metadata table's version.
        tells_tight_bounds: Whether records say if their bounds are tight.
        names_types: Whether records name the type of their values (index version 2, Hudi 1.1).
        columns: Columns that have records in every file that has them.
        partitions: Those of `COLUMN_STATS` and `PARTITION_STATS` that the table has.
    """

    table_version: int
    tells_tight_bounds: bool
    names_types: bool
    columns: tuple[str, ...]
    partitions: frozenset[str]


def default_columns(schema: pa.Schema, form: MetadataTableFormat) -> tuple[str, ...]:
    """Return the columns that Apache Hudi takes where its writer names none."""
    fields: list[Any] = [field for field in schema if field.name not in META_COLUMNS and has_range(field.type)]
    names = [field.name for field in fields if not (form.leaves_out_wide_decimals and _is_wide(field.type))]
    if form.indexes_all_columns:
        return (*META_COLUMNS, *names)
    # 1.x takes three of the five meta columns, 0.15.0 all (rules/data-files 11.1).
    return (*INDEXED_META, *names[:COLUMNS_MAX])


def can_hold(form: StatisticsForm, schema: pa.Schema) -> bool:
    """Return whether bounds of all values of these columns can be written: decimals before Hudi 1.1 have limits."""
    types = {field.name: field.type for field in schema}
    known = [types[name] for name in form.columns if name in types]
    if not all(map(has_range, known)) or any(name not in types and name not in META_COLUMNS for name in form.columns):
        return False
    return form.names_types or not any(map(_is_wide, known))


def _is_wide(arrow: Any) -> bool:
    """Whether there are decimals of this type that have no place in a record without types."""
    return pa.types.is_decimal(arrow) and max(arrow.scale, arrow.precision - arrow.scale) > _SCALE


def statistics_records(
    form: StatisticsForm,
    written: Mapping[str, Mapping[str, Iterable[ColumnRange]]],
    deleted: Mapping[str, Iterable[str]],
) -> Encoded:
    """
    Return the records for files that came and went.

    Args:
        form: How the table's version stores statistics.
        written: Partition path to name of each new base or log file to its ranges.
        deleted: Partition path to names of base and log files.
    """
    columns: dict[str, bytes | None] = {}
    partitions: dict[str, bytes | None] = {}
    for path, files in written.items():
        together: dict[str, ColumnRange] = {}
        for name, ranges in files.items():
            for each in ranges:
                columns[column_prefix(each.column) + key_suffix(path, name)] = _encoded(form, COLUMN_STATS, name, each)
                if not each.value_count:  # a log file with nothing but deletes
                    continue
                known = together.get(each.column)
                together[each.column] = each if known is None else joined(known, each)
        # A table without partitions has no `partition_stats` in any release (rules/data-files 10).
        for each in together.values() if path else ():
            key = column_prefix(each.column) + partition_suffix(path)
            partitions[key] = _encoded(form, PARTITION_STATS, path, _with_null(each))
    for path, names in deleted.items():
        for name in names:
            for column in form.columns:
                columns[column_prefix(column) + key_suffix(path, name)] = _tombstone(form, name, column)
    found = {COLUMN_STATS: columns, PARTITION_STATS: partitions}
    return {partition: found[partition] for partition in sorted(form.partitions) if found[partition]}


def _encoded(form: StatisticsForm, partition: str, where: str, of: ColumnRange) -> bytes:
    fields: dict[str, Any] = {
        "fileName": where,
        "columnName": of.column,
        # Rounded outwards, where the stored form has fewer digits: bounds that are too narrow hide rows, wider ones do
        # not.
        "minValue": None if of.minimum is None else _wrapped(form, of.arrow, of.minimum, ROUND_FLOOR),
        "maxValue": None if of.maximum is None else _wrapped(form, of.arrow, of.maximum, ROUND_CEILING),
        "valueCount": of.value_count,
        "nullCount": of.null_count,
        "totalSize": of.size_bytes,
        "totalUncompressedSize": of.uncompressed_bytes,
        "isDeleted": False,
    }
    if form.names_types:
        ordinal, info = _value_type(of.arrow) if of.value_count else _NO_VALUES
        named = {"typeOrdinal": ordinal, "additionalInfo": info}
        fields["valueType"] = (f"{_MODEL}HoodieValueTypeInfo", named)
    return _bytes(form, partition, fields)


def _with_null(of: ColumnRange) -> ColumnRange:
    """Older files of the partition may lack the column, and no record says that: its nulls are not ruled out."""
    return of if of.null_count else attrs.evolve(of, null_count=1, value_count=of.value_count + 1)


def _tombstone(form: StatisticsForm, name: str, column: str) -> bytes:
    counts = dict.fromkeys(("valueCount", "nullCount", "totalSize", "totalUncompressedSize"), -1)
    bounds = dict.fromkeys(("minValue", "maxValue"))
    return _bytes(form, COLUMN_STATS, {"fileName": name, "columnName": column, "isDeleted": True, **bounds, **counts})


def _bytes(form: StatisticsForm, partition: str, fields: dict[str, Any]) -> bytes:
    # Never tight: that would replace what is recorded of the partition, whose other files this action has not read.
    if form.tells_tight_bounds:
        fields["isTightBound"] = False
    record = StatisticsRecord(TYPES[partition], fields)
    return encode_statistics(record, schema_text(RECORD, form.table_version), file_name=None)


def _wrapped(form: StatisticsForm, arrow: Any, value: Any, rounding: str) -> tuple[str, dict[str, Any]]:
    types = pa.types
    if types.is_decimal(arrow):
        return _decimal(value, arrow, rounding) if form.names_types else _scaled(value, rounding)
    if types.is_date32(arrow):
        wrapper = "IntWrapper" if form.names_types else "DateWrapper"
    elif types.is_timestamp(arrow):
        wrapper = "LongWrapper"
    else:
        wrapper = _WRAPPERS[arrow]
    return f"{_MODEL}{wrapper}", {"value": value}


def _decimal(value: Decimal, arrow: Any, rounding: str) -> tuple[str, dict[str, Any]]:
    """Bytes of the digits, as few as hold them: Java's ``BigInteger.toByteArray``."""
    digits = int(value.scaleb(arrow.scale, _EXACT).to_integral_value(rounding))
    # With room for the sign: 128 takes two bytes, -128 one.
    size = ((digits if digits >= 0 else ~digits).bit_length() // 8) + 1
    return f"{_MODEL}BytesWrapper", {"value": digits.to_bytes(size, "big", signed=True)}


def _scaled(value: Decimal, rounding: str) -> tuple[str, dict[str, Any]]:
    return f"{_MODEL}DecimalWrapper", {"value": value.quantize(Decimal(1).scaleb(-_SCALE), rounding, _EXACT)}


def _value_type(arrow: Any) -> tuple[int, str | None]:
    types = pa.types
    if types.is_decimal(arrow):
        return 10, f"{arrow.precision},{arrow.scale}"
    if types.is_date32(arrow):
        return 12, None
    if types.is_timestamp(arrow):
        return (16 if arrow.tz is not None else 19), None
    return _ORDINALS[arrow], None


_WRAPPERS: Final = {
    pa.bool_(): "BooleanWrapper",
    pa.int32(): "IntWrapper",
    pa.int64(): "LongWrapper",
    pa.float32(): "FloatWrapper",
    pa.float64(): "DoubleWrapper",
    pa.string(): "StringWrapper",
    pa.binary(): "BytesWrapper",
}
_NO_VALUES: Final = (1, None)
_ORDINALS: Final = {
    pa.bool_(): 2, pa.int32(): 3, pa.int64(): 4, pa.float32(): 5, pa.float64(): 6, pa.string(): 7, pa.binary(): 8,
}  # fmt: skip
