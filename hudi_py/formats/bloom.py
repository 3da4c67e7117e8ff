"""
Bloom filters in the footer of base files, byte for byte as Hudi writes them.

There are two kinds: SIMPLE is a bit vector of fixed size; DYNAMIC_V0 is a list of such vectors ("rows") that grows up
to a maximum. Keys are hashed as whole arrays, because a Python loop over keys would be far too slow.

Source: Hudi 0.15.0, 1.0.2, 1.1.1: ``InternalBloomFilter``, ``InternalDynamicBloomFilter``, ``HashFunction``,
``MurmurHash``, ``BloomFilterUtils``. Filters rebuilt here equal those in files of all three releases.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudi_py.errors import CorruptMetadata, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import Array, Column

Bits = npt.NDArray[np.uint8]
Positions = npt.NDArray[np.uint32]

_HEAD: Final = struct.Struct(">iibi")  # version -1, hash count, hash type, bits per row
_ROWS: Final = struct.Struct(">iii")  # dynamic only: keys per row, keys in the current row, rows
_VERSION: Final = -1
_MURMUR: Final = 1
_M: Final = np.uint32(0x5BD1E995)
_CHUNK_KEYS: Final = 32_768  # limits the memory of one round: 30 hashes * 4 bytes * 32768 = 4 MB


class BloomKind(Enum):
    """The type of a filter; values are those in the footer (``hoodie_bloom_filter_type_code``)."""

    SIMPLE = "SIMPLE"
    DYNAMIC_V0 = "DYNAMIC_V0"


@attrs.frozen(kw_only=True)
class BloomSizing:
    """
    The size of a new filter. The defaults are Hudi's.

    Args:
        kind: Type of the filter (``hoodie.bloom.index.filter.type``).
        entries: Number of keys per row up to which the false-positive rate holds, at least 1
            (``hoodie.index.bloom.num_entries``).
        false_positive_rate: Between 0 and 1, both excluded (``hoodie.index.bloom.fpp``).
        entries_max: Number of keys at which a dynamic filter stops growing
            (``hoodie.bloom.index.filter.dynamic.max.entries``).
    """

    kind: BloomKind = BloomKind.DYNAMIC_V0
    entries: int = attrs.field(default=60_000, validator=attrs.validators.ge(1))
    false_positive_rate: float = attrs.field(
        default=1e-9, validator=[attrs.validators.gt(0.0), attrs.validators.lt(1.0)]
    )
    entries_max: int = 100_000

    @property
    def bits(self) -> int:
        """Number of bits per row."""
        return math.ceil(self.entries * (-math.log(self.false_positive_rate) / (math.log(2) * math.log(2))))

    @property
    def hashes(self) -> int:
        """Number of hash functions per key."""
        return math.ceil(math.log(2) * self.bits / self.entries)


@attrs.define(eq=False)
class BloomFilter:
    """
    A Bloom filter that grows as keys are added.

    `BloomFilter.sized` creates a new filter, `BloomFilter.parse` reads one from a footer.
    """

    kind: BloomKind
    bits: int
    hashes: int
    entries_per_row: int  # dynamic only
    entries_max: int  # dynamic only; not stored, so for a parsed filter it is what its rows can hold
    _rows: list[Bits]
    _entries_in_row: int = 0  # dynamic only; keeps counting after the maximum, as in Hudi
    _round_robin: int | None = None  # None until the maximum is reached

    @classmethod
    def sized(cls, sizing: BloomSizing) -> BloomFilter:
        """Return an empty filter."""
        rows = [_empty_row(sizing.bits)]
        return cls(sizing.kind, sizing.bits, sizing.hashes, sizing.entries, sizing.entries_max, rows)

    @classmethod
    def parse(cls, text: str, type_code: str | None = None) -> BloomFilter:
        """
        Read a filter from footer text.

        Args:
            text: Base64, the value of ``org.apache.hudi.bloomfilter``.
            type_code: Value of ``hoodie_bloom_filter_type_code``; None means SIMPLE.

        Raises:
            CorruptMetadata: The bytes do not form a filter.
            UnsupportedTable: Another filter type, or the Jenkins hash.
        """
        kind = _kind_of(type_code)
        try:
            data = base64.b64decode(text, validate=True)
            bits, hashes, offset = _parse_head(data, 0)
            per_row, in_row, row_count = 0, 0, 1
            if kind is BloomKind.DYNAMIC_V0:
                per_row, in_row, row_count = _ROWS.unpack_from(data, offset)
                offset += _ROWS.size
            else:
                offset = 0
            rows = []
            for _ in range(row_count):
                row, offset = _parse_row(data, offset, bits, hashes)
                rows.append(row)
        except (struct.error, ValueError) as error:  # letters outside of ASCII are no `binascii.Error`
            raise CorruptMetadata(f"bloom filter of {len(text)} characters does not parse: {error}") from error
        # A filter that was cut off would say "no" for keys that the file has.
        if offset != len(data) or not rows:
            raise CorruptMetadata(f"bloom filter has {len(data)} bytes, but according to its header {offset}")
        return cls(kind, bits, hashes, per_row, per_row * row_count, rows, in_row)

    @property
    def row_count(self) -> int:
        """Number of rows; 1 for SIMPLE."""
        return len(self._rows)

    def carried_on(self, sizing: BloomSizing, count: int) -> BloomFilter | None:
        """
        Return this filter as one to which more keys can be added, without hashing those that it has again.

        Args:
            sizing: What the filter of the next file has to be like.
            count: Number of keys, with repetitions, that it has to have.

        Returns:
            None if a new filter to which *count* keys were added would be another one, or if this one does not say how
            many it has: then it has to be built anew.
        """
        if BloomKind.SIMPLE in (self.kind, sizing.kind):
            return None
        full_rows = self.row_count - 1
        has_all = self.entries_per_row * full_rows + self._entries_in_row == count
        is_alike = (self.bits, self.hashes, self.entries_per_row) == (sizing.bits, sizing.hashes, sizing.entries)
        # Behind the maximum, where a key goes depends on all before it; and with another one, rows may be too many.
        is_over = self._entries_in_row > sizing.entries or (
            full_rows > 0 and sizing.entries * full_rows >= sizing.entries_max
        )
        return attrs.evolve(self, entries_max=sizing.entries_max) if has_all and is_alike and not is_over else None

    def add(self, keys: Column) -> None:
        """
        Add keys. If the filter has several rows, the order of the keys decides the row of a key.

        Args:
            keys: Strings or binaries without nulls.

        Raises:
            WriteError: A key is empty or null: Hudi can neither add nor find such a key.
        """
        for data, offsets in _chunks(keys):
            row_of_key = self._rows_of_next(len(offsets) - 1)
            hashed, order = _positions(data, offsets, self.hashes)
            positions, touched = _reduced(hashed, self.bits), np.unique(row_of_key)
            for index in touched:
                # Nearly always all go into one row, and choosing among them would copy them.
                chosen = positions if len(touched) == 1 else positions[:, row_of_key[order] == index]
                hit = np.zeros(self.bits, dtype=np.bool_)
                hit[chosen.ravel()] = True
                self._rows[index] |= np.packbits(hit, bitorder="little")

    def might_contain(self, keys: Column) -> npt.NDArray[np.bool_]:
        """
        Test whether keys were added. False is certain; True is wrong at the filter's false-positive rate.

        Args:
            keys: Strings or binaries, n of them, without nulls or empty ones.

        Returns:
            Shape (n,), in the order of *keys*.
        """
        answers = [np.zeros(0, dtype=np.bool_)]
        for data, offsets in _chunks(keys):
            hashed, order = _positions(data, offsets, self.hashes)
            found = self._found(hashed)
            answer = np.empty_like(found)
            answer[order] = found
            answers.append(answer)
        return np.concatenate(answers)

    def might_contain_any(self, keys: HashedKeys) -> bool:
        """Whether `might_contain` is True for one of *keys*."""
        return any(bool(self._found(hashed).any()) for hashed in keys.hashed(self.hashes))

    def _found(self, hashed: Positions) -> npt.NDArray[np.bool_]:
        positions = _reduced(hashed, self.bits)
        # Bits are numbered from the lowest bit of each byte on, as packbits does with "little".
        places, shifts = positions >> np.uint32(3), (positions & np.uint32(7)).astype(np.uint8)
        found = np.zeros(hashed.shape[1], dtype=np.bool_)
        for row in self._rows:
            found |= ((row[places] >> shifts) & np.uint8(1)).all(axis=0)
        return found

    def to_text(self) -> str:
        """Return the filter as Base64 text, for the footer."""
        head = _HEAD.pack(_VERSION, self.hashes, _MURMUR, self.bits)
        parts = [] if self.kind is BloomKind.SIMPLE else [head, self._format_rows_head()]
        for row in self._rows:
            parts += [head, row.tobytes()]
        return base64.b64encode(b"".join(parts)).decode("ascii")

    def _format_rows_head(self) -> bytes:
        return _ROWS.pack(self.entries_per_row, self._entries_in_row, len(self._rows))

    def _rows_of_next(self, count: int) -> npt.NDArray[np.intp]:
        """
        Choose the row for each of the next *count* keys, and create missing rows.

        At the maximum Hudi starts again at the first row and uses it twice: once for the key that reaches the maximum,
        once as the start of the round. Filters must be equal to Hudi's, so this is done here too.
        """
        result = np.zeros(count, dtype=np.intp)
        if self.kind is BloomKind.SIMPLE:
            return result
        done = 0
        while done < count:
            if self._round_robin is None and self._entries_in_row >= self.entries_per_row:
                if len(self._rows) * self.entries_per_row < self.entries_max:
                    self._rows.append(_empty_row(self.bits))
                    self._entries_in_row = 0
                else:
                    self._round_robin = -1  # the key that reaches the maximum goes to row 0; so does the one after it
            if self._round_robin is None:
                take = min(count - done, self.entries_per_row - self._entries_in_row)
                result[done : done + take] = len(self._rows) - 1
            else:
                take = count - done
                turns = np.arange(self._round_robin, self._round_robin + take)
                result[done:] = np.maximum(turns, 0) % len(self._rows)
                self._round_robin += take
            self._entries_in_row += take
            done += take
        return result


class HashedKeys:
    """
    Keys that are looked up in many filters; their hashes are computed once.

    Args:
        keys: Strings or binaries, without nulls or empty ones.
    """

    def __init__(self, keys: Array) -> None:
        self.keys = keys
        self._hashed: dict[int, list[Positions]] = {}

    def hashed(self, hashes: int) -> list[Positions]:
        """
        The values of *hashes* hash functions, before they are reduced to the range of a filter.

        Returns:
            Arrays of shape (*hashes*, n), the keys in any order.
        """
        found = self._hashed.get(hashes)
        if found is None:
            found = [_positions(data, offsets, hashes)[0] for data, offsets in _chunks(self.keys)]
            self._hashed[hashes] = found
        return found


def _empty_row(bits: int) -> Bits:
    return np.zeros((bits + 7) // 8, dtype=np.uint8)


def _kind_of(type_code: str | None) -> BloomKind:
    try:
        return BloomKind.SIMPLE if type_code is None else BloomKind(type_code)
    except ValueError as error:
        raise UnsupportedTable(f"bloom filter of type {type_code!r}; supported are SIMPLE and DYNAMIC_V0") from error


def _parse_head(data: bytes, offset: int) -> tuple[int, int, int]:
    version, hashes, hash_type, bits = _HEAD.unpack_from(data, offset)
    if version != _VERSION or hashes < 1 or bits < 1:
        raise CorruptMetadata(f"bloom filter head at byte {offset}: version {version}, {hashes} hashes, {bits} bits")
    if hash_type != _MURMUR:
        raise UnsupportedTable(f"bloom filter with hash type {hash_type}; only murmur ({_MURMUR}) is supported")
    return bits, hashes, offset + _HEAD.size


def _parse_row(data: bytes, offset: int, bits: int, hashes: int) -> tuple[Bits, int]:
    row_bits, row_hashes, offset = _parse_head(data, offset)
    end = offset + (bits + 7) // 8
    if (row_bits, row_hashes) != (bits, hashes) or end > len(data):
        raise CorruptMetadata(f"bloom filter row at byte {offset}: {row_bits} bits, {len(data) - offset} bytes left")
    return np.frombuffer(data, dtype=np.uint8, count=end - offset, offset=offset).copy(), end


def _reduced(hashed: Positions, bits: int) -> Positions:
    """The hash values modulo the number of bits; NumPy divides by one number several times as fast as by ``%``."""
    factors: Positions = hashed // np.uint32(bits)
    factors *= np.uint32(bits)
    np.subtract(hashed, factors, out=factors)
    return factors


def _chunks(keys: Column) -> Iterator[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]:
    """
    Yield bytes and offsets of at most `_CHUNK_KEYS` keys at a time.

    Four spare bytes follow the data, so that the last key can be read as 32-bit words without a bounds check.
    """
    for array in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
        if array.null_count:
            raise WriteError(f"{array.null_count} record keys are null; a key is needed in every row")
        for start in range(0, len(array), _CHUNK_KEYS):
            part: Any = array.slice(start, _CHUNK_KEYS).cast(pa.large_binary())
            _, offset_buffer, data_buffer = part.buffers()
            offsets = np.frombuffer(offset_buffer, dtype=np.int64)[part.offset : part.offset + len(part) + 1]
            low, high = int(offsets[0]), int(offsets[-1])
            data = np.zeros(high - low + 4, dtype=np.uint8)
            if high > low:
                data[: high - low] = np.frombuffer(data_buffer, dtype=np.uint8)[low:high]
            yield data, offsets - low


def _positions(
    data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], hashes: int
) -> tuple[Positions, npt.NDArray[np.intp]]:
    """
    Compute the hash values of n keys; modulo the number of bits, they are the positions in a filter.

    Keys are sorted by length, longest first: then the keys that have a k-th word are a prefix of the array, and each
    step of the hash is one operation on a slice.

    Returns:
        Positions, shape (hashes, n), and the order: column j belongs to key ``order[j]``.
    """
    lengths = np.diff(offsets)
    if len(lengths) and not lengths.min():
        raise WriteError("a record key is empty; a key needs at least one character")
    order = np.argsort(-(lengths >> 2), kind="stable")
    starts, lengths = offsets[:-1][order], lengths[order]
    words = _mixed_words(data, starts, lengths)
    tails = _tails(data, starts + lengths, lengths & 3)
    # A key without a tail skips the last multiplication, as in Hudi.
    factors = np.where(lengths & 3, _M, np.uint32(1))
    sizes = lengths.astype(np.uint32)

    positions = np.empty((hashes, len(lengths)), dtype=np.uint32)
    seed = np.zeros(len(lengths), dtype=np.uint32)
    for index in range(hashes):
        seed ^= sizes
        for word in words:
            head = seed[: len(word)]
            head *= _M
            head ^= word
        seed ^= tails
        seed *= factors
        seed ^= seed >> np.uint32(13)
        seed *= _M
        seed ^= seed >> np.uint32(15)
        # |seed| as in Java. There the absolute value of the smallest int is negative; as uint32 it is positive.
        positions[index] = np.abs(seed.view(np.int32)).view(np.uint32)
    return positions, order


def _mixed_words(
    data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.uint32]]:
    """Return the full little-endian words of all keys, mixed once for all hash functions: mixing needs no seed."""
    at_byte = np.ndarray(shape=(len(data) - 3,), dtype="<u4", buffer=data.data, strides=(1,))
    counts = lengths >> 2
    words = []
    for index in range(int(counts[0]) if len(counts) else 0):
        active = int(np.searchsorted(-counts, -index, side="left"))
        word = at_byte[starts[:active] + 4 * index].astype(np.uint32)
        word *= _M
        word ^= word >> np.uint32(24)
        word *= _M
        words.append(word)
    return words


def _tails(
    data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], left: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint32]:
    """Fold the last 1 to 3 bytes as Hudi does: sign extended and from the end, unlike textbook MurmurHash2."""
    signed = data.view(np.int8)
    tails = np.zeros(len(ends), dtype=np.uint32)
    for back in (1, 2, 3):
        value = signed[np.maximum(ends - back, 0)].astype(np.int32).view(np.uint32)
        tails ^= np.where(left >= back, value << np.uint32(8 * (back - 1)), np.uint32(0))
    return tails
