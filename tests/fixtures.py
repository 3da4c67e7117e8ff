"""Tables written by real Apache Hudi, see ``fixtures/README.md``; shared by all tests."""

from __future__ import annotations

import functools
import json
import tarfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "fixtures"


@functools.cache
def fixture_names() -> tuple[str, ...]:
    """All fixtures as ``<table>-<Hudi version>``, sorted."""
    return tuple(sorted(path.name.removesuffix(".tar.gz") for path in FOLDER.glob("*.tar.gz")))


def unpack(name: str, folder: Path) -> Path:
    """Unpack one fixture into *folder*, modification times included; returns the table's base path."""
    with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name.rpartition("-")[0]


def expected(name: str) -> dict[str, Any]:
    """What real Hudi says about the table: the keys ``inputs`` and ``expected``, see the README."""
    return json.loads((FOLDER / f"{name}.expected.json").read_text(encoding="utf-8"))


def unpack_more(name: str, folder: Path) -> Path:
    """Unpack one of the tables without expected answers, ``more/`` in the README; returns its base path."""
    with tarfile.open(FOLDER / "more" / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name.rpartition("-")[0]


@functools.cache
def metadata_files(name: str) -> dict[str, bytes]:
    """Path in the table → content of every file below ``.hoodie``, without unpacking anything; ``.crc`` left out."""
    prefix = name.rpartition("-")[0] + "/"
    found = {}
    with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
        for member in archive:
            path = member.name.removeprefix(prefix)
            if member.isfile() and path.startswith(".hoodie/") and not path.endswith(".crc"):
                found[path] = archive.extractfile(member).read()
    return found
