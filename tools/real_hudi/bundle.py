"""What real Hudi needs on this machine: Java, PySpark, and the Spark bundle of one Hudi version."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

VERSIONS: Final = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")
TABLE_VERSION: Final = {"0.15.0": 6, "1.0.2": 8, "1.1.1": 9, "1.2.0": 9}
"""The table version that a Hudi release writes by default."""

_GROUP: Final = "org.apache.hudi"
_ARTIFACT: Final = "hudi-spark3.5-bundle_2.12"
_DOWNLOAD_SECONDS_MAX: Final = 600


class Unavailable(Exception):
    """Real Hudi cannot run here; the message is the exact reason, fit for a skip."""


def find_bundle(version: str) -> Path:
    """
    Find the Spark bundle of *version*: ``$HUDI_BUNDLE_DIR``, the local Maven repository, or a Maven download.

    Raises:
        Unavailable: Java, PySpark or the bundle cannot be had.
    """
    require_java()
    if importlib.util.find_spec("pyspark") is None:
        raise Unavailable("real Hudi: the Python package pyspark is not installed")
    name = f"{_ARTIFACT}-{version}.jar"
    local = Path.home() / ".m2" / "repository" / _GROUP.replace(".", "/") / _ARTIFACT / version / name
    given = os.environ.get("HUDI_BUNDLE_DIR")
    for path in ([Path(given) / name] if given else []) + [local]:
        if path.is_file():
            return path
    _download(version)
    if not local.is_file():
        raise Unavailable(f"real Hudi {version}: Maven reported success but {name} is not in the local repository")
    return local


def require_java() -> str:
    """Return the path of the Java that Spark would start. Raises `Unavailable`."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME ({home}) has no bin/java" if home else "no java on PATH and JAVA_HOME is not set"
        raise Unavailable(f"real Hudi needs Java 11 or 17: {where}")
    return java


def _download(version: str) -> None:
    maven = shutil.which("mvn")
    coordinates = f"{_GROUP}:{_ARTIFACT}:{version}"
    if maven is None:
        raise Unavailable(f"real Hudi {version}: {coordinates} is not in the local Maven repository and mvn is missing")
    command = [maven, "-q", "-B", "dependency:get", f"-Dartifact={coordinates}", "-Dtransitive=false"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS_MAX, check=False)
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"real Hudi {version}: mvn took longer than {_DOWNLOAD_SECONDS_MAX} s") from error
    if done.returncode:
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "[ERROR]" in line]
        reason = errors[0][:300] if errors else f"exit code {done.returncode}"
        raise Unavailable(f"real Hudi {version}: mvn could not fetch {coordinates}: {reason}")
