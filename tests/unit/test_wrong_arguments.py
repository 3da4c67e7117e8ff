"""
What is no argument of any call is refused by the project's own errors, before anything is touched.

A value that is passed over, or that ends as an error inside of the library, leaves the caller without an answer.
"""

from __future__ import annotations

import inspect
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_py
from hudi_py.errors import ConfigError, HudiError

_SETTINGS = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
}
# Steps between the library's own modules; no caller has their arguments.
_INNER = {"require", "run_clean", "run_clustering", "view_context", "resolve_time", "rehearsal", "read_only"}
# Arguments of any type: rows are whatever Arrow can read, and a connection is of another library.
_ANY = {("register_views", "connection")}
_WRONG: tuple[Any, ...] = (b"x", 1.5, {1: 2}, [None], date(2020, 1, 1), datetime, Path("x"), lambda: None)


def _rows(count: int) -> pa.Table:
    return pa.table({"id": [str(n) for n in range(count)], "p": ["a"] * count, "v": list(range(count))})


def _options(method: Callable[..., Any]) -> list[str]:
    """The keywords that a method takes through ``**options: Unpack[...]``."""
    for parameter in inspect.signature(method).parameters.values():
        text = str(parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD and text.startswith("Unpack["):
            name = text[len("Unpack[") : -1]
            kind = getattr(hudi_py, name, None) or getattr(sys.modules[method.__module__], name)
            return list(kind.__annotations__)
    return []


def _calls() -> Iterator[tuple[str, str]]:
    for name, method in inspect.getmembers(hudi_py.Table, inspect.isfunction):
        if name.startswith("_") or name in _INNER:
            continue
        named = [
            each.name for each in inspect.signature(method).parameters.values() if each.kind is not each.VAR_KEYWORD
        ]
        for argument in [*named[1:], *_options(method)]:
            if (name, argument) not in _ANY:
                yield name, argument


CALLS = list(_calls())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with two commits, the first of them with a savepoint."""
    location = tmp_path_factory.mktemp("made") / "t"
    hudi_py.write(location, _rows(2), "insert", settings=_SETTINGS)
    hudi_py.open_table(location).create_savepoint()
    hudi_py.write(location, _rows(1), "upsert", settings=_SETTINGS)
    return location


@pytest.fixture
def location(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "t")


def _valid(table: hudi_py.Table, method: str) -> dict[str, Any]:
    """A value for each argument that the method cannot do without."""
    last = table.timeline.commits.completed()[-1].requested_time
    known: dict[str, Any] = {
        "asked": None if method != "remove_approved" else table.list_for_approval(),
        "data": _rows(1),
        "document": "",
        "lease_id": "x",
        "name": "instants" if method == "view" else "n",
        "on": "id",
        "partition": "a",
        "partitions": ["a"],
        "target": "a",
        "ttl": "1h",
        "values": {"v": 1},
    }
    parameters = list(inspect.signature(getattr(type(table), method)).parameters.values())[1:]
    needed = [each.name for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    return {name: known.get(name, last) for name in needed}


def _run(table: hudi_py.Table, method: str, arguments: dict[str, Any]) -> None:
    """Call a method to its end: what it returns may do its work only when it is used."""
    result = getattr(table, method)(**arguments)
    if method == "merge":
        result.when_matched_delete().execute()
    elif inspect.isgenerator(result):
        list(result)
    elif hasattr(result, "__enter__"):
        with result:
            pass


def _files(location: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in location.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("method", "argument"), CALLS)
def test_what_is_no_value_of_any_argument_is_refused_and_changes_nothing(location, method, argument):
    """By an error of the library, whatever the argument, and no file of the table is touched."""
    table = hudi_py.open_table(location)
    arguments = _valid(table, method) | {argument: object()}
    before = _files(location)
    with pytest.raises(HudiError):
        _run(table, method, arguments)
    assert _files(location) == before


@pytest.mark.parametrize(("method", "argument"), CALLS)
def test_values_of_other_types_are_taken_or_refused_by_name(location, method, argument):
    """No value makes a call end with an error from the inside of the library."""
    table = hudi_py.open_table(location)
    for value in _WRONG:
        if callable(value) and argument in {"on_progress", "on_group", "may"}:
            continue  # a function of the caller, with errors of its own
        with suppress(HudiError):
            _run(table, method, _valid(table, method) | {argument: value})


@pytest.mark.parametrize("function", [hudi_py.open_table, hudi_py.write])
def test_functions_refuse_what_is_no_value_of_their_arguments(location, function):
    """As the methods of a table do."""
    before = _files(location)
    valid = {"location": location} | ({"data": _rows(1)} if function is hudi_py.write else {})
    for argument in inspect.signature(function).parameters:
        for value in (object(), b"x", 1.5, [None], date(2020, 1, 1)):
            with pytest.raises(HudiError):
                function(**(valid | {argument: value}))
    assert _files(location) == before


def test_doctor_tells_a_mistake_of_the_call_from_settings_that_contradict(location):
    """Settings are a finding about the table; an argument that is wrong is an error."""
    contradiction = {"hoodie_py.clean.min.commits": "9", "hoodie_py.clean.max.commits": "3"}
    found = hudi_py.open_table(location, settings=contradiction).doctor()
    assert "settings-contradict" in {each.code for each in found}
    with pytest.raises(ConfigError, match=r"commits\.retained"):
        hudi_py.open_table(location).doctor(commits_retained="x")
