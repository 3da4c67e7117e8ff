"""
Finds a Java runtime for Spark.

Imports only the standard library, because the set-up script loads this file before anything is installed.
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
"""Supported Java releases by Spark version, from the overview page in Spark's documentation of each release."""

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
    """Return the Java releases for a Spark version like ``3.5.9``; those of the newest known one if it is unknown."""
    major, minor = (int(part) for part in spark_version.split(".")[:2])
    return SUPPORTED.get((major, minor), SUPPORTED[max(SUPPORTED)])


def parse_release(version: str) -> int | None:
    """Return 17 for ``17.0.15``, 8 for ``1.8.0_392``; None if there is no number."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else None


def find_java(spark_version: str, environ: Mapping[str, str] = os.environ) -> Java | None:
    """
    Find the Java that Spark would start: that of JAVA_HOME if it is set, otherwise ``java`` on PATH.

    Returns:
        The runtime; None if there is none, or this Spark does not support its release.
    """
    home = environ.get("JAVA_HOME")
    # An empty PATH must stay empty: which() would take its own default instead.
    found = shutil.which("java", path=str(Path(home) / "bin") if home else environ.get("PATH") or os.devnull)
    java = inspect_java(Path(found)) if found else None
    return java if java is not None and java.release in supported_releases(spark_version) else None


def inspect_java(program: Path) -> Java | None:
    """Find the release of a Java program, in its file ``release`` or by running it; None if neither works."""
    actual = program.resolve()
    for folder in (actual.parent.parent, actual.parent.parent.parent):  # a JRE 8 lies one level deeper
        try:
            # Without starting it, which takes a second.
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
    Return a JAVA_HOME for Spark 4 that works with a runtime without the module ``jdk.incubator.vector``.

    If the module is missing, this creates a folder whose ``bin/java`` removes the option that asks for the module. The
    folder is created once, inside the virtual environment or, if that is read-only, in the user's cache folder.
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
    raise OSError(f"no folder is writable for the launcher of {java_home}; set TMPDIR to a writable folder")


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
