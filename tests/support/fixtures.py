"""Tables written by real Apache Hudi, see ``tests/fixtures/README.md``."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "fixtures"


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


def combined_names() -> list[str]:
    """Fixtures of ``combined/`` in the README, as `fixture_names`."""
    return sorted(path.name.removesuffix(".tar.gz") for path in (FOLDER / "combined").glob("*.tar.gz"))


def unpack_combined(name: str, folder: Path) -> tuple[Path, dict[str, Any]]:
    """As `unpack`, of ``combined/``; with what real Hudi reads from the table."""
    with tarfile.open(FOLDER / "combined" / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    text = (FOLDER / "combined" / f"{name}.expected.json").read_text(encoding="utf-8")
    return folder / name.rpartition("-")[0], json.loads(text)["reads"]


def pack_combined(path: Path, version: str, answers: Iterable[tuple[str, Any, Any, list[dict[str, Any]]]]) -> None:
    """
    Make a fixture of ``combined/``, as `unpack_combined` unpacks it.

    Args:
        path: Base path of the table; its name is that of the fixture.
        version: Of Apache Hudi.
        answers: Of each question its kind, begin and end, and the rows that real Hudi reads, bytes as hexadecimals.
    """
    reads: dict[str, Any] = {"as_of": {}, "incremental": []}
    for kind, begin, end, rows in answers:
        for row in rows:  # to the form of the command line
            row["y"] = None if row["y"] is None else base64.b64encode(bytes.fromhex(row["y"])).decode()
        told = {"rows": len(rows), "hash": row_hash(rows, HASHED_META)}
        if kind == "as_of":
            reads[kind][begin] = told
        elif kind == "incremental":
            reads[kind].append({"begin": begin, "end": end, **told})
        else:
            reads[kind] = told
    target = FOLDER / "combined" / f"{path.name}-{version}"
    with tarfile.open(f"{target}.tar.gz", "w:gz") as archive:
        archive.add(path, path.name, filter=lambda member: None if member.name.endswith(".crc") else member)
    Path(f"{target}.expected.json").write_text(json.dumps({"reads": reads}) + "\n", encoding="utf-8")


@functools.cache
def row_fixture_names(prefix: str = "") -> tuple[str, ...]:
    """Fixtures of ``rows/`` in the README, whose answers hold rows, as `fixture_names`."""
    return tuple(sorted(path.name.removesuffix(".tar.gz") for path in (FOLDER / "rows").glob(f"{prefix}*.tar.gz")))


def unpack_rows(name: str, folder: Path) -> Path:
    """As `unpack`, of ``rows/``."""
    with tarfile.open(FOLDER / "rows" / f"{name}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / name.rpartition("-")[0]


@functools.cache
def expected_rows(name: str) -> dict[str, Any]:
    """What real Hudi reads from a table of ``rows/``: the part ``reads``."""
    text = (FOLDER / "rows" / f"{name}.expected.json").read_text(encoding="utf-8")
    return json.loads(text)["expected"]["reads"]


def writer_settings(name: str) -> dict[str, Any]:
    """The settings with which real Hudi wrote a table of ``rows/``."""
    text = (FOLDER / "rows" / f"{name}.expected.json").read_text(encoding="utf-8")
    return json.loads(text)["inputs"]["service_options"]


HASHED_META = ("_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path")


def row_hash(rows: list[dict[str, Any]], keep: tuple[str, ...] = ()) -> str:
    """The hash of rows that the README tells, whatever their order; of meta columns those that *keep* names."""
    plain = [
        {name: value for name, value in row.items() if not name.startswith("_hoodie_") or name in keep} for row in rows
    ]
    lines = sorted(json.dumps(row, sort_keys=True, separators=(",", ":"), ensure_ascii=False) for row in plain)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


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
