"""
What the files of the metadata table hold of a partition or of record keys.

Every file there is read, not only those that count: an older slice, or the log of a write that failed, holds keys and
values as well. `files` and `bloom_filters` hold names and hashes, and are passed over.

A smallest or largest value is a copy of one value of some row. Of a partition the key of the record tells. Of a record
key it is unknown which rows had the value, but a file that is still there was read and holds none of the keys, and so
neither do its bounds; those of files that are gone may.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, NamedTuple

import attrs

from hudi_py.errors import CorruptMetadata, UnsupportedTable
from hudi_py.formats.delete_block import decode_delete_block
from hudi_py.formats.hfile import HFile
from hudi_py.formats.log_block import BlockType, iterate_log_blocks
from hudi_py.mdt.blocks import open_block, open_hfile
from hudi_py.mdt.lookup import BLOOM_FILTERS, RECORD_INDEX, Stored
from hudi_py.mdt.record_index import decode_location
from hudi_py.mdt.statistics import (
    COLUMN_STATS,
    PARTITION_STATS,
    StatisticsRecord,
    decode_statistics,
    partition_suffix,
    suffix_of,
)
from hudi_py.mdt.table import FILES_PARTITION
from hudi_py.model.files import METADATA_TABLE_FOLDER, BaseFile, LogFile, parse_data_file
from hudi_py.services.erasure.facts import ErasureHolds, ErasureTrace
from hudi_py.services.erasure.rows import Wanted
from hudi_py.storage.base import Storage

NO_ROWS: Final = frozenset({FILES_PARTITION, BLOOM_FILTERS})
"""Partitions of the metadata table that hold neither keys nor values."""
_SECONDARY: Final = "secondary_index_"
_ESCAPED: Final = re.compile(r"[\\$\0]")
_ENDS_OF_VALUE: Final = re.compile(r"(?:[^\\$]|\\.)*\$", re.DOTALL)
_UNDECIDED: Final = "the index does not tell which partition its record keys belong to"
OF_FILES_GONE: Final = "it has smallest and largest values of files that are gone, which may have held the keys"
"""Why it is not certain that smallest and largest values are of rows with the keys."""
_AMBIGUOUS: Final = "its record keys end in the one asked for, behind a dollar sign that may belong to them"
_WIDENED: Final = "it has a smallest or largest value of a partition that no file there explains"


class _Record(NamedTuple):
    key: str
    value: bytes
    schema: str


@attrs.frozen(kw_only=True)
class IndexSearch:
    """
    Looks into the metadata table.

    Args:
        storage: The data table's storage.
        partition: Path of the partition; None for all.
        wanted: The record keys.
        is_there: Whether a data file, by its name, is in its folder; those were read.
    """

    storage: Storage
    partition: str | None
    wanted: Wanted
    is_there: Callable[[str], bool]

    def passes_over(self, path: str) -> bool:
        """Whether a file of the metadata table, by its path in the data table, holds neither keys nor values."""
        folder = path.removeprefix(f"{METADATA_TABLE_FOLDER}/").partition("/")[0]
        return folder.startswith(".") or folder in NO_ROWS or parse_data_file(path.rpartition("/")[2]) is None

    def traces(self, paths: Collection[str]) -> Iterator[tuple[str, ErasureTrace]]:
        """
        What the files hold; those that hold nothing are left out.

        Args:
            paths: Files of the metadata table, relative to the data table.

        Raises:
            NotFound: One is not there any more.
            StorageError: One cannot be read.
        """
        bounds = self._bounds([path for path in paths if _partition_of(path) == COLUMN_STATS])
        for path in paths:
            try:
                found = self._trace(path, bounds)
            except (CorruptMetadata, UnsupportedTable) as error:
                found = ErasureTrace(ErasureHolds.UNKNOWN, (), f"it cannot be read: {error}")
            if found is not None:
                yield path, found

    def _trace(self, path: str, bounds: Collection[tuple[str, str]]) -> ErasureTrace | None:
        partition = _partition_of(path)
        certain: set[str] = set()
        holds, unsure = None, ""
        for record in self._records(path):
            if isinstance(record, str):
                unsure = unsure or record
                continue
            if partition in (COLUMN_STATS, PARTITION_STATS):
                found = self._in_statistics(record, partition, bounds, path)
            elif partition == RECORD_INDEX:
                found = self._in_record_index(record, path)
            elif partition.startswith(_SECONDARY):
                found = self._in_secondary_index(record.key)
            else:
                found = ErasureTrace(ErasureHolds.UNKNOWN, (), "hudi_py does not know what this index holds")
            if found is None:
                continue
            unsure = unsure or found.why_unsure
            if not found.why_unsure:
                certain.update(found.keys)
                holds = found.holds
        if holds is not None:
            return ErasureTrace(holds, tuple(sorted(certain)))
        return ErasureTrace(ErasureHolds.UNKNOWN, (), unsure) if unsure else None

    # --- records of one file -------------------------------------------------------------------------------------
    def _in_record_index(self, record: _Record, path: str) -> ErasureTrace | None:
        if self.wanted.keys and record.key not in self.wanted.keys:
            return None
        keys = (record.key,) if self.wanted.keys else ()
        if self.partition is None:
            return ErasureTrace(ErasureHolds.KEYS, keys)
        if not record.value:
            return ErasureTrace(ErasureHolds.KEYS, (), _UNDECIDED)
        location = decode_location(Stored(record.value, record.schema, path))
        return ErasureTrace(ErasureHolds.KEYS, keys) if location.partition_path == self.partition else None

    def _in_secondary_index(self, key: str) -> ErasureTrace | None:
        """
        Keys there are the value, ``$`` and the record key.

        A backslash stands before ``$``, a backslash and a null character of either; in 1.0.0 it did not.
        """
        if not self.wanted.keys:
            return ErasureTrace(ErasureHolds.KEYS, (), _UNDECIDED)
        found = tuple(each for each in sorted(self.wanted.keys) if key.endswith((f"${each}", f"${_escaped(each)}")))
        if not found:
            return None
        split = _ENDS_OF_VALUE.match(key)
        exact = tuple(each for each in found if split is not None and key[split.end() :] == _escaped(each))
        if not exact:
            return ErasureTrace(ErasureHolds.KEYS, found, _AMBIGUOUS)
        return ErasureTrace(ErasureHolds.KEYS, exact, "" if self.partition is None else _UNDECIDED)

    def _in_statistics(
        self, record: _Record, partition: str, bounds: Collection[tuple[str, str]], path: str
    ) -> ErasureTrace | None:
        place = suffix_of(record.key)
        if self.partition is not None and not place.startswith(partition_suffix(self.partition)):
            return None
        if not record.value:
            return None
        read = decode_statistics(record.value, record.schema, partition, path)
        values = _values(read)
        if not values:
            return None
        if not self.wanted.keys:
            return ErasureTrace(ErasureHolds.VALUES)
        if partition == COLUMN_STATS:
            return (
                None
                if self.is_there(str(read.fields["fileName"]))
                else ErasureTrace(ErasureHolds.VALUES, (), OF_FILES_GONE)
            )
        group = _group(record.key)
        return (
            None
            if all((group, value) in bounds for value in values)
            else ErasureTrace(ErasureHolds.VALUES, (), _WIDENED)
        )

    def _bounds(self, paths: Collection[str]) -> frozenset[tuple[str, str]]:
        """Bounds of files that are there, each with the hashes of its column and partition."""
        found: set[tuple[str, str]] = set()
        for path in paths if self.wanted.keys else ():
            try:
                for record in self._records(path):
                    if isinstance(record, str) or not record.value:
                        continue
                    read = decode_statistics(record.value, record.schema, COLUMN_STATS, path)
                    if self.is_there(str(read.fields["fileName"])):
                        found.update((_group(record.key), value) for value in _values(read))
            except (CorruptMetadata, UnsupportedTable):  # `traces` names it
                continue
        return frozenset(found)

    def _records(self, path: str) -> Iterator[_Record | str]:
        """Every record of a file, deleted keys without a value; texts for bytes that may be records."""
        parsed = parse_data_file(path.rpartition("/")[2])
        source = f"{self.storage.root}/{path}"
        if isinstance(parsed, BaseFile):
            with self.storage.open_read(path) as stream:
                hfile, schema = open_hfile(stream, source)
                yield from _of_hfile(hfile, schema)
            return
        assert isinstance(parsed, LogFile)
        for block in iterate_log_blocks(self.storage.read(path), source):
            if block.block_type is BlockType.HFILE_DATA:
                yield from _of_hfile(*open_block(block, source))
            elif block.block_type is BlockType.DELETE:
                for deleted in decode_delete_block(block.content, source):
                    yield _Record(deleted.record_key, b"", "")
            elif block.block_type is not BlockType.COMMAND:
                yield f"byte {block.offset}: bytes that hudi_py does not read"


def _of_hfile(hfile: HFile, schema: str) -> Iterator[_Record]:
    for key, value in hfile:
        yield _Record(key.decode("utf-8", "surrogateescape"), value, schema)


def _escaped(key: str) -> str:
    return _ESCAPED.sub(r"\\\g<0>", key)


def _partition_of(path: str) -> str:
    return path.removeprefix(f"{METADATA_TABLE_FOLDER}/").partition("/")[0]


def _group(key: str) -> str:
    """Hashes of the column and the partition, which the keys of both kinds of statistics begin with."""
    return key[: len(partition_suffix("")) * 2]


def _values(read: StatisticsRecord) -> list[str]:
    if read.is_deleted:
        return []
    bounds: list[Any] = [read.fields["minValue"], read.fields["maxValue"]]
    return [repr(value) for value in bounds if value is not None]
