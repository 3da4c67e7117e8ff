"""What crash loops share: fresh tables, and what has to be equal in the end."""

from __future__ import annotations

import functools
import tarfile
from typing import Any

from hudi_py.model.instant import Action
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.base import Storage
from hudi_py.storage.memory import MemoryStorage
from hudi_py.table import Table
from support.fixtures import FOLDER
from support.tables import NOW, data_files


@functools.cache
def _content(name: str) -> dict[str, bytes]:
    prefix = name.rpartition("/")[2].rpartition("-")[0] + "/"
    with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
        files = [(member.name.removeprefix(prefix), member) for member in archive if member.isfile()]
        return {path: archive.extractfile(member).read() for path, member in files if not path.endswith(".crc")}


def fixture_in_memory(name: str) -> MemoryStorage:
    """A whole table of real Hudi, data files included."""
    return MemoryStorage.from_files(_content(name))


def open_in(storage: Storage, **settings: Any) -> Table:
    """A new process opens the table; each opens with a clock that stands still."""
    return Table(storage, settings=settings, clock=FixedClock(NOW))


def state_of(storage: MemoryStorage) -> dict[str, Any]:
    """What users see: files, listing, visible commits, what is pending."""
    table, folders = Table(storage), Table(storage, settings={"hoodie.metadata.enable": False})
    partitions = table.partitions()
    assert partitions == folders.partitions()
    for path in partitions:  # the metadata table, where there is one, lists what is there
        assert table.partition(path).groups == folders.partition(path).groups
    return {
        "files": data_files(storage),
        "listing": {path: [s.base_instant_time for s in table.file_slices(path)] for path in partitions},
        "writes": [(i.requested_time, i.action) for i in table.timeline.writes.completed()],
        "pending": [(i.requested_time, i.action) for i in table.timeline.pending()],
        "savepoints": [i.requested_time for i in table.timeline.completed(Action.SAVEPOINT)],
        "markers": [path for path in storage.files() if path.startswith(".hoodie/.temp/")],
    }
