"""The storages that the contract is proven for. S3 is a real moto server process on a free port of this machine."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from hudi_py.storage.base import Storage
from hudi_py.storage.local import LocalStorage
from hudi_py.storage.memory import MemoryStorage

BACKENDS = ("local", "memory", "s3")


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    """Storage options for a running S3 server with a bucket ``contract``."""
    pytest.importorskip("moto.server", reason="the S3 part needs moto[server]")
    pytest.importorskip("s3fs", reason="the S3 part needs s3fs")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stderr is not None
            line = next((line for line in server.stderr if "Running on http" in line), None)
            assert line is not None, "moto ended before it listened"
            # It logs every request; a full pipe would stop it.
            threading.Thread(target=server.stderr.read, daemon=True).start()
            endpoint = line.split("Running on ")[1].split()[0]
            options = {"key": "test", "secret": "test-secret-value", "endpoint_url": endpoint, "region": "us-east-1"}
            create_bucket(options, "contract")
            yield options
        finally:
            server.terminate()


def create_bucket(options: dict[str, str], name: str) -> None:
    import s3fs

    client = s3fs.S3FileSystem(
        key=options["key"], secret=options["secret"], endpoint_url=options["endpoint_url"], skip_instance_cache=True
    )
    client.call_s3("create_bucket", Bucket=name)


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
