"""
How long a planned clean takes on threads and on Spark executors.

    python tools/bench/executors.py FOLDER [--files 6000,100000] [--cores 1,2] [--repeat 3]

Makes tables of version 9 below FOLDER, 60 file groups of two slices in each partition, plans a clean of the older
slices, and has that plan carried out: by threads, and on executors in a session with so many cores each. The
repetitions alternate, so that slow minutes of the machine hit all; the first job of every session is counted apart,
for its Python workers start then. Prints JSON: seconds and CPU seconds (driver, JVM, workers) of each repetition, their
minima, and ratios to threads. Everything made is deleted again.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from bench_common import Contestant, Meter, serve  # noqa: E402
from make_table import make_table  # noqa: E402

GROUPS = 60


def main() -> None:
    """Start a process for each engine, alternate, print."""
    parser = argparse.ArgumentParser(description=" ".join((__doc__ or "").split("\n\n")[0].split()))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", default="6000,100000")
    parser.add_argument("--cores", default="1,2")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve({"clean": _cleaner(given.serve)})
        return
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = ["threads", *(f"local[{cores}]" for cores in given.cores.split(","))]
    command = [sys.executable, __file__, str(folder), "--serve"]
    contestants = [Contestant(name, [*command, name], folder) for name in names]
    figures: dict[str, Any] = {}
    for files in map(int, given.files.split(",")):
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for repetition in range(given.repeat):
            for each in contestants:
                table = folder / f"table-{files}-{repetition}"
                _make(table, files)
                answer = each.call("clean", root=str(table), files=files)
                shutil.rmtree(table)
                if "ok" not in answer:
                    raise SystemExit(f"{each.name}: {answer}")
                runs[each.name].append(answer["ok"])
                print(files, each.name, answer, file=sys.stderr, flush=True)
        figures[str(files)] = {"runs": runs, "min": _least(runs)}
    for each in contestants:
        each.close()
    print(json.dumps(figures, indent=1))


def _least(runs: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, float]]:
    """Minima of wall and CPU seconds, and as multiples of those of threads; a session's first job is left out."""
    warm = {name: [run for run in each if not run["first"]] for name, each in runs.items()}
    least = {name: {key: min(run[key] for run in each) for key in ("s", "cpu")} for name, each in warm.items() if each}
    threads = least["threads"]
    return {
        name: {**each, "s x": round(each["s"] / threads["s"], 2), "cpu x": round(each["cpu"] / threads["cpu"], 2)}
        for name, each in least.items()
    }


def _make(root: Path, files: int) -> None:
    make_table(root, version=9, partitions=files // GROUPS, groups=GROUPS, slices=2, empty_files=True)


def _cleaner(name: str) -> Any:
    """Carries out the pending clean of a table."""
    import hudi_py

    engine: Any = None
    if name != "threads":
        from hudi_py.spark.engine import SparkEngine
        from hudi_py.spark.session import local_session

        engine = SparkEngine(local_session("bench", cores=int(name[6:-1])))
    state = {"first": name != "threads"}

    def clean(root: str, files: int) -> dict[str, Any]:
        services = hudi_py.open_table(root).services
        assert services.clean(services.clean_config(file_versions_retained=1)).schedule()
        with Meter() as meter:
            (done,) = hudi_py.open_table(root).clean(engine=engine)
        assert done.deleted_count == files // GROUPS * GROUPS
        first, state["first"] = state["first"], False
        return meter.dict(first=first)

    return clean


if __name__ == "__main__":
    main()
