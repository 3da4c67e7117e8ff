"""
What the server says of a table as JSON: each address, what it takes and what it answers, in one list.

The list routes requests and is the source of ``/openapi.json`` and of the page ``/api``, so the three cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Final

import attrs

from hudi_py.errors import ConfigError
from hudi_py.inspection.site_actions import ACTIONS

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.table import Table

_FILES_MAX: Final = 1000
_SLICES_MAX: Final = 5000
_TIME: Final = r"[0-9]{14,20}"
_DIGITS_MAX: Final = 9
_WHOLE: Final = f"a whole number of at least 1, with at most {_DIGITS_MAX} digits"


class NoSuchThing(Exception):
    """What a request names does not exist; the message says what."""


@attrs.frozen
class Endpoint:
    """
    An address below that of a table.

    Args:
        path: Behind ``/t/{number}/``; ``{instant}`` stands for the time of an instant.
        summary: What it answers with.
        answer: Returns the answer for an opened table, the values of the query, and the instant.
        query: Name of each parameter to what it means.
        schema: JSON schema of the answer.
    """

    path: str
    summary: str
    answer: Callable[[Table, Mapping[str, str], str | None, CleanOptions], Any]
    schema: Mapping[str, Any]
    query: Mapping[str, str] = attrs.field(factory=dict)


def _object(**properties: str) -> dict[str, Any]:
    """A schema: names of the answer's keys to their types; more keys may come."""
    return {
        "type": "object",
        "required": list(properties),
        "properties": {name: _typed(kind) for name, kind in properties.items()},
    }


def _typed(kind: str) -> dict[str, Any]:
    return {"type": ["string", "null"]} if kind == "text" else {"type": kind}


def _list(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(of)}


_INSTANT: Final = _object(requested_time="string", action="string", state="string", completion_time="text")
_FINDING: Final = _object(severity="string", code="string", where="string", message="string", fix="string")


def _timeline(opened: Table, query: Mapping[str, str], _instant: str | None, _options: CleanOptions) -> Any:
    from hudi_py.inspection.instant_entry import instant_entry

    archived = opened.archived_timeline().instants if _flag(query, "archived") else ()
    return {
        "layout_version": opened.config.layout_version,
        "instants": [instant_entry(each) for each in opened.timeline.instants],
        "archived": [instant_entry(each) for each in archived],
    }


def _one_instant(opened: Table, query: Mapping[str, str], instant: str | None, _options: CleanOptions) -> Any:
    from hudi_py.inspection.instant_entry import find_content, instant_entry

    found = find_content(opened, instant or "", action=query.get("action"))
    if found is None:
        raise NoSuchThing(f"there is no instant {instant}" + (f" of action {query['action']}" if query else ""))
    return {**instant_entry(found[0]), "content": found[1]}


def _history(opened: Table, query: Mapping[str, str], _instant: str | None, _options: CleanOptions) -> Any:
    from hudi_py.inspection.life_commands import event_entry

    return {"events": [event_entry(event) for event in opened.history(archived=_flag(query, "archived"))]}


def _files(opened: Table, query: Mapping[str, str], _instant: str | None, _options: CleanOptions) -> Any:
    from hudi_py.inspection.report import files_report

    shown = opened.as_of(query["as_of"]) if "as_of" in query else opened
    paths = shown.partitions()
    if "partition" in query:
        # Only one that the table has: a name in an address reaches no folder.
        if query["partition"] not in paths:
            raise NoSuchThing(f"there is no partition {query['partition']!r}")
        paths = (query["partition"],)
    return files_report(shown.view_context, [shown.partition(path) for path in paths])


def _columns(opened: Table, query: Mapping[str, str], _instant: str | None, _options: CleanOptions) -> Any:
    from hudi_py.inspection.overview_command import ranges_entry

    path = _partition(opened, query)
    return {"partition": path, "columns": ranges_entry(opened.column_ranges(path))}


def _findings(opened: Table, _query: Mapping[str, str], _instant: str | None, options: CleanOptions) -> Any:
    from hudi_py.inspection.check_command import finding_entry

    return [finding_entry(each, opened.storage.root) for each in opened.doctor(**options)]


def _usage(opened: Table, _query: Mapping[str, str], _instant: str | None, options: CleanOptions) -> Any:
    from hudi_py.inspection.du_command import usage_entry

    return usage_entry(opened.usage(**options), by_reason=True, by_partition=True, by_commit=True)


def _slices(opened: Table, query: Mapping[str, str], _instant: str | None, options: CleanOptions) -> Any:
    from hudi_py.inspection.page_data import file_entries

    path = _partition(opened, query)
    found = file_entries(opened.services.usage(**options).files_of(path))
    return {"partition": path, "files": found[:_SLICES_MAX], "files_left_out": max(0, len(found) - _SLICES_MAX)}


def _partition(opened: Table, query: Mapping[str, str]) -> str:
    """The partition that a query names: only one that the table has, so a name in an address reaches no folder."""
    path, known = query.get("partition", ""), opened.partitions()
    if path not in known and "partition" not in query:
        raise ConfigError("partition is missing: say which one is meant")
    if path not in known:
        raise NoSuchThing(f"there is no partition {path!r}")
    return path


def _explain(opened: Table, query: Mapping[str, str], _instant: str | None, options: CleanOptions) -> Any:
    from hudi_py.inspection.explain_command import explanation_report

    if not query.get("target"):
        raise ConfigError("give target=, a file, a file id or a partition")
    return explanation_report(opened.explain(query["target"], **options))


def _plan(opened: Table, query: Mapping[str, str], _instant: str | None, options: CleanOptions) -> Any:
    """What a clean with other settings would delete; without any, with those that the server was started with."""
    chosen: dict[str, Any] = {}
    for name, value in query.items():
        # Nine digits at most: nobody means more, and keeps numbers small. Not cut: that would be another number.
        if name == "policy":
            chosen[name] = value
        elif value.isascii() and value.isdecimal() and len(value) <= _DIGITS_MAX and int(value) > 0:
            chosen[name] = int(value)
        else:
            raise ConfigError(f"{name}={value} is not a setting of a plan; give {_WHOLE}")
    plan = opened.plan_clean(details=True, **(chosen or options))
    files = [
        {"path": file.path, "bytes": file.size_bytes, "reason": file.reason.value}
        for partition in sorted(plan.files)
        for file in plan.files[partition]
    ]
    earliest = plan.earliest_to_retain
    return {
        "earliest_instant_to_retain": None if earliest is None else earliest.requested_time,
        "totals": {"files": plan.file_count, "bytes": plan.size_bytes},
        # Bounded: a plan may have a million files.
        "files": files[:_FILES_MAX],
        "files_left_out": max(0, len(files) - _FILES_MAX),
        "warnings": list(plan.warnings),
        "breakers": list(plan.breakers),
    }


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "false")
    if value not in ("true", "false"):
        raise ConfigError(f"{name}={value} is not true or false")
    return value == "true"


_ARCHIVED: Final = {"archived": "true to include archived instants"}
ENDPOINTS: Final = (
    Endpoint(
        "timeline", "The instants, as hudi-py timeline --json", _timeline,
        {**_object(layout_version="integer", instants="array", archived="array"),
         "properties": {"layout_version": {"type": "integer"}, "instants": _list(_INSTANT),
                        "archived": _list(_INSTANT)}},
        _ARCHIVED,
    ),
    Endpoint(
        "instant/{instant}", "The decoded content of an instant, as hudi-py instant --json", _one_instant, _INSTANT,
        {"action": "which instant is meant, if there are several of that time: commit, savepoint and so on"},
    ),
    Endpoint("history", "What happened to the table, as hudi-py history --json", _history, _object(events="array"),
             _ARCHIVED),
    Endpoint(
        "files", "File groups and slices, as hudi-py files --json", _files,
        _object(partitions="object", pending_compaction="array", pending_clustering="array"),
        {"partition": "only this partition", "as_of": "the table as of this time"},
    ),
    Endpoint(
        "columns", "The value range of each column in a partition; null without column statistics", _columns,
        {**_object(partition="string"), "required": ["partition", "columns"]},
        {"partition": "path of the partition; the whole table if it has none"},
    ),
    Endpoint(
        "slices", "The files of a partition: what keeps each, by which rule, or that the next clean takes it",
        _slices, _object(partition="string", files="array", files_left_out="integer"),
        {"partition": "path of the partition; the whole table if it has none"},
    ),
    Endpoint("findings", "What is wrong, and what mends it, as hudi-py doctor --json", _findings, _list(_FINDING)),
    Endpoint(
        "usage", "Where the bytes are and what keeps them, as hudi-py du --json", _usage,
        _object(total="object", by_reason="array", by_partition="array", by_commit="array"),
    ),
    Endpoint(
        "explain", "Why a file is kept, or who deleted it, as hudi-py explain --json", _explain,
        _object(target="string", files="array"), {"target": "a file, a file id or a partition (required)"},
    ),
    Endpoint(
        "plan", "What a clean with these settings (by default those of the server) would delete; nothing is written",
        _plan,
        _object(totals="object", files="array", files_left_out="integer", warnings="array", breakers="array"),
        {"policy": "KEEP_LATEST_COMMITS, KEEP_LATEST_FILE_VERSIONS or KEEP_LATEST_BY_HOURS",
         **dict.fromkeys(("commits_retained", "file_versions_retained", "hours_retained", "min_commits",
                          "min_file_versions"), _WHOLE)},
    ),
)  # fmt: skip
_FIXED: Final[Mapping[str, tuple[str, str, Mapping[str, Any]]]] = {
    "/tables": ("The tables and their numbers", "application/json", _list(_object(number="integer", table="string"))),
    "/healthz": ("Whether the server runs", "application/json", _object(tables="integer")),
    "/metrics": ("Metrics of all tables, in the OpenMetrics text format", "text/plain", {"type": "string"}),
    "/t/{number}/version": (
        "A text that changes with the timeline and the properties of the table", "application/json",
        _object(version="string"),
    ),
    "/t/{number}/document": ("Everything on the page of a table", "application/json", _object(table="object")),
}  # fmt: skip


def find_endpoint(path: str) -> tuple[Endpoint, str | None] | None:
    """
    Return the endpoint of a path behind ``/t/N/``, and the instant that it names.

    The path is matched as a whole: one that goes on behind a match is another path.
    """
    for endpoint in ENDPOINTS:
        found = re.fullmatch(endpoint.path.replace("{instant}", f"({_TIME})"), path)
        if found is not None:
            return endpoint, found[1] if found.groups() else None
    return None


def read_query(path: str, known: Mapping[str, str], query: Mapping[str, list[str]]) -> dict[str, str]:
    """
    Return the values of a query.

    Args:
        path: Of the address, for messages.
        known: Names of the parameters that it takes.
        query: As sent; values may be empty.

    Raises:
        ConfigError: A parameter is unknown, or given twice.
    """
    for name, values in query.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise ConfigError(f"{name}={values[0]} is not a parameter of {path}; it takes {names}")
        if len(values) > 1:
            raise ConfigError(f"{name} is given twice")
    return {name: values[0] for name, values in query.items()}


def openapi(has_actions: bool = False) -> dict[str, Any]:
    """Return the description of all addresses, as OpenAPI 3.1; those that change tables only on request."""
    number = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0},
              "description": "Number of the table in /tables, from 0"}  # fmt: skip
    instant = {"name": "instant", "in": "path", "required": True, "description": "Requested time",
               "schema": {"type": "string", "pattern": f"^{_TIME}$"}}  # fmt: skip
    paths = {
        path: _operation(summary, kind, schema, [number] if "{number}" in path else [])
        for path, (summary, kind, schema) in _FIXED.items()
    }
    for endpoint in ENDPOINTS:
        parameters = [number, *([instant] if "{instant}" in endpoint.path else [])]
        parameters += [
            {"name": name, "in": "query", "description": meaning, "schema": {"type": "string"},
             "required": "required" in meaning}
            for name, meaning in endpoint.query.items()
        ]  # fmt: skip
        path = f"/t/{{number}}/{endpoint.path}"
        paths[path] = _operation(endpoint.summary, "application/json", endpoint.schema, parameters)
    if has_actions:
        paths |= {f"/t/{{number}}/do/{each.name}": _changing(each.summary, number) for each in ACTIONS}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hudi-py serve",
            "version": "1",
            "description": "Reads Apache Hudi tables; every document is that of the command of the same name.",
        },
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        # Without a token on the loopback address, with one on every other.
        "security": [{}, {"token": []}],
    }


def _changing(summary: str, number: Mapping[str, Any]) -> dict[str, Any]:
    error = {"content": {"application/json": {"schema": _object(error="object")}}}
    answer = {**_object(action="string", dry_run="boolean", is_due="boolean", lines="array"),
              "required": ["action", "dry_run", "is_due", "lines", "result"]}  # fmt: skip
    return {
        "post": {
            "summary": summary,
            "parameters": [number],
            "requestBody": {"required": True, "content": {"application/json": {"schema": {
                **_object(dry_run="boolean"), "additionalProperties": False}}}},
            "responses": {
                "200": {"description": "What was done, or with dry_run would be", "content": {
                    "application/json": {"schema": answer}}},
                "400": {"description": "The body is wrong", **error},
                "404": {"description": "There is no such table or action", **error},
                "409": {"description": "It was refused, or another action runs on the table", **error},
                "502": {"description": "The table is damaged, or its storage does not answer", **error},
            },
        }
    }  # fmt: skip


def _operation(summary: str, kind: str, schema: Mapping[str, Any], parameters: list[dict[str, Any]]) -> dict[str, Any]:
    error = {"content": {"application/json": {"schema": _object(error="object")}}}
    return {
        "get": {
            "summary": summary,
            "parameters": parameters,
            "responses": {
                "200": {"description": summary, "content": {kind: {"schema": dict(schema)}}},
                "400": {"description": "A parameter is wrong", **error},
                "404": {"description": "There is no such table, instant or partition", **error},
                "409": {"description": "It is refused: a clean deleted what a time needs, say", **error},
                "502": {"description": "The table is damaged, or its storage does not answer", **error},
            },
        }
    }


def api_rows(described: Mapping[str, Any]) -> str:
    """Return the addresses that `openapi` describes as the rows of an HTML table."""
    rows = []
    for path, operation in described["paths"].items():
        method, about = next(iter(operation.items()))
        taken = [f"{each['name']}: {each['description']}" for each in about["parameters"] if each["in"] == "query"]
        if method == "post":
            taken.append('the body {"dry_run": true} or {"dry_run": false}')
        shown = f'<a href="{escape(path)}">{escape(path)}</a>' if "{" not in path else escape(path)
        rows.append(
            f'<tr><th scope="row" class="path">{"" if method == "get" else "POST "}{shown}</th>'
            f"<td>{escape(about['summary'])}</td>"
            f"<td>{'<br>'.join(map(escape, taken))}</td></tr>"
        )
    return "".join(rows)
