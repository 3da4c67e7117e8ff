"""
Decides whether rows fit a table's schema: as it is, by widening it, or not at all.

Allowed are, for columns and for the fields of structs at any depth: new ones (always nullable and at the end, because
older files do not have them), numbers to wider numbers, to text where that is asked for, another order, rows without a
nullable one, and rows whose type is known only to be null. The nullability of existing ones never changes; `conform`
checks that the values of new rows respect it.

Source: Hudi 0.15.0, 1.0.2, 1.1.1, 1.2.0, ``AvroSchemaCompatibility``, ``AvroSchemaEvolutionUtils``. Narrower than Hudi
on purpose where it stores other values than those of the rows (text for a column of bytes becomes the name of a Java
object), cannot read what it has stored (dates as times), or makes texts of numbers unasked: docs/writing.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import Field, holds_type
from hudi_py.formats.record_schema import (
    evolved_text,
    format_record_schema,
    map_of_texts,
    parse_record_schema,
    storage_schema,
)

_PROMOTIONS: Final[Mapping[pa.DataType, tuple[pa.DataType, ...]]] = {
    pa.int32(): (pa.int64(), pa.float32(), pa.float64(), pa.string()),
    pa.int64(): (pa.float32(), pa.float64(), pa.string()),
    pa.float32(): (pa.float64(), pa.string()),
    pa.float64(): (pa.string(),),
}


@attrs.frozen(kw_only=True)
class ResolvedSchema:
    """
    The schema that a commit writes.

    Args:
        text: Avro text for ``extraMetadata.schema`` of the commit, without meta columns.
        schema: The same as storage schema.
        added: Names of new columns; new fields inside of columns with dots, below ``element`` of lists and ``value`` of
            maps.
        promoted: Names of columns whose type was widened, and of fields inside of columns, as *added*.
        cautions: Sentences about new columns and types that some readers of the table do not support.
    """

    text: str
    schema: pa.Schema
    added: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()


def resolve_schema(
    table_text: str | None, incoming: pa.Schema, table_name: str, *, may_become_text: bool = False
) -> ResolvedSchema:
    """
    Return the schema with which rows of *incoming* are written to a table.

    Args:
        table_text: Schema in the latest commit that has one; None for a table without commits. Kept unchanged unless
            columns are added or promoted.
        incoming: Schema of the rows, with columns in any order. Meta columns are ignored.
        table_name: ``hoodie.table.name``; used only for a new table.
        may_become_text: Whether texts for a column of numbers make it a column of texts.

    Raises:
        ConfigError: A column has a type that cannot be stored or does not fit the table's.
        WriteError: The rows lack a column that must not be null.
    """
    if table_text is None:
        rows = storage_schema(incoming)
        text = format_record_schema(rows, table_name)
        return ResolvedSchema(text=text, schema=rows, cautions=_cautions(rows))

    table = parse_record_schema(table_text)
    rows = storage_schema(with_known_types(incoming, table))
    changes = _Changes(may_become_text=may_become_text)
    columns = list(_unified_fields(table, rows, "", changes))
    widened = storage_schema(pa.schema(columns))  # a new column may clash with a present one by case
    # Unchanged rows keep the text byte for byte, so other writers do not see a new schema.
    text = evolved_text(table_text, widened) if changes.added or changes.promoted else table_text
    return ResolvedSchema(
        text=text,
        schema=widened,
        added=tuple(changes.added),
        promoted=tuple(changes.promoted),
        cautions=(*_cautions(changes.added.values()), *_caution_of_wider(changes.promoted)),
    )


def _cautions(fields: Iterable[Field]) -> tuple[str, ...]:
    added = list(fields)
    zoneless = ", ".join(field.name for field in added if holds_type(field.type, _is_local_time))
    foreign = ", ".join(field.name for field in added if not str(field).isascii())
    found = []
    if zoneless:
        found.append(
            f"{zoneless}: timestamps without time zone; Apache Hudi before 1.1 and hudi-rs refuse to read tables with "
            "them. If they have to read this table, cast to timestamps in UTC"
        )
    if foreign:
        found.append(f"{foreign}: a name with letters beyond ASCII; hudi-rs refuses to read tables with such names")
    return tuple(found)


def _caution_of_wider(promoted: Mapping[str, tuple[pa.DataType, pa.DataType]]) -> Iterator[str]:
    inside = ", ".join(path for path in promoted if "." in path)
    texts = ", ".join(path for path, (_, now) in promoted.items() if pa.types.is_string(now))
    rounded = ", ".join(
        path for path, (was, now) in promoted.items() if pa.types.is_integer(was) and pa.types.is_floating(now)
    )
    if texts:
        yield f"{texts}: numbers so far, texts from now on, because the rows have texts; older rows show theirs as text"
    if rounded:
        yield (
            f"{rounded}: integers so far, floating-point numbers from now on, as the rows have them; older integers "
            "that these do not hold exactly (beyond 2^24 for float, 2^53 for double) are read as the nearest one"
        )
    if inside:
        yield (
            f"{inside}: a wider type inside of a column; until the older files are rewritten, Apache Hudi reads the "
            "table only with spark.sql.parquet.enableVectorizedReader=false"
        )


def _is_local_time(arrow: Any) -> bool:
    return isinstance(arrow, pa.TimestampType) and arrow.tz is None


@attrs.define
class _Changes:
    """
    What rows change in a table's schema.

    Args:
        may_become_text: See `resolve_schema`.

    Attributes:
        added: New fields by path.
        promoted: Types of wider fields by path, before and now.
    """

    may_become_text: bool
    added: dict[str, Field] = attrs.field(factory=dict)
    promoted: dict[str, tuple[pa.DataType, pa.DataType]] = attrs.field(factory=dict)


def _unified_fields(table: Iterable[Field], rows: Iterable[Field], above: str, changes: _Changes) -> Iterator[Field]:
    """The fields of the rows or of a struct: those of the table, wide enough for the rows, then new ones."""
    given, known = {field.name: field for field in rows}, {field.name: field for field in table}
    missing = [above + field.name for field in known.values() if field.name not in given and not field.nullable]
    if missing:
        raise WriteError(f"the rows lack {', '.join(missing)}, which the table's schema requires; add the column(s)")
    for name, field in known.items():
        is_given = name in given
        yield field.with_type(_unified(field.type, given[name].type, above + name, changes)) if is_given else field
    for name, field in given.items():
        if name not in known:
            # Whatever the rows say: files that were written before have no values for it.
            changes.added[above + name] = field.with_nullable(nullable=True)
            yield changes.added[above + name]


def _unified(table: Any, rows: Any, path: str, changes: _Changes) -> pa.DataType:
    """The type that holds values of both; *path* names the column or field."""
    if isinstance(table, pa.StructType) and isinstance(rows, pa.StructType):
        return pa.struct(_unified_fields(table, rows, f"{path}.", changes))
    if isinstance(table, pa.ListType) and isinstance(rows, pa.ListType):
        return pa.list_(
            table.value_field.with_type(_unified(table.value_type, rows.value_type, f"{path}.element", changes))
        )
    if isinstance(table, pa.MapType) and isinstance(rows, pa.MapType):
        return map_of_texts(
            table.item_field.with_type(_unified(table.item_type, rows.item_type, f"{path}.value", changes))
        )
    if _holds(table, rows):
        kept: pa.DataType = table
        return kept
    is_text_for_number = table in _PROMOTIONS and pa.types.is_string(rows)
    if rows in _PROMOTIONS.get(table, ()) and (changes.may_become_text or not is_text_for_number):
        changes.promoted[path] = (table, rows)
        wider: pa.DataType = rows
        return wider
    # There is no way back from a text, and more often than not it comes from a file that was read without types.
    way_out = ", or set hoodie_py.write.numbers.to.text=true if it shall be text for good" if is_text_for_number else ""
    raise ConfigError(
        f"column {path!r} is {rows} in the rows and {table} in the table; cast the column to {table}, or write it "
        f"under a new name{way_out}"
    )


def new_fields(rows: Any, table: Any, path: str) -> Iterator[str]:
    """Yield the paths of fields that a type of rows has and the table's lacks, at any depth; casts leave them out."""
    if isinstance(table, pa.StructType) and isinstance(rows, pa.StructType):
        for field in rows:
            if table.get_field_index(field.name) < 0:
                yield f"{path}.{field.name}"
            else:
                yield from new_fields(field.type, table.field(field.name).type, f"{path}.{field.name}")
    elif isinstance(table, pa.MapType) and isinstance(rows, pa.MapType):
        yield from new_fields(rows.item_type, table.item_type, f"{path}.value")
    elif isinstance(table, pa.ListType) and isinstance(rows, pa.ListType | pa.LargeListType):
        yield from new_fields(rows.value_type, table.value_type, f"{path}.element")


def with_known_types(rows: pa.Schema, table: pa.Schema) -> pa.Schema:
    """
    Return the schema of rows with the types of the table where that of the rows says only that all values are null.

    So are columns of pandas and polars without a value, and lists without elements. What the table lacks stays.
    """
    return pa.schema(
        field.with_type(_known_type(field.type, table.field(field.name).type)) if field.name in table.names else field
        for field in rows
    )


def _known_type(rows: Any, table: Any) -> pa.DataType:
    known: pa.DataType = rows
    if pa.types.is_null(rows):
        known = table
    elif isinstance(rows, pa.StructType) and isinstance(table, pa.StructType):
        inside = {field.name: field.type for field in table}
        known = pa.struct(
            field.with_type(_known_type(field.type, inside[field.name])) if field.name in inside else field
            for field in rows
        )
    elif isinstance(rows, pa.ListType | pa.LargeListType) and isinstance(table, pa.ListType):
        element = _known_type(rows.value_type, table.value_type)
        known = pa.list_(rows.value_field.with_type(element)) if element != rows.value_type else rows
    elif isinstance(rows, pa.MapType) and isinstance(table, pa.MapType):
        make: Any = pa.map_  # the stubs know types only, but a field is what carries "not null"
        known = make(rows.key_type, rows.item_field.with_type(_known_type(rows.item_type, table.item_type)))
    return known


def _holds(table: pa.DataType, rows: pa.DataType) -> bool:
    """Whether values of type *rows*, not nested, can be stored as type *table*, where that loses nothing of them."""
    if isinstance(table, pa.Decimal128Type) and isinstance(rows, pa.Decimal128Type):
        in_front = rows.precision - rows.scale <= table.precision - table.scale
        return bool(rows.scale <= table.scale and in_front)
    # Bytes hold every text, as its UTF-8; a text holds the bytes that are one, of which each value is checked.
    are_texts = {table, rows} == {pa.string(), pa.binary()}
    return bool(rows == table or table in _PROMOTIONS.get(rows, ()) or are_texts)
