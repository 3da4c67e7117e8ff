"""
Partition paths that are formatted from a time, as by Hudi's time-based key generator. Pure.

The value of the column is a number since the epoch in a unit, or a text in one of several patterns; the path has it in
an output pattern and zone.

Source: Hudi 0.15.0, 1.0.2, 1.1.1 ``TimestampBasedAvroKeyGenerator``, ``HoodieDateTimeParser``; fixtures
``cow_timestamp_keygen`` and ``cow_custom_keygen``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs
import pyarrow as pa

from hudi_py.config import keys
from hudi_py.config.keys import Key
from hudi_py.config.settings import Settings
from hudi_py.errors import ConfigError, WriteError
from hudi_py.formats.arrow_types import Array
from hudi_py.formats.joda import JodaPattern

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NANOS: Final = {
    "NANOSECONDS": 1, "MICROSECONDS": 10**3, "MILLISECONDS": 10**6, "SECONDS": 10**9, "MINUTES": 60 * 10**9,
    "HOURS": 3_600 * 10**9, "DAYS": 86_400 * 10**9,
}  # fmt: skip
_UNIT: Final = {
    "UNIX_TIMESTAMP": "SECONDS", "EPOCHMILLISECONDS": "MILLISECONDS", "EPOCHMICROSECONDS": "MICROSECONDS",
}  # fmt: skip
_TEXTS: Final = frozenset({"DATE_STRING", "MIXED"})
_OFFSET_ZONE: Final = re.compile(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?")


@attrs.frozen
class PartitionTime:
    """
    How the values of one partition column become a part of the path.

    Args:
        kind: As in ``hoodie.keygen.timebased.timestamp.type``.
        unit_nanos: Length of the unit of numbers in nanoseconds; None for texts.
        inputs: Patterns of texts, tried in this order; none for numbers.
        output: Pattern of the path.
        input_zone: Zone of texts without an offset; None where each text has one.
        output_zone: Zone of the path; None for that of the text.
    """

    kind: str
    unit_nanos: int | None
    inputs: tuple[JodaPattern, ...]
    output: JodaPattern
    input_zone: str | None
    output_zone: str | None

    def texts(self, column: Array, name: str) -> Array:
        """
        Format each value; null becomes what Hudi makes of it, the time of the number 1.

        Raises:
            ConfigError: The column has a type that cannot be such a time.
            WriteError: A value is not a time in the years 1 to 9999, or matches none of the input patterns.
        """
        # Each distinct value is formatted once: a batch has few days and many rows.
        values = self._as_read(column, name).dictionary_encode()
        texts = [self.text(value, name) for value in values.dictionary.to_pylist()]
        found: Any = pa.array(texts, pa.string()).take(values.indices)
        paths: Array = found if not found.null_count else found.fill_null(self.text(None, name))
        return paths

    def _as_read(self, column: Any, name: str) -> Any:
        types = pa.types
        kind = column.type
        if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
            if self.unit_nanos is None:
                return column.cast(pa.string())
        elif self.unit_nanos is not None:
            if types.is_timestamp(kind) and kind.unit == "us":
                return column.cast(pa.int64())  # as stored: Hudi takes the number, whatever its logical type
            if types.is_signed_integer(kind) or types.is_floating(kind) or types.is_decimal128(kind):
                return column
            if types.is_date32(kind):
                return column.cast(pa.int32())  # days
        raise ConfigError(
            f"partition column {name!r} is {kind}, which cannot be read with {keys.TIME_TYPE.name}={self.kind}; "
            f"{'texts' if self.unit_nanos is None else 'numbers'} are needed"
        )

    def text(self, value: Any, name: str) -> str:
        """
        Format one value.

        Args:
            value: A number, a text, or None.
            name: Of the column, for messages.

        Raises:
            WriteError: As `texts`.
        """
        try:
            return self.output.text(self._time(value, name))
        except (OverflowError, ValueError) as error:
            raise WriteError(
                f"partition column {name!r} has the value {value!r}, which is not a time in the years 1 to 9999 with "
                f"{keys.TIME_TYPE.name}={self.kind}; check the setting"
            ) from error

    def _time(self, value: Any, name: str) -> datetime:
        """Return the time in the zone of the path."""
        if self.unit_nanos is None:
            parsed = self._parsed(self._text_of_null() if value is None else value, name)
            # without a zone for the path, Hudi takes the one that the text was read in
            return parsed if self.output_zone is None else parsed.astimezone(self._output_zone)
        number = 1 if value is None else int(value)  # Java's longValue cuts fractions off
        millis = abs(number) * self.unit_nanos // 10**6 * (1 if number >= 0 else -1)  # to zero, as TimeUnit.convert
        return (_EPOCH + timedelta(milliseconds=millis)).astimezone(self._output_zone)

    @property
    def _output_zone(self) -> tzinfo:
        return timezone.utc if self.output_zone is None else zone_of(self.output_zone, keys.TIME_OUTPUT_ZONE.name)

    @property
    def _input_zone(self) -> tzinfo:
        """UTC stands for none: then every text has an offset."""
        return timezone.utc if self.input_zone is None else zone_of(self.input_zone, keys.TIME_INPUT_ZONE.name)

    def _text_of_null(self) -> str:
        """Hudi prints the first millisecond with the first input pattern, and parses that."""
        zone = self._output_zone if self.input_zone is None else self._input_zone
        return self.inputs[0].text((_EPOCH + timedelta(milliseconds=1)).astimezone(zone))

    def _parsed(self, text: str, name: str) -> datetime:
        for pattern in self.inputs:
            time = pattern.parse(text, self._input_zone)
            if time is not None:
                return time if self.input_zone is None else time.astimezone(self._input_zone)
        raise WriteError(
            f"partition column {name!r} has the value {text!r}, which does not have the form of "
            f"{keys.TIME_INPUT_PATTERN.name}={', '.join(each.pattern for each in self.inputs)}"
        )


@cache
def zone_of(name: str, setting: str) -> tzinfo:
    """
    Return a time zone: a name of the IANA database, or ``GMT+8``.

    Raises:
        ConfigError: It is not known. (Java takes UTC for a name that it does not know.)
    """
    offset = _OFFSET_ZONE.fullmatch(name)
    if offset is not None:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(span if offset[1] == "+" else -span)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"{setting}={name} is not a known time zone; write it as Europe/Rome, UTC or GMT+8"
        ) from error


def partition_time(properties: Mapping[str, str], settings: Settings | None, columns: str) -> PartitionTime:
    """
    Read how times become paths, from the table's properties and the settings of the write.

    Releases of Hudi store some of these settings in the table and others not, so the write has to give the rest.

    Args:
        properties: Of the table.
        settings: Of the write; None where there are none.
        columns: Names of the partition columns, for messages.

    Raises:
        ConfigError: A setting is missing, invalid, or contradicts the table.
    """

    def given(key: Key[str]) -> str | None:
        # A table may have the setting under its older name.
        stored = next((properties[each] for each in (key.name, *key.aliases) if each in properties), None)
        asked = settings[key] if settings is not None and key in settings else None
        if stored is not None and asked is not None and stored != asked:
            raise ConfigError(f"{key.name}={asked}, but the table has {stored!r}; leave the setting out")
        return stored if stored is not None else asked

    def needed(key: Key[str], why: str) -> str:
        found = given(key)
        if not found:
            raise ConfigError(
                f"{key.name} is set neither here nor in the table, but partition column {columns} is a time, and "
                f"{why}; give the setting that the table's other writers have"
            )
        return found

    parser = given(keys.TIME_PARSER)
    if parser and parser.rpartition(".")[2] not in ("HoodieDateTimeParser", "BaseHoodieDateTimeParser"):
        raise ConfigError(f"{keys.TIME_PARSER.name}={parser} is a Java class that hudi_py cannot run")
    kind = needed(keys.TIME_TYPE, "the kind of its values has to be known").upper()
    output = JodaPattern(needed(keys.TIME_OUTPUT_PATTERN, "the form of the path has to be known"))
    inputs: tuple[JodaPattern, ...] = ()
    unit: int | None = None
    if kind in _TEXTS:
        text = needed(keys.TIME_INPUT_PATTERN, "its values are texts")
        delimiter = given(keys.TIME_INPUT_DELIMITER) or keys.TIME_INPUT_DELIMITER.default
        inputs = tuple(JodaPattern(each.strip()) for each in _split(delimiter, text))
    elif kind == "SCALAR":
        unit = _unit(given(keys.TIME_SCALAR_UNIT) or keys.TIME_SCALAR_UNIT.default)
    elif kind in _UNIT:
        unit = _NANOS[_UNIT[kind]]
    else:
        raise ConfigError(f"{keys.TIME_TYPE.name}={kind} is not known; use {', '.join((*_UNIT, *_TEXTS, 'SCALAR'))}")
    both = given(keys.TIME_ZONE)
    found = PartitionTime(
        kind=kind, unit_nanos=unit, inputs=inputs, output=output,
        input_zone=both or given(keys.TIME_INPUT_ZONE) or None,
        output_zone=both or given(keys.TIME_OUTPUT_ZONE) or None,
    )  # fmt: skip
    for pattern in found.inputs:  # refuse here what can be printed only, not at the first row
        pattern.parse("", timezone.utc)
    for zone, key in ((found.input_zone, keys.TIME_INPUT_ZONE), (found.output_zone, keys.TIME_OUTPUT_ZONE)):
        if zone is not None:
            zone_of(zone, key.name)
    # Only a zone that is used has to be given: one whose texts all have an offset is not.
    lacks_input = found.input_zone is None and not all(each.has_offset for each in inputs)
    if lacks_input or (found.output_zone is None and unit is not None):
        key = keys.TIME_INPUT_ZONE if lacks_input else keys.TIME_OUTPUT_ZONE
        raise ConfigError(
            f"{key.name} is set neither here nor in the table; Apache Hudi takes the time zone of the machine that "
            f"writes, which is not known here; set {keys.TIME_ZONE.name}=UTC, or the zone of the table's other writers"
        )
    return found


def _unit(name: str) -> int:
    found = _NANOS.get(name.strip().upper())
    if found is None:
        raise ConfigError(f"{keys.TIME_SCALAR_UNIT.name}={name} is not a unit; use {', '.join(_NANOS)}")
    return found


def _split(delimiter: str, text: str) -> list[str]:
    try:
        return [part for part in re.split(delimiter, text) if part.strip()]
    except re.error as error:
        raise ConfigError(
            f"{keys.TIME_INPUT_DELIMITER.name}={delimiter} is not a regular expression: {error}"
        ) from error
