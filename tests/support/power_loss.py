"""
What a power loss would take, by the synchronisations that a program asked the system for.

No disk is switched off: the calls that create names and the ``fsync`` calls are recorded. A file's data survives as it
was at the last ``fsync`` of the file, a name as it was at the last ``fsync`` of its folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hudi_py.storage import _create
from hudi_py.storage.base import is_temporary

Identity = tuple[int, int]
"""Inode, and how many files this test has created before it: inodes are used again."""


class Disk:
    """
    Watches everything below *root*, which is there already and lasts.

    Args:
        monkeypatch: Puts the calls back.
        root: A folder.

    Attributes:
        on_new_name: Called with the names (paths below *root*, without temporary ones) that have just appeared or that
            stand for another file now.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.on_new_name: Callable[[set[str]], None] = lambda names: None
        self._generation: dict[int, int] = {}
        self._data: dict[Identity, tuple[int, int]] = {}
        self._names: dict[Identity, Mapping[str, Identity]] = {}
        self._seen: dict[str, Identity] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._synchronised)
        for module, name in ((os, "link"), (os, "replace"), (os, "mkdir"), (_create, "rename_noreplace")):
            monkeypatch.setattr(module, name, self._naming(getattr(module, name)))
        monkeypatch.setattr(os, "open", self._opening(os.open))

    def lost(self) -> set[str]:
        """Paths whose name, or whose data, a power loss would take now; temporary files may go."""
        lost = set()
        for folder, _, files in os.walk(self.root):
            lasting = self._names.get(self._identity(os.stat(folder)), {})
            for entry in (each for each in os.scandir(folder) if not is_temporary(each.name)):
                found = entry.stat(follow_symlinks=False)
                identity = self._identity(found)
                is_whole = entry.name not in files or not found.st_size or self._data.get(identity) == _version(found)
                if lasting.get(entry.name) != identity or not is_whole:
                    lost.add(str(Path(entry.path).relative_to(self.root)))
        return lost

    def torn(self, names: set[str]) -> set[str]:
        """Those of these files whose name may last while their data does not."""
        found = {name: os.stat(self.root / name) for name in names}
        return {
            name
            for name, each in found.items()
            if stat.S_ISREG(each.st_mode) and each.st_size and self._data.get(self._identity(each)) != _version(each)
        }

    def _identity(self, found: os.stat_result) -> Identity:
        return (found.st_ino, self._generation.get(found.st_ino, 0))

    def _synchronised(self, descriptor: int) -> None:
        self._fsync(descriptor)
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            with os.scandir(descriptor) as entries:
                names = {each.name: self._identity(each.stat(follow_symlinks=False)) for each in entries}
            self._names[self._identity(found)] = names
        else:
            self._data[self._identity(found)] = _version(found)

    def _opening(self, original: Callable[..., int]) -> Callable[..., int]:
        def call(path: str, flags: int, *arguments: int, **more: int) -> int:
            descriptor = original(path, flags, *arguments, **more)
            if flags & os.O_CREAT:
                self._generation[os.fstat(descriptor).st_ino] = len(self._generation) + 1
                self._look()
            return descriptor

        return call

    def _naming(self, original: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object, **more: object) -> None:
            original(*arguments, **more)
            self._look()

        return call

    def _look(self) -> None:
        names = {
            str(Path(folder, each).relative_to(self.root)): self._identity(os.lstat(Path(folder, each)))
            for folder, folders, files in os.walk(self.root)
            for each in (*folders, *files)
            if not is_temporary(each)
        }
        new = {name for name, identity in names.items() if self._seen.get(name) != identity}
        self._seen = names
        if new:
            self.on_new_name(new)


def _version(found: os.stat_result) -> tuple[int, int]:
    return (found.st_size, found.st_mtime_ns)
