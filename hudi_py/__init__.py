"""
hudi_py: Apache Hudi tables from Python.

All public names are here, except those of `hudi_py.testing`. Names that need Spark are imported when they are first
used, so reading a table does not import pyspark.
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
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.config.clustering import ClusteringConfig
    from hudi_py.config.expiry import ExpiryOptions
    from hudi_py.config.retention_policy import RetentionPolicy
    from hudi_py.config.table import TableConfig, TableType
    from hudi_py.engine.base import Engine
    from hudi_py.fsview.build import PartitionView
    from hudi_py.local_writing import write
    from hudi_py.model.completed import Completed
    from hudi_py.model.files import BaseFile, FileGroup, FileSlice, LogFile, SourceFile
    from hudi_py.model.instant import Action, Instant, State
    from hudi_py.model.lease import Lease
    from hudi_py.model.moved import StoredNames
    from hudi_py.model.records import (
        CleanMetadata,
        CleanPartitionMetadata,
        CommitMetadata,
        InstantInfo,
        RestoreMetadata,
        RollbackMetadata,
        RollbackPartitionMetadata,
        RuntimeStats,
        WriteStat,
    )
    from hudi_py.model.removal_list import ListedFile, RemovalList
    from hudi_py.row_verbs import Words
    from hudi_py.rows.condition import Column, Condition, Where
    from hudi_py.runtime.clock import Clock
    from hudi_py.services.approval.asked import ApprovedRemoval
    from hudi_py.services.archive.plan import Bound
    from hudi_py.services.archive.service import ArchiveResult
    from hudi_py.services.check.findings import Finding, Severity
    from hudi_py.services.clean.executing.watch import CleanProgress, OnProgress
    from hudi_py.services.clean.planner import CleanPlanner
    from hudi_py.services.clean.planning.plan import CleanPlan
    from hudi_py.services.clean.planning.planned_files import PlannedFile, PlannedFiles
    from hudi_py.services.clean.planning.scope import Scope, Unseen
    from hudi_py.services.clean.result import CleanResult
    from hudi_py.services.clean.retention.policy import Reason, Verdict
    from hudi_py.services.clustering.plan import PlannedClustering, PlannedGroup
    from hudi_py.services.erasure.facts import (
        ErasureHolds,
        ErasurePlace,
        ErasureReport,
        ErasureTrace,
        ErasureVerdict,
        HeldFile,
        LastRemoval,
    )
    from hudi_py.services.expiry.plan import ExpiryPlan, ExpiryReport, PartitionVerdict
    from hudi_py.services.explain.explain import Awaited, Need
    from hudi_py.services.explain.files import Explanation, FileExplanation
    from hudi_py.services.maintenance.service import Chore, ChoreReport, ChoreResult, MaintenanceReport
    from hudi_py.services.orphans.facts import OrphanAction, OrphanFate, OrphanFile, OrphanReport, OrphanVerdict
    from hudi_py.services.orphans.options import OrphanOptions
    from hudi_py.services.recovery.finding import Problem, RecoveryFinding, RecoveryOutcome, Step
    from hudi_py.services.rewriting.explain import GroupExplanation
    from hudi_py.services.rewriting.progress import OnGroup
    from hudi_py.services.rewriting.result import RewriteResult
    from hudi_py.services.savepoint.words import SavepointWords
    from hudi_py.services.simulation.plan import Moment, Simulation
    from hudi_py.services.undo.result import UndoReport
    from hudi_py.services.usage.facts import Holder, Share, Usage
    from hudi_py.snapshot.batches import Batches, Pieces
    from hudi_py.snapshot.change_log import ChangeLog
    from hudi_py.snapshot.changes import Changes
    from hudi_py.snapshot.difference import Difference
    from hudi_py.snapshot.history import Event, InstantContent, Numbers
    from hudi_py.snapshot.moments import EarlierSnapshot, SavepointSnapshot
    from hudi_py.snapshot.overview import Amount, ColumnRange, FileTotals, Overview
    from hudi_py.snapshot.rows import Rows
    from hudi_py.snapshot.snapshot import Snapshot
    from hudi_py.spark.client import WriteClient
    from hudi_py.spark.read import read
    from hudi_py.spark.source import register
    from hudi_py.table import Table, open_table
    from hudi_py.table_leases import Consumer
    from hudi_py.table_writing import MergeStatement
    from hudi_py.timeline.timeline import Timeline
    from hudi_py.txn.hooks import Hook, add_hook
    from hudi_py.writing.result import WriteResult

_NAMES = {
    "config.clean_options": "CleanOptions",
    "config.expiry": "ExpiryOptions",
    "config.clustering": "ClusteringConfig",
    "config.table": "TableConfig TableType",
    "engine.base": "Engine",
    "fsview.build": "PartitionView",
    "model.completed": "Completed",
    "model.files": "BaseFile FileGroup FileSlice LogFile SourceFile",
    "model.moved": "StoredNames",
    "model.lease": "Lease",
    "model.instant": "Action Instant State",
    "model.records": (
        "CleanMetadata CleanPartitionMetadata CommitMetadata InstantInfo RestoreMetadata RollbackMetadata "
        "RollbackPartitionMetadata RuntimeStats WriteStat"
    ),
    "model.removal_list": "ListedFile RemovalList",
    "rows.condition": "Column Condition Where",
    "runtime.clock": "Clock",
    "services.approval.asked": "ApprovedRemoval",
    "services.archive.plan": "Bound",
    "services.archive.service": "ArchiveResult",
    "services.check.findings": "Finding Severity",
    "services.clean.executing.watch": "CleanProgress OnProgress",
    "services.clean.planner": "CleanPlanner",
    "services.clean.planning.plan": "CleanPlan",
    "services.clean.planning.scope": "Scope Unseen",
    "services.clean.planning.planned_files": "PlannedFile PlannedFiles",
    "services.clean.result": "CleanResult",
    "services.clustering.plan": "PlannedClustering PlannedGroup",
    "services.rewriting.result": "RewriteResult",
    "services.rewriting.explain": "GroupExplanation",
    "services.rewriting.progress": "OnGroup",
    "services.clean.retention.policy": "Reason Verdict",
    "services.explain.explain": "Awaited Need",
    "services.explain.files": "Explanation FileExplanation",
    "config.retention_policy": "RetentionPolicy",
    "services.expiry.plan": "ExpiryPlan ExpiryReport PartitionVerdict",
    "services.maintenance.service": "Chore ChoreReport ChoreResult MaintenanceReport",
    "services.erasure.facts": (
        "ErasureHolds ErasurePlace ErasureReport ErasureTrace ErasureVerdict HeldFile LastRemoval"
    ),
    "services.orphans.facts": "OrphanAction OrphanFate OrphanFile OrphanReport OrphanVerdict",
    "services.orphans.options": "OrphanOptions",
    "services.recovery.finding": "Problem RecoveryFinding RecoveryOutcome Step",
    "services.savepoint.words": "SavepointWords",
    "snapshot.batches": "Batches Pieces",
    "snapshot.change_log": "ChangeLog",
    "snapshot.changes": "Changes",
    "services.simulation.plan": "Moment Simulation",
    "snapshot.difference": "Difference",
    "snapshot.history": "Event InstantContent Numbers",
    "services.undo.result": "UndoReport",
    "services.usage.facts": "Holder Share Usage",
    "snapshot.moments": "EarlierSnapshot SavepointSnapshot",
    "snapshot.overview": "Amount ColumnRange FileTotals Overview",
    "snapshot.rows": "Rows",
    "snapshot.snapshot": "Snapshot",
    "spark.client": "WriteClient",
    "spark.read": "read",
    "spark.source": "register",
    "table": "Table open_table",
    "table_leases": "Consumer",
    "timeline.timeline": "Timeline",
    "txn.hooks": "Hook add_hook",
    "local_writing": "write",
    "table_writing": "MergeStatement",
    "row_verbs": "Words",
    "writing.result": "WriteResult",
}
# By module, because a line for each name would be three times as long.
_LAZY = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "Action",
    "AlreadyExists",
    "Amount",
    "ApprovedRemoval",
    "ArchiveResult",
    "Awaited",
    "BaseFile",
    "Batches",
    "Bound",
    "ChangeLog",
    "Changes",
    "Chore",
    "ChoreReport",
    "ChoreResult",
    "CleanMetadata",
    "CleanOptions",
    "CleanPartitionMetadata",
    "CleanPlan",
    "CleanPlanner",
    "CleanProgress",
    "CleanResult",
    "Clock",
    "ClusteringConfig",
    "Column",
    "ColumnRange",
    "CommitMetadata",
    "Completed",
    "Condition",
    "ConfigError",
    "ConflictError",
    "Consumer",
    "CorruptMetadata",
    "Difference",
    "EarlierSnapshot",
    "Engine",
    "ErasureHolds",
    "ErasurePlace",
    "ErasureReport",
    "ErasureTrace",
    "ErasureVerdict",
    "Event",
    "ExpiryOptions",
    "ExpiryPlan",
    "ExpiryReport",
    "Explanation",
    "FileExplanation",
    "FileGroup",
    "FileSlice",
    "FileTotals",
    "Finding",
    "GroupExplanation",
    "HeldFile",
    "Holder",
    "Hook",
    "HudiError",
    "Instant",
    "InstantContent",
    "InstantInfo",
    "LastRemoval",
    "Lease",
    "ListedFile",
    "LogFile",
    "MaintenanceReport",
    "MergeStatement",
    "Moment",
    "Need",
    "NotFound",
    "Numbers",
    "OnGroup",
    "OnProgress",
    "OrphanAction",
    "OrphanFate",
    "OrphanFile",
    "OrphanOptions",
    "OrphanReport",
    "OrphanVerdict",
    "OutcomeUnknown",
    "Overview",
    "PartitionVerdict",
    "PartitionView",
    "Pieces",
    "PlannedClustering",
    "PlannedFile",
    "PlannedFiles",
    "PlannedGroup",
    "Problem",
    "Reason",
    "RecoveryFinding",
    "RecoveryOutcome",
    "RefusedError",
    "RemovalList",
    "RestoreMetadata",
    "RetentionPolicy",
    "RewriteResult",
    "RollbackMetadata",
    "RollbackPartitionMetadata",
    "Rows",
    "RuntimeStats",
    "SavepointSnapshot",
    "SavepointWords",
    "Scope",
    "ServiceFailed",
    "Severity",
    "Share",
    "Simulation",
    "Snapshot",
    "SourceFile",
    "State",
    "Step",
    "StorageError",
    "StoredNames",
    "Table",
    "TableConfig",
    "TableNotFound",
    "TableType",
    "Timeline",
    "TimelineStateError",
    "UndoReport",
    "Unseen",
    "UnsupportedTable",
    "Usage",
    "Verdict",
    "Where",
    "Words",
    "WriteClient",
    "WriteError",
    "WriteResult",
    "WriteStat",
    "add_hook",
    "open_table",
    "read",
    "register",
    "write",
]


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(f"{__name__}.{module}"), name)
    except ImportError as error:
        if module.startswith("spark.") and (error.name or "").partition(".")[0] != __name__:
            raise ConfigError(f"hudi_py.{name} needs Spark ({error}); pip install 'hudi_py[spark]'") from error
        raise
    # From now on Python finds the name by itself, without this function.
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
