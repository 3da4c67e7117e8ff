"""A standalone Spark cluster: a master and workers as processes of their own, each with its own Python environment."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

import pyspark
from typing_extensions import Self

from hudi_py.spark.session import ensure_java

ROOT = Path(__file__).resolve().parents[2]
PYTHON = "python-of-this-worker"
"""What executors call; each worker finds its own on its PATH."""
_START_S = 120


class Cluster:
    """
    A context in which the cluster runs.

    Args:
        folder: For its files.
        workers: Their number; each has two cores.

    Attributes:
        master: Its address, in Spark's notation.
    """

    def __init__(self, folder: Path, workers: int = 2) -> None:
        ensure_java()
        self._folder, self._count = folder, workers
        self._running: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def __enter__(self) -> Self:
        try:
            log = self._start("master", "org.apache.spark.deploy.master.Master", "--port", "0", "--webui-port", "0")
            self.master = _awaited(log, r"Starting Spark master at (spark://\S+)")
            for number in range(self._count):
                of_worker = ("--cores", "2", "--memory", "1g", "--webui-port", "0", "--work-dir")
                name = f"worker{number}"
                where = str(self._folder / f"work{number}")
                log = self._start(name, "org.apache.spark.deploy.worker.Worker", *of_worker, where, self.master)
                _awaited(log, "Successfully registered with master")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._running:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executors and their Pythons, as if its machine had gone."""
        process = self._running[1 + number]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def driver_environment(self) -> Mapping[str, str]:
        """What the driver of a job needs to be told."""
        path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
        return {**os.environ, **_SPARK, "PYTHONPATH": path, "PYSPARK_PYTHON": PYTHON, "SPARK_MASTER": self.master}

    def _start(self, name: str, *command: str) -> Path:
        environment, log = {**os.environ, **_SPARK}, self._folder / f"{name}.log"
        if name != "master":
            tools = _python(self._folder / f"python-{name}")
            environment["PATH"] = f"{tools}{os.pathsep}{environment['PATH']}"
        spark_class = Path(pyspark.__file__).parent / "bin/spark-class"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [str(spark_class), *command, "--host", "127.0.0.1"]
                if name == "master"
                else [str(spark_class), *command],
                env=environment,
                cwd=self._folder,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running.append(process)
        return log


_SPARK = {
    "SPARK_HOME": str(Path(pyspark.__file__).parent),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_NO_DAEMONIZE": "1",
    "SPARK_DAEMON_MEMORY": "256m",
}


def _python(folder: Path) -> Path:
    """Make an environment of its own, which finds the packages of this one; return its folder of programs."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    found = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    (packages / "packages.pth").write_text("\n".join(found))
    (folder / "bin" / PYTHON).symlink_to("python")
    return folder / "bin"


def _awaited(log: Path, wanted: str) -> str:
    """Return what the first group of a pattern, or the whole, is in a log."""
    until = time.monotonic() + _START_S
    while time.monotonic() < until:
        found = re.search(wanted, log.read_text(errors="replace"))
        if found:
            return found[found.re.groups]
        time.sleep(0.05)
    raise AssertionError(f"{wanted} is not in {log}:\n{log.read_text(errors='replace')[-2000:]}")
