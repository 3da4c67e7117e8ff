"""
The schema of a table's rows: Avro text in commit metadata and footers, Arrow schema in memory.

There are two Arrow schemas. The *incoming* schema is that of a user's rows. The *storage* schema is that of base files,
made by `storage_schema` or read from Avro by `parse_record_schema`; it has only the types in the table below, and never
the meta columns.

===========================  =======================================  =================================
incoming Arrow               storage Arrow                            Avro
===========================  =======================================  =================================
string, large_string, views  string                                   string
bool, float32, float64       the same                                 boolean, float, double
int8, int16, int32           int32                                    int
int64                        int64                                    long
binary, large_binary, views  binary                                   bytes
date32                       date32                                   int, date
timestamp us, any zone       timestamp us, UTC                        long, timestamp-micros
timestamp us, no zone        timestamp us                             long, local-timestamp-micros
decimal128(p, s)             decimal128(p, s)                         fixed, decimal
list, large_list             list                                     array
map with string keys         map                                      map
struct                       struct                                   record
===========================  =======================================  =================================

Source: Hudi 0.15.0, 1.0.2, 1.1.1: ``AvroConversionUtils``, ``SchemaConverters``, ``HoodieAvroUtils.sanitizeName``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from hudi_py.errors import ConfigError, CorruptMetadata, UnsupportedTable
from hudi_py.formats.arrow_types import Field
from hudi_py.formats.bounds import check_columns
from hudi_py.formats.meta_columns import META_COLUMNS
from hudi_py.model.json_document import parse_json

NOT_DATA: Final = frozenset((*META_COLUMNS, "_hoodie_operation"))
RESERVED: Final = "_hudi_py_"

_SPREAD: Final = "Nothing was committed; spread them over several tables, or store some of them as text"
_UTC_MICROS: Final = pa.timestamp("us", "UTC")
_LOCAL_MICROS: Final = pa.timestamp("us")
_DECIMAL_BYTES_MAX: Final = 16

_PRIMITIVES: Final[Mapping[pa.DataType, Any]] = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
    _UTC_MICROS: {"type": "long", "logicalType": "timestamp-micros"},
    _LOCAL_MICROS: {"type": "long", "logicalType": "local-timestamp-micros"},
}
_ARROW_OF: Final[Mapping[tuple[str, str | None], pa.DataType]] = {
    (avro, None) if isinstance(avro, str) else (avro["type"], avro["logicalType"]): arrow
    for arrow, avro in _PRIMITIVES.items()
}


def sanitize_name(name: str) -> str:
    """Return a table name as valid Avro name: invalid characters and a leading digit are replaced by ``__``."""
    return re.sub(r"[^A-Za-z0-9_]", "__", re.sub(r"^[^A-Za-z_]", "__", name))


def meta_fields() -> list[Field]:
    """Return the Arrow fields of the five meta columns, in their order in files."""
    return [pa.field(name, pa.string()) for name in META_COLUMNS]


def storage_schema(incoming: pa.Schema) -> pa.Schema:
    """
    Return the schema in which rows of *incoming* are stored.

    Meta columns are left out: rows that were read from a table and are written back have them. Hudi does the same.

    Raises:
        ConfigError: A column's type cannot be stored, its name is not a valid Avro name or reserved, or two names
            differ only by case.
    """
    fields = [field for field in incoming if field.name not in NOT_DATA]
    refuse_reserved(field.name for field in fields)
    _refuse_alike([field.name for field in fields], "")
    if not fields:
        raise ConfigError("the rows have no columns besides Hudi's own; there is nothing to write")
    return pa.schema([_storage_field(field, field.name) for field in fields])


def format_record_schema(schema: pa.Schema, table_name: str) -> str:
    """
    Format a storage schema as Avro text, as in ``extraMetadata.schema``.

    For the same columns, the text is equal to Hudi's, character by character.

    Raises:
        ConfigError: There are more columns, or they are nested more deeply, than are read again.
    """
    table = sanitize_name(table_name)
    record = _avro_record(list(schema), f"{table}_record", f"hoodie.{table}")
    _refuse_too_many(record)
    return _dump(record)


def _refuse_too_many(record: Mapping[str, Any]) -> None:
    try:
        check_columns({**record, "fields": [*_meta_columns(), *_data_fields(record)]})
    except ValueError as error:
        raise ConfigError(f"{error}. {_SPREAD}") from error


def with_meta_fields(text: str) -> str:
    """Return a record schema with the five meta columns added in front, as in ``parquet.avro.schema``."""
    record = _load(text)
    return _dump({**record, "fields": [*_meta_columns(), *_data_fields(record)]})


def _meta_columns() -> list[dict[str, Any]]:
    return [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]


def without_meta_fields(text: str) -> str:
    """Return a record schema from a footer without the meta columns, as in commits."""
    record = _load(text)
    return _dump({**record, "fields": _data_fields(record)})


def parse_record_schema(text: str, types: type[AvroTypes] | None = None) -> pa.Schema:
    """
    Parse a record schema to a storage schema, without the meta columns.

    Args:
        text: Avro JSON from commit metadata or a footer.
        types: Which types are known; by default those that hudi_py writes.

    Raises:
        CorruptMetadata: The text is not JSON, or not the schema of an Avro record.
        UnsupportedTable: A column has a type that this release cannot write.
    """
    record = _load(text)
    reader = (types or AvroTypes)()
    try:
        return pa.schema(reader.fields(_data_fields(record), _full_name(record, ""), ""))
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptMetadata(f"the table's Avro schema is malformed: {error!r}") from error


def evolved_text(text: str, widened: pa.Schema) -> str:
    """
    Add the new and promoted columns of *widened* to a schema text, at any depth, and leave the rest of it unchanged.

    Args:
        text: The table's current schema, without meta columns.
        widened: The table's columns in order, some with wider types or more fields, then new columns.

    Returns:
        The text for the next commit.

    Raises:
        ConfigError: Columns share a type by its name, and only one of them is changed, or as `format_record_schema`.
    """
    known = _load(text)
    data = {**known, "fields": _data_fields(known)}
    record = _evolved_record(data, parse_record_schema(text), widened, "")
    _refuse_too_many(record)
    evolved = _dump(record)
    # A type that has a name is written out once and meant wherever its name stands.
    if parse_record_schema(evolved) != widened:
        raise ConfigError(
            "the table's schema uses one named type in several columns, so that one of them cannot get fields or "
            "types of its own; write the new values under a new column"
        )
    return evolved


def _evolved_record(avro: dict[str, Any], was: Iterable[Field], now: Iterable[Field], namespace: str) -> dict[str, Any]:
    """The Avro of a record with the fields *now*; fields that stay keep their JSON, docs and namespaces included."""
    full = _full_name(avro, namespace)
    present, known = {field["name"]: field for field in avro["fields"]}, {field.name: field for field in was}
    fields = [
        {
            **present[field.name],
            "type": _evolved_type(present[field.name]["type"], known[field.name], field, field.name, full),
        }
        if field.name in present
        else _avro_field(field, full)
        for field in now
    ]
    return {**avro, "fields": fields}


def _evolved_type(avro: Any, was: Field, now: Field, name: str, full: str) -> Any:
    """
    The Avro type of a field that may have a wider type now.

    Args:
        avro: Its type before.
        was, now: The field before and now.
        name: Name of the column or of the field of a struct, also inside lists and maps.
        full: Full name of the record that has it.
    """
    if was.type == now.type:
        return avro
    if isinstance(avro, list):  # a union with null
        return [each if each == "null" else _evolved_type(each, was, now, name, full) for each in avro]
    kind = None if isinstance(avro, str) else avro["type"]
    if isinstance(kind, (dict, list)):
        return {**avro, "type": _evolved_type(kind, was, now, name, full)}
    old: Any = was.type
    new: Any = now.type
    if kind == "record":
        return _evolved_record(avro, old, new, full.rpartition(".")[0])
    if kind == "array":
        return {**avro, "items": _evolved_type(avro["items"], old.value_field, new.value_field, name, full)}
    if kind == "map":
        return {**avro, "values": _evolved_type(avro["values"], old.item_field, new.item_field, name, full)}
    if pa.types.is_nested(old):  # a type that is written out elsewhere
        return avro
    return _avro_type(now.with_nullable(nullable=False), name, full)


def storage_type(incoming: pa.DataType, path: str) -> pa.DataType:
    """
    Return the type in which values of *incoming* are stored.

    Args:
        incoming: Any Arrow type.
        path: Name of the column for messages, with dots if nested.

    Raises:
        ConfigError: Values of this type cannot be stored.
    """
    types = pa.types
    if types.is_string(incoming) or types.is_large_string(incoming) or _is(incoming, "string_view"):
        return pa.string()
    if types.is_binary(incoming) or types.is_large_binary(incoming) or _is(incoming, "binary_view"):
        return pa.binary()
    # Avro has no smaller integers.
    if types.is_int8(incoming) or types.is_int16(incoming):
        return pa.int32()
    if isinstance(incoming, pa.TimestampType) and incoming.unit == "us":
        return _UTC_MICROS if incoming.tz else _LOCAL_MICROS
    if isinstance(incoming, pa.Decimal128Type):
        # Avro allows no negative scale, and no scale above the precision.
        if not 0 <= incoming.scale <= incoming.precision:
            raise ConfigError(f"column {path!r} is {incoming}; the scale must lie between 0 and the precision")
        return incoming
    if isinstance(incoming, pa.StructType):
        if not incoming.num_fields:
            raise ConfigError(f"column {path!r} is a struct without fields; Parquet cannot store it")
        _refuse_alike([field.name for field in incoming], f"{path}.")
        return pa.struct([_storage_field(field, f"{path}.{field.name}") for field in incoming])
    if isinstance(incoming, (pa.ListType, pa.LargeListType)):
        element = incoming.value_field
        stored = storage_type(element.type, f"{path}.element")
        return pa.list_(pa.field("element", stored, element.nullable))
    if isinstance(incoming, pa.MapType):
        # Avro's maps have no keys of other types.
        if storage_type(incoming.key_type, f"{path}.key") != pa.string():
            raise ConfigError(f"column {path!r} is {incoming}; keys of a map must be strings")
        value = incoming.item_field
        stored = storage_type(value.type, f"{path}.value")
        return map_of_texts(pa.field("value", stored, value.nullable))
    if incoming in _PRIMITIVES:
        return incoming
    raise ConfigError(f"column {path!r} is {incoming}, which a Hudi table cannot store; {_advice(incoming)}")


def map_of_texts(value: Field) -> pa.DataType:
    """Return the type of maps from texts to values of a field."""
    make: Any = pa.map_  # the stubs only accept a type as value, but only a field can say "not null"
    arrow: pa.DataType = make(pa.string(), value)
    return arrow


def _advice(incoming: pa.DataType) -> str:
    if isinstance(incoming, pa.TimestampType):
        return "cast it to microseconds"
    if pa.types.is_unsigned_integer(incoming):
        return "cast it to a signed integer"
    if pa.types.is_decimal(incoming):
        return "cast it to a decimal of at most 38 digits"
    if pa.types.is_null(incoming):
        return "cast it to the type it should have, or leave it out until it has a value"
    if pa.types.is_time(incoming) or pa.types.is_duration(incoming):
        return "cast it to text, or to the integer that it is made of"
    if pa.types.is_dictionary(incoming):
        return "cast it to its value type"
    return "cast it to a supported type or leave it out"


def _is(arrow: pa.DataType, name: str) -> bool:
    return str(arrow) == name


def _storage_field(field: Field, path: str) -> Field:
    if not _is_avro_name(field.name):
        raise ConfigError(
            f"column {path!r}: a name must consist of letters, digits and _, and must not start with a digit"
        )
    return pa.field(field.name, storage_type(field.type, path), field.nullable)


def refuse_reserved(names: Iterable[str]) -> None:
    """
    Args:
        names: Of columns that are not Hudi's own.

    Raises:
        ConfigError: A name is that of a column of Hudi's in another case, which Spark does not tell apart, or begins
            as those of the columns with which hudi_py marks rows while it writes them.
    """
    for name in names:
        if name.lower() in NOT_DATA:
            raise ConfigError(f"column {name!r} has the same name as {name.lower()!r} of Hudi for Spark; rename it")
        if name.lower().startswith(RESERVED):
            raise ConfigError(f"column {name!r}: such names are used while rows are written; rename it")


def _refuse_alike(names: Iterable[str], prefix: str) -> None:
    """
    Raises:
        ConfigError: Two names differ at most by case: Spark would refuse to read the table.
    """
    seen: dict[str, str] = {}
    for name in names:
        other = seen.get(name.lower())
        if other is not None:
            raise ConfigError(
                f"columns {prefix + other!r} and {prefix + name!r} have the same name for Spark; rename one"
            )
        seen[name.lower()] = name


def _is_avro_name(name: str) -> bool:
    """
    Return whether Avro's Java library, and so Apache Hudi, accepts *name*: letters and digits of any script, and ``_``.

    Java checks UTF-16 code units, so it does not accept letters above U+FFFF.

    Source: Avro 1.11 ``Schema.validateName``; Java ``Character.isLetter``, ``Character.isLetterOrDigit``.
    """
    starts_well = name[:1].isalpha() or name[:1] == "_"
    return starts_well and all((c.isalpha() or c.isdecimal() or c == "_") and c <= "\uffff" for c in name)


def _avro_record(fields: list[Field], name: str, namespace: str) -> dict[str, Any]:
    inner = _join(namespace, name)
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_avro_field(field, inner) for field in fields],
    }


def _avro_field(field: Field, namespace: str) -> dict[str, Any]:
    avro: dict[str, Any] = {"name": field.name, "type": _avro_type(field, field.name, namespace)}
    if field.nullable:
        avro["default"] = None
    return avro


def _avro_type(field: Field, name: str, namespace: str) -> Any:
    """Return the Avro type of a field; *name* is the name of the column, also inside lists and maps."""
    arrow = field.type
    avro: Any
    if isinstance(arrow, pa.StructType):
        avro = _avro_record(list(arrow), name, namespace)
    elif isinstance(arrow, pa.ListType):
        avro = {"type": "array", "items": _avro_type(arrow.value_field, name, namespace)}
    elif isinstance(arrow, pa.MapType):
        avro = {"type": "map", "values": _avro_type(arrow.item_field, name, namespace)}
    elif isinstance(arrow, pa.Decimal128Type):
        avro = {
            "type": "fixed",
            # Hudi calls every decimal type "fixed"; only the namespace tells them apart, and Avro needs different full
            # names.
            "name": "fixed",
            "namespace": _join(namespace, name),
            "size": _decimal_size(arrow.precision),
            "logicalType": "decimal",
            "precision": arrow.precision,
            "scale": arrow.scale,
        }
    else:
        avro = _PRIMITIVES[arrow]
    # Null comes first: in Avro, a default (here null) belongs to the first type of a union.
    return ["null", avro] if field.nullable else avro


def _decimal_size(precision: int) -> int:
    """Return the smallest number of bytes that can store every decimal of this precision."""
    sizes: Iterator[int] = iter(range(1, _DECIMAL_BYTES_MAX + 1))
    return next(size for size in sizes if 2 ** (8 * size - 1) >= 10**precision)


def _data_fields(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [field for field in record["fields"] if field["name"] not in NOT_DATA]


def _load(text: str) -> dict[str, Any]:
    try:
        record = parse_json(text)
    except ValueError as error:
        raise CorruptMetadata(f"the table's Avro schema is not JSON: {error}") from error
    if not isinstance(record, dict) or record.get("type") != "record" or "name" not in record:
        raise CorruptMetadata("the table's Avro schema is not that of a record")
    if not isinstance(record.get("fields"), list):
        raise CorruptMetadata("the table's Avro schema has no list of fields")
    try:
        check_columns(record)
    except ValueError as error:
        raise CorruptMetadata(f"the table's Avro schema is not one of Hudi: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise CorruptMetadata(f"the table's Avro schema is malformed: {error!r}") from error
    return record


def _dump(avro: Any) -> str:
    # Without spaces and escapes, as Java's Avro prints it, because texts are compared.
    try:
        return json.dumps(avro, separators=(",", ":"), ensure_ascii=False)
    except RecursionError as error:  # what is no type, such as a default value, may be nested as deeply as it likes
        raise CorruptMetadata("the table's Avro schema is nested too deeply") from error


def _join(namespace: str, name: str) -> str:
    return f"{namespace}.{name}" if namespace else name


def _full_name(avro: Mapping[str, Any], enclosing: str) -> str:
    name: str = avro["name"]
    return name if "." in name else _join(avro.get("namespace", enclosing), name)


class AvroTypes:
    """Converts Avro to Arrow. Keeps named types, because Avro defines a type only where it first occurs."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []

    def fields(self, avro: list[dict[str, Any]], enclosing: str, path: str) -> list[Field]:
        namespace = enclosing.rpartition(".")[0]
        return [self._field(field["name"], field["type"], namespace, _join(path, field["name"])) for field in avro]

    def _field(self, name: str, avro: Any, namespace: str, path: str) -> Field:
        nullable = False
        if isinstance(avro, list):
            branches = [branch for branch in avro if branch != "null"]
            nullable = len(branches) < len(avro)
            if len(branches) != 1:
                raise UnsupportedTable(f"column {path!r} is a union of {len(branches)} types; it cannot be written")
            avro = branches[0]
        return pa.field(name, self._type(avro, namespace, path), nullable)

    def _type(self, avro: Any, namespace: str, path: str) -> pa.DataType:
        if isinstance(avro, str):
            named = self._named.get(avro, self._named.get(_join(namespace, avro)))
            if named is not None:
                return self._type(named, namespace, path)
            avro = {"type": avro}
        kind, logical = avro["type"], avro.get("logicalType")
        if isinstance(kind, (dict, list)):
            nested: pa.DataType = self._field(path, kind, namespace, path).type
            return nested
        if kind in ("record", "fixed", "enum"):
            self._named[_full_name(avro, namespace)] = avro
        if kind == "record":
            return self._struct(avro, _full_name(avro, namespace), path)
        if kind == "array":
            return pa.list_(self._field("element", avro["items"], namespace, f"{path}.element"))
        if kind == "map":
            return map_of_texts(self._field("value", avro["values"], namespace, f"{path}.value"))
        if (kind, logical) == ("fixed", "decimal"):
            return pa.decimal128(avro["precision"], avro.get("scale", 0))
        return _ARROW_OF.get((kind, logical)) or self.other(avro, kind, logical, path)

    def _struct(self, avro: Mapping[str, Any], name: str, path: str) -> pa.DataType:
        if name in self._open:
            raise UnsupportedTable(f"column {path!r} contains itself; such columns can be neither read nor written")
        self._open.append(name)
        fields = self.fields(avro["fields"], name, path)
        self._open.pop()
        return pa.struct(fields)

    def other(self, avro: Mapping[str, Any], kind: str, logical: str | None, path: str) -> pa.DataType:
        """Return the type of a column that hudi_py does not write; here there is none."""
        what = f"{kind} ({logical})" if logical else kind
        raise UnsupportedTable(f"column {path!r} is of Avro type {what}; this release cannot write it")
