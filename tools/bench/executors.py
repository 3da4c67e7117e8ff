"""
How long deleting files takes on threads and on Spark executors.

    python tools/bench/executors.py FOLDER [--files 6000,100000] [--cores 1,2] [--repeat 3]

Makes empty files, 60 in a folder, below FOLDER and deletes them: by `LocalEngine`, and by `SparkEngine` in a session
with so many cores each. The repetitions alternate, so that slow minutes of the machine hit all; the first job of every
session is counted apart, for its Python workers start then. Prints JSON: seconds and CPU seconds (driver, JVM, workers)
of each repetition, their minima, and ratios to threads. Everything made is deleted again.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parents[1])]

from bench_common import Contestant, Meter, serve  # noqa: E402

FILES_IN_FOLDER = 60


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
        serve({"delete": _deleter(given.serve)})
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
                answer = each.call("delete", root=str(table), files=files)
                shutil.rmtree(table)
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


def _names(folder: int) -> tuple[str, ...]:
    return tuple(
        f"{folder:08x}-{number:04x}-4000-8000-000000000000-0_0-1-2_20240101000000000.parquet"
        for number in range(FILES_IN_FOLDER)
    )


def _make(root: Path, files: int) -> None:
    for number in range(files // FILES_IN_FOLDER):
        folder = root / f"p{number:06d}"
        folder.mkdir(parents=True)
        for name in _names(number):
            os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY))


def _deleter(name: str) -> Any:
    """Deletes as `execute_clean` does, without the plan and the instants around it."""
    from hudi_py.config.clean import CleanConfig
    from hudi_py.engine.inline import LocalEngine
    from hudi_py.runtime.clock import Deadline, SystemClock
    from hudi_py.services.clean.executing.execute import _delete

    engine: Any = LocalEngine()
    if name != "threads":
        from hudi_py.spark.engine import SparkEngine
        from hudi_py.spark.session import local_session

        engine = SparkEngine(local_session("bench", cores=int(name[6:-1])))
    forever = Deadline.after(SystemClock(), None)
    state = {"first": name != "threads"}

    def delete(root: str, files: int) -> dict[str, Any]:
        planned = {f"p{number:06d}": _names(number) for number in range(files // FILES_IN_FOLDER)}
        with Meter() as meter:
            recheck = _nobody_interferes(root)
            prepared = engine.prepared(recheck.contents.store.storage, files)
            outcome = _delete(recheck, prepared, CleanConfig(), planned, forever)
        assert not outcome.missing
        assert not outcome.failed
        first, state["first"] = state["first"], False
        return meter.dict(first=first)

    return delete


def _nobody_interferes(root: str) -> Any:
    """In the place of `Recheck`: between rounds the table is what it was."""
    from hudi_py.storage.local import LocalStorage

    store = SimpleNamespace(storage=LocalStorage(root))
    return SimpleNamespace(
        contents=SimpleNamespace(store=store), spared_count=0, look=lambda: None, without_spared=lambda task: task
    )


if __name__ == "__main__":
    main()
