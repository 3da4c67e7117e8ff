"""
The partition `bloom_filters`: which base files may hold a record key, without opening them.

Source: rules/data-files 5 and 11.3; Hudi 1.1.1 ``HoodieMetadataPayload.createBloomFilterMetadataRecord``.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import Any, Final

import fastavro

from hudi_py.errors import CorruptMetadata
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.bloom import BloomFilter, BloomKind
from hudi_py.mdt.lookup import BLOOM_FILTERS, KeyedPartition, Stored
from hudi_py.mdt.records import RECORD, parsed_schema
from hudi_py.mdt.statistics import key_suffix

_TYPE: Final = 4


class BloomFilters(KeyedPartition):
    """
    The Bloom filters of base files as they are at one moment; arguments and errors as for `KeyedPartition`.
    """

    partition = BLOOM_FILTERS

    def filters(self, files: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], BloomFilter]]:
        """
        The filter of each file that has one.

        Args:
            files: Partition path and name of base files.

        Raises:
            CorruptMetadata, UnsupportedTable, StorageError: As the class.
        """
        by_key = {key_suffix(partition, name): (partition, name) for partition, name in files}
        for key, stored in self.find(by_key):
            found = decode_filter(stored)
            if found is not None:
                yield by_key[key], found


def decode_filter(stored: Stored) -> BloomFilter | None:
    """
    A record of `bloom_filters`; None where the file was deleted.

    Raises:
        CorruptMetadata: It is something else.
        UnsupportedTable: A filter of a kind that is not known.
    """
    try:
        record: Any = fastavro.schemaless_reader(io.BytesIO(stored.value), parsed_schema(stored.schema), None)
        kind, fields = record["type"], record["BloomFilterMetadata"]
        type_code, text, is_deleted = fields["type"], fields["bloomFilter"].decode("ascii"), fields["isDeleted"]
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{stored.source}: a record of {BLOOM_FILTERS} does not decode: {error!r}") from error
    if kind != _TYPE:
        raise CorruptMetadata(f"{stored.source}: a record of type {kind} does not belong in {BLOOM_FILTERS}")
    return None if is_deleted or not text else BloomFilter.parse(text, type_code or None)


def encode_filter(text: str | None, type_code: str | None, instant_time: str, table_version: int) -> bytes:
    """
    Inverse of `decode_filter`.

    Args:
        text: The filter as it stands in the footer; None for a file that was deleted.
        type_code: Of the filter, as in the footer; None where that has none.
        instant_time: Requested time of the action.
        table_version: Of the metadata table.
    """
    fields = {
        "type": "" if text is None else type_code or BloomKind.SIMPLE.value,
        "timestamp": instant_time,
        "bloomFilter": (text or "").encode("ascii"),
        "isDeleted": text is None,
    }
    out = io.BytesIO()
    record = {"key": "", "type": _TYPE, "BloomFilterMetadata": fields}
    fastavro.schemaless_writer(out, parsed_schema(schema_text(RECORD, table_version)), record)
    return out.getvalue()
