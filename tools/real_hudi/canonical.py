"""One textual form for rows, whichever reader they come from (Spark, Arrow, JSON)."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

META_PREFIX = "_hoodie_"


def canonical_value(value: Any) -> Any:
    """
    Turn a Python value into plain JSON.

    Decimals become text with their scale, dates ISO text, timestamps ISO text in UTC with microseconds (naive ones are
    taken as UTC), bytes hexadecimal text, maps and structs objects; NaN and infinities become text.
    """
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        aware = value.replace(tzinfo=dt.timezone.utc) if value.tzinfo is None else value.astimezone(dt.timezone.utc)
        return aware.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): canonical_value(value[key]) for key in value}
    if isinstance(value, (list, tuple)):
        return [canonical_value(item) for item in value]
    return value


def canonical_rows(rows: Iterable[Mapping[str, Any]], *, meta: bool = False) -> list[dict[str, Any]]:
    """
    Rows as plain JSON, in an order that depends on their content only.

    Args:
        rows: Column name to value; nested values as Python objects.
        meta: Keep the ``_hoodie_*`` columns.
    """
    plain = [
        {name: canonical_value(row[name]) for name in sorted(row) if meta or not name.startswith(META_PREFIX)}
        for row in rows
    ]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True, ensure_ascii=False))
