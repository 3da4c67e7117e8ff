"""
Makes the fixtures ``tests/fixtures/combined/payload_*``: tables of Apache Hudi's payload classes, and its answers.

    python tools/make_payload_fixtures.py --release 0.15.0 [--payload EventTimeAvroPayload]

Needs what `tools/real_hudi` needs. The rows are the same each time, the times of the commits are not. Questions at
which the release fails are left out.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from real_hudi import RealHudi  # noqa: E402 - needs the path

from support.fixtures import FOLDER, HASHED_META, row_hash  # noqa: E402
from support.payload_tables import PAYLOADS, answer, questions, write_table  # noqa: E402

_SEED: Final = 1


def main() -> None:
    """Write the tables that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", required=True)
    parser.add_argument("--payload", choices=sorted(PAYLOADS), action="append")
    given = parser.parse_args()
    hudi = RealHudi(given.release)
    for name in given.payload or PAYLOADS:
        with tempfile.TemporaryDirectory() as folder:
            make(hudi, Path(folder), name)
    hudi.close()


def make(hudi: RealHudi, folder: Path, name: str) -> None:
    """Write one table, ask for its rows, and pack both."""
    short = "payload_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("AvroPayload")).lower()
    path = folder / short
    times = write_table(hudi, path, name, _SEED)
    reads: dict[str, Any] = {"as_of": {}, "incremental": []}
    for kind, begin, end in questions(hudi, path, times):
        found = answer(hudi, path, kind, begin, end)
        if isinstance(found, str):  # docs/merge-on-read.md, Payload classes: what the release fails at, hudi_py shows
            print(f"{short}: left out {kind} {begin} {end or ''}: {found[-200:]}", file=sys.stderr)
            continue
        told = _summary(found)
        if kind == "as_of":
            reads[kind][begin] = told
        elif kind == "incremental":
            reads[kind].append({"begin": begin, "end": end, **told})
        else:
            reads[kind] = told
    target = FOLDER / "combined" / f"{short}-{hudi.version}"
    with tarfile.open(f"{target}.tar.gz", "w:gz") as archive:
        archive.add(path, short, filter=lambda member: None if member.name.endswith(".crc") else member)
    Path(f"{target}.expected.json").write_text(json.dumps({"reads": reads}) + "\n", encoding="utf-8")


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    for row in rows:  # from hexadecimal digits to the form of the command line
        row["y"] = None if row["y"] is None else base64.b64encode(bytes.fromhex(row["y"])).decode()
    return {"rows": len(rows), "hash": row_hash(rows, HASHED_META)}


if __name__ == "__main__":
    main()
