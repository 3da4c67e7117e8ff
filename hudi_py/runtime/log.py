"""
Structured events, on standard error.

structlog is imported on first use only: a command that logs nothing should not pay for it.
"""

from __future__ import annotations

from typing import Any


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
        import logging

        return logging.getLogger("hudi_py").isEnabledFor(logging.INFO)

    def debug(self, event: str, **fields: Any) -> None:
        self._emit("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._emit("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        self._emit("warning", event, fields)

    def _emit(self, level: str, event: str, fields: dict[str, Any]) -> None:
        import logging

        number = getattr(logging, level.upper())
        if not logging.getLogger("hudi_py").isEnabledFor(number):
            return
        import structlog

        logger = structlog.wrap_logger(
            logging.getLogger("hudi_py"),
            processors=[structlog.processors.KeyValueRenderer(key_order=["event"])],
        )
        getattr(logger, level)(event, **{**self._context, **fields})


log = Log()
