"""
Checks in one small job that executors can work on a table, before anything is deleted.

Without this check, a missing package would look like a failed task; and a folder that is not on a shared disk would
look like a table whose files were all deleted before.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from hudi_py.errors import ConfigError
from hudi_py.model.release import RELEASE
from hudi_py.spark.failures import SHIP
from hudi_py.storage.base import Storage
from hudi_py.timeline.properties_file import PROPERTIES_FILE

Finding = dict[str, str]


def look_around(path: str) -> Callable[[bytes], Finding]:
    """
    Return the function that an executor runs with a pickled storage.

    It is defined inside a function so that Spark pickles its code instead of a reference to this module: it has to run
    even where hudi_py is not installed, because that is what it finds out.

    Args:
        path: Path of a file that every table has.
    """

    def look(storage: bytes) -> dict[str, str]:
        import pickle
        import platform
        import socket

        found = {"host": socket.gethostname(), "python": platform.python_version()}
        try:
            from hudi_py.errors import HudiError
            from hudi_py.model import release
        except ImportError as error:
            return {**found, "missing": str(error)}
        found["version"] = release.RELEASE
        try:
            size = pickle.loads(storage).size(path)  # noqa: S301 - our own bytes
        except ImportError as error:
            return {**found, "missing": str(error)}
        except HudiError as error:
            return {**found, "error": f"{type(error).__name__}: {error}"}
        return found if size is None else {**found, "sees": path}

    return look


def check_finding(found: Finding, *, root: str, version: str) -> None:
    """
    Raise if an executor cannot work on the table. Pure.

    Args:
        found: Result of the function of `look_around`.
        root: Path or URL of the table.
        version: Release of hudi_py in this process.

    Raises:
        ConfigError: The executor cannot work on the table; nothing was deleted.
    """
    where = f"on the Spark executors ({found['host']}, Python {found['python']})"
    if "missing" in found:
        raise ConfigError(f"{where} a package is missing: {found['missing']}. Nothing was deleted. {SHIP}")
    if found["version"] != version:
        raise ConfigError(f"{where} hudi_py is {found['version']}, and {version} here. Nothing was deleted. {SHIP}")
    if "error" in found:
        raise ConfigError(
            f"{where} {root} cannot be reached: {found['error']}. Nothing was deleted. Executors take credentials and "
            "end points from --storage-option and from their own environment; see docs/executors.md"
        )
    if "sees" not in found:
        raise ConfigError(
            f"{where} there is no table at {root}. Nothing was deleted. A local path must be on a disk that all "
            "executors share; otherwise clean with --engine local on the machine that has the table"
        )


def probe(run: Callable[[Callable[[Any], Any], list[bytes]], list[Finding]], storage: Storage, slots: int) -> None:
    """
    Check the executors that a job with one task per slot reaches.

    Args:
        run: Runs a function over items as one Spark job.
        storage: Storage of the table.
        slots: Number of tasks that run at the same time.

    Raises:
        ConfigError: See `check_finding`.
    """
    # A task for each slot, so that every executor gets one if Spark spreads them evenly.
    asked = [pickle.dumps(storage)] * slots
    for found in run(look_around(PROPERTIES_FILE), asked):
        check_finding(found, root=storage.root, version=RELEASE)
