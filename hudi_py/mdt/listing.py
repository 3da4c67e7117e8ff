"""Partitions and files through the metadata table instead of folders."""

from __future__ import annotations

from collections.abc import Iterator

from hudi_py.mdt.read import MetadataReader
from hudi_py.storage.base import Entry


class MetadataListing:
    """
    What the metadata table says, as a `Listing`.

    Args:
        reader: Opened for one snapshot; its base file stays open as long as this is in use.
    """

    is_fresh = False

    def __init__(self, reader: MetadataReader) -> None:
        self._reader = reader

    def walk(self, *, details: bool = False) -> Iterator[tuple[str, list[Entry]]]:
        """Every partition with its files; sizes are always known."""
        listed = set()
        for path, files in self._reader.scan():
            listed.add(path)
            yield path, _entries(files)
        for path in self._reader.partitions():
            if path not in listed:
                yield path, []

    def partition(self, path: str, *, details: bool = False) -> list[Entry]:
        """Files of one partition."""
        return _entries(self._reader.files(path))


def _entries(files: dict[str, int]) -> list[Entry]:
    return [Entry(name, False, size) for name, size in files.items()]
