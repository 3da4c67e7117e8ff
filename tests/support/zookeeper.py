"""A real ZooKeeper on a free port, from the jars that PySpark brings."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hudi_py.spark.java import find_java

SESSION_MS = 1000
"""Shortest session that the server grants."""
_JARS = ("zookeeper-", "slf4j-api-", "log4j-", "netty-", "snappy-java-", "metrics-core-")


class ZooKeeper:
    """
    A server that can go away and come back.

    Args:
        folder: Where it keeps its nodes, its settings and its log.

    Attributes:
        address: Of the server; it stays the same.
    """

    def __init__(self, folder: Path) -> None:
        spark, java = importlib.util.find_spec("pyspark"), find_java("3.5")
        if spark is None or spark.origin is None or java is None:
            pytest.skip("ZooKeeper needs Java, and the jars of PySpark")
        jars = [path for path in (Path(spark.origin).parent / "jars").glob("*.jar") if path.name.startswith(_JARS)]
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.address = f"127.0.0.1:{self._port}"
        settings = folder / "zoo.cfg"
        settings.write_text(
            f"tickTime=200\ndataDir={folder}/data\nclientPort={self._port}\nclientPortAddress=127.0.0.1\n"
            f"admin.enableServer=false\nminSessionTimeout={SESSION_MS}\nmaxSessionTimeout=60000\n"
        )
        command = [str(java.program), "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, jars))]
        self._command = [*command, "org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)]
        self._folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it, without waiting until it listens."""
        with (self._folder / "log").open("a") as out:
            self.process = subprocess.Popen(self._command, stdout=out, stderr=out)

    def wait(self) -> None:
        """Wait until it answers."""
        while True:
            assert self.process is not None
            assert self.process.poll() is None, "ZooKeeper ended before it answered"
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), timeout=5) as asked:
                asked.sendall(b"srvr")
                if b"Mode" in asked.recv(4096):
                    return

    def end(self) -> None:
        """End it as a failure does, also while it is stopped by a signal."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def forget(self) -> None:
        """Lose all nodes and sessions; it is not running."""
        shutil.rmtree(self._folder / "data")


@contextmanager
def running_zookeeper(folder: Path) -> Iterator[ZooKeeper]:
    """Run a server until the end of the context. Skips the test where it cannot run."""
    server = ZooKeeper(folder)
    try:
        server.begin()
        server.wait()
        yield server
    finally:
        server.end()


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[str]:
    """As `running_zookeeper`; its address."""
    with running_zookeeper(folder) as server:
        yield server.address
