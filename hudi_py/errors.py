"""
Every error that hudi_py raises on purpose.

Few kinds, because a kind tells the caller what to *do*; what happened, where and why stands in the message::

    HudiError
    ├── TableNotFound          no table at that place                        → fix the path
    ├── UnsupportedTable       a table of a version or kind we do not serve  → upgrade, or use another tool
    ├── ConfigError            a setting or an argument is wrong             → fix the setting
    ├── RefusedError           doing it could lose data                      → take the way out that the message names
    ├── TimelineStateError     the transition is not allowed                 → reload, look again
    ├── ConflictError          another writer won or holds the lock          → redo from a fresh snapshot
    ├── OutcomeUnknown         the write may or may not have landed          → reload, look for your instant
    ├── CorruptMetadata        bytes on storage do not parse                 → repair; nothing was deleted
    ├── WriteError             rows could not be written                     → fix the rows; nothing is visible
    ├── ServiceFailed          committed, but the clean after it failed      → do not write the rows again
    └── StorageError           storage refused or is away                    → check access, retry
        ├── NotFound           no such object
        └── AlreadyExists      create-if-absent found the name taken

All fields are positional, so that an error raised on a Spark executor survives pickling.
"""

from __future__ import annotations

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
    "StorageError",
    "TableNotFound",
    "TimelineStateError",
    "UnsupportedTable",
    "WriteError",
]


class HudiError(Exception):
    """Root of all errors of hudi_py; catching it catches nothing else."""

    exit_code = 1  # of the command line, see the public contract


class TableNotFound(HudiError):
    """There is no Hudi table at the given place."""

    exit_code = 5


class UnsupportedTable(HudiError):
    """The table is of a version, layout or kind that this release does not serve."""

    exit_code = 5


class ConfigError(HudiError):
    """A setting or an argument has a wrong value."""

    exit_code = 2


class RefusedError(HudiError):
    """The operation could lose data and was not started; the message names the way out."""


class TimelineStateError(HudiError):
    """An instant cannot go from its present state to the wanted one."""


class ConflictError(HudiError):
    """Another writer won, or holds the lock."""

    exit_code = 4


class OutcomeUnknown(HudiError):
    """A write was sent and its fate is unknown; nothing may be cleaned up before looking again."""


class CorruptMetadata(HudiError):
    """Bytes at rest do not parse as what they should be."""


class WriteError(HudiError):
    """Rows could not be written; nothing of them is visible."""


class ServiceFailed(HudiError):
    """
    The rows are committed and visible; the clean or the archival that follows a commit failed.

    Writing the rows again would have them twice. The next commit, or a clean, goes on with what was left.

    Args:
        message: What, where, why.
        instant: Requested time of the commit.
    """

    def __init__(self, message: str, instant: str = "") -> None:
        super().__init__(message, instant)
        self.instant = instant

    def __str__(self) -> str:
        return str(self.args[0])


class StorageError(HudiError):
    """
    The storage refused a call or could not be reached.

    Args:
        message: What, where, why.
        retryable: True when the same call may succeed later (time-outs, throttling).
    """

    def __init__(self, message: str, retryable: bool = False) -> None:
        super().__init__(message, retryable)
        self.retryable = retryable

    def __str__(self) -> str:
        return str(self.args[0])


class NotFound(StorageError):
    """No object has that path."""


class AlreadyExists(StorageError):
    """Create-if-absent found an object of that name."""
