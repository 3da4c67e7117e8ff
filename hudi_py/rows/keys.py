"""
Record keys and partition paths, computed for whole batches.

The key generators SIMPLE, NON_PARTITION, COMPLEX, TIMESTAMP and CUSTOM are supported. Values are converted to text as
in Hudi: a timestamp to its microseconds since the epoch, a date to ISO 8601, a decimal with all digits of its scale, a
boolean to ``true`` or ``false``. Java's text of floats cannot be reproduced reliably, so float and double keys are
refused.

Source: Hudi 0.15.0, 1.0.2, 1.1.1: ``KeyGenUtils``, ``SimpleAvroKeyGenerator``, ``ComplexAvroKeyGenerator``,
``NonpartitionedAvroKeyGenerator``, ``TimestampBasedAvroKeyGenerator``, ``CustomAvroKeyGenerator``,
``PartitionPathEncodeUtils``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.config.key_generators import KEY_GENERATOR_PACKAGE, KEY_GENERATOR_TYPES
from hudi_py.config.keys import PARTITION_FIELDS
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, UnsupportedTable, WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.model.files import DEFAULT_PARTITION, METADATA_FOLDER, PARTITION_METAFILES
from hudi_py.model.words import counted
from hudi_py.rows.partition_times import PartitionTime, partition_time
from hudi_py.rows.path_lengths import PathLengths
from hudi_py.versions.served import format_of

GENERATED: Final = "_hudi_py_generated_key"
"""Column that rows of a table without key columns get before they are written."""
NULL_KEY_PART: Final = "__null__"
EMPTY_KEY_PART: Final = "__empty__"

# Hudi's own list (``PartitionPathEncodeUtils``): with one character more or less, rows of one value lie in two folders.
_ESCAPED: Final = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
_UNSAFE_PLAIN: Final = re.compile(r"[\x00/:]")
# A partition of such a name would be another folder, or a file that Hudi keeps there.
_NO_SEGMENT: Final = PARTITION_METAFILES | {".", "..", METADATA_FOLDER}


class KeyGeneratorKind(Enum):
    """The supported key generators, spelled as in ``hoodie.table.keygenerator.type``."""

    SIMPLE = "SIMPLE"
    NON_PARTITION = "NON_PARTITION"
    COMPLEX = "COMPLEX"
    TIMESTAMP = "TIMESTAMP"
    CUSTOM = "CUSTOM"


_KIND_OF_CLASS: Final[Mapping[str, KeyGeneratorKind]] = {
    name: KeyGeneratorKind[kind] for name, kind in KEY_GENERATOR_TYPES.items()
}


@attrs.frozen(kw_only=True)
class KeyGenerator:
    """
    How a table names its records and partitions.

    Args:
        kind: Which of Hudi's generators.
        record_key_fields: Top-level columns, at least one, in the order of ``hoodie.table.recordkey.fields``.
        partition_fields: Top-level columns; none for NON_PARTITION, one for SIMPLE and TIMESTAMP.
        hive_style: Segments read ``field=value``.
        url_encode: Characters that a path cannot hold are written ``%XX``.
        single_field_prefixed: For COMPLEX with one key field only: True if keys read ``field:value``, False if they
            read ``value``. Releases differ; for an existing table look at a stored key, see `is_prefixed`.
        generates: Whether the table has no key columns: then each row that is inserted gets a new key, in the column
            `GENERATED`, which is the only field.
        times: The partition columns whose values are times, and how each value becomes a part of the path.
        lengths: How long the paths of partitions may be; None where none is written.

    Raises:
        ConfigError: The fields do not fit the kind, or *single_field_prefixed* is needed and missing.
    """

    kind: KeyGeneratorKind
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    single_field_prefixed: bool | None = None
    generates: bool = False
    times: Mapping[str, PartitionTime] = attrs.field(factory=dict)
    lengths: PathLengths | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse combinations that Hudi does not know either."""
        if not self.record_key_fields:
            raise ConfigError("no record key field is configured; set hoodie.datasource.write.recordkey.field")
        if self.kind is KeyGeneratorKind.NON_PARTITION and self.partition_fields:
            raise ConfigError(f"key generator NON_PARTITION with partition fields {', '.join(self.partition_fields)}")
        counts = (len(self.partition_fields), len(self.record_key_fields))
        if self.kind in (KeyGeneratorKind.SIMPLE, KeyGeneratorKind.TIMESTAMP) and counts != (1, 1):
            raise ConfigError(
                f"key generator {self.kind.value} needs exactly one record key field and one partition field"
            )
        if self.is_ambiguous and self.single_field_prefixed is None:
            raise ConfigError(
                "key generator COMPLEX with one key field: releases of Hudi write either 'value' or 'field:value'; "
                "look at a stored key and say which (single_field_prefixed)"
            )

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Columns of the table that make up the key; none if keys are generated."""
        return () if self.generates else self.record_key_fields

    @property
    def is_ambiguous(self) -> bool:
        """Whether the form of the key depends on the release that wrote the table."""
        return self.kind is KeyGeneratorKind.COMPLEX and len(self.key_columns) == 1

    def record_keys(self, batch: pa.RecordBatch) -> Array:
        """
        Compute the key of each row.

        Returns:
            Strings of the batch's length, without nulls.

        Raises:
            ConfigError: A key column is absent or of a type that cannot be a key.
            WriteError: A key is null or empty (composite keys: all parts are).
        """
        texts = [(name, _text(_column(batch, name), name, "record key")) for name in self.record_key_fields]
        refuse_blank_keys(self.record_key_fields, compute.sum(self.blank_keys(batch)).as_py() or 0)
        if len(texts) == 1:
            ((name, text),) = texts
            return _prefixed(name, text) if self.single_field_prefixed else text
        return _join(",", [_prefixed(name, text) for name, text in texts])

    def check_types(self, schema: pa.Schema) -> None:
        """
        Raise if keys or partitions cannot be made of columns with these types, whatever the values.

        Raises:
            ConfigError: A column is absent, or has such a type.
        """
        columns = [field for field in schema if field.name in (*self.key_columns, *self.partition_fields)]
        no_rows = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in columns], [f.name for f in columns])
        if not self.generates:
            self.record_keys(no_rows)
        self.partition_paths(no_rows)

    def blank_keys(self, batch: pa.RecordBatch) -> Array:
        """
        Return which rows have no key, as booleans.

        A single field has to have a value; of several fields one is enough, as in Hudi's ``KeyGenUtils``.

        Raises:
            ConfigError: A key column is absent.
        """
        blank: Any = _is_blank(_column(batch, self.record_key_fields[0]))
        for name in self.record_key_fields[1:]:
            blank = compute.and_(blank, _is_blank(_column(batch, name)))
        found: Array = blank
        return found

    def partition_paths(self, batch: pa.RecordBatch) -> Array:
        """
        Compute the relative partition path of each row.

        Returns:
            Strings of the batch's length, ``""`` when the table has no partitions.

        Raises:
            ConfigError: A partition column is absent or of a type that cannot name a folder.
            WriteError: A value cannot be the name of a folder; the message says how to allow it.
        """
        if not self.partition_fields:
            return pa.repeat("", batch.num_rows)
        paths = _join("/", [self._segments(batch, name) for name in self.partition_fields])
        if self.lengths is not None:
            self.lengths.check(paths, ", ".join(self.partition_fields))
        return paths

    def _segments(self, batch: pa.RecordBatch, name: str) -> Array:
        """Format each distinct value once: a batch has few distinct partition values."""
        if name in self.times:
            return self._time_segments(batch, name)
        # Null and empty text share the folder of the default partition, as in Hudi.
        text: Any = _text(_column(batch, name), name, "partition path").fill_null("")
        encoded = text.dictionary_encode()
        segments = [self.format_segment(name, value) for value in encoded.dictionary.to_pylist()]
        result: Array = pa.array(segments, pa.string()).take(encoded.indices)
        return result

    def _time_segments(self, batch: pa.RecordBatch, name: str) -> Array:
        """Return formatted times; a pattern may make several folders of one, so a slash is allowed."""
        encoded: Any = self.times[name].texts(_column(batch, name), name).dictionary_encode()
        segments = [self.time_segment(name, text) for text in encoded.dictionary.to_pylist()]
        result: Array = pa.array(segments, pa.string()).take(encoded.indices)
        return result

    def time_segment(self, name: str, text: str) -> str:
        """Return the part of the path for one formatted time."""
        if self.url_encode:
            text = escape_path_name(text)
        # A colon is not allowed in paths of Hadoop; empty parts, dots and Hudi's own names would be other folders or
        # files.
        elif ":" in text or any(part in _NO_SEGMENT or not part for part in text.split("/")):
            raise WriteError(
                f"partition column {name!r} makes the path {text!r}, which no folder may be called; choose another "
                "hoodie.keygen.timebased.output.dateformat, or hoodie.datasource.write.partitionpath.urlencode=true"
            )
        return f"{name}={text}" if self.hive_style else text

    def format_segment(self, name: str, value: str) -> str:
        """Return the folder name for one value of partition field *name*; ``""`` stands for null too."""
        if value and self.url_encode:
            value = escape_path_name(value)
        # As in Apache Hudi, the value of a single column may be a folder in folders.
        elif "/" in value and len(self.partition_fields) == 1 and not _UNSAFE_PLAIN.search(value.replace("/", "")):
            if any(part in _NO_SEGMENT or not part for part in value.split("/")):
                raise WriteError(f"partition column {name!r} has the value {value!r}, which no folder may be called")
        elif match := _UNSAFE_PLAIN.search(value):
            raise WriteError(
                f"partition column {name!r} has the value {value!r}; {match[0]!r} in a folder's name needs "
                "hoodie.datasource.write.partitionpath.urlencode=true, which must be set when the table is created"
            )
        segment = value or DEFAULT_PARTITION
        # With ``field=`` before it, no value can be one of the reserved names.
        if self.hive_style:
            return f"{name}={segment}"
        if segment in _NO_SEGMENT:
            raise WriteError(f"partition column {name!r} has the value {value!r}, which cannot be the name of a folder")
        return segment


def escape_path_name(value: str) -> str:
    """Replace the characters that Hudi escapes in partition paths, and only those, by ``%XX``."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def is_prefixed(stored_key: str, field: str) -> bool:
    """Whether a stored key of a single-field COMPLEX table reads ``field:value``."""
    return stored_key.startswith(f"{field}:")


def default_kind(record_key_fields: tuple[str, ...], partition_fields: tuple[str, ...]) -> KeyGeneratorKind:
    """Infer the generator as Hudi's Spark writer does when none is named; *partition_fields* as they are configured."""
    if any(":" in field for field in partition_fields):
        return KeyGeneratorKind.CUSTOM
    if not partition_fields:
        return KeyGeneratorKind.NON_PARTITION
    if len(partition_fields) == 1 and len(record_key_fields) <= 1:
        return KeyGeneratorKind.SIMPLE
    return KeyGeneratorKind.COMPLEX


def key_generator_of(
    properties: Mapping[str, str],
    settings: Settings | None = None,
    *,
    single_field_prefixed: bool | None = None,
    computes_paths: bool = True,
) -> KeyGenerator:
    """
    Read a table's key generator from its properties.

    Args:
        properties: The entries of ``hoodie.properties``; any table version.
        settings: The settings of the write, with what releases of Hudi do not store of time-based generators.
        single_field_prefixed: See `KeyGenerator`. None means True for version 9; versions 6 and 8 need a value.
        computes_paths: False where rows keep their paths, so that it does not matter how times become a path.

    Raises:
        UnsupportedTable: The generator is not supported, or the table has no meta columns.
        ConfigError: See `KeyGenerator`.
    """
    # Without the stored key there is nothing by which an update finds its row.
    if properties.get("hoodie.populate.meta.fields", "true").lower() == "false":
        raise UnsupportedTable(
            "the table has no meta columns (hoodie.populate.meta.fields=false); it cannot be written"
        )
    if _is_true(properties, "hoodie.datasource.write.drop.partition.columns"):
        raise UnsupportedTable(
            "the table's files lack the partition columns (hoodie.datasource.write.drop.partition.columns=true); it "
            "cannot be written"
        )
    keys = _split(properties.get("hoodie.table.recordkey.fields", ""))
    partitions = _split(properties.get("hoodie.table.partition.fields", ""))
    kind = _kind(properties, keys, partitions)
    # Before version 9 the form depends on the release, and only a stored key shows it.
    if single_field_prefixed is None and format_of(properties).prefixes_single_key:
        single_field_prefixed = True
    names = tuple(partition.partition(":")[0] for partition in partitions)
    return KeyGenerator(
        kind=kind,
        record_key_fields=keys or (GENERATED,),
        generates=not keys,
        partition_fields=names,
        times={
            name: partition_time(properties, settings, name)
            for name in (_times(kind, names, partitions, settings) if computes_paths else ())
        },
        hive_style=_is_true(properties, "hoodie.datasource.write.hive_style_partitioning"),
        url_encode=_is_true(properties, "hoodie.datasource.write.partitionpath.urlencode"),
        single_field_prefixed=single_field_prefixed if kind is KeyGeneratorKind.COMPLEX and len(keys) == 1 else None,
    )


def virtual_keys_of(properties: Mapping[str, str], source: str) -> KeyGenerator | None:
    """
    How keys are computed from rows that do not hold them (``hoodie.populate.meta.fields=false``); None if rows do.

    Args:
        properties: As for `key_generator_of`.
        source: The table's location, for messages.

    Raises:
        UnsupportedTable: The generator is not one of Hudi's, or its keys depend on the release that wrote them.
    """
    if properties.get("hoodie.populate.meta.fields", "true").strip().lower() != "false":
        return None
    fields = _split(properties.get("hoodie.table.recordkey.fields", ""))
    kind = _kind(properties, fields, _split(properties.get("hoodie.table.partition.fields", "")))
    is_complex = kind is KeyGeneratorKind.COMPLEX or len(fields) > 1
    is_prefixed_key = True if len(fields) == 1 and format_of(properties).prefixes_single_key else None
    try:  # partition paths are not computed, so only the form of the keys matters
        return KeyGenerator(
            kind=KeyGeneratorKind.COMPLEX if is_complex else KeyGeneratorKind.NON_PARTITION,
            record_key_fields=fields,
            single_field_prefixed=is_prefixed_key if is_complex else None,
        )
    except ConfigError as error:
        raise UnsupportedTable(
            f"{source}: hoodie.populate.meta.fields=false: the rows hold no record keys to merge the log files by, and "
            f"they cannot be computed: {error}"
        ) from error


def _kind(properties: Mapping[str, str], keys: tuple[str, ...], partitions: tuple[str, ...]) -> KeyGeneratorKind:
    # ``SIMPLE_AVRO`` differs from ``SIMPLE`` in the class that computes the key, not in the key.
    type_name = properties.get("hoodie.table.keygenerator.type", "").removesuffix("_AVRO")
    class_name = properties.get("hoodie.table.keygenerator.class", "")
    if not type_name and not class_name:
        return default_kind(keys, partitions)
    if type_name in KeyGeneratorKind.__members__:
        kind = KeyGeneratorKind[type_name]
    elif not type_name and class_name.removeprefix(KEY_GENERATOR_PACKAGE) in _KIND_OF_CLASS:
        kind = _KIND_OF_CLASS[class_name.removeprefix(KEY_GENERATOR_PACKAGE)]
    else:
        raise UnsupportedTable(
            f"key generator {type_name or class_name} is not supported for writing; "
            f"supported are {', '.join(KeyGeneratorKind.__members__)}"
        )
    return kind


def _times(
    kind: KeyGeneratorKind, names: tuple[str, ...], partitions: tuple[str, ...], settings: Settings | None
) -> tuple[str, ...]:
    """
    Return the partition columns whose values are times.

    Raises:
        ConfigError: Of a column it is not known whether it is a time: version 6 stores names only.
    """
    if kind is KeyGeneratorKind.TIMESTAMP:
        return names
    if kind is not KeyGeneratorKind.CUSTOM:
        return ()
    asked = settings[PARTITION_FIELDS] if settings is not None and PARTITION_FIELDS in settings else partitions
    # The table's own kinds decide; version 6 stores names only, and then the settings say the kinds.
    typed = partitions if any(":" in partition for partition in partitions) else asked
    kinds = dict(_typed(each) for each in typed)
    if tuple(kinds) != names:
        raise ConfigError(
            f"{PARTITION_FIELDS.name}={','.join(asked)}, but the table has the partition columns {', '.join(names)}"
        )
    if typed is partitions and any(":" in each for each in asked) and tuple(asked) != tuple(partitions):
        raise ConfigError(f"{PARTITION_FIELDS.name}={','.join(asked)}, but the table has {','.join(partitions)}")
    return tuple(name for name in names if kinds[name] == "TIMESTAMP")


def _typed(field: str) -> tuple[str, str]:
    name, _, kind = field.partition(":")
    if kind.strip().upper() not in ("SIMPLE", "TIMESTAMP"):
        raise ConfigError(
            f"partition column {name!r} of a table with key generator CUSTOM needs a kind: write "
            f"{PARTITION_FIELDS.name}={name}:SIMPLE or {name}:TIMESTAMP, as in the table's other writers"
        )
    return name.strip(), kind.strip().upper()


def _split(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _is_true(properties: Mapping[str, str], key: str) -> bool:
    return properties.get(key, "false").lower() == "true"


def _column(batch: pa.RecordBatch, name: str) -> Array:
    position = batch.schema.get_field_index(name)
    if position < 0:
        raise ConfigError(f"column {name!r} is configured as key or partition field, but the rows have no such column")
    column: Array = batch.column(position)
    return column


def _text(column: Array, name: str, role: str) -> Array:
    arrow = column.type
    types = pa.types
    if types.is_timestamp(arrow):
        # Hudi's text of a timestamp is its number of microseconds, so another unit would give another key.
        if arrow.unit != "us":
            raise ConfigError(f"column {name!r} is {arrow}; cast it to microseconds to use it as {role}")
        column = column.cast(pa.int64())
    elif not (
        types.is_string(arrow)
        or types.is_large_string(arrow)
        or str(arrow) == "string_view"
        or types.is_signed_integer(arrow)
        or types.is_boolean(arrow)
        or types.is_date32(arrow)
        or types.is_decimal128(arrow)
    ):
        raise ConfigError(f"column {name!r} is {arrow} and cannot be part of a {role}; cast it to string yourself")
    text: Array = column.cast(pa.string())
    return text


def _is_blank(column: Array) -> Any:
    arrow = column.type
    if not (pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or str(arrow) == "string_view"):
        return compute.is_null(column)
    return compute.fill_null(compute.equal(column.cast(pa.string()), ""), True)


def refuse_blank_keys(names: Sequence[str], count: int) -> None:
    """
    Raise if there are rows without a key.

    Raises:
        WriteError: All rows are refused: one without a key could never be updated or deleted.
    """
    if count:
        raise WriteError(
            f"record key {', '.join(names)} is null or empty in {counted(count, 'row')}; every row needs a key"
        )


def _prefixed(name: str, text: Any) -> Any:
    # Null and empty text have words of their own, or two rows that differ in them would have the same key.
    value = text.fill_null(NULL_KEY_PART)
    value = compute.if_else(compute.equal(value, ""), EMPTY_KEY_PART, value)
    return compute.binary_join_element_wise(pa.scalar(f"{name}:"), value, "")


def _join(separator: str, parts: list[Any]) -> Array:
    result: Array = parts[0] if len(parts) == 1 else compute.binary_join_element_wise(*parts, separator)
    return result
