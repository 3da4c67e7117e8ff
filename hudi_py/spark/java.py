"""
Find a Java that Spark can start with.

Standard library only and no import of ours: the set-up script loads this file before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

SUPPORTED: Final = {(3, 5): (8, 11, 17), (4, 0): (17, 21)}
"""Java releases per line of Spark, from Spark's own overview page of each release."""

_LAUNCHER: Final = """#!/bin/sh
# Spark 4 asks for a module that small Java runtimes do not contain; it only speeds up some numeric code.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec '{java}' "$@"
"""


class Java(NamedTuple):
    """A Java runtime: its program and its release (8, 11, 17, ...)."""

    program: Path
    release: int


def supported_releases(spark_version: str) -> tuple[int, ...]:
    """Java releases that a Spark version such as ``3.5.9`` runs on; those of the newest line we know otherwise."""
    major, minor = (int(part) for part in spark_version.split(".")[:2])
    return SUPPORTED.get((major, minor), SUPPORTED[max(SUPPORTED)])


def parse_release(version: str) -> int | None:
    """Return 17 for ``17.0.15``, 8 for ``1.8.0_392``; None when there is no number."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def find_java(spark_version: str, environ: Mapping[str, str] = os.environ) -> Java | None:
    """
    Find the Java that Spark would start, when it is one that this Spark runs on.

    Spark looks where we look: JAVA_HOME if it is set, else ``java`` on PATH.

    Returns:
        None when there is none, or it is too old or too new.
    """
    home = environ.get("JAVA_HOME")
    # An empty PATH must stay empty: which() would take its own default instead.
    found = shutil.which("java", path=str(Path(home) / "bin") if home else environ.get("PATH") or os.devnull)
    java = inspect_java(Path(found)) if found else None
    return java if java is not None and java.release in supported_releases(spark_version) else None


def inspect_java(program: Path) -> Java | None:
    """Look up the release of a Java program, from the file beside it if there is one (no start-up); None if broken."""
    actual = program.resolve()
    for folder in (actual.parent.parent, actual.parent.parent.parent):  # a JRE 8 lies one level deeper
        try:
            text = (folder / "release").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if match := re.search(r'^JAVA_VERSION="([^"]+)"', text, re.MULTILINE):
            release = parse_release(match[1])
            return Java(program, release) if release else None
    try:
        shown = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "([^"]+)"', shown)
    release = parse_release(match[1]) if match else None
    return Java(program, release) if release else None


def java_home_without_vector_module(java_home: Path) -> Path:
    """
    Make a folder that serves as JAVA_HOME for Spark 4 on a runtime without the module ``jdk.incubator.vector``.

    Its ``bin/java`` drops the option that asks for the module. It lies inside the virtual environment or, when that
    cannot be written, in the user's cache folder, and is made once.
    """
    if (java_home / "jmods" / "jdk.incubator.vector.jmod").exists():
        return java_home
    text = _LAUNCHER.format(java=str(java_home / "bin" / "java").replace("'", "'\\''"))
    for folder in _launcher_folders():
        program = folder / "bin" / "java"
        try:
            if not program.is_file() or program.read_text(encoding="utf-8") != text:
                _write_program(program, text)
        except OSError:
            continue  # read-only; the last candidate is a new temporary folder
        return folder
    raise OSError(f"no folder can be written for the launcher of {java_home}; set TMPDIR to one")


def _launcher_folders() -> list[Path]:
    folders = []
    if sys.prefix != sys.base_prefix:
        folders.append(Path(sys.prefix) / "share" / "hudi_py" / "java")
    cache = os.environ.get("XDG_CACHE_HOME") or (
        Path(os.environ["HOME"]) / ".cache" if os.environ.get("HOME") else None
    )
    if cache:
        folders.append(Path(cache) / "hudi_py" / "java")
    return [*folders, Path(tempfile.gettempdir()) / f"hudi_py-java-{os.getuid()}-{os.getpid()}"]


def _write_program(program: Path, text: str) -> None:
    program.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, temporary = tempfile.mkstemp(dir=program.parent)
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)
    Path(temporary).chmod(0o755)
    Path(temporary).replace(program)  # another process may be starting it right now
