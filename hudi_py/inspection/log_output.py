"""Prints the log events of a command to standard error, as text or as JSON lines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone


class _Json(logging.Formatter):
    """Formats a record as a JSON object: ``time`` (ISO 8601, UTC), ``level``, ``event``, and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, timezone.utc).isoformat()
        event, fields = getattr(record, "event", record.getMessage()), getattr(record, "fields", {})
        return json.dumps({**fields, "time": moment, "level": record.levelname.lower(), "event": event}, default=str)


@contextmanager
def logging_to_stderr(level: str, *, as_json: bool) -> Iterator[None]:
    """
    Print log events to standard error inside the context.

    Args:
        level: Lowest level to print: ``debug``, ``info``, ``warning`` or ``error``.
        as_json: Print one JSON object per line instead of text.
    """
    logger, handler = logging.getLogger("hudi_py"), logging.StreamHandler(sys.stderr)
    if as_json:
        handler.setFormatter(_Json())
    before = logger.level
    logger.addHandler(handler)
    # A program that has set a lower level itself keeps it.
    logger.setLevel(min(level_ for level_ in (before, getattr(logging, level.upper())) if level_))
    try:
        yield
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
