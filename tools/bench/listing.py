"""
How long it takes to list a whole table, and in how much memory: through the metadata table, folder by folder, by a
plain walk over the folders, and by Apache Hudi in both ways.

    python tools/bench/listing.py FOLDER [--partitions 10000] [--files 100] [--hudi 1.1.1] [--repeat 3]

Makes a table below FOLDER, its data files links to one of four bytes, with a metadata table made by us, and prints one
JSON document: of each contestant and repetition seconds, CPU seconds, peak megabytes and the load of the machine; on
standard error as they come. The repetitions alternate. Ours and the walk run in a new process each, Apache Hudi in one
warm JVM; what is peak memory there is mostly what its heap was given. A table that is there already is used again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from bench_common import Meter, scan  # noqa: E402

_METAFILE = b"#partition metadata\ncommitTime=20260101000000000\npartitionDepth=1\n"
_FILE = "{number:08d}-0000-0000-0000-000000000000-0_0-0-0_20260101000000000.parquet"
Figures = dict[str, Any]


def main() -> None:
    """Make the table, list it, print."""
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=100, help="in each partition")
    parser.add_argument("--hudi", help="a release to compare with")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    table = given.folder.resolve() / f"listing-{given.partitions}-{given.files}"
    start = time.perf_counter()
    if not table.exists():
        make_table(table, given.partitions, given.files)
    made_s = round(time.perf_counter() - start, 1)
    contestants = dict(_contestants(table, given.hudi))
    figures: dict[str, list[Figures]] = {name: [] for name in contestants}
    for _ in range(given.repeat):
        for name, run in contestants.items():
            figures[name].append(run())
            print(name, figures[name][-1], file=sys.stderr, flush=True)
    total = given.partitions * given.files
    assert all(each["files"] in (total, None) for runs in figures.values() for each in runs), figures
    print(json.dumps({"partitions": given.partitions, "files": total, "making_s": made_s, "runs": figures}, indent=1))


def make_table(path: Path, partitions: int, files: int) -> None:
    """A table of tiny files whose metadata table knows them all."""
    from hudi_py.config.new_table import new_table_properties
    from hudi_py.config.settings import Settings
    from hudi_py.runtime.clock import SystemClock
    from hudi_py.storage.local import LocalStorage
    from hudi_py.table import open_table
    from hudi_py.timeline.properties_file import create_properties
    from hudi_py.writing.transaction import begin_write

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
        names = [folder / _FILE.format(number=partition * files + number) for number in range(files)]
        names[0].write_bytes(b"PAR1")
        for name in names[1:]:
            os.link(names[0], name)
    table = open_table(str(path), settings=settings)
    transaction = begin_write(table.contents, table.config, table.settings, table.services.metadata_table)
    transaction.commit([], operation="UPSERT", extra_metadata={})


def _contestants(path: Path, hudi: str | None) -> Iterator[tuple[str, Callable[[], Figures]]]:
    yield "hudi_py, metadata table", lambda: _in_new_process(_through_metadata_table, path)
    yield "hudi_py, folders", lambda: _in_new_process(_by_folders, path)
    yield "os.scandir", lambda: _in_new_process(scan, path)
    if hudi is not None:
        from real_hudi import RealHudi

        peer = RealHudi(hudi)
        pid = peer.jvm_pid()
        for name, use in ((f"Hudi {hudi}, metadata table", True), (f"Hudi {hudi}, folders", False)):

            def run(use: bool = use) -> Figures:
                with Meter([pid]) as meter:
                    peer.list_everything(path, use_metadata=use)
                return meter.dict(files=None)  # it counts partitions

            yield name, run


def _through_metadata_table(path: Path) -> int:
    return _listed(path, {})


def _by_folders(path: Path) -> int:
    return _listed(path, {"hoodie.metadata.enable": "false"})


def _listed(path: Path, settings: dict[str, str]) -> int:
    from hudi_py.table import open_table

    table = open_table(str(path), settings=settings)
    return sum(1 for _, files in table.listing.walk(details=True) for file in files if file.name.endswith(".parquet"))


def _in_new_process(run: Callable[[Path], int], path: Path) -> Figures:
    """Modules are loaded before the meter runs."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_metered, (run, path))


def _metered(run: Callable[[Path], int], path: Path) -> Figures:
    import hudi_py.mdt.listing
    import hudi_py.table  # noqa: F401

    with Meter() as meter:
        files = run(path)
    return meter.dict(files=files)


if __name__ == "__main__":
    main()
