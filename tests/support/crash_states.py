"""
What the stop-at-every-call loops share: tables to interrupt, and the form in which two states are compared.

The canonical form of a storage leaves out what a clock or chance decides: our own bookkeeping below
``.hoodie/.aux/hudi_py``, sync markers, durations, and instant times minted by the run (numbered instead). One
difference is declared: a file that an interrupted run had deleted already stands under the failed deletes of the clean
that finishes the plan, as every release of Hudi records it (rule A-65), so both lists are compared as one.
"""

from __future__ import annotations

import functools
import tarfile
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any

from hudi_py.engine.inline import LocalEngine
from hudi_py.formats.instant_content import decode_content
from hudi_py.formats.properties import format_properties, parse_properties
from hudi_py.model.files import parse_base_file
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support import fixtures

PROPERTIES = ".hoodie/hoodie.properties"
_CLOCK_FIELDS = {"timeTakenInMillis", "totalFilesDeleted"}
_DELETE_LISTS = ("successDeleteFiles", "failedDeleteFiles")


class SerialEngine(LocalEngine):
    """Several tasks, one after the other: every deletion is a call of its own, in a known order."""

    def __init__(self) -> None:
        super().__init__(3)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any], **_: Any) -> list[Any]:
        return [function(item) for item in items]


@functools.cache
def _loaded(name: str) -> MemoryStorage:
    prefix = name.rpartition("-")[0] + "/"
    files = {}
    with tarfile.open(fixtures.FOLDER / f"{name}.tar.gz") as archive:
        for member in archive:
            path = member.name.removeprefix(prefix)
            if member.isfile() and not path.endswith(".crc"):
                is_data = parse_base_file(path.rpartition("/")[2]) is not None and not path.startswith(".hoodie")
                files[path] = bytes(member.size) if is_data else archive.extractfile(member).read()
    return MemoryStorage.from_files(files, fixtures.expected(name)["inputs"]["base"])


def real_table(name: str, *, with_metadata_table: bool = False) -> MemoryStorage:
    """A fresh copy of a fixture in memory, at the place where it was written; of data files the size alone is real."""
    storage = _loaded(name).copy()
    if not with_metadata_table:
        properties = parse_properties(storage.read(PROPERTIES), PROPERTIES)
        kept = {key: value for key, value in properties.items() if "metadata.partitions" not in key}
        storage.replace(PROPERTIES, format_properties(kept, ("without", "metadata table")))
        storage.delete_folder(".hoodie/metadata")
    return storage


def open_real(name: str, storage: Storage, **settings: Any) -> Table:
    """Open it an hour after its last instant."""
    now = fixtures.expected(name)["inputs"]["now"]
    clock = FixedClock(datetime.strptime(now[:14], "%Y%m%d%H%M%S").replace(tzinfo=timezone.utc))
    return Table(storage, settings=settings, clock=clock)


def data_files(storage: MemoryStorage) -> frozenset[str]:
    """Everything outside ``.hoodie``."""
    return frozenset(path for path in storage.files() if not path.startswith(".hoodie/"))


def visible_files(table: Table) -> frozenset[str]:
    """Base and log files that readers of the latest snapshot are shown."""
    return frozenset(
        f"{path}/{name}" for path in table.partitions() for each in table.file_slices(path) for name in each.file_names
    )


def canonical(storage: MemoryStorage, before: MemoryStorage) -> dict[str, Any]:
    """The whole state in the form that this module's docstring describes; *before* tells which instants are new."""
    known = {instant.requested_time for instant in Table(before).timeline.all_states}
    instants = Table(storage).timeline.all_states
    new = {time for i in instants for time in (i.requested_time, i.completion_time) if time and time not in known}
    new -= {i.completion_time for i in Table(before).timeline.all_states}
    names = {time: f"<new {number}>" for number, time in enumerate(sorted(new))}
    return {
        _renamed(path, names): _renamed(_plain(path, data), names)
        for path, data in storage.files().items()
        if not path.startswith(".hoodie/.aux/hudi_py/")
    }


def _plain(path: str, data: bytes) -> Any:
    folder, _, name = path.rpartition("/")
    if path == PROPERTIES:
        return parse_properties(data, path)
    if folder in (".hoodie", ".hoodie/timeline") and name[:1].isdigit():
        return _without_clock(decode_content(data, path).value)
    return data


def _without_clock(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _without_clock(each) for key, each in value.items() if key not in _CLOCK_FIELDS}
        if "failedDeleteFiles" in kept:
            kept["deleteFiles"] = sorted(name for key in _DELETE_LISTS for name in kept.pop(key))
        return kept
    return [_without_clock(each) for each in value] if isinstance(value, list) else value


def _renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(each, names) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, names) for each in value]
    if isinstance(value, str):
        for time, name in names.items():
            value = value.replace(time, name)
    return value


def check(name, case, before, allowed, shown):
    """What holds at any moment, whatever became of a clean."""
    assert data_files(before) - data_files(case.storage) <= allowed, f"{case}: deleted what no plan names"
    assert data_files(case.storage) <= data_files(before), f"{case}: made data files"
    assert visible_files(open_real(name, case.storage)) == shown, f"{case}: readers see something else"
