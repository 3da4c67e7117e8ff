"""Random sequences of calls: local disk and memory agree with a plain dictionary."""

from __future__ import annotations

import shutil
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from hudi_py.errors import AlreadyExists, NotFound
from hudi_py.storage.base import Storage
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage

FOLDERS = ("a", "a/b", "p=1", ".hoodie", ".hoodie/timeline")
FILES = ("f", "ü 1.parquet", ".log", "g.crc")
PATHS = st.sampled_from([*FILES, *(f"{folder}/{file}" for folder in FOLDERS for file in FILES)])
DATA = st.binary(max_size=20)


class StorageModel(RuleBasedStateMachine):
    """One storage beside a dictionary of path to content."""

    storage: Storage

    def __init__(self) -> None:
        super().__init__()
        self.model: dict[str, bytes] = {}

    @rule(path=PATHS, data=DATA)
    def create_new(self, path: str, data: bytes) -> None:
        try:
            self.storage.create_new(path, data)
        except AlreadyExists:
            assert path in self.model
        else:
            assert path not in self.model
            self.model[path] = data

    @rule(path=PATHS, data=DATA)
    def replace(self, path: str, data: bytes) -> None:
        self.storage.replace(path, data)
        self.model[path] = data

    @rule(path=PATHS, parts=st.lists(DATA, max_size=3))
    def stream(self, path: str, parts: list[bytes]) -> None:
        with self.storage.open_write(path) as stream:
            for part in parts:
                stream.write(part)
        self.model[path] = b"".join(parts)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        assert self.storage.delete(path) is (self.model.pop(path, None) is not None)

    @rule(paths=st.lists(PATHS, max_size=6))
    def delete_many(self, paths: list[str]) -> None:
        expected = {path: self.model.pop(path, None) is not None for path in dict.fromkeys(paths)}
        assert self.storage.delete_many(paths) == expected

    @rule(folder=st.sampled_from(FOLDERS))
    def delete_folder(self, folder: str) -> None:
        self.storage.delete_folder(folder)
        self.model = {path: data for path, data in self.model.items() if not path.startswith(folder + "/")}

    @rule(path=PATHS)
    def read(self, path: str) -> None:
        assert self.storage.size(path) == (len(self.model[path]) if path in self.model else None)
        try:
            assert self.storage.read(path) == self.model[path]
        except NotFound:
            assert path not in self.model

    @invariant()
    def listings_agree(self) -> None:
        for folder in ("", *FOLDERS):
            prefix = f"{folder}/" if folder else ""
            below = [path.removeprefix(prefix) for path in self.model if path.startswith(prefix)]
            files = {name for name in below if "/" not in name}
            folders = {name.partition("/")[0] for name in below if "/" in name}
            found = self.storage.list(folder, details=True)
            assert {entry.name: entry.size_bytes for entry in found if not entry.is_folder} == {
                name: len(self.model[prefix + name]) for name in files
            }
            listed = {entry.name for entry in found if entry.is_folder}
            # On a disk an emptied folder stays.
            assert folders <= listed if self.storage.capabilities.has_folders else folders == listed
            assert len(found) == len({entry.name for entry in found})


class MemoryModel(StorageModel):
    def __init__(self) -> None:
        super().__init__()
        self.storage = MemoryStorage()


class LocalModel(StorageModel):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="hudi-py-model-")
        self.storage = LocalStorage(self.folder)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestMemoryModel = MemoryModel.TestCase
TestMemoryModel.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestLocalModel = LocalModel.TestCase
TestLocalModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
