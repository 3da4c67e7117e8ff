"""
All texts that a value may have in a record key. Pure.

Text and whole numbers have one. A date is ``2024-01-02``, perhaps its number of days; a decimal is Java's text of it,
with or without an exponent. A timestamp depends on who wrote it:

- its number of microseconds, or of milliseconds in columns of such: Spark, as long as nobody asks for something else;
- ``2024-01-02 03:04:05.678``, what the writer's clock showed: bulk inserts of Spark by the row writer, and other writes
  with ``hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled``;
- its number of milliseconds, moved by the difference of the writer's clock: Flink; ``2024-01-02T03:04:05.678`` with
  that setting.

Which clock that was is stored nowhere, so all of them count. Floats and booleans have no known text.

Source: keys of Hudi 0.15.0, 1.0.2, 1.1.1 and 1.2.0 on Spark, of upserts and bulk inserts with and without the row
writer and that setting, in the zones America/New_York and Asia/Kathmandu; ``RowDataKeyGen``, ``java.sql.Timestamp``.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from typing import Final, TypeAlias

import pyarrow as pa

Forms: TypeAlias = tuple[str, ...]
"""All texts that a value may have in a key; the first one stands for the value."""

_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - clocks are added
_DIGITS_MAX: Final = 100  # more than decimals have
_MILLISECOND: Final = timedelta(milliseconds=1)
_CLOCKS: Final = tuple(timedelta(minutes=15 * quarters) for quarters in range(-72, 73))
"""What clocks may show relative to UTC: quarters of an hour, up to Java's greatest offset in either direction."""
_ODD_CLOCKS_UNTIL: Final = (datetime(1980, 1, 1) - _EPOCH) // timedelta(microseconds=1)  # noqa: DTZ001
"""Before, some places had other offsets; Kiritimati was the last one."""


def forms_of(value: object, arrow: pa.DataType) -> Forms | None:
    """
    All texts of a value of a column in keys; None if they are not known.

    Args:
        value: As in `hudi_py.rows.operand.Operand`: microseconds since 1970 for timestamps.
        arrow: The column's type.
    """
    if (pa.types.is_integer(arrow) and type(value) is int) or (pa.types.is_string(arrow) and type(value) is str):
        return (str(value),)
    if pa.types.is_date32(arrow) and type(value) is date:
        return value.isoformat(), str((value - _EPOCH.date()).days)
    if isinstance(arrow, pa.TimestampType) and type(value) is int:
        return _of_moment(value)
    if isinstance(arrow, pa.Decimal128Type) and isinstance(value, Decimal) and value.is_finite():
        # Of every scale up to that of today: keys keep their text where a column got more digits.
        texts = [text for scale in range(arrow.scale, -1, -1) for text in _of_scale(value, scale)]
        return tuple(dict.fromkeys(texts)) or None
    return None


def _of_moment(micros: int) -> Forms | None:
    if micros < _ODD_CLOCKS_UNTIL:
        return None
    moment = _EPOCH + timedelta(microseconds=micros)
    try:
        shown = [moment + clock for clock in _CLOCKS]
    except OverflowError:  # on some clocks it is the year 10000
        return None
    millis = (str((each - _EPOCH) // _MILLISECOND) for each in shown)
    return str(micros), *millis, *map(_java_timestamp, shown), _java_local_time(moment)


def _java_timestamp(moment: datetime) -> str:
    """Milliseconds without zeros at the end, but at least one digit."""
    return f"{moment.isoformat(' ', 'seconds')}.{f'{moment.microsecond // 1000:03}'.rstrip('0') or '0'}"


def _java_local_time(moment: datetime) -> str:
    """Nothing, seconds, three digits or six after them: what it takes."""
    is_whole_minute = not moment.second and not moment.microsecond
    is_millis = not moment.microsecond % 1000
    fits = "minutes" if is_whole_minute else "milliseconds" if is_millis and moment.microsecond else "auto"
    return moment.isoformat("T", fits)


def _of_scale(value: Decimal, scale: int) -> Forms:
    with localcontext() as context:
        context.prec = _DIGITS_MAX
        exact = value.quantize(Decimal(1).scaleb(-scale))
    return (str(exact), format(exact, "f")) if exact == value else ()
