"""
Says which files a savepoint names, and decodes only the partitions that are asked for. Pure.

A savepoint names all files of the latest slices, maybe millions, while a plan asks about those that it would delete.
What is searched, in the one Avro object of the file (rules/timeline 4.2)::

    savepointedBy | savepointedAt | comments | number of partitions
    partition: its path, the same path again, number of names, names, 0
    ...
    0 | version

Lengths, paths and names contain no zeros, so a partition ends with the first one. That each begins with its path,
twice, and that lengths and names fit exactly is checked for all of them, for those of the same layout at once. Whatever
does not fit is decoded by `hudi_py.formats.records_codec.decode_savepoint`, which also says what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import format_long, parse_long, plain_record
from hudi_py.formats.avro_registry import schema_text

_BYTE: Final = 0x80
_LOW: Final = 0x7F
_TAIL: Final = [b"", b"", b"\x02"]  # end of the map; first branch of the version's union; version 1
_FEW: Final = 8  # partitions of the same size that are looked at one by one
_ENDS_FEW: Final = 16  # ends that are looked for one by one, each as fast as a search through the bytes
_find_ends: Final = re.compile(rb"_([0-9]+\.[a-z]+)").findall

Files = Mapping[str, tuple[str, ...]]


class SavepointFiles(Mapping[str, tuple[str, ...]]):
    """
    Partition path to the names of its files, see `savepoint_files`.

    Args:
        record: The encoded savepoint.
        pieces: The path of each partition, with its length before it, to the encoded partition.
        decode: Decodes the files of all partitions.
    """

    def __init__(self, record: bytes, pieces: Mapping[bytes, bytes], decode: Callable[[], Files]) -> None:
        self._record, self._pieces, self._decode = record, pieces, decode

    def __getitem__(self, partition_path: str) -> tuple[str, ...]:
        piece = self._pieces[_key(partition_path)]
        places = _numbers(piece) or []
        try:
            names = (piece[at + 1 + (piece[at] >= _BYTE) : end] for at, end in pairwise((*places[3:], len(piece))))
            return tuple([name.decode() for name in names])
        except UnicodeDecodeError:
            return self._decode()[partition_path]

    def may_name(self, ends: Collection[bytes]) -> bool:
        """Whether the name of any file may end in one of these ways: an instant time, a dot and an extension."""
        if len(ends) > _ENDS_FEW:
            return not {*_find_ends(self._record)}.isdisjoint(ends)
        return any(end in self._record for end in ends)

    def __contains__(self, partition_path: object) -> bool:
        return isinstance(partition_path, str) and _key(partition_path) in self._pieces

    def __iter__(self) -> Iterator[str]:
        return map(_path, self._pieces)

    def __len__(self) -> int:
        return len(self._pieces)


def savepoint_files(data: bytes, source: str, decode: Callable[[], Files]) -> Files:
    """
    The files that a completed savepoint names.

    Args:
        data: Content of the savepoint.
        source: Where it comes from, for messages.
        decode: Decodes the whole of it, for any form but the one that all releases write.

    Raises:
        CorruptMetadata: It is damaged; that a name is no text is raised when its partition is asked for.
    """
    try:
        found = _record(data, source)
    except CorruptMetadata:
        found = None  # decoding says more about it
    pieces = None if found is None else _pieces(*found)
    return decode() if found is None or pieces is None else SavepointFiles(found[0], pieces, decode)


def _record(data: bytes, source: str) -> tuple[bytes, int, int] | None:
    """The encoded savepoint, its number of partitions, and where they begin."""
    plain = plain_record(data, source)
    if plain is None or plain[0] != schema_text("HoodieSavepointMetadata").encode():
        return None
    record = plain[1]
    at = parse_long(record, _after_text(record, 0, source), source)[1]
    count, at = parse_long(record, _after_text(record, at, source), source)
    return record, count, at


def _after_text(record: bytes, at: int, source: str) -> int:
    length, start = parse_long(record, at, source)
    return start + length


def _pieces(record: bytes, count: int, at: int) -> dict[bytes, bytes] | None:
    pieces = record[at:].split(b"\0")
    if count <= 0 or pieces[count:] != _TAIL:
        return None
    groups: dict[int, list[bytes]] = {}
    for piece in pieces[:count]:
        groups.setdefault(len(piece), []).append(piece)
    found: dict[bytes, bytes] = {}
    for group in groups.values():
        end = _path_end(group)
        if end:
            found.update(zip([piece[:end] for piece in group], group, strict=True))
            continue
        for piece in group:
            places = _numbers(piece)
            if places is None:
                return None
            found[piece[: places[1]]] = piece
    return found if len(found) == count and _are_texts(found) else None


def _path_end(pieces: Sequence[bytes]) -> int:
    """End of the path if these partitions, of the same number of bytes, have all one layout; 0 if they have not."""
    places = _numbers(pieces[0]) if len(pieces) >= _FEW else None
    if places is None:
        return 0
    joined, size, count = b"".join(pieces), len(pieces[0]), len(pieces)
    # The bytes at the same place of all partitions, next to each other.
    fixed = (*places, *(at + 1 for at in places if joined[at] >= _BYTE))
    if any(joined[at::size].count(joined[at]) != count for at in fixed):
        return 0
    end = places[1]
    return 0 if any(joined[at::size] != joined[end + at :: size] for at in range(end)) else end


def _numbers(piece: bytes) -> list[int] | None:
    """
    Where the numbers of a partition begin: lengths of the path and of its repetition, number and lengths of names.

    None if it is damaged, or has numbers of more than two bytes.
    """
    try:
        low = piece[0]
        end = 1 + (low >> 1) if low < _BYTE else 2 + ((low & _LOW | piece[1] << 7) >> 1)
        places = [0, end]
        if low & 1 or end == 1 or not piece.startswith(piece[:end], end) or len(piece) < 2 * end:
            return None
        at = 2 * end
        if at == len(piece):  # no name: then the number of names is the zero that ends the partition
            return places
        low = piece[at]
        places.append(at)
        count, at = low, at + 1
        if low >= _BYTE:
            count, at = low & _LOW | piece[at] << 7, at + 1
        odd = low
        for _ in range(count >> 1):
            places.append(at)
            low = piece[at]
            odd |= low
            if low < _BYTE:
                at += 1 + (low >> 1)
            else:
                high = piece[at + 1]
                if high >= _BYTE:
                    return None
                at += 2 + ((low & _LOW | high << 7) >> 1)
    except IndexError:
        return None
    return places if at == len(piece) and not odd & 1 else None


def _key(partition_path: str) -> bytes:
    path = partition_path.encode()
    return format_long(len(path)) + path


def _path(key: bytes) -> str:
    return key[1 + (key[0] >= _BYTE) :].decode()


def _are_texts(keys: Collection[bytes]) -> bool:
    if b"".join(keys).isascii():
        return True
    try:
        return all(map(_path, keys))
    except UnicodeDecodeError:
        return False
