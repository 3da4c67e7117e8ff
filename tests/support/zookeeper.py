"""A real ZooKeeper on a free port, from the jars that PySpark brings."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_py.spark.java import find_java

SESSION_MS = 1000
"""Shortest session that the server grants."""
_JARS = ("zookeeper-", "slf4j-api-", "log4j-", "netty-", "snappy-java-", "metrics-core-")


@contextmanager
def zookeeper_server(folder: Path) -> Iterator[str]:
    """Run a server until the end of the context; its address. Skips the test where it cannot run."""
    spark, java = importlib.util.find_spec("pyspark"), find_java("3.5")
    if spark is None or spark.origin is None or java is None:
        pytest.skip("ZooKeeper needs Java, and the jars of PySpark")
    jars = [path for path in (Path(spark.origin).parent / "jars").glob("*.jar") if path.name.startswith(_JARS)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = folder / "zoo.cfg"
    settings.write_text(
        f"tickTime=200\ndataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        f"admin.enableServer=false\nminSessionTimeout={SESSION_MS}\n"
    )
    command = [str(java.program), "-Xmx64m", "-XX:TieredStopAtLevel=1", "-cp", os.pathsep.join(map(str, jars))]
    command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(settings)]
    with (folder / "log").open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            _wait(port, server)
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()


def _wait(port: int, server: subprocess.Popen[bytes]) -> None:
    while True:
        assert server.poll() is None, "ZooKeeper ended before it listened"
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            pass
