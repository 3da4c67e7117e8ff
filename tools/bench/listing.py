"""
How long it takes to list a whole table: through the metadata table, folder by folder, and by Apache Hudi in both ways.

    python tools/bench/listing.py FOLDER [--partitions 10000] [--files 100] [--hudi 1.1.1] [--repeat 3]

Makes a table of data files of four bytes below FOLDER, with a metadata table made by us, and prints one JSON document:
seconds of each repetition. A table that is there already is used again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

_METAFILE = b"#partition metadata\ncommitTime=20260101000000000\npartitionDepth=1\n"
_FILE = "{number:08d}-0000-0000-0000-000000000000-0_0-0-0_20260101000000000.parquet"


def main() -> None:
    """Make the table, list it, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100, help="in each partition")
    parser.add_argument("--hudi", help="a release to compare with")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    table = given.folder / f"listing-{given.partitions}-{given.files}"
    if not table.exists():
        make_table(table, given.partitions, given.files)
    figures = {name: [_timed(run) for _ in range(given.repeat)] for name, run in _contestants(table, given.hudi)}
    print(json.dumps({"partitions": given.partitions, "files": given.partitions * given.files, "seconds": figures}))


def make_table(path: Path, partitions: int, files: int) -> None:
    """A table of tiny files whose metadata table knows them all."""
    from hudi_py.config.keys import Settings
    from hudi_py.config.new_table import new_table_properties
    from hudi_py.runtime.clock import SystemClock
    from hudi_py.storage.local import LocalStorage
    from hudi_py.table import open_table
    from hudi_py.timeline.properties_file import create_properties
    from hudi_py.write.transaction import begin_write

    path.mkdir(parents=True)
    storage = LocalStorage(str(path))
    settings = {
        "hoodie.table.name": "listing",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.metadata.enable": "true",
    }
    create_properties(storage, new_table_properties(Settings(settings)), SystemClock())
    for partition in range(partitions):
        folder = path / f"p{partition:06d}"
        folder.mkdir()
        (folder / ".hoodie_partition_metadata").write_bytes(_METAFILE)
        for number in range(files):
            name = folder / _FILE.format(number=partition * files + number)
            name.write_bytes(b"PAR1")
    table = open_table(str(path), settings=settings)
    transaction = begin_write(table.contents, table.config, table.settings, table.metadata_table)
    transaction.commit([], operation="UPSERT", extra_metadata={})


def _contestants(path: Path, hudi: str | None) -> Iterator[tuple[str, Callable[[], Any]]]:
    from hudi_py.table import open_table

    for name, enabled in (("hudi_py, metadata table", None), ("hudi_py, folders", "false")):
        settings = {} if enabled is None else {"hoodie.metadata.enable": enabled}
        yield name, lambda settings=settings: _count(open_table(str(path), settings=settings))
    if hudi is not None:
        from real_hudi import RealHudi

        peer = RealHudi(hudi)
        for name, use in ((f"Hudi {hudi}, metadata table", True), (f"Hudi {hudi}, folders", False)):
            yield name, lambda use=use: peer.list_everything(path, use_metadata=use)
        peer.close()


def _count(table: Any) -> int:
    return sum(len(entries) for _, entries in table.listing.walk(details=True))


def _timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return round(time.perf_counter() - start, 3)


if __name__ == "__main__":
    main()
