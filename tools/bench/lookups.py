"""
How many files one key opens in a table of many: through the record index, Bloom filters of the metadata table, footers.

    python tools/bench/lookups.py FOLDER [--files 10000] [--hudi 1.1.1] [--keys 5]

hudi_py makes the table below FOLDER with a record index, keys at random so that ranges of keys rule nothing out. With
--hudi a release of Apache Hudi then upserts one row and makes the filters of the metadata table, which hudi_py only
keeps. The same table is asked with all indexes, without the record index, and without both. Prints one JSON document:
base files and files of the metadata table opened for a key, at most, and the least CPU seconds of a look-up. More than
three base files opened through an index of the metadata table is an error. A table that is there already is used again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

import pyarrow as pa  # noqa: E402

import hudi_py  # noqa: E402
from hudi_py.storage.local import LocalStorage  # noqa: E402
from hudi_py.storage.wrappers import RecordingStorage  # noqa: E402

_ROWS = 10  # in each file
_OPENED_MAX = 3
_PARTITIONS = "hoodie.table.metadata.partitions"


def main() -> None:
    """Make the table, look keys up, print."""
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--hudi", help="a release that makes the Bloom filters of the metadata table")
    parser.add_argument("--keys", type=int, default=5, help="to look up in each way")
    given = parser.parse_args()
    table = given.folder.resolve() / f"lookups-{given.files}-{given.hudi}"
    if not table.exists():
        make_table(table, given.files, given.hudi)
    properties = table / ".hoodie" / "hoodie.properties"
    text = properties.read_text()
    found = re.search(rf"^{re.escape(_PARTITIONS)}=(.*)$", text, re.MULTILINE)
    assert found is not None, "the table has no metadata table"
    indexes = found[1].replace("\\", "").split(",")
    ways = {"record_index": indexes}
    if "bloom_filters" in indexes:
        ways["bloom_filters"] = [each for each in indexes if each != "record_index"]
    ways["footers"] = ["files"]
    figures = {}
    try:
        for way, left in ways.items():
            properties.write_text(text.replace(found[0], f"{_PARTITIONS}={','.join(left)}"))
            figures[way] = look_up(table, given.keys, given.files)
            print(way, figures[way], file=sys.stderr, flush=True)
            if way != "footers" and figures[way]["base files"] > _OPENED_MAX:
                raise SystemExit(f"{figures[way]['base files']} base files opened for one key through {way}")
    finally:
        properties.write_text(text)
    print(json.dumps({"files": given.files, "for one key": figures}, indent=1))


def key_of(number: int) -> str:
    """Keys of neighbours are far apart."""
    return f"{number * 2654435761 % (1 << 32):010}-{number}"


def rows_of(numbers: range, version: int) -> pa.Table:
    """One file for each `_ROWS` rows."""
    return pa.table(
        {
            "id": [key_of(number) for number in numbers],
            "p": [f"p{number // _ROWS:06}" for number in numbers],
            "v": pa.array([version] * len(numbers), pa.int64()),
        }
    )


def make_table(path: Path, files: int, hudi: str | None) -> None:
    """A partition for each file; the filters are small, as for files of few rows."""
    settings = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "p",
        "hoodie.metadata.enable": "true",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.index.bloom.num_entries": "100",
        "hoodie.clean.automatic": "false",
    }
    hudi_py.write(str(path), rows_of(range(files * _ROWS), 1), operation="bulk_insert", settings=settings)
    if hudi is None:
        return
    from real_hudi import RealHudi

    peer = RealHudi(hudi, call_seconds_max=1800)
    try:
        more = {**settings, "hoodie.metadata.index.bloom.filter.enable": "true"}
        peer.write(path, rows_of(range(1), 2), "upsert", more)
    finally:
        peer.close()


def look_up(path: Path, keys: int, files: int) -> dict[str, Any]:
    """The most files that one of some keys opened, and the least CPU seconds, the opening of the table included."""
    base, metadata, seconds = [], [], []
    for number in random.Random(files).sample(range(files * _ROWS), keys):  # noqa: S311
        storage = RecordingStorage(LocalStorage(str(path)))
        began = time.process_time()
        found = hudi_py.Table(storage).rows(where=f"id = '{key_of(number)}'").to_arrow()
        seconds.append(time.process_time() - began)
        assert found["id"].to_pylist() == [key_of(number)], found
        opened = {name for verb, name in storage.calls if verb in ("open_read", "read")}
        base.append(sum(".hoodie" not in name for name in opened))
        metadata.append(sum(name.startswith(".hoodie/metadata/") for name in opened))
    return {"base files": max(base), "metadata table": max(metadata), "cpu s": round(min(seconds), 3)}


if __name__ == "__main__":
    main()
