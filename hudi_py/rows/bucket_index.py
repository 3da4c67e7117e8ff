"""
The bucket index: a row's bucket is computed from its key, and the bucket's number is the begin of the file id.

Releases of Hudi split a key differently if its values contain the separating characters, and 1.x does not terminate for
some of them; such keys are refused. Source: Hudi 0.15.0 to 1.2.0 ``BucketIdentifier``, ``KeyGenUtils``; their hashes
were compared with these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from hudi_py.config import keys as settings_keys
from hudi_py.config.keys import Key
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.java_hash import java_hashes
from hudi_py.model.words import counted
from hudi_py.rows.keys import EMPTY_KEY_PART, NULL_KEY_PART, KeyGenerator
from hudi_py.versions.format import TableFormat

_NUMBERED: Final = re.compile(r"(\d{8})-")
_POSITIVE: Final = 0x7FFFFFFF
_SETTINGS: Final[tuple[Key[Any], ...]] = (
    settings_keys.INDEX_TYPE, settings_keys.BUCKET_COUNT, settings_keys.BUCKET_FIELDS, settings_keys.BUCKET_ENGINE,
)  # fmt: skip


@attrs.frozen(kw_only=True)
class BucketIndex:
    """
    A bucket index of the engine SIMPLE.

    Args:
        count: Number of buckets of each partition.
        hashed: Positions of the hashed fields among the fields of the record key, ascending: Apache Hudi hashes them in
            the order of the key, whatever the order in the setting.
        fields: Fields of the record key.
        is_prefixed: Whether the key of a single field reads ``field:value``.
        splits_at_colons: Whether releases differ on keys of a single field with a colon (table version 6).
    """

    count: int
    hashed: tuple[int, ...]
    fields: tuple[str, ...]
    is_prefixed: bool
    splits_at_colons: bool

    def numbers(self, keys: Array) -> npt.NDArray[np.int64]:
        """
        Compute the bucket of each key.

        Args:
            keys: Record keys, n of them, neither null nor empty.

        Returns:
            Shape (n,), each from 0 to *count* - 1.

        Raises:
            WriteError: Releases of Apache Hudi look for a key in different buckets.
        """
        code = np.ones(len(keys), dtype=np.uint32)
        for text in self._texts(keys):
            # The hash of a Java list of texts; 32 bits wrap around as Java's int does.
            code = code * np.uint32(31) + java_hashes(text)
        # The sign bit is cleared first, as in Hudi; the remainder of a negative number would be another bucket.
        return (code & np.uint32(_POSITIVE)).astype(np.int64) % self.count

    def _texts(self, keys: Array) -> list[Array]:
        commas, colons = (compute.count_substring(keys, mark) for mark in ",:")
        if len(self.fields) == 1:
            if self.splits_at_colons and not self.is_prefixed:
                odd = compute.greater(colons, 0)
            else:
                odd = compute.and_(compute.greater(colons, 0), compute.greater(commas, 0))
            _refuse(keys, odd)
            return [keys]
        count = len(self.fields)
        _refuse(keys, compute.or_(compute.not_equal(commas, count - 1), compute.not_equal(colons, count)))
        parts: Any = compute.split_pattern(keys, ",").flatten()
        texts = []
        for position in self.hashed:
            text = parts.take(np.arange(position, len(parts), count))
            text = compute.utf8_slice_codeunits(text, len(self.fields[position]) + 1)
            blank = compute.or_(compute.equal(text, NULL_KEY_PART), compute.equal(text, EMPTY_KEY_PART))
            texts.append(compute.if_else(blank, "", text))  # Hudi hashes null like an empty text
        return texts


def bucket_number(file_id: str) -> int | None:
    """Return the bucket number at the begin of a file id; None if there is no number."""
    match = _NUMBERED.match(file_id)
    return None if match is None else int(match[1])


def bucket_index_of(
    settings: Settings, properties: Mapping[str, str], generator: KeyGenerator, table_format: TableFormat
) -> BucketIndex | None:
    """
    Return the bucket index that the settings, or the properties of the table, ask for; None for another index.

    Raises:
        ConfigError: A setting contradicts the table's properties, or a hashed field is not part of the record key.
        UnsupportedTable: The index uses consistent hashing.
    """
    # Apache Hudi does not depend on these properties, but what a table has and what the settings say must agree.
    named = {key.name: properties[key.name] for key in _SETTINGS if key.name in properties}
    for key in _SETTINGS:
        given = Settings(named)[key]
        if key.name in named and settings.raw(key) is not None and settings[key] != given:
            raise ConfigError(
                f"{key.name}={settings.raw(key)}, but the table's properties say {named[key.name]}; leave it out"
            )
    merged = Settings(named).merged(settings.as_dict())
    if merged[settings_keys.INDEX_TYPE] != "BUCKET":
        return None
    if merged[settings_keys.BUCKET_ENGINE] != "SIMPLE":
        raise UnsupportedTable(
            f"{settings_keys.BUCKET_ENGINE.name}={merged[settings_keys.BUCKET_ENGINE]}: only the engine SIMPLE is "
            "served, whose number of buckets never changes; write the table with Apache Hudi"
        )
    if generator.generates:
        raise ConfigError("a bucket index needs record keys, and those of this table are generated; name key columns")
    fields = generator.record_key_fields
    hashed = merged[settings_keys.BUCKET_FIELDS] or fields
    foreign = [field for field in hashed if field not in fields]
    if foreign:
        raise ConfigError(
            f"{settings_keys.BUCKET_FIELDS.name} names {', '.join(foreign)}, but the record key has {', '.join(fields)}"
        )
    return BucketIndex(
        count=merged[settings_keys.BUCKET_COUNT],
        hashed=tuple(position for position, field in enumerate(fields) if field in hashed),
        fields=fields,
        is_prefixed=bool(generator.single_field_prefixed),
        splits_at_colons=table_format.splits_bucket_keys,
    )


def _refuse(keys: Array, odd: Array) -> None:
    count = compute.sum(odd).as_py() or 0
    if count:
        example = keys.filter(odd)[0].as_py()
        raise WriteError(
            f"the rows have {counted(count, 'record key')} with ',' or ':', such as {example!r}, and releases of "
            "Apache Hudi look for such keys in different buckets; nothing was written; use keys without them"
        )
