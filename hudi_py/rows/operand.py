"""
The value of a condition, in the type in which Spark SQL compares it with the column. Pure.

Text is converted to the column's type, so ``f = '0.1'`` matches a float that was written as 0.1. A number is compared
as a number: with integers and decimals exactly, with floats (and floats with integers and decimals) as doubles, so
``f = 0.1`` does not match that float. Conditions for which Spark SQL would convert each text of the column to a number,
a date or a boolean are refused: whether a text can be converted is known only once it is read.

NaN equals NaN and is larger than everything else, 0.0 equals -0.0, strings are compared by their UTF-8 bytes.

Source: Spark 3.5 ``TypeCoercion``, ``AnsiTypeCoercion`` (floats with integers), "NaN Semantics" of its SQL reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.model.instant_time import EPOCH
from hudi_py.rows.condition import Value, Word
from hudi_py.rows.condition_text import NUMBER
from hudi_py.rows.condition_times import day_of, moment_of

_MICROSECOND: Final = timedelta(microseconds=1)
_LONG: Final = range(-(2**63), 2**63)
_LONG_DIGITS: Final = 19
_DECIMAL_DIGITS_MAX: Final = 76
_ROUNDING: Final = 1e-12
"""Much more than a decimal loses on its way to a double, relative to its size."""


@attrs.frozen
class Operand:
    """
    A value that a column is compared with.

    Args:
        arrow: The type that both are compared in; int64 for timestamps (microseconds since 1970, UTC).
        value: A value of that type.
    """

    arrow: pa.DataType
    value: Any

    def mask(self, column: Array, operator: str) -> Array:
        """For which values of *column* the comparison is true; null for nulls."""
        values = _in_type(column, self.arrow)
        if pa.types.is_floating(self.arrow):
            return _float_mask(values, operator, self.value, self.arrow)
        return _compared(values, operator, pa.scalar(self.value, self.arrow))

    def range_of(self, low: Any, high: Any) -> tuple[Any, Any]:
        """Bounds of a column's values, converted to the type of the comparison; they may become wider."""
        if not pa.types.is_floating(self.arrow) or isinstance(low, float):
            return low, high
        if isinstance(low, Decimal):
            least, greatest = float(low), float(high)
            # Wider, never narrower: a bound that was rounded the wrong way would rule out a file that has matching
            # rows.
            return least - abs(least) * _ROUNDING, greatest + abs(greatest) * _ROUNDING
        return float(low), float(high)


def operand_of(value: Value, arrow: pa.DataType, condition: str) -> Operand:
    """
    Convert a value for comparisons with a column of one type.

    Args:
        value: Any value except None.
        arrow: Type of the column.
        condition: The condition as text, for the error.

    Raises:
        ConfigError: Columns of the type cannot be compared, or not with this value.
    """
    try:
        for is_type, make in _KINDS:
            if is_type(arrow):
                found: Operand | None = make(_plain(value, arrow), arrow)
                if found is not None:
                    return found
                break
        else:
            raise ConfigError(
                f"{condition}: a column of type {arrow} cannot be compared; `is null` and `is not null` can be asked"
            )
    except (ValueError, InvalidOperation, OverflowError):
        pass
    shown = value.text if isinstance(value, Word) else value
    raise ConfigError(
        f"{condition}: {shown!r} is not a value of the column's type {arrow}; {_hint(value, arrow)}"
    ) from None


def _plain(value: Value, arrow: pa.DataType) -> Any:
    """A word without quotes counts as text; None for a number that is compared with a column of text."""
    if not isinstance(value, Word):
        return value
    return None if _is_text(arrow) and NUMBER.fullmatch(value.text) else value.text


def is_in_mask(column: Array, operands: Iterable[Operand]) -> Array:
    """Which values equal one of *operands*; false for nulls."""
    by_type: dict[pa.DataType, list[Any]] = {}
    for operand in operands:
        by_type.setdefault(operand.arrow, []).append(operand.value)
    found: Array = pa.repeat(pa.scalar(value=False), len(column))
    for arrow, wanted in by_type.items():
        values = _in_type(column, arrow)
        if pa.types.is_floating(arrow):  # looked up by their bits: both zeros have to be one
            values = compute.add(values, pa.scalar(0.0, arrow))
            wanted = [value + 0.0 for value in wanted]
        found = compute.or_(found, compute.is_in(values, value_set=pa.array(wanted, arrow)))
    return found


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970; a time without zone counts as UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (aware - EPOCH) // _MICROSECOND


def _hint(value: Value, arrow: pa.DataType) -> str:
    if _is_text(arrow):
        return "to compare texts, put it in quotes"
    if pa.types.is_integer(arrow):
        first, last = _values_of(arrow)[0], _values_of(arrow)[-1]
        return f"texts stand for whole numbers from {first} to {last}; leave out the quotes of another number"
    if isinstance(value, datetime) and pa.types.is_date(arrow):
        return "compare with a date, as in date '2026-11-21'"
    return "dates are written 2026-11-21, times 2026-11-21T08:30:00 (UTC without an offset)"


# --- by type of column; None if the value cannot be compared with it --------------------------------------------------
def _text(value: Any, arrow: pa.DataType) -> Operand | None:
    return Operand(arrow, value) if isinstance(value, str) else None


def _boolean(value: Any, arrow: pa.DataType) -> Operand | None:
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return Operand(arrow, value.strip().lower() == "true")
    return Operand(arrow, value) if isinstance(value, bool) else None


def _date(value: Any, arrow: pa.DataType) -> Operand | None:
    if isinstance(value, str):
        return Operand(arrow, day_of(value))
    return Operand(arrow, value) if isinstance(value, date) and not isinstance(value, datetime) else None


def _timestamp(value: Any, arrow: Any) -> Operand | None:
    if isinstance(value, str):
        value = moment_of(value)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - counts as UTC
    if not isinstance(value, datetime) or (value.tzinfo is not None and arrow.tz is None):
        return None
    return Operand(pa.int64(), micros_of(value))


def _integer(value: Any, arrow: Any) -> Operand | None:
    if isinstance(value, str):
        value = int(_sql_number(value))
        # Spark SQL cannot convert a longer number to the column's type; one without quotes has a type of its own.
        if value not in _values_of(arrow):
            return None
    if isinstance(value, int) and not isinstance(value, bool) and value in _LONG:
        return Operand(pa.int64(), value)
    return _number(value, scale=0, whole=_LONG_DIGITS)


def _values_of(arrow: Any) -> range:
    """All values of a type of whole numbers with a sign; those of Hudi have 32 or 64 bits."""
    return range(-(2 ** (arrow.bit_width - 1)), 2 ** (arrow.bit_width - 1))


def _floating(value: Any, arrow: pa.DataType) -> Operand | None:
    if isinstance(value, str):
        return Operand(arrow, pa.scalar(float(_sql_number(value)), pa.float64()).cast(arrow).as_py())
    is_number = isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    return Operand(pa.float64(), float(value)) if is_number else None


def _decimal(value: Any, arrow: Any) -> Operand | None:
    number = Decimal(_sql_number(value)) if isinstance(value, str) else value
    return _number(number, scale=arrow.scale, whole=arrow.precision - arrow.scale)


def _sql_number(text: str) -> str:
    """The same text; raises `ValueError` for numbers to Python alone: 1_000, and digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return text


def _number(value: Any, *, scale: int, whole: int) -> Operand | None:
    """A decimal that has enough digits before and after the point for the column's values and for this value."""
    if isinstance(value, float):
        return Operand(pa.float64(), value)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    number = Decimal(value)
    if not number.is_finite():
        return None
    # With room for the digits of both, the comparison is exact; a decimal that would need more is refused.
    exponent = number.as_tuple().exponent
    scale = max(scale, -exponent if isinstance(exponent, int) else 0)
    whole = max(whole, number.adjusted() + 1, 1)
    return Operand(pa.decimal256(scale + whole, scale), number) if scale + whole <= _DECIMAL_DIGITS_MAX else None


def _is_text(arrow: pa.DataType) -> bool:
    return pa.types.is_string(arrow) or pa.types.is_large_string(arrow)


def _is_micros(arrow: Any) -> bool:
    return pa.types.is_timestamp(arrow) and arrow.unit == "us"


_KINDS: Final[Any] = (
    (_is_text, _text),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _floating),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, _date),
    (_is_micros, _timestamp),
)


# --- comparing --------------------------------------------------------------------------------------------------------
def _in_type(column: Array, arrow: pa.DataType) -> Array:
    if column.type == arrow:
        return column
    if pa.types.is_decimal(arrow) and pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    return column.cast(arrow, safe=not pa.types.is_floating(arrow))  # a large integer is rounded to a double


def _float_mask(column: Array, operator: str, value: float, arrow: pa.DataType) -> Array:
    is_nan: Array = compute.is_nan(column)
    if math.isnan(value):
        masks: dict[str, Array] = {
            "=": is_nan,
            "!=": compute.invert(is_nan),
            "<": compute.invert(is_nan),
            "<=": compute.or_(is_nan, compute.invert(is_nan)),
            ">": compute.and_(is_nan, compute.invert(is_nan)),
            ">=": is_nan,
        }
        return masks[operator]
    compared = _compared(column, operator, pa.scalar(value, arrow))
    if operator in (">", ">="):
        compared = compute.or_(compared, is_nan)
    return compared


def _compared(column: Array, operator: str, value: Any) -> Array:
    names = {
        "=": compute.equal,
        "!=": compute.not_equal,
        "<": compute.less,
        "<=": compute.less_equal,
        ">": compute.greater,
        ">=": compute.greater_equal,
    }
    result: Array = names[operator](column, value)
    return result
