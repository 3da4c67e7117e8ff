"""
Lists many folders at once: on threads of this process, or on the executors of an engine.

In an object store each folder is a request of some tens of milliseconds, most of them work of the interpreter (signing,
parsing XML), so that a driver lists some 50 folders a second however many threads wait. Executors share that work, and
send back what the folders hold as text: a million names take the driver about a second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Final, NamedTuple

import attrs

from hudi_py.engine.base import Engine
from hudi_py.storage.base import Details, Entry, Storage

_AHEAD: Final = 4  # folders that a thread may list before the first of them is looked at; a time limit may end it there
_FOLDERS_FIRST: Final = 2_000  # of the first job, when it is unknown how much a folder holds
_ENTRIES_MAX: Final = 1_000_000  # of one job: about 80 MB that are sent to the driver, which Spark limits to 1 GB
_TASKS_PER_SLOT: Final = 4  # folders differ in size; small tasks keep all executors busy until the end


@attrs.frozen
class FolderLister:
    """
    Lists folders, in their order.

    Args:
        storage: The table's storage.
        engine: Lists very many folders on other machines; None for threads alone.
        threads: Folders listed at once in this process.
    """

    storage: Storage
    engine: Engine | None = None
    threads: int = 1

    def each(self, folders: Sequence[str], *, details: bool = False) -> Iterator[list[Entry]]:
        """
        Yield what each folder holds; sizes too, with *details*.

        Raises:
            StorageError: A folder cannot be listed.
            ConfigError: The machines of the engine cannot do this work; the message says what is missing.
        """
        engine = None if self.engine is None else self.engine.for_listing(self.storage, len(folders))
        if engine is not None:
            return self._by_engine(engine, folders, details=details)
        if min(self.threads, len(folders)) <= 1:
            return (self.storage.list(folder, details=details) for folder in folders)
        return self._by_threads(folders, lambda folder: self.storage.list(folder, details=details))

    def about(self, asked: Mapping[str, Details]) -> dict[str, list[Entry]]:
        """
        What these folders hold, with sizes and times of what is asked for in each of them; on threads alone.

        Raises:
            StorageError: A folder cannot be listed.
        """
        folders = tuple(asked)

        def listed(folder: str) -> list[Entry]:
            return self.storage.list(folder, details=asked[folder])

        few = min(self.threads, len(folders)) <= 1
        return dict(zip(folders, map(listed, folders) if few else self._by_threads(folders, listed), strict=True))

    def _by_threads(self, folders: Sequence[str], listed: Callable[[str], list[Entry]]) -> Iterator[list[Entry]]:
        pool = ThreadPoolExecutor(self.threads)
        window = self.threads * _AHEAD
        try:
            for start in range(0, len(folders), window):
                yield from pool.map(listed, folders[start : start + window])
        finally:
            # Not waited for: a listing that is given up may be collected anywhere, also within the start of a thread,
            # where waiting for another one never ends (`threading` holds a lock then). Otherwise all have ended.
            pool.shutdown(wait=False, cancel_futures=True)

    def _by_engine(self, engine: Engine, folders: Sequence[str], *, details: bool) -> Iterator[list[Entry]]:
        done = entries = 0
        while done < len(folders):
            size = _FOLDERS_FIRST if not entries else max(engine.slots, done * _ENTRIES_MAX // entries)
            round_ = folders[done : done + size]
            tasks = list(_split(round_, engine.slots * _TASKS_PER_SLOT, self.storage, details=details))
            for answer in engine.map(list_folders, tasks, parallelism=len(tasks), description="list folders"):
                for packed in answer:
                    found = unpacked(packed)
                    entries += len(found)
                    yield found
            done += len(round_)


class ListTask(NamedTuple):
    """Folders that one task lists."""

    storage: Storage
    folders: tuple[str, ...]
    details: bool


class Packed(NamedTuple):
    """
    What a folder holds, small enough to be sent: a hundred thousand tuples of names would take five times as long.

    Args:
        names: All names, with a slash after each but the last, which no name contains.
        folders: Places of those that are folders.
        sizes, times: As in `Entry`; empty if none is known.
    """

    names: str
    folders: tuple[int, ...] = ()
    sizes: tuple[int | None, ...] = ()
    times: tuple[int | None, ...] = ()


def list_folders(task: ListTask) -> list[Packed]:
    """The work of a task."""
    return [packed(task.storage.list(folder, details=task.details)) for folder in task.folders]


def packed(entries: Sequence[Entry]) -> Packed:
    """What a folder holds, to be sent."""
    if not entries:
        return Packed("")
    names, are_folders, sizes, times = zip(*entries, strict=True)
    return Packed(
        "/".join(names),
        tuple(place for place, is_folder in enumerate(are_folders) if is_folder),
        sizes if any(size is not None for size in sizes) else (),
        times if any(time is not None for time in times) else (),
    )


def unpacked(sent: Packed) -> list[Entry]:
    """The entries, in their order."""
    if not sent.names:
        return []
    names = sent.names.split("/")
    are_folders: Iterable[bool] = repeat(False, len(names))
    if sent.folders:
        folders = frozenset(sent.folders)
        are_folders = [place in folders for place in range(len(names))]
    # `zip` of unknown sizes would end at once, so they are repeated for as long as there are names.
    rows = zip(names, are_folders, sent.sizes or repeat(None), sent.times or repeat(None), strict=False)
    return list(map(tuple.__new__, repeat(Entry), rows))


def _split(folders: Sequence[str], tasks: int, storage: Storage, *, details: bool) -> Iterator[ListTask]:
    size = -(-len(folders) // max(tasks, 1)) or 1
    for start in range(0, len(folders), size):
        yield ListTask(storage, tuple(folders[start : start + size]), details)
