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
from typing import Final, NamedTuple

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_file import format_long, parse_long, plain_record
from hudi_py.formats.avro_registry import schema_text

_BYTE: Final = 0x80
_LOW: Final = 0x7F
_TAIL: Final = b"\0\0\x02"  # end of the map; first branch of the version's union; version 1
_FEW: Final = 8  # partitions of the same size that are looked at one by one
_ENDS_FEW: Final = 16  # ends that are looked for one by one, each as fast as a search through the bytes
_find_ends: Final = re.compile(rb"_([0-9]+\.[a-z]+)").findall

Files = Mapping[str, tuple[str, ...]]
_Spans = tuple[tuple[int, int], ...]  # where each name of a partition begins and ends


class _Alike(NamedTuple):
    """Partitions of the same size and layout, one behind the other."""

    data: bytes
    start: int  # of the first one
    step: int  # from one to the next
    number: int
    names: _Spans
    path_end: int

    def column(self, at: int) -> bytes:
        """The bytes of all partitions at the same place."""
        return self.data[self.start + at : self.start + self.step * self.number : self.step]

    def pieces(self) -> Iterator[bytes]:
        """The encoded partitions."""
        places = range(self.start, self.start + self.step * self.number, self.step)
        return (self.data[at : at + self.step - 1] for at in places)


class SavepointFiles(Mapping[str, tuple[str, ...]]):
    """
    Partition path to the names of its files, see `savepoint_files`.

    Args:
        data: Content of the savepoint.
        count: Number of partitions.
        alike: Size of encoded partitions to all of that size, where they have one layout.
        pieces: The path of each partition, with its length before it, to the encoded partition; None if all are alike.
        decode: Decodes the files of all partitions.
    """

    def __init__(
        self,
        data: bytes,
        count: int,
        alike: Mapping[int, _Alike],
        pieces: Mapping[bytes, bytes] | None,
        decode: Callable[[], Files],
    ) -> None:
        self._data, self._alike, self._known, self._decode = data, alike, pieces, decode
        # Then names can be compared byte by byte, which is faster than to search for an end.
        self._are_alike = sum(each.number for each in alike.values()) == count

    @property
    def _pieces(self) -> Mapping[bytes, bytes]:
        if self._known is None:
            self._known = {piece[: same.path_end]: piece for same in self._alike.values() for piece in same.pieces()}
        return self._known

    def __getitem__(self, partition_path: str) -> tuple[str, ...]:
        piece = self._pieces[_key(partition_path)]
        alike = self._alike.get(len(piece))
        spans = _spans(piece, _numbers(piece) or []) if alike is None else alike.names
        try:
            return tuple([piece[start:end].decode() for start, end in spans])
        except UnicodeDecodeError:
            return self._decode()[partition_path]

    def may_name(self, ends: Collection[bytes]) -> bool:
        """Whether the name of any file may end in one of these ways: an instant time, a dot and an extension."""
        if self._are_alike:
            ends = [end for end in ends if any(_may_end(each, end) for each in self._alike.values())]
        if len(ends) > _ENDS_FEW:
            return not {*_find_ends(self._data)}.isdisjoint(ends)
        return any(end in self._data for end in ends)

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
        place = _partitions(data, source)
    except CorruptMetadata:
        place = None  # decoding says more about it
    if place is None:
        return decode()
    count, at, end = place
    one = _all_alike(data, count, at, end)
    if one is not None:
        return SavepointFiles(data, count, {one.step - 1: one}, None, decode)
    found = _pieces(data, count, at, end)
    return decode() if found is None else SavepointFiles(data, count, *found, decode)


def _partitions(data: bytes, source: str) -> tuple[int, int, int] | None:
    """The number of partitions, where they begin, and where the encoded savepoint ends."""
    plain = plain_record(data, source)
    if plain is None or plain[0] != schema_text("HoodieSavepointMetadata").encode():
        return None
    _, start, end = plain
    at = parse_long(data, _after_text(data, start, source), source)[1]
    count, at = parse_long(data, _after_text(data, at, source), source)
    return (count, at, end) if at < end else None


def _after_text(data: bytes, at: int, source: str) -> int:
    length, start = parse_long(data, at, source)
    return start + length


def _all_alike(data: bytes, count: int, at: int, end: int) -> _Alike | None:
    """All partitions, if they have one size and layout: then nothing is decoded before it is asked for."""
    step = data.find(b"\0", at) + 1 - at
    if count <= 0 or at + step * count + len(_TAIL) != end or not data.endswith(_TAIL, 0, end):
        return None
    found = _alike(data, at, data[at : at + step - 1], count)
    if found is None or data.count(0, at, at + step * count) != count or any(found.column(step - 1)):
        return None
    lengths = 1 + (data[at] >= _BYTE)
    return found if all(found.column(place).isascii() for place in range(lengths, found.path_end)) else None


def _pieces(data: bytes, count: int, at: int, end: int) -> tuple[dict[int, _Alike], dict[bytes, bytes]] | None:
    before = data.count(0, 0, at)
    # Not of copies of parts of it: it may be large.
    *pieces, tail = data.split(b"\0", before + count) if count > 0 else [b""]
    if len(pieces) != before + count or tail != _TAIL + data[end:]:
        return None
    del pieces[:before]
    pieces[0] = pieces[0][at - 1 - data.rfind(0, 0, at) :]
    found: dict[bytes, bytes] = {}
    alike = {}
    for size, group in _by_size(pieces).items():
        same = _alike(b"\0".join(group), 0, group[0], len(group))
        if same is not None:
            alike[size] = same
            found.update(zip([piece[: same.path_end] for piece in group], group, strict=True))
            continue
        for piece in group:
            places = _numbers(piece)
            if places is None:
                return None
            found[piece[: places[1]]] = piece
    return (alike, found) if len(found) == count and _are_texts(found) else None


def _by_size(pieces: Sequence[bytes]) -> dict[int, list[bytes]]:
    groups: dict[int, list[bytes]] = {}
    for piece in pieces:
        groups.setdefault(len(piece), []).append(piece)
    return groups


def _alike(data: bytes, start: int, first: bytes, count: int) -> _Alike | None:
    """So many partitions of the size of the first, from *start* on, with a byte between, if they have one layout."""
    places = _numbers(first) if count >= _FEW else None
    if places is None:
        return None
    end = places[1]
    found = _Alike(data, start, len(first) + 1, count, _spans(first, places), end)
    fixed = (*places, *(at + 1 for at in places if first[at] >= _BYTE))
    if any(found.column(at).count(first[at]) != found.number for at in fixed):
        return None
    return None if any(found.column(at) != found.column(end + at) for at in range(end)) else found


def _may_end(alike: _Alike, end: bytes) -> bool:
    """False if, of the names at the same place of each partition, none has a byte of *end* where that has it."""
    for start, stop in alike.names:
        first = stop - len(end)
        if first < start:
            continue
        at = alike.start + first
        others = (place for place, byte in enumerate(end) if alike.data[at + place] != byte)  # than in the first one
        if all(end[place] in alike.column(first + place) for place in others):
            return True
    return False


def _spans(piece: bytes, places: Sequence[int]) -> _Spans:
    """Where the names of a partition begin and end, by what `_numbers` says of it."""
    return tuple((at + 1 + (piece[at] >= _BYTE), end) for at, end in pairwise((*places[3:], len(piece))))


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
