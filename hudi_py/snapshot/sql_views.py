"""What is known of a table as Arrow tables, for SQL: instants, files, savepoints, cleans, findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any, Final

import attrs
import pyarrow as pa

from hudi_py.config.arguments import check_texts
from hudi_py.errors import ConfigError
from hudi_py.model.instant import Action, Instant
from hudi_py.model.instant_time import moment_of, parse_instant_time
from hudi_py.model.records import SavepointMetadata
from hudi_py.services.check.findings import Finding
from hudi_py.services.usage.facts import FileUse
from hudi_py.snapshot.history import Event, Numbers

# Milliseconds, as instants have them; a zone, because DuckDB and Spark would each assume another one.
_TIME: Final = pa.timestamp("ms", "UTC")
_COUNTS: Final = tuple(attrs.fields_dict(Numbers))


def _schema(**columns: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()])


_TEXT: Final = pa.string()
_WHOLE: Final = pa.int64()
SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "instants": _schema(
        requested_time=_TEXT,
        requested_at=_TIME,
        action=_TEXT,
        state=_TEXT,
        completion_time=_TEXT,
        archived=pa.bool_(),
        operation=_TEXT,
        seconds=pa.float64(),
        **dict.fromkeys(_COUNTS, _WHOLE),
        partitions=_WHOLE,
        problem=_TEXT,
    ),
    "files": _schema(
        path=_TEXT, partition=_TEXT, bytes=_WHOLE, held_by=_TEXT, rule=_TEXT, commit=_TEXT, is_base_file=pa.bool_()
    ),
    "savepoints": _schema(instant=_TEXT, name=_TEXT, created_by=_TEXT, comment=_TEXT, files=_WHOLE, expires_at=_TIME),
    "cleans": _schema(
        instant=_TEXT,
        requested_at=_TIME,
        state=_TEXT,
        archived=pa.bool_(),
        seconds=pa.float64(),
        policy=_TEXT,
        earliest_to_retain=_TEXT,
        files_deleted=_WHOLE,
        partitions=_WHOLE,
    ),
    "findings": _schema(severity=_TEXT, code=_TEXT, place=_TEXT, message=_TEXT, fix=_TEXT),
}
"""Name of each view to its columns."""
_SPARK_TYPES: Final = {pa.string(): "string", pa.int64(): "bigint", pa.float64(): "double", pa.bool_(): "boolean",
                       _TIME: "timestamp"}  # fmt: skip


def checked_name(name: str) -> str:
    """
    Return the name of a view.

    Raises:
        ConfigError: There is no such view.
    """
    check_texts(name=name)
    if name not in SCHEMAS:
        raise ConfigError(f"there is no view {name!r}; there are {', '.join(SCHEMAS)}")
    return name


def instants_view(events: Iterable[Event], zone: tzinfo) -> pa.Table:
    """Return one row for each event of a table's history."""
    return _table("instants", (_instant_row(event, zone) for event in events))


def cleans_view(events: Iterable[Event], zone: tzinfo) -> pa.Table:
    """Return one row for each clean of a table's history."""
    return _table("cleans", (_clean_row(each, zone) for each in events if each.instant.action is Action.CLEAN))


def files_view(uses: Iterable[FileUse]) -> pa.Table:
    """Return one row for each file of a table, and what keeps it."""
    rows = (
        {
            "path": use.path,
            "partition": use.partition_path,
            "bytes": use.size_bytes,
            "held_by": use.holder.value,
            "rule": use.rule,
            "commit": use.commit,
            "is_base_file": use.is_base_file,
        }
        for use in uses
    )
    return _table("files", rows)


def savepoints_view(savepoints: Iterable[tuple[Instant, SavepointMetadata]]) -> pa.Table:
    """Return one row for each completed savepoint."""
    rows = (
        {
            "instant": instant.requested_time,
            "name": content.name or None,
            "created_by": content.savepointed_by,
            "comment": content.comments,
            "files": sum(map(len, content.files.values())),
            "expires_at": None if content.expires_at_ms is None else moment_of(content.expires_at_ms),
        }
        for instant, content in savepoints
    )
    return _table("savepoints", rows)


def findings_view(findings: Iterable[Finding]) -> pa.Table:
    """Return one row for each finding of ``hudi-py doctor``."""
    rows = (
        {
            "severity": each.severity.value,
            "code": each.code,
            "place": each.where,
            "message": each.message,
            "fix": each.fix,
        }
        for each in findings
    )
    return _table("findings", rows)


def register_views(connection: Any, views: Mapping[str, Callable[[], pa.Table]], prefix: str) -> tuple[str, ...]:
    """
    Make views known to a DuckDB connection or a Spark session, and return their names there.

    Args:
        connection: ``duckdb.DuckDBPyConnection`` or ``pyspark.sql.SparkSession``.
        views: Name to what returns the view.
        prefix: Put before each name.

    Raises:
        ConfigError: It is neither of the two.
    """
    # By their methods, because importing either library to ask for its type would cost seconds, or fail where it is
    # missing.
    if hasattr(connection, "createDataFrame"):
        for name, make in views.items():
            ddl = ", ".join(f"`{field.name}` {_SPARK_TYPES[field.type]}" for field in SCHEMAS[name])
            # By way of rows: `createDataFrame` takes Arrow tables only from Spark 4 on.
            rows = [tuple(row.values()) for row in make().to_pylist()]
            connection.createDataFrame(rows, ddl).createOrReplaceTempView(prefix + name)
    elif hasattr(connection, "register"):
        for name, make in views.items():
            connection.register(prefix + name, make())
    else:
        raise ConfigError(f"{type(connection).__name__} is neither a connection of DuckDB nor a session of Spark")
    return tuple(prefix + name for name in views)


def _table(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    schema = SCHEMAS[name]
    batches = [pa.RecordBatch.from_pylist(piece, schema) for piece in _pieces(rows)]
    return pa.Table.from_batches(batches, schema)


def _pieces(rows: Iterable[Mapping[str, Any]], size: int = 10_000) -> Iterator[list[Any]]:
    """In pieces: as dictionaries the files of a large table take many times the memory of columns."""
    piece: list[Any] = []
    for row in rows:
        piece.append(row)
        if len(piece) == size:
            yield piece
            piece = []
    yield piece


def _instant_row(event: Event, zone: tzinfo) -> dict[str, Any]:
    return {
        "requested_time": event.instant.requested_time,
        "requested_at": _moment(event.instant, zone),
        "action": event.instant.action.value,
        "state": event.instant.state.name,
        "completion_time": event.instant.completion_time,
        "archived": event.is_archived,
        "operation": event.operation,
        "seconds": event.seconds,
        **attrs.asdict(event.numbers),
        "partitions": len(event.partitions),
        "problem": event.problem,
    }


def _clean_row(event: Event, zone: tzinfo) -> dict[str, Any]:
    return {
        "instant": event.instant.requested_time,
        "requested_at": _moment(event.instant, zone),
        "state": event.instant.state.name,
        "archived": event.is_archived,
        "seconds": event.seconds,
        "policy": event.parameters.get("policy"),
        "earliest_to_retain": event.parameters.get("earliestCommitToRetain"),
        "files_deleted": event.numbers.files_deleted,
        "partitions": len(event.partitions),
    }


def _moment(instant: Instant, zone: tzinfo) -> datetime | None:
    """Null for a time that is not a date, as those of first instants of metadata tables."""
    try:
        # A view of the whole history must not fail because of one odd instant.
        return parse_instant_time(instant.requested_time, zone)
    except (ValueError, OverflowError):
        return None
