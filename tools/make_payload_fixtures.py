"""
Makes the fixtures ``tests/fixtures/combined/payload_*``: tables of Apache Hudi's payload classes, and its answers.

    python tools/make_payload_fixtures.py --release 0.15.0 [--payload EventTimeAvroPayload]

Needs what `tools/real_hudi` needs. The rows are the same each time, the times of the commits are not. Questions at
which the release fails are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from real_hudi import RealHudi  # noqa: E402 - needs the path

from support.fixtures import pack_combined  # noqa: E402
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
    path = folder / ("payload_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.removesuffix("AvroPayload")).lower())
    times = write_table(hudi, path, name, _SEED)
    pack_combined(path, hudi.version, answers(hudi, path, times))


def answers(hudi: RealHudi, path: Path, times: list[str]) -> Iterator[tuple[str, Any, Any, list[dict[str, Any]]]]:
    """Each question, and the rows that Apache Hudi reads."""
    for kind, begin, end in questions(hudi, path, times):
        found = answer(hudi, path, kind, begin, end)
        if isinstance(found, str):  # docs/merge-on-read.md, Payload classes: what the release fails at, hudi_py shows
            print(f"{path.name}: left out {kind} {begin} {end or ''}: {found[-200:]}", file=sys.stderr)
            continue
        yield kind, begin, end, found


if __name__ == "__main__":
    main()
