"""
Structured log events, sent to the standard library's logger ``hudi_py``.

Nothing is shown unless the application adds a handler. The message of a log record is the event and its fields as
text; the attributes `event` and `fields` of the record hold them separately. structlog is imported on first use only,
because a command that logs nothing should not wait for the import.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


_is_muted: ContextVar[bool] = ContextVar("hudi_py_log_muted", default=False)


@contextmanager
def warnings_only() -> Iterator[None]:
    """Leave out the events below warnings: of what is only rehearsed they would tell as if it were done."""
    token = _is_muted.set(True)
    try:
        yield
    finally:
        _is_muted.reset(token)


class Log:
    """Writes events with bound context: ``log.info("clean.partition.deleted", files_deleted=3)``."""

    def __init__(self, context: dict[str, Any] | None = None) -> None:
        self._context = context or {}

    def bind(self, **context: Any) -> Log:
        """Return a log that adds these fields to each event."""
        return Log({**self._context, **context})

    @property
    def is_heard(self) -> bool:
        """Whether events of level info are recorded; if not, callers can save the work of counting for them."""
        return not _is_muted.get() and _logger().isEnabledFor(20)

    def debug(self, event: str, **fields: Any) -> None:
        self._emit("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._emit("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._emit("warning", event, fields)

    def _emit(self, level: str, event: str, fields: dict[str, Any]) -> None:
        import logging

        logger = _logger()
        # Asked first, because rendering costs more than most of what is logged.
        number: int = getattr(logging, level.upper())
        if not logger.isEnabledFor(number) or (_is_muted.get() and number < logging.WARNING):
            return
        import structlog

        render = structlog.processors.KeyValueRenderer(key_order=["event"])
        bound = structlog.wrap_logger(logger, processors=[_kept_apart(render)], context_class=dict)
        getattr(bound, level)(event, **{**self._context, **fields})


def _kept_apart(render: Any) -> Any:
    """Return structlog's last processor: it renders the text of the record and adds event and fields to it."""

    def processor(logger: Any, method: str, entry: dict[str, Any]) -> tuple[tuple[str, str], dict[str, Any]]:
        text = render(logger, method, dict(entry))
        # Not as format: the text may have percent signs.
        return ("%s", text), {"extra": {"event": entry.pop("event"), "fields": dict(entry)}}

    return processor


@cache
def _logger() -> logging.Logger:
    import logging

    logger = logging.getLogger("hudi_py")
    # Otherwise logging prints warnings to stderr where the application has no handler.
    logger.addHandler(logging.NullHandler())
    return logger


log = Log()
