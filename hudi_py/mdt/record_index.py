"""
The partition `record_index`: in which file group the row of a record key lies.

It tells of the present, one place for each key. The name of the file group (a UUID and a number) is stored as three
numbers, or as text where it is no UUID. A record does not repeat its key, so all records of one place are equal.

Source: rules/data-files 11.3; Hudi 1.1.1 ``HoodieMetadataPayload.createRecordIndexUpdate``,
``HoodieTableMetadataUtil.getLocationFromRecordIndexInfo``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import fastavro

from hudi_py.errors import CorruptMetadata, RefusedError
from hudi_py.formats.avro_registry import schema_text
from hudi_py.formats.hfile_writer import ROW_BYTES_MAX
from hudi_py.mdt.lookup import RECORD_INDEX, KeyedPartition, Stored
from hudi_py.mdt.records import RECORD, parsed_schema
from hudi_py.model.instant import Action
from hudi_py.timeline.timeline import Timeline

_TYPE: Final = 5
_UUID_ENCODING: Final = 0
_TEXT_ENCODING: Final = 1
_NO_NUMBER: Final = -1
_LONG_MASK: Final = (1 << 64) - 1
_SIGN: Final = 1 << 63
_INT_MAX: Final = (1 << 31) - 1
_HEX: Final = "[0-9a-f]"
_UUID: Final = re.compile(
    rf"({_HEX}{{8}})-({_HEX}{{4}})-({_HEX}{{4}})-({_HEX}{{4}})-({_HEX}{{12}})(?:-(0|[1-9][0-9]*))?"
)


class RecordLocation(NamedTuple):
    """
    Where a record lies.

    Args:
        partition_path: Partition of the data table.
        file_id: The group's file id.
        instant_ms: Requested time of the write that brought the record there, milliseconds since 1970.
    """

    partition_path: str
    file_id: str
    instant_ms: int


def refuse_long_keys(keys: Iterable[str], table_path: str) -> None:
    """
    Raise if the index has no room for one of *keys*.

    Raises:
        RefusedError: One has more bytes than a key of an HFile can have.
    """
    # Most keys are so short that their bytes need not be counted: each character has at most four.
    for key in keys:
        if len(key) > ROW_BYTES_MAX // 4 and len(key.encode()) > ROW_BYTES_MAX:
            raise RefusedError(
                f"{table_path}: the record key that begins with {key[:40]!r} has {len(key.encode())} bytes, and the "
                f"record index of the metadata table has room for {ROW_BYTES_MAX}; nothing was committed. Shorten the "
                "keys, or write without hoodie.metadata.record.index.enable; an index that is there goes with "
                "hoodie.metadata.enable=false"
            )


class RecordIndex(KeyedPartition):
    """
    The record index as it is at one moment; arguments and errors as for `KeyedPartition`.
    """

    partition = RECORD_INDEX

    def locations(self, keys: Iterable[str]) -> dict[str, RecordLocation]:
        """
        Where the records of *keys* lie; a key that is left out has none.

        Raises:
            CorruptMetadata, UnsupportedTable, StorageError: As the class.
        """
        return {key: decode_location(stored) for key, stored in self.find(keys)}


def is_between_states(timeline: Timeline) -> bool:
    """
    Whether an action that undoes commits is under way, so that the index must not be asked.

    The commits leave the timeline first; the record of the action, which puts the index right or drops it, comes last.
    In between, an index that was compacted with them still lacks the keys that they deleted.

    Args:
        timeline: The data table's timeline.
    """
    return bool(timeline.pending(Action.ROLLBACK, Action.RESTORE))


def decode_location(stored: Stored) -> RecordLocation:
    """
    A record of `record_index`.

    Raises:
        CorruptMetadata: It is something else.
    """
    try:
        record: Any = fastavro.schemaless_reader(io.BytesIO(stored.value), parsed_schema(stored.schema), None)
        kind, fields = record["type"], record["recordIndexMetadata"]
        partition, instant_ms = fields["partitionName"], fields["instantTime"]
        file_id = _file_id(fields)
    except Exception as error:  # fastavro fails in many ways on bytes that are not a record
        raise CorruptMetadata(f"{stored.source}: a record of {RECORD_INDEX} does not decode: {error!r}") from error
    if kind != _TYPE or not isinstance(partition, str) or not isinstance(instant_ms, int):
        raise CorruptMetadata(f"{stored.source}: a record of type {kind} does not belong in {RECORD_INDEX}")
    return RecordLocation(partition, file_id, instant_ms)


def encode_location(location: RecordLocation, table_version: int) -> bytes:
    """
    Inverse of `decode_location`; the record is that of every key there.

    Args:
        location: Where the records lie.
        table_version: Of the metadata table.
    """
    partition, file_id, instant_ms = location
    fields = {"partitionName": partition, "instantTime": instant_ms, **_encoded_id(file_id)}
    out = io.BytesIO()
    record = {"key": "", "type": _TYPE, "recordIndexMetadata": fields}
    fastavro.schemaless_writer(out, parsed_schema(schema_text(RECORD, table_version)), record)
    return out.getvalue()


def _encoded_id(file_id: str) -> dict[str, Any]:
    found = _UUID.fullmatch(file_id)
    number = int(found[6]) if found is not None and found[6] is not None else _NO_NUMBER
    # Ids that are no UUIDs, or not in lower case, would come back changed from the numbers; so they stay text.
    if found is None or number > _INT_MAX:
        none = {"fileIdHighBits": -1, "fileIdLowBits": -1, "fileIndex": _NO_NUMBER}
        return {**none, "fileId": file_id, "fileIdEncoding": _TEXT_ENCODING}
    digits = int("".join(found.groups()[:5]), 16)
    # Avro longs are signed: the upper half of the numbers of 64 bits is negative there.
    high, low = ((half ^ _SIGN) - _SIGN for half in (digits >> 64, digits & _LONG_MASK))
    numbers = {"fileIdHighBits": high, "fileIdLowBits": low, "fileIndex": number}
    return {**numbers, "fileId": "", "fileIdEncoding": _UUID_ENCODING}


def _file_id(fields: Any) -> str:
    encoding = fields["fileIdEncoding"]
    if encoding == _TEXT_ENCODING:
        return str(fields["fileId"])
    if encoding != _UUID_ENCODING:
        raise ValueError(f"fileIdEncoding {encoding}")
    high, low, number = fields["fileIdHighBits"], fields["fileIdLowBits"], fields["fileIndex"]
    digits = f"{high & _LONG_MASK:016x}{low & _LONG_MASK:016x}"
    name = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return name if number == _NO_NUMBER else f"{name}-{number}"
