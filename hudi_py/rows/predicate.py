"""
Conditions on columns: which rows meet them, and what bounds of a column rule out. Pure.

The meaning is Spark SQL's: a comparison with null is not met, NaN equals NaN and is larger than everything else, 0.0
equals -0.0, strings are compared by their UTF-8 bytes. A value is taken in the type of its column, so that ``f = 0.1``
meets a float that was written as 0.1.

Bounds rule a row out only where they are of the column's own type; `Bounds` says what is known, and whatever is
unknown rules nothing out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Protocol

import attrs
import pyarrow as pa

from hudi_py.errors import ConfigError
from hudi_py.formats.arrow_types import Array, compute
from hudi_py.model.instant_time import EPOCH
from hudi_py.rows.condition import IS_NOT_NULL, IS_NULL, Condition

_MICROSECOND: Final = timedelta(microseconds=1)
_LONG_MAX: Final = 2**63 - 1
_DECIMAL_DIGITS_MAX: Final = 76


@attrs.frozen(kw_only=True)
class Bounds:
    """
    What is known of one column in some rows.

    Args:
        minimum: No value is smaller; in the form of `Filter.value`. None where unknown.
        maximum: No value is larger.
        has_only_nulls: Known to hold no value at all.
        has_nulls: False where it is known to hold no null.
    """

    minimum: Any = None
    maximum: Any = None
    has_only_nulls: bool = False
    has_nulls: bool = True


UNKNOWN: Final = Bounds()


class RowFilter(Protocol):
    """What decides about rows by one column."""

    @property
    def column(self) -> str:
        """Name of the column."""

    @property
    def arrow(self) -> pa.DataType:
        """Type of the column in the rows that `mask` gets."""

    def mask(self, column: Array) -> Array:
        """Which rows meet it: true, false or null, which is not met either."""

    def may_match(self, bounds: Bounds) -> bool:
        """Whether a row within *bounds* may meet it."""


@attrs.frozen
class Filter:
    """
    A condition on a column of known type.

    Args:
        condition: As given.
        arrow: Type of the column in the rows that `mask` gets.
        value: To compare with: bool, int (microseconds since 1970, UTC, for timestamps), float, str, date or Decimal;
            None where the operator takes none.
    """

    condition: Condition
    arrow: pa.DataType
    value: Any

    @property
    def column(self) -> str:
        """Name of the column."""
        return self.condition.column

    def mask(self, column: Array) -> Array:
        """Which rows meet it: true, false or null, which is not met either."""
        operator = self.condition.operator
        if operator in (IS_NULL, IS_NOT_NULL):
            result: Array = compute.is_null(column) if operator == IS_NULL else compute.is_valid(column)
            return result
        if pa.types.is_floating(self.arrow):
            return _float_mask(column, operator, self.value, self.arrow)
        if pa.types.is_decimal(self.arrow):
            wide = _wide_decimal(self.arrow, self.value)
            return _compared(column.cast(wide), operator, pa.scalar(self.value, wide))
        if pa.types.is_integer(self.arrow):
            return _compared(column.cast(pa.int64()), operator, pa.scalar(self.value, pa.int64()))
        if pa.types.is_timestamp(self.arrow):
            return _compared(column.cast(pa.int64()), operator, pa.scalar(self.value, pa.int64()))
        return _compared(column, operator, pa.scalar(self.value, self.arrow))

    def may_match(self, bounds: Bounds) -> bool:
        """Whether a row within *bounds* may meet it."""
        operator = self.condition.operator
        if operator == IS_NULL:
            return bounds.has_nulls
        if bounds.has_only_nulls:
            return False
        if operator == IS_NOT_NULL or bounds.minimum is None or bounds.maximum is None:
            return True
        if pa.types.is_floating(self.arrow) and (math.isnan(self.value) or operator in ("!=", ">", ">=")):
            return True  # bounds do not tell of a NaN
        low, high, value = bounds.minimum, bounds.maximum, self.value
        verdicts = {
            "=": low <= value <= high,
            "!=": not low == value == high,
            "<": low < value,
            "<=": low <= value,
            ">": high > value,
            ">=": high >= value,
        }
        return bool(verdicts[operator])


@attrs.frozen
class OneOf:
    """
    Rows with one of some texts in a column; see `RowFilter`.

    Args:
        column: Name of the column.
        values: The texts.
    """

    column: str
    values: frozenset[str]

    arrow = pa.string()

    def mask(self, column: Array) -> Array:
        """Which rows have one of them."""
        if len(self.values) > len(column):  # the other way makes a hash table of all values each time
            here: Array = pa.array([value in self.values for value in column.to_pylist()], pa.bool_())
            return here
        found: Array = compute.is_in(column, value_set=pa.array(sorted(self.values), pa.string()))
        return found

    def may_match(self, bounds: Bounds) -> bool:
        """Whether a row within *bounds* may have one."""
        if bounds.has_only_nulls or bounds.minimum is None or bounds.maximum is None:
            return not bounds.has_only_nulls
        return any(bounds.minimum <= value <= bounds.maximum for value in self.values)


def filters_of(conditions: Sequence[Condition], schema: pa.Schema) -> tuple[Filter, ...]:
    """
    Conditions bound to the columns of *schema*.

    Raises:
        ConfigError: A value is none of its column's type, or the type has no order.
    """
    return tuple(Filter(each, schema.field(each.column).type, _value(each, schema)) for each in conditions)


def filtered(batch: pa.RecordBatch, filters: Sequence[RowFilter]) -> pa.RecordBatch:
    """The rows that meet all of *filters*."""
    for each in filters:
        batch = batch.filter(each.mask(batch.column(each.column)))
    return batch


def _value(condition: Condition, schema: pa.Schema) -> Any:
    if condition.operator in (IS_NULL, IS_NOT_NULL):
        return None
    arrow = schema.field(condition.column).type
    try:
        return _parsed(condition.text, arrow)
    except (ValueError, InvalidOperation, OverflowError) as error:
        raise ConfigError(
            f"{condition.column} {condition.operator} {condition.text}: {condition.text!r} is no value of the column's "
            f"type {arrow}; dates are written 2026-11-21, times 2026-11-21T08:30:00 (UTC without an offset)"
        ) from error


def _parsed(text: str, arrow: pa.DataType) -> Any:
    if pa.types.is_integer(arrow):
        value = int(text)
        if abs(value) > _LONG_MAX:
            raise OverflowError(text)
        return value
    if pa.types.is_floating(arrow):
        return pa.scalar(float(text), pa.float64()).cast(arrow).as_py()
    if pa.types.is_boolean(arrow):
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if pa.types.is_string(arrow) or pa.types.is_large_string(arrow):
        return text
    if pa.types.is_decimal(arrow):
        number = Decimal(text)
        if not number.is_finite():
            raise ValueError(text)
        _wide_decimal(arrow, number)
        return number
    if pa.types.is_date(arrow):
        return date.fromisoformat(text)
    if pa.types.is_timestamp(arrow) and arrow.unit == "us":
        return _micros(datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text)), arrow)
    raise ConfigError(f"a column of type {arrow} cannot be compared; `is null` and `is not null` can be asked")


def _micros(moment: datetime, arrow: Any) -> int:
    if moment.tzinfo is not None and arrow.tz is None:
        raise ValueError("the column's times have no zone")
    return micros_of(moment)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970; a time without zone counts as UTC."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return (aware - EPOCH) // _MICROSECOND


def _wide_decimal(arrow: Any, value: Decimal) -> pa.DataType:
    """A type that holds the column's values and the one they are compared with."""
    exponent = value.as_tuple().exponent
    scale = max(arrow.scale, -exponent if isinstance(exponent, int) else 0)
    whole = max(arrow.precision - arrow.scale, value.adjusted() + 1, 1)
    if scale + whole > _DECIMAL_DIGITS_MAX:
        raise ValueError(f"more than {_DECIMAL_DIGITS_MAX} digits")
    return pa.decimal256(scale + whole, scale)


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
