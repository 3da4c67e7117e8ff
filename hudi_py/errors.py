"""
All errors that hudi_py raises on purpose.

There are few classes, one for each thing that a caller can do about an error. The message says what happened, where and
why; after its last semicolon, if it has one, what to do, perhaps after a sentence that nothing was changed::

    HudiError
    ├── TableNotFound          there is no table at this location            → fix the path
    ├── UnsupportedTable       version or kind of the table not supported    → upgrade, or use another tool
    ├── ConfigError            a setting or an argument is invalid           → fix the setting
    ├── RefusedError           the operation could lose data                 → do what the message says
    ├── TimelineStateError     the state of an instant does not allow this   → reload, look again
    ├── ConflictError          another process won or holds the lock         → repeat with a fresh snapshot
    ├── OutcomeUnknown         the write may or may not have happened        → reload, look for your instant
    ├── CorruptMetadata        a file is damaged                             → repair; nothing was deleted
    ├── WriteError             rows could not be written                     → fix the rows; nothing was committed
    ├── ServiceFailed          committed, but the clean after it failed      → do not write the rows again
    └── StorageError           the storage failed or is unreachable          → check access, retry
        ├── NotFound           there is no such object
        └── AlreadyExists      create-if-absent found an object with this name

All fields are positional, so that errors of Spark executors can be pickled.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "AlreadyExists",
    "ConfigError",
    "ConflictError",
    "CorruptMetadata",
    "HudiError",
    "NotFound",
    "OutcomeUnknown",
    "RefusedError",
    "ServiceFailed",
    "SpillError",
    "StorageError",
    "TableNotFound",
    "TimelineStateError",
    "UnsupportedTable",
    "WriteError",
]


_NOTHING_DONE: Final = re.compile(r"nothing was \w+(?:\.\s+|$)")
"""What a message may say before the advice, or in its place."""


class HudiError(Exception):
    """Base class of all errors of hudi_py."""

    exit_code = 1  # exit code of the command line for this error
    advice = "--debug shows where it happened"  # what to do, for messages that do not say it

    @property
    def fix(self) -> str:
        """What to do about it, in words: from the message, or else what helps with errors of this class."""
        _, semicolon, last = str(self).rpartition("; ")
        said = _NOTHING_DONE.sub("", last, count=1) if _NOTHING_DONE.match(last) else last
        return (said if semicolon else "") or self.advice


class TableNotFound(HudiError):
    """There is no Hudi table at the given location."""

    exit_code = 5
    advice = "check the path and the storage options"


class UnsupportedTable(HudiError):
    """The table has a version, layout or kind that this release does not support."""

    exit_code = 5
    advice = "use a tool that supports this table"


class ConfigError(HudiError):
    """A setting or an argument is invalid."""

    exit_code = 2
    advice = "correct the setting or the argument"


class RefusedError(HudiError):
    """The operation could lose data and was not started; the message says what to do instead."""

    advice = "look at the table with hudi-py check"


class TimelineStateError(HudiError):
    """An instant cannot change from its current state to the requested one."""

    advice = "look at the timeline again, then repeat the command"


class ConflictError(HudiError):
    """Another process changed the table first, or holds the lock."""

    exit_code = 4
    advice = "try again"


class OutcomeUnknown(HudiError):
    """A write was sent but not confirmed. Reload before cleaning up or repeating it: it may have happened."""

    advice = "look for the instant with hudi-py timeline before repeating the command"


class CorruptMetadata(HudiError):
    """A file of the table is damaged: its content is not what it should be."""

    advice = "see what is damaged with hudi-py check"


class WriteError(HudiError):
    """Rows could not be written; nothing was committed."""

    advice = "correct the rows and write them again; nothing was committed"


class SpillError(WriteError):
    """Rows do not fit into memory, and the temporary file for them failed; nothing was committed."""

    advice = "free space there, or name another folder with hoodie.memory.spillable.map.path; nothing was committed"


class ServiceFailed(HudiError):
    """
    The rows are committed and visible, but the clean or the archival after the commit failed.

    Do not write the rows again: they would be in the table twice. The next commit, or a clean, continues the service.

    Args:
        message: What, where, why.
        instant: Requested time of the commit.
    """

    advice = "do not write the rows again; run hudi-py clean"

    def __init__(self, message: str, instant: str = "") -> None:
        # Both go to `Exception`, because pickling keeps only its arguments.
        super().__init__(message, instant)
        self.instant = instant

    def __str__(self) -> str:
        return str(self.args[0])


class StorageError(HudiError):
    """
    The storage refused a call or could not be reached.

    Args:
        message: What, where, why.
        retryable: Whether the same call may succeed later (time-outs, throttling).
    """

    advice = "check the access to the storage, then try again"

    def __init__(self, message: str, retryable: bool = False) -> None:
        super().__init__(message, retryable)
        self.retryable = retryable

    def __str__(self) -> str:
        return str(self.args[0])


class NotFound(StorageError):
    """There is no object with this path."""


class AlreadyExists(StorageError):
    """Create-if-absent found an object with this name."""
