"""
What executors need to work on a table, checked by one small job before anything is deleted.

Without it a missing package shows as a failed task, and a folder that is no shared disk as a table whose files have all
been deleted already.
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
    The function that an executor runs on a pickled storage.

    It is made here, inside another function, so that Spark sends its code along: it has to run where nothing of ours is
    installed, which is what it is to find out.

    Args:
        path: Of a file that every table has.
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
    Judge what one executor found. Pure.

    Args:
        found: See `look_around`.
        root: Of the table.
        version: Of this process's hudi_py.

    Raises:
        ConfigError: The executor cannot do the work; nothing was deleted.
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
            f"{where} there is no table at {root}. Nothing was deleted. A local path has to be a disk that every "
            "executor shares; otherwise clean with --engine local on the machine that has it"
        )


def probe(run: Callable[[Callable[[Any], Any], list[bytes]], list[Finding]], storage: Storage, slots: int) -> None:
    """
    Ask as many executors as a job reaches.

    Args:
        run: Runs a function over items as one Spark job.
        storage: Of the table.
        slots: How many tasks run at once.

    Raises:
        ConfigError: See `check_finding`.
    """
    asked = [pickle.dumps(storage)] * slots
    for found in run(look_around(PROPERTIES_FILE), asked):
        check_finding(found, root=storage.root, version=RELEASE)
