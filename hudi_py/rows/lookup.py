"""
Which keys does a base file have? Answered from the footer where possible.

First the key range, then the Bloom filter; only for keys that pass both the key column is read.

Source: Hudi 1.1.1, ``HoodieKeyLookupHandle``, ``BaseFileUtils``.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from hudi_py.errors import CorruptMetadata, HudiError
from hudi_py.formats.arrow_types import PARQUET_DAMAGE, Array, ChunkedArray, compute
from hudi_py.formats.bloom import BloomFilter, HashedKeys
from hudi_py.formats.key_order import java_order
from hudi_py.formats.orc_tail import is_orc
from hudi_py.formats.parquet_file import check_size, check_wanted
from hudi_py.rows.base_file import AVRO_SCHEMA_KEY, BLOOM_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from hudi_py.rows.orc_file import OrcFile
from hudi_py.runtime.log import log

_KEY_COLUMN = "_hoodie_record_key"
_KEYS = pa.schema([(_KEY_COLUMN, pa.string())])
_FEW_ROWS = 16_384
"""Up to this number of rows, reading the keys is faster than decoding a filter, which has half a megabyte."""
_LEGACY_BLOOM_KEY = "com.uber.hoodie.bloomfilter"
_FOOTER_KEYS = (MIN_KEY, MAX_KEY, BLOOM_KEY, _LEGACY_BLOOM_KEY, BLOOM_TYPE_KEY, AVRO_SCHEMA_KEY)


@attrs.frozen(kw_only=True)
class FileFooter:
    """
    The footer of a base file.

    Args:
        num_rows: Rows in the file.
        min_key, max_key: Smallest and largest record key in Java's order; None without rows, or if not recorded.
        bloom_text: The Bloom filter in Base64; None if the file has no filter.
        bloom_type: Its type code; None means SIMPLE.
        avro_schema: Record schema with meta columns; None in files of the row writer.
    """

    num_rows: int
    min_key: str | None = None
    max_key: str | None = None
    bloom_text: str | None = attrs.field(default=None, repr=False)
    bloom_type: str | None = None
    avro_schema: str | None = attrs.field(default=None, repr=False)

    def bloom(self) -> BloomFilter | None:
        """Decode the Bloom filter; on demand, because it has half a megabyte and is often not needed."""
        return None if self.bloom_text is None else BloomFilter.parse(self.bloom_text, self.bloom_type)

    def might_contain(self, keys: Array) -> npt.NDArray[np.bool_]:
        """
        Test record keys against range and filter; False means that the file does not have the key.

        Args:
            keys: Strings, n of them, neither null nor empty.

        Returns:
            Shape (n,).
        """
        possible = self._in_range(keys)
        if possible.any() and (bloom := self.bloom()) is not None:
            # The range first, because decoding the filter takes longest.
            possible[possible] = bloom.might_contain(keys.filter(pa.array(possible)))
        return possible

    def might_contain_any(self, wanted: HashedKeys) -> bool:
        """Whether `might_contain` may be True for one of the keys *wanted*."""
        if not self._in_range(wanted.keys).any():
            return False
        bloom = self.bloom()
        return bloom is None or bloom.might_contain_any(wanted)

    def _in_range(self, keys: Array) -> npt.NDArray[np.bool_]:
        if self.num_rows == 0:
            return np.zeros(len(keys), dtype=np.bool_)
        # In doubt the file may have the key: a wrong "no" would make the row a duplicate.
        if self.min_key is None or self.max_key is None:
            return np.ones(len(keys), dtype=np.bool_)
        low, high = (java_order(pa.array([key]))[0] for key in (self.min_key, self.max_key))
        ordered = java_order(keys)
        within = compute.and_(compute.greater_equal(ordered, low), compute.less_equal(ordered, high))
        result: npt.NDArray[np.bool_] = within.to_numpy(zero_copy_only=False)
        return result


def open_base_file(stream: BinaryIO, wanted: pa.Schema | None = None) -> Any:
    """
    Open a base file for reading, as `pyarrow.parquet.ParquetFile` or `OrcFile`.

    Args:
        stream: Seekable.
        wanted: Columns that will be read; one that the file lacks must not be one whose name is damaged.

    Raises:
        CorruptMetadata: The stream is neither a Parquet nor an ORC file, or its footer is damaged.
    """
    try:
        try:
            file = pq.ParquetFile(stream)
        except pa.ArrowInvalid:  # asked first, because nearly all are in Parquet
            if not is_orc(stream):
                raise
            return OrcFile(stream, "a base file")
        check_size(file.metadata, stream.seek(0, 2))
        if wanted is not None:
            check_wanted(file, wanted)
    except PARQUET_DAMAGE as error:
        raise CorruptMetadata(f"a base file does not parse as Parquet: {error}") from error
    return file


def read_footer(stream: BinaryIO) -> FileFooter:
    """
    Read the footer of a base file and nothing else.

    Args:
        stream: Seekable.

    Raises:
        CorruptMetadata: It is not a Parquet file.
    """
    return footer_of(open_base_file(stream))


def read_keys(stream: BinaryIO) -> ChunkedArray:
    """Read the record keys of a base file, in row order: one column of Parquet."""
    keys: ChunkedArray = open_base_file(stream, _KEYS).read(columns=[_KEY_COLUMN]).column(0)
    return keys


def first_keys(stream: BinaryIO, count: int) -> Array:
    """Read up to *count* of the first record keys of a base file."""
    batches = open_base_file(stream, _KEYS).iter_batches(count, columns=[_KEY_COLUMN])
    # One batch: the first key is needed to see its form, and a file may have millions.
    keys: Array = next((batch.column(0) for batch in batches), pa.array([], pa.string()))
    return keys


def lookup_keys(stream: BinaryIO, keys: Array, *, is_near: bool = False) -> npt.NDArray[np.bool_]:
    """
    Find out which keys a base file has.

    Args:
        stream: Seekable stream of the file.
        keys: Strings, n of them, neither null nor empty.
        is_near: Whether a further read takes no time, as on a local disk: then small files are not asked for their
            filter, which takes longer to decode than their keys.

    Returns:
        Shape (n,); True where the file has a row with that key.
    """
    file = open_base_file(stream, _KEYS)
    if is_near and file.metadata.num_rows <= _FEW_ROWS:
        found = np.ones(len(keys), dtype=np.bool_)
    else:
        found = footer_of(file).might_contain(keys)
    if found.any():
        stored = file.read(columns=[_KEY_COLUMN]).column(0)
        # A filter has false positives, so what passed it is compared with the keys themselves.
        candidates = keys.filter(pa.array(found))
        found[found] = compute.is_in(candidates, value_set=stored.combine_chunks()).to_numpy(zero_copy_only=False)
    return found


def may_hold(file: Any, wanted: HashedKeys) -> bool:
    """
    Whether an open base file may have a row with one of the keys, by its footer; a damaged filter is ignored.

    Args:
        file: A `pyarrow.parquet.ParquetFile`.
        wanted: The keys.
    """
    try:
        return footer_of(file).might_contain_any(wanted)
    except HudiError as error:
        log.warning("read.statistics.unusable", partition="the footer of a file", reason=str(error))
        return True


def footer_of(file: Any) -> FileFooter:
    """
    Return the footer of an open base file.

    Args:
        file: A `pyarrow.parquet.ParquetFile`.

    Raises:
        CorruptMetadata: Its own words are no text.
    """
    raw: dict[bytes, bytes] = file.metadata.metadata or {}
    try:
        texts = {key: value.decode() for key in _FOOTER_KEYS if (value := raw.get(key.encode())) is not None}
    except UnicodeDecodeError as error:
        raise CorruptMetadata(f"the footer of a base file has bytes that are no text: {error.reason}") from error
    return FileFooter(
        num_rows=file.metadata.num_rows,
        min_key=texts.get(MIN_KEY),
        max_key=texts.get(MAX_KEY),
        # Files of releases from before Apache have the filter under the name of that time.
        bloom_text=texts.get(BLOOM_KEY, texts.get(_LEGACY_BLOOM_KEY)),
        bloom_type=texts.get(BLOOM_TYPE_KEY),
        avro_schema=texts.get(AVRO_SCHEMA_KEY),
    )
