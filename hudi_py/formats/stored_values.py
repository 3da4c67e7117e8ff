"""
Rows of older files, and rows that users write, in the table's types of today, with the values that Apache Hudi gives
them.

Hudi converts single values where a file or a row has an older type than the table: a float becomes the double with the
same shortest text (0.1 stays 0.1), integers become the nearest float or double, numbers become Java's texts and
timestamps Spark's.

Source: Hudi 0.15.0 ``HoodieAvroUtils.rewritePrimaryTypeWithDiffSchemaType``, ``HoodieParquetFileFormatHelper``; Java
``Double.toString``.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hudi_py.errors import WriteError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.formats.conform import cast_exactly, conform_batch
from hudi_py.formats.read_types import lists_of_vectors

# Java writes smaller and greater numbers with an exponent.
_PLAIN_MIN: Final = 1e-3
_PLAIN_MAX: Final = 1e7
_SUBNORMAL: Final = 1e-37  # floats below it, and doubles below 1e-307, have fewer digits
_INTEGER_DIGITS: Final = 20
_NAMES: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def conform_stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """
    As `conform_batch`, for rows that were read from a file of the table.

    Raises:
        WriteError: A value does not fit its type, or is null where the schema has no nulls.
    """
    return conform_batch(batch, schema, as_hudi_reads)


def conform_given(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """
    As `conform_batch`, for rows that users write: values as Apache Hudi stores them, but none that it would round.

    Raises:
        WriteError: A value does not fit its type, or is null where the schema has no nulls.
    """
    return conform_batch(batch, schema, _as_hudi_stores)


def widen_floats(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """
    Return the batch with floats that *schema* has as doubles turned into those of the same value, at any depth.

    So do Hudi 0.15 and 1.0 with the rows of Avro log blocks, which Avro itself reads in the newer schema; unless
    numbers have become texts there, which Avro cannot, and Hudi converts each value of the row by itself.
    """
    types = [(field.type, schema.field(field.name).type) for field in batch.schema if field.name in schema.names]
    if any(_has_new_texts(was, target) for was, target in types):
        return batch
    for position, field in enumerate(batch.schema):
        target = schema.field(field.name) if field.name in schema.names else None
        wider = None if target is None else _with_doubles(field.type, target.type)
        if wider is not None and wider != field.type:
            batch = batch.set_column(position, field.with_type(wider), batch.column(position).cast(wider))
    return batch


def _with_doubles(was: pa.DataType, target: pa.DataType) -> pa.DataType:
    """The stored type, with doubles where the target has doubles for floats."""
    if pa.types.is_float32(was) and pa.types.is_float64(target):
        return target
    if isinstance(was, pa.StructType) and isinstance(target, pa.StructType):
        types = {field.name: field.type for field in target}
        return pa.struct([f.with_type(_with_doubles(f.type, types[f.name])) if f.name in types else f for f in was])
    if isinstance(was, pa.ListType) and isinstance(target, pa.ListType):
        return pa.list_(was.value_field.with_type(_with_doubles(was.value_type, target.value_type)))
    if isinstance(was, pa.MapType) and isinstance(target, pa.MapType):
        return pa.map_(was.key_type, _with_doubles(was.item_type, target.item_type))
    return was


def _has_new_texts(was: pa.DataType, target: pa.DataType) -> bool:
    if isinstance(was, pa.StructType) and isinstance(target, pa.StructType):
        types = {field.name: field.type for field in target}
        return any(_has_new_texts(field.type, types[field.name]) for field in was if field.name in types)
    if isinstance(was, pa.ListType) and isinstance(target, pa.ListType):
        return _has_new_texts(was.value_type, target.value_type)
    if isinstance(was, pa.MapType) and isinstance(target, pa.MapType):
        return _has_new_texts(was.item_type, target.item_type)
    return pa.types.is_string(target) and (pa.types.is_integer(was) or pa.types.is_floating(was))


def _as_hudi_stores(array: Array, target: pa.DataType, path: str) -> Array:
    """As `as_hudi_reads`, but an integer has to be a float or double exactly: the user can still choose."""
    found = as_hudi_reads(array, target, path)
    if pa.types.is_integer(array.type) and pa.types.is_floating(target):
        # Arrow's own check refuses all integers beyond 2^24 or 2^53, also those that these types hold.
        back = found.cast(pa.float64()).cast(pa.decimal128(38, 0))
        differs = compute.not_equal(back, array.cast(pa.decimal128(38, 0)))
        if compute.any(differs).as_py():
            value = array.filter(differs)[0].as_py()
            raise WriteError(
                f"column {path!r}: {array.type} cannot be converted to {target}: {value} would become "
                f"{found.filter(differs)[0].as_py():.0f}"
            )
    return found


def as_hudi_reads(array: Array, target: pa.DataType, path: str) -> Array:
    """
    A `hudi_py.formats.conform.Convert` for values that were read from a file of the table.

    Raises:
        WriteError: A value does not fit.
    """
    was = array.type
    if pa.types.is_float32(was) and pa.types.is_float64(target):
        # Arrow writes the shortest text that means the same float, as Java does.
        return array.cast(pa.string()).cast(target)
    if pa.types.is_integer(was) and pa.types.is_floating(target):
        return array.cast(target, safe=False)  # the nearest: beyond 2^53 not every integer is a double
    if pa.types.is_floating(was) and pa.types.is_string(target):
        return _texts(array)
    if pa.types.is_timestamp(was) and pa.types.is_string(target):
        # Spark's text: in UTC without a zone, and a fraction only where it is not zero.
        texts = compute.strftime(array.cast(pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
        trimmed: Array = compute.utf8_rtrim(compute.utf8_rtrim(texts, "0"), ".")
        return trimmed
    if isinstance(was, pa.FixedSizeBinaryType) and isinstance(target, pa.ListType):
        try:
            return lists_of_vectors(array, target)
        except ValueError as error:
            raise WriteError(f"column {path!r}: {error}") from error
    return cast_exactly(array, target, path)


def as_spark_casts(array: Array, target: pa.DataType, path: str) -> Array:
    """
    A `hudi_py.formats.conform.Convert` for values of statements, as Spark SQL casts them, but none that it would round:
    a float stays the same number as a double, and numbers and timestamps have the texts that they have in rows of other
    writes.

    Raises:
        pa.ArrowInvalid, pa.ArrowNotImplementedError: A value does not fit, or none of the type does.
    """
    was = array.type
    if pa.types.is_string(target) and (pa.types.is_floating(was) or pa.types.is_timestamp(was)):
        return as_hudi_reads(array, target, path)
    if pa.types.is_integer(was) and pa.types.is_decimal(target):
        array = array.cast(pa.decimal128(_INTEGER_DIGITS, 0))  # else Arrow asks the type for room, and not the values
    cast: Array = array.cast(target)
    if pa.types.is_floating(was) and pa.types.is_decimal(target):
        rounded = compute.not_equal(cast.cast(pa.float64()), array.cast(pa.float64()))
        if compute.any(rounded).as_py():
            raise pa.ArrowInvalid(f"{array.filter(rounded)[0].as_py()} would be rounded")
    if pa.types.is_timestamp(was) and pa.types.is_date(target):
        cut = compute.not_equal(cast.cast(pa.timestamp("us")), array.cast(pa.timestamp("us")))
        if compute.any(cut).as_py():
            text = as_hudi_reads(array.filter(cut)[:1], pa.string(), path)[0].as_py()
            raise pa.ArrowInvalid(f"{text} is not the beginning of a day, and its time would be cut off")
    return cast


def _texts(array: Array) -> Array:
    encoded: Any = array.dictionary_encode()
    values = encoded.dictionary.to_numpy(zero_copy_only=False)
    texts = pa.array([java_text(value) for value in values], pa.string())
    found: Array = texts.take(encoded.indices)
    return found


def java_text(value: np.floating[Any] | float) -> str:
    """
    The text of a float or double as Java writes it: ``15.0``, ``1.0E7``, ``9.999E-4``.

    It has the fewest digits that mean the same number, as in Java since release 19; older releases write more digits
    of some numbers.
    """
    text = repr(float(value)) if not isinstance(value, np.float32) else str(value)
    if not math.isfinite(value):
        return _NAMES[text.lower()]
    if 0 < abs(float(value)) < _SUBNORMAL:
        # Java writes at least two digits, and so the nearest two even where one would do: 4.9E-324.
        nearest = f"{value:.1e}"
        text = nearest if len(text.lstrip("-").partition("e")[0]) == 1 else text
    mantissa, _, exponent = text.partition("e")
    sign, mantissa = ("-", mantissa[1:]) if mantissa.startswith("-") else ("", mantissa)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    if not digits:
        return f"{sign}0.0"
    # the number is 0.DIGITS times ten to the power of this
    power = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if _PLAIN_MIN <= abs(float(value)) < _PLAIN_MAX:
        if power <= 0:
            return f"{sign}0.{'0' * -power}{digits}"
        return f"{sign}{digits[:power].ljust(power, '0')}.{digits[power:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power - 1}"
