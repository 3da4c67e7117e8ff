"""
From the blocks of log files to records: rows as Arrow batches, and deletes.

Source: rules/data-files 9.2; Hudi 0.15.0 to 1.1.1 ``HoodieAvroDataBlock``, ``HoodieParquetDataBlock``,
``HoodieHFileDataBlock``, ``HoodieDeleteBlock``.
"""

from __future__ import annotations

import enum
import io
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.errors import CorruptMetadata, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import PARQUET_DAMAGE, Array, Field, compute
from hudi_py.formats.avro_columns import decode_columns
from hudi_py.formats.data_block import decode_data_block
from hudi_py.formats.delete_block import DeletedKey, OrderingValue, decode_delete_block
from hudi_py.formats.hfile import HFile
from hudi_py.formats.log_block import BlockType, HeaderKey, LogBlock, iterate_log_blocks
from hudi_py.formats.parquet_file import check_names, check_size
from hudi_py.formats.renamed import renamed_batch, stored_name
from hudi_py.formats.stored_values import conform_stored, widen_floats
from hudi_py.rows.ordering import ordering_values
from hudi_py.storage.base import Storage

if TYPE_CHECKING:
    from hudi_py.formats.column_history import MovedColumns
    from hudi_py.rows.keys import KeyGenerator

KEY_COLUMN: Final = "_hoodie_record_key"
_FLAG_COLUMN: Final = "_hoodie_is_deleted"
_OPERATION_COLUMN: Final = "_hoodie_operation"
_ROWS: Final = (BlockType.AVRO_DATA, BlockType.PARQUET_DATA, BlockType.HFILE_DATA)
_DELETING_OPERATIONS: Final = ("D", "-U")
_KINDS: Final = (
    (pa.types.is_boolean, ("boolean",)),
    (pa.types.is_integer, ("int", "long")),
    (pa.types.is_floating, ("float", "double")),
    (pa.types.is_string, ("string",)),
    (pa.types.is_binary, ("bytes",)),
    (pa.types.is_date, ("date", "local_date", "int")),
    (pa.types.is_timestamp, ("timestamp", "long")),
    (pa.types.is_decimal, ("decimal",)),
)
"""Kinds that ordering values of deletes may have, by the type of the ordering column."""


class Kind(enum.IntEnum):
    """What one record of a log file does to its key."""

    ROW = 0
    FLAGGED = 1  # a row that marks a deletion
    DELETE = 2  # a delete with ordering values
    ALWAYS = 3  # a delete without ordering values


@attrs.frozen(kw_only=True)
class LogRecords:
    """
    Records of one block, n of them in order of arrival.

    Args:
        keys: Strings, without nulls.
        kinds: `Kind` of each.
        ordering: One array for each ordering field; null where a record has no value.
        rows: n rows in the schema asked for, or None for deletes.
        columns: Names of the columns that the rows have; None for all. An update of some columns has only those.
        positions_in: Time of the base file in which the block gives the position of each record; None if it does not.
    """

    keys: Array
    kinds: npt.NDArray[np.uint8]
    ordering: tuple[Array, ...]
    rows: pa.RecordBatch | None
    columns: frozenset[str] | None = None
    positions_in: str | None = None


@attrs.frozen(kw_only=True)
class RecordShape:
    """
    The columns and ordering fields to read from records.

    Args:
        schema: Columns of the rows, all nullable; the key and the columns with the ordering fields are among them.
        ordering: The ordering fields, see `hudi_py.rows.ordering`.
        delete_marker, marks_any_case: See `hudi_py.rows.log_rules.LogRules`.
        keys: Computes the keys of rows that do not hold them; None where they do.
        avro_widens_floats: See `hudi_py.versions.format.TableFormat`.
        moved: Where the columns of blocks are today; None if all have kept their names.
    """

    schema: pa.Schema
    ordering: tuple[Field, ...]
    delete_marker: tuple[str, str] | None = None
    marks_any_case: bool = False
    keys: KeyGenerator | None = None
    avro_widens_floats: bool = False
    moved: MovedColumns | None = None

    @property
    def stored(self) -> frozenset[str]:
        """Names of the columns to read from blocks."""
        marker = () if self.delete_marker is None else (self.delete_marker[0],)
        return frozenset((*self.schema.names, KEY_COLUMN, _FLAG_COLUMN, _OPERATION_COLUMN, *marker))


def records_of(blocks: Iterable[tuple[LogBlock, str]], shape: RecordShape) -> Iterator[LogRecords]:
    """
    The records of data and delete blocks; one value per block that has records.

    Args:
        blocks: Blocks with their contents, each with its place for messages.
        shape: The columns to read.

    Raises:
        CorruptMetadata: A block does not decode, or a record has no key.
        UnsupportedTable: The type of a block is not supported.
    """
    for block, source in blocks:
        if block.block_type is BlockType.DELETE:
            deleted = decode_delete_block(block.content, source)
            if deleted:
                yield attrs.evolve(_deletes(deleted, shape), positions_in=positions_in(block))
            continue
        moved = None if shape.moved is None else shape.moved.of(block.header[HeaderKey.INSTANT_TIME])
        if moved is None:
            batch = _batch_of(block, shape.stored, source)
        else:
            names = [name for name in map(partial(stored_name, moved=moved), shape.stored) if name is not None]
            batch = renamed_batch(_batch_of(block, frozenset(names), source), moved)
        if not batch.num_rows:
            continue
        if shape.avro_widens_floats and block.block_type is not BlockType.PARQUET_DATA:
            batch = widen_floats(batch, shape.schema)
        rows = _rows(batch, shape, source, is_partial=is_partial(block))
        yield attrs.evolve(rows, positions_in=positions_in(block))


def rows_of_log_file(storage: Storage, path: str) -> list[pa.RecordBatch]:
    """
    Return the rows of a log file with all their columns, as they are stored; one batch without rows if it has only
    deletes, none if it has neither.

    Raises:
        NotFound: There is no such file.
        CorruptMetadata: A block does not decode.
    """
    source = f"{storage.root}/{path}"
    blocks = iterate_log_blocks(storage.read(path), source)
    found, nothing = [], np.empty(0, np.int64)
    for block in blocks:
        schema = block.header.get(HeaderKey.SCHEMA)
        if block.block_type in _ROWS:
            found.append(_batch_of(block, None, source))
        elif block.block_type is BlockType.DELETE and schema is not None:
            found.append(decode_columns(b"", nothing, nothing, schema, source))
    return [batch for batch in found if batch.num_rows] or found[:1]


def is_partial(block: LogBlock) -> bool:
    """Whether a block has updates of some columns only."""
    return block.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"


def positions_in(block: LogBlock) -> str | None:
    """Return the time of the base file in which a block gives the position of each record; None if it does not."""
    if not block.header.get(HeaderKey.RECORD_POSITIONS):
        return None
    return block.header.get(HeaderKey.BASE_FILE_INSTANT_TIME_OF_RECORD_POSITIONS)


def _batch_of(block: LogBlock, columns: frozenset[str] | None, source: str) -> pa.RecordBatch:
    """The rows of a data block in the schema that they were written in; all columns if *columns* is None."""
    if block.block_type is BlockType.PARQUET_DATA:
        return _parquet_rows(block.content, columns, source)
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is None:
        raise CorruptMetadata(f"{source}: a data block without a schema")
    if block.block_type is BlockType.AVRO_DATA:
        return decode_data_block(block.content, schema, source, columns)
    if block.block_type is BlockType.HFILE_DATA:
        return _hfile_rows(block.content, schema, columns, source)
    raise UnsupportedTable(f"{source}: a block {block.block_type.name} where rows are wanted")


def _parquet_rows(content: bytes, columns: frozenset[str] | None, source: str) -> pa.RecordBatch:
    try:
        file = pq.ParquetFile(io.BytesIO(content))
        check_size(file.metadata, len(content), is_read_whole=True)
        check_names(file)
        stored = file.schema_arrow.names
        table = file.read(columns=[name for name in stored if columns is None or name in columns])
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
    except PARQUET_DAMAGE as error:
        raise CorruptMetadata(f"{source}: a Parquet block does not decode: {error}") from error


def _hfile_rows(content: bytes, schema: str, columns: frozenset[str] | None, source: str) -> pa.RecordBatch:
    """Rows of an HFile block; its keys are next to the records, not in them."""
    found = list(HFile(io.BytesIO(content), len(content), source))
    sizes = np.fromiter((len(value) for _, value in found), np.int64, len(found))
    ends = np.cumsum(sizes)
    batch = decode_columns(b"".join(value for _, value in found), ends - sizes, ends, schema, source, columns)
    try:
        keys = pa.array([key.decode() for key, _ in found], pa.string())
    except UnicodeDecodeError as error:
        raise CorruptMetadata(f"{source}: a record key is not UTF-8") from error
    position = batch.schema.get_field_index(KEY_COLUMN)
    return batch if position < 0 else batch.set_column(position, KEY_COLUMN, keys)


def _rows(batch: pa.RecordBatch, shape: RecordShape, source: str, *, is_partial: bool) -> LogRecords:
    try:
        rows = conform_stored(batch, shape.schema)
        keys: Any = _stored_keys(batch, source) if shape.keys is None else shape.keys.record_keys(rows)
    except WriteError as error:
        raise CorruptMetadata(f"{source}: the records do not fit the table: {error}") from error
    flagged = flagged_rows(batch, shape.delete_marker, any_case=shape.marks_any_case)
    kinds = np.where(flagged, Kind.FLAGGED, Kind.ROW).astype(np.uint8)
    ordering = tuple(ordering_values(rows, field) for field in shape.ordering)
    if ordering and ordering[0].type == pa.int32():  # Hudi takes an int of 0 for a missing ordering value
        kinds[flagged & (ordering[0].fill_null(0).to_numpy(zero_copy_only=False) == 0)] = Kind.ALWAYS
    return LogRecords(
        keys=keys.cast(pa.string()),
        kinds=kinds,
        ordering=ordering,
        rows=rows,
        columns=frozenset(batch.schema.names) if is_partial else None,
    )


def _stored_keys(batch: pa.RecordBatch, source: str) -> Any:
    if KEY_COLUMN not in batch.schema.names:
        raise CorruptMetadata(f"{source}: the records have no column {KEY_COLUMN}")
    # The stored key decides and is not computed again, because releases of Hudi write some keys differently.
    keys = batch.column(KEY_COLUMN)
    if keys.null_count:
        raise CorruptMetadata(f"{source}: {keys.null_count} records have no key")
    return keys


def flagged_rows(
    batch: pa.RecordBatch, marker: tuple[str, str] | None, *, any_case: bool = False
) -> npt.NDArray[np.bool_]:
    """Return which rows mark a deletion; *marker* and *any_case* as in `RecordShape`."""
    found = np.zeros(batch.num_rows, np.bool_)
    names = batch.schema.names
    if _FLAG_COLUMN in names and pa.types.is_boolean(batch.schema.field(_FLAG_COLUMN).type):
        found |= _mask(batch.column(_FLAG_COLUMN))
    # Flink marks deletes this way, and the row before an update.
    if _OPERATION_COLUMN in names:
        operations = pa.array(_DELETING_OPERATIONS, pa.string())
        found |= _mask(compute.is_in(batch.column(_OPERATION_COLUMN).cast(pa.string()), value_set=operations))
    if marker is not None and marker[0] in names:
        column = batch.column(marker[0])
        # As text, because the table property holds the marker as text whatever the type of the column.
        text = column.cast(pa.string()) if not pa.types.is_nested(column.type) else pa.nulls(len(column), pa.string())
        wanted = marker[1]
        if any_case:
            text, wanted = compute.utf8_lower(text), wanted.lower()
        found |= _mask(compute.equal(text, wanted))
    return found


def _mask(values: Any) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = values.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _deletes(deleted: Sequence[DeletedKey], shape: RecordShape) -> LogRecords:
    wanted = len(shape.ordering)
    comparable = [
        bool(wanted)
        and len(each.ordering) == wanted
        and all(_is_of(value, field.type) for value, field in zip(each.ordering, shape.ordering, strict=True))
        for each in deleted
    ]
    ordering = tuple(
        _ordering_column(
            [each.ordering[at] if fits else None for each, fits in zip(deleted, comparable, strict=True)], field
        )
        for at, field in enumerate(shape.ordering)
    )
    return LogRecords(
        keys=pa.array([each.record_key for each in deleted], pa.string()),
        # An ordering value of another type cannot be compared; such a delete always wins, like one without a value.
        kinds=np.where(comparable, Kind.DELETE, Kind.ALWAYS).astype(np.uint8),
        ordering=ordering,
        rows=None,
    )


def _is_of(value: OrderingValue, arrow: pa.DataType) -> bool:
    return any(is_kind(arrow) and value.kind in kinds for is_kind, kinds in _KINDS)


def _ordering_column(values: Sequence[OrderingValue | None], field: Field) -> Any:
    plain = [None if value is None else value.value for value in values]
    # From numbers, because Python's dates and times end with the year 9999.
    if pa.types.is_date(field.type):
        return pa.array(plain, pa.int32()).view(field.type)
    if pa.types.is_timestamp(field.type):
        return pa.array(plain, pa.int64()).view(field.type)
    if pa.types.is_decimal(field.type):
        # Delete blocks have decimals with 15 digits behind the point, whatever the column has (``DecimalWrapper``).
        return pa.array(plain, pa.decimal128(38, 15)).cast(field.type, safe=False)
    return pa.array(plain, field.type)
