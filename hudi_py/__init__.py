"""
hudi_py: Apache Hudi tables from Python.

Everything public is here; nothing else is, except `hudi_py.testing`. What needs Spark is imported when it is used, so
looking at a table costs no pyspark.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hudi_py.errors import (
    AlreadyExists,
    ConfigError,
    ConflictError,
    CorruptMetadata,
    HudiError,
    NotFound,
    OutcomeUnknown,
    RefusedError,
    ServiceFailed,
    StorageError,
    TableNotFound,
    TimelineStateError,
    UnsupportedTable,
    WriteError,
)
from hudi_py.model.release import RELEASE

__version__ = RELEASE

if TYPE_CHECKING:
    from hudi_py.model.files import BaseFile, FileGroup, FileSlice, LogFile
    from hudi_py.model.instant import Action, Instant, State
    from hudi_py.rows.condition import Column, Condition
    from hudi_py.services.check.findings import Finding, Severity
    from hudi_py.services.clean.executing.watch import CleanProgress
    from hudi_py.services.clean.planner import CleanPlanner
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.recovery.finding import RecoveryFinding, RecoveryOutcome
    from hudi_py.snapshot.overview import Overview
    from hudi_py.snapshot.rows import Rows
    from hudi_py.snapshot.snapshot import Snapshot
    from hudi_py.spark.client import WriteClient, WriteResult
    from hudi_py.spark.read import read
    from hudi_py.table import Table, open_table
    from hudi_py.timeline.timeline import Timeline

_LAZY = {
    "Action": "model.instant",
    "BaseFile": "model.files",
    "CleanPlan": "services.clean.planning.plan",
    "CleanPlanner": "services.clean.planner",
    "CleanProgress": "services.clean.executing.watch",
    "CleanResult": "services.clean.result",
    "Column": "rows.condition",
    "Condition": "rows.condition",
    "FileGroup": "model.files",
    "FileSlice": "model.files",
    "Finding": "services.check.findings",
    "Instant": "model.instant",
    "LogFile": "model.files",
    "Overview": "snapshot.overview",
    "RecoveryFinding": "services.recovery.finding",
    "RecoveryOutcome": "services.recovery.finding",
    "Rows": "snapshot.rows",
    "Severity": "services.check.findings",
    "Snapshot": "snapshot.snapshot",
    "State": "model.instant",
    "Table": "table",
    "Timeline": "timeline.timeline",
    "WriteClient": "spark.client",
    "WriteResult": "spark.client",
    "open_table": "table",
    "read": "spark.read",
}

__all__ = [
    "Action",
    "AlreadyExists",
    "BaseFile",
    "CleanPlan",
    "CleanPlanner",
    "CleanProgress",
    "CleanResult",
    "Column",
    "Condition",
    "ConfigError",
    "ConflictError",
    "CorruptMetadata",
    "FileGroup",
    "FileSlice",
    "Finding",
    "HudiError",
    "Instant",
    "LogFile",
    "NotFound",
    "OutcomeUnknown",
    "Overview",
    "RecoveryFinding",
    "RecoveryOutcome",
    "RefusedError",
    "Rows",
    "ServiceFailed",
    "Severity",
    "Snapshot",
    "State",
    "StorageError",
    "Table",
    "TableNotFound",
    "Timeline",
    "TimelineStateError",
    "UnsupportedTable",
    "WriteClient",
    "WriteError",
    "WriteResult",
    "open_table",
    "read",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{module}"), name)
    except ImportError as error:
        if module.startswith("spark.") and (error.name or "").partition(".")[0] != __name__:
            raise ConfigError(f"hudi_py.{name} needs Spark: pip install 'hudi_py[spark]' ({error})") from error
        raise
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
