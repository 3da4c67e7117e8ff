"""
Writes one base file from a stream of Arrow batches.

Memory: rows are collected until a row group is full (`BaseFileOptions.row_group_bytes`), then written. Storage: the
caller opens and closes the stream; until it is closed and the instant is completed, no reader sees the file, and
rollback finds it by its marker.

Source: Hudi 0.15.0, 1.0.2, 1.1.1: ``HoodieAvroParquetWriter``, ``HoodieBloomFilterWriteSupport``,
``HoodieCreateHandle``; the footer keys and the layout of lists were tried against all three.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, BinaryIO, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Array, Field
from hudi_py.formats.bloom import BloomFilter, BloomKind, BloomSizing
from hudi_py.formats.conform import refuse_null_elements
from hudi_py.formats.key_order import from_java_order, key_range
from hudi_py.formats.record_schema import meta_fields, with_meta_fields
from hudi_py.rows.column_ranges import ColumnRange, RangeCollector
from hudi_py.rows.repeats import columns_without_repeats
from hudi_py.rows.written import FileTarget, sequence_numbers

BLOOM_KEY: Final = "org.apache.hudi.bloomfilter"
BLOOM_TYPE_KEY: Final = "hoodie_bloom_filter_type_code"
MIN_KEY: Final = "hoodie_min_record_key"
MAX_KEY: Final = "hoodie_max_record_key"
AVRO_SCHEMA_KEY: Final = "parquet.avro.schema"
WRITER_MODEL_KEY: Final = "writer.model.name"

# Arrow's own default for gzip is 9: three times slower than Java's 6 for 0.3 % of the size. Level 3 takes half the
# time of 6 for 2 %.
_LEVELS: Final = {"gzip": 3}
_CODECS: Final = {"uncompressed": "none", "none": "none", "gzip": "gzip", "snappy": "snappy", "zstd": "zstd"}
_CONSTANT: Final = pa.dictionary(pa.int32(), pa.string())  # one value per file costs 4 bytes a row, not its length


def _codec(name: str) -> str:
    try:
        return _CODECS[name.lower()]
    except KeyError:
        known = ", ".join(_CODECS)
        raise ConfigError(f"hoodie.parquet.compression.codec={name} is not supported; use one of {known}") from None


@attrs.frozen(kw_only=True)
class BaseFileOptions:
    """
    How base files are laid out. The defaults are Hudi's where Hudi has one.

    Args:
        compression: ``hoodie.parquet.compression.codec``: gzip, snappy, zstd or uncompressed.
        compression_level: Level of the codec; None is 3 for gzip and the codec's own default otherwise.
        bloom: Size and kind of the filter.
        max_file_bytes: ``hoodie.parquet.max.file.size``; where `hudi_py.rows.new_files` starts another file.
        row_group_bytes: ``hoodie.parquet.block.size``: rows held in memory before they are written, in bytes of Arrow
            (uncompressed).
        page_bytes: ``hoodie.parquet.page.size``.
        has_dictionaries: ``hoodie.parquet.dictionary.enabled``.
        ranged: Columns whose ranges are gathered for the statistics of the metadata table.
        tracks_keys: Whether the keys that come and go are gathered for its record index.
    """

    compression: str = attrs.field(default="gzip", converter=_codec)
    compression_level: int | None = None
    bloom: BloomSizing = attrs.field(factory=BloomSizing)
    max_file_bytes: int = attrs.field(default=120 * 1024 * 1024, validator=attrs.validators.gt(0))
    row_group_bytes: int = attrs.field(default=64 * 1024 * 1024, validator=attrs.validators.gt(0))
    page_bytes: int = attrs.field(default=1024 * 1024, validator=attrs.validators.gt(0))
    has_dictionaries: bool = True
    ranged: tuple[str, ...] = ()
    tracks_keys: bool = False


class BaseFileWriter:
    """
    Stream rows into one base file.

    Args:
        sink: Binary stream; written front to back, never closed here.
        target: Names the file.
        schema: Storage schema of the rows, without meta columns.
        avro_schema: The same as Avro text, without meta columns.
        options: Layout.
        first_row_index: Where the row numbers inside the sequence numbers start. A task that writes several files
            goes on counting, so that its sequence numbers stay unique.
        known: Filter that has the keys of all rows that `write_rows` will be given, see `BloomFilter.carried_on`; it
            is changed.
    """

    def __init__(
        self,
        sink: BinaryIO,
        target: FileTarget,
        schema: pa.Schema,
        avro_schema: str,
        options: BaseFileOptions,
        first_row_index: int = 0,
        known: BloomFilter | None = None,
    ) -> None:
        self.target = target
        self.num_rows = 0
        self._options = options
        self._first_row_index = first_row_index
        self._schema = pa.schema([*_stored_meta_fields(), *schema])
        self._avro_schema = avro_schema
        self._has_old_keys = known is not None
        self._bloom = BloomFilter.sized(options.bloom) if known is None else known
        self._key_range: tuple[bytes, bytes] | None = None
        self._pending: list[pa.RecordBatch] = []
        self._pending_bytes = 0
        self._flushed_arrow_bytes = 0
        self._sink = _CountingSink(sink)
        self._footers: list[pq.FileMetaData] = []
        self._ranges = RangeCollector(self._schema, options.ranged)
        self._writer: Any = None  # opened with the first row group, whose values decide about dictionaries

    def write_new(self, rows: pa.RecordBatch, keys: Array, start: int | None = None) -> None:
        """
        Write rows that this commit adds or changes.

        Args:
            rows: Rows in the storage schema, see `conform_batch`.
            keys: Their record keys, strings, neither null nor empty.
            start: Number of the first row within the task; None for the next one after those of this file.

        Raises:
            WriteError: A list holds a null element, or a key is empty.
        """
        refuse_null_elements(rows)
        count = len(keys)
        numbers = self.sequence_numbers(count) if start is None else sequence_numbers(self.target, start, count)
        self._bloom.add(keys)
        self._write(rows, keys, self.commit_times(count), numbers)

    def write_rows(self, rows: pa.RecordBatch, keys: Array, commit_times: Array, sequence_numbers: Array) -> None:
        """Write rows with given commit times and sequence numbers: rows that a merge copies keep theirs."""
        # Of copied rows, too: readers ask the filter about every row of the file, not only about new ones.
        if not self._has_old_keys:
            self._bloom.add(keys)
        self._write(rows, keys, commit_times, sequence_numbers)

    def _write(self, rows: pa.RecordBatch, keys: Array, commit_times: Array, sequence_numbers: Array) -> None:
        count = len(keys)
        if not count:
            return
        file_names = _constant(self.target.name, count)
        partition_paths = _constant(self.target.partition_path, count)
        columns = [commit_times, sequence_numbers, keys, partition_paths, file_names, *rows.columns]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        self._key_range = _widest(self._key_range, key_range(keys))
        self._ranges.add(batch)
        self.num_rows += count
        self._pending.append(batch)
        self._pending_bytes += batch.nbytes
        if self._pending_bytes >= self._options.row_group_bytes:
            self.flush()

    def commit_times(self, count: int) -> Array:
        """Return commit times for *count* rows of this commit."""
        return pa.repeat(self.target.instant_time, count)

    def sequence_numbers(self, count: int) -> Array:
        """Return sequence numbers for the next *count* rows; those of copied rows among them are skipped."""
        return sequence_numbers(self.target, self._first_row_index + self.num_rows, count)

    def is_full(self) -> bool:
        """Whether the file has reached `BaseFileOptions.max_file_bytes`, waiting rows estimated."""
        limit = self._options.max_file_bytes
        if self._estimate_bytes() >= limit and not self._flushed_arrow_bytes:
            self.flush()  # until something was compressed, the estimate is only an upper bound
        return self._estimate_bytes() >= limit

    def flush(self) -> None:
        """Write the waiting rows as a row group."""
        if self._pending:
            table = pa.Table.from_batches(self._pending, schema=self._schema)
            self._open(table)
            self._writer.write_table(table, row_group_size=table.num_rows)
            self._flushed_arrow_bytes += self._pending_bytes
            self._pending, self._pending_bytes = [], 0

    def close(self) -> int:
        """Write the last row group and the footer; return the file's size in bytes. The sink stays open."""
        self.flush()
        self._open(self._schema.empty_table())
        # Only now: the filter and the key range cover all rows, and Parquet's footer is written at the end.
        self._writer.add_key_value_metadata(self._footer())
        self._writer.close()
        return self._sink.size_bytes

    def ranges(self) -> tuple[ColumnRange, ...]:
        """Return what the closed file holds of the columns in `BaseFileOptions.ranged`."""
        return self._ranges.finish(self._footers[-1]) if self._options.ranged else ()

    def abandon(self) -> None:
        """Write nothing more, not even a footer: the file stays torn."""
        self._sink.abandoned = True
        if self._writer is not None:
            with suppress(RuntimeError):  # PyArrow asks for the footer, which a writer that failed to close has not
                self._writer.close()

    def _open(self, first: pa.Table) -> None:
        if self._writer is None:
            self._writer = open_parquet(self._sink, first, self._options, self._footers)

    def _footer(self) -> dict[str, str]:
        footer = {
            BLOOM_KEY: self._bloom.to_text(),
            AVRO_SCHEMA_KEY: with_meta_fields(self._avro_schema),
            WRITER_MODEL_KEY: "avro",
        }
        if self._bloom.kind is not BloomKind.SIMPLE:  # readers of Hudi take a filter without a kind as SIMPLE
            footer[BLOOM_TYPE_KEY] = self._bloom.kind.value
        if self._key_range is not None:
            footer[MIN_KEY], footer[MAX_KEY] = map(from_java_order, self._key_range)
        return footer

    def _estimate_bytes(self) -> int:
        written = self._sink.size_bytes
        ratio = written / self._flushed_arrow_bytes if self._flushed_arrow_bytes else 1.0
        # Rows that wait are counted as if they compressed like those before them, and the filter with its Base64 text
        # in the footer: 6 bits in a byte of text.
        return written + int(self._pending_bytes * ratio) + self._bloom.row_count * self._bloom.bits // 6


def _stored_meta_fields() -> list[Field]:
    constant = {"_hoodie_partition_path", "_hoodie_file_name"}
    return [field.with_type(_CONSTANT) if field.name in constant else field for field in meta_fields()]


def _constant(value: str, count: int) -> Array:
    make: Any = pa.DictionaryArray.from_arrays
    result: Array = make(np.zeros(count, dtype=np.int32), pa.array([value], pa.string()))
    return result


def _widest(old: tuple[bytes, bytes] | None, new: tuple[bytes, bytes] | None) -> tuple[bytes, bytes] | None:
    if old is None or new is None:
        return old or new
    return min(old[0], new[0]), max(old[1], new[1])


def open_parquet(
    sink: Any, first: pa.Table, options: BaseFileOptions, footers: list[pq.FileMetaData] | None = None
) -> Any:
    """
    Open the Parquet writer with everything that readers of Hudi depend on spelled out.

    Args:
        sink: Binary stream.
        first: The first rows that will be written, in the schema of the file; empty if there are none.
        options: Layout.
        footers: Takes the footer of the closed file.
    """
    make: Any = pq.ParquetWriter
    level = options.compression_level
    return make(
        sink,
        first.schema,
        compression=options.compression,
        compression_level=_LEVELS.get(options.compression) if level is None else level,
        use_dictionary=options.has_dictionaries and _with_dictionary(first),
        data_page_size=options.page_bytes,
        data_page_version="1.0",
        version="2.6",
        store_schema=False,  # ARROW:schema would say dictionary where the file has plain strings
        use_compliant_nested_type=True,  # list.element; other names make Hudi replace lists by null
        use_deprecated_int96_timestamps=False,
        metadata_collector=footers,
    )


def _with_dictionary(first: pa.Table) -> list[str]:
    # Where nearly every row has another value, a dictionary costs a third more bytes and half more time.
    plain = {"_hoodie_commit_seqno", "_hoodie_record_key", *columns_without_repeats(first)}
    return [path for field in first.schema for path in _leaf_paths(field, field.name) if path not in plain]


def _leaf_paths(field: Field, path: str) -> list[str]:
    """Names of the Parquet columns below a field."""
    arrow = field.type
    if isinstance(arrow, pa.StructType):
        return [leaf for child in arrow for leaf in _leaf_paths(child, f"{path}.{child.name}")]
    if isinstance(arrow, pa.ListType):
        return _leaf_paths(arrow.value_field, f"{path}.list.element")
    if isinstance(arrow, pa.MapType):
        return [f"{path}.key_value.key", *_leaf_paths(arrow.item_field, f"{path}.key_value.value")]
    return [path]


class _CountingSink:
    """Pass bytes on and count them; closing it leaves the stream below open."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self.size_bytes = 0
        self.closed = False
        self.abandoned = False

    def write(self, data: bytes) -> int:
        if self.abandoned:
            return len(data)
        self._sink.write(data)
        self.size_bytes += len(data)
        return len(data)

    def flush(self) -> None:
        self._sink.flush()

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
