"""The storages that the contract is proven for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from hudi_py.storage.base import Storage
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage

BACKENDS = ("local", "memory", "s3")


@pytest.fixture
def make_storage(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], Storage]:
    """Build an empty storage of the named backend."""

    def make(backend: str) -> Storage:
        if backend == "local":
            return LocalStorage(tmp_path / "table")
        if backend == "memory":
            return MemoryStorage()
        from hudi_py.storage.remote import RemoteStorage

        return RemoteStorage(f"s3://contract/{uuid4()}", request.getfixturevalue("s3_options"))

    return make


@pytest.fixture(params=BACKENDS)
def storage(request: pytest.FixtureRequest, make_storage: Callable[[str], Storage]) -> Storage:
    """An empty storage, once of each backend."""
    return make_storage(request.param)
