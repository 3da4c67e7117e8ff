"""
Finding partitions and their files by walking the table's folders.

A folder is a partition when it holds a partition metafile; below one nothing is looked for. Source: Hudi
``FileSystemBackedTableMetadata``, format/data-files 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from hudi_py.model.files import METADATA_FOLDER, PARTITION_METAFILE, join_path
from hudi_py.storage.base import Entry, Storage

_METAFILES = frozenset(PARTITION_METAFILE + suffix for suffix in ("", ".parquet", ".orc"))


def walk_partitions(storage: Storage, *, details: bool = False, threads: int = 1) -> Iterator[tuple[str, list[Entry]]]:
    """
    Yield every partition with the files directly in it; each folder is listed once.

    Args:
        details: Ask for sizes too.
        threads: Folders listed at once; more than 1 pays off where a listing is a round trip.
    """
    level = [""]
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    try:
        while level:
            listings = (
                pool.map(lambda folder: storage.list(folder, details=details), level)
                if pool
                else (storage.list(folder, details=details) for folder in level)
            )
            below: list[str] = []
            for folder, entries in zip(level, listings, strict=True):
                if any(entry.name in _METAFILES for entry in entries):
                    yield folder, [entry for entry in entries if not entry.is_folder]
                    continue
                below += [
                    join_path(folder, entry.name)
                    for entry in entries
                    if entry.is_folder and not (folder == "" and entry.name == METADATA_FOLDER)
                ]
            level = below
    finally:
        if pool:
            pool.shutdown(wait=True, cancel_futures=True)


def list_partition(storage: Storage, partition_path: str, *, details: bool = False) -> list[Entry]:
    """Files directly in one partition; empty when the partition is gone."""
    return [entry for entry in storage.list(partition_path, details=details) if not entry.is_folder]
