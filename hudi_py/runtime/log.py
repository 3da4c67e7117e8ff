"""
Structured events, to the standard library's logger ``hudi_py``: whoever uses the package decides where they go.

Quiet by default: without a handler of the application's nothing is shown. A record's message is the event with its
fields as text; `event` and `fields` of the record keep them apart. structlog is imported on first use only: a command
that logs nothing should not pay for it.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging


class Log:
    """Events with bound context: ``log.info("clean.partition.deleted", files_deleted=3)``."""

    def __init__(self, context: dict[str, Any] | None = None) -> None:
        self._context = context or {}

    def bind(self, **context: Any) -> Log:
        """A log with more context."""
        return Log({**self._context, **context})

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens to what is more than a warning; else counting for it is not worth it."""
        return _logger().isEnabledFor(20)

    def debug(self, event: str, **fields: Any) -> None:
        self._emit("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._emit("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._emit("warning", event, fields)

    def _emit(self, level: str, event: str, fields: dict[str, Any]) -> None:
        import logging

        logger = _logger()
        if not logger.isEnabledFor(getattr(logging, level.upper())):
            return
        import structlog

        render = structlog.processors.KeyValueRenderer(key_order=["event"])
        bound = structlog.wrap_logger(logger, processors=[_kept_apart(render)], context_class=dict)
        getattr(bound, level)(event, **{**self._context, **fields})


def _kept_apart(render: Any) -> Any:
    """The last processor: text for every handler, and the fields for those that can use them."""

    def processor(logger: Any, method: str, entry: dict[str, Any]) -> tuple[tuple[str, str], dict[str, Any]]:
        text = render(logger, method, dict(entry))
        return ("%s", text), {"extra": {"event": entry.pop("event"), "fields": dict(entry)}}

    return processor


@cache
def _logger() -> logging.Logger:
    import logging

    logger = logging.getLogger("hudi_py")
    logger.addHandler(logging.NullHandler())
    return logger


log = Log()
