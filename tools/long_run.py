"""
Long runs of the random tests: ``python tools/long_run.py histories --sequences 2000 --seed 1 [--jobs 2]``.

``simulation`` runs each pair of writers and services on one table, on table versions 6 and 9, copy-on-write and
merge-on-read, in every order of their calls with up to ``--bound`` preemptions, and ``--trios`` random sets of three
with one less, or with ``--drawn`` so many random orders of two preemptions each, in a random order until ``--minutes``
are over. It prints how many orders there were. ``--without`` takes the lock, the conflict check, the look at one's own
instant or the fence out, and has to find a wrong order.
``--metadata`` gives each table a metadata table with an index of keys, which is compacted every second time.
``processes`` lets ``--writers`` real processes change one table, kills and stops some of them, and judges the table; in
some histories one of them reads the same snapshot under a lease the whole time, one follows the changes, or they go
back to savepoints; ``--place`` says under which lock: ``file``, ``zookeeper``, ``dynamodb`` or ``s3``. A history that
breaks a law is kept. ``hudi`` does the same with a ``--release`` of Apache Hudi as one of the writers.

``matrix`` plays each operation by each engine on each kind of table, beside a ``--release`` of Apache Hudi that reads,
upserts, compacts and cleans in between; ``--sequences`` says how often, each time in another order. None is begun
after ``--minutes``.

``questions`` asks a ``--release`` of Apache Hudi and us the same about tables that it made at random, of its own table
version or of ``--table-version``.

``histories`` plays that many random histories of all services against a model of the rows (``tests/property``),
prints each that breaks a law, as short as it can be made, and in the end the seeds and how often each step was done or
refused. The exit code is 1 when a law was broken. Only ``hudi``, ``matrix`` and
``questions`` need Spark and Java.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def main() -> int:
    """Run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["histories", "simulation", "processes", "hudi", "matrix", "questions"])
    parser.add_argument("--sequences", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others count up")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--bound", type=int, default=2, help="preemptions of a simulated order")
    parser.add_argument("--trios", type=int, default=0, help="random sets of three actors to simulate, too")
    parser.add_argument("--drawn", type=int, default=0, help="random orders of each set of three, instead of all")
    parser.add_argument("--metadata", action="store_true", help="simulate tables with a metadata table")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="when to begin nothing further")
    parser.add_argument("--without", default="", choices=["", "check", "fence", "lock", "look"])
    parser.add_argument("--writers", type=int, default=None, help="processes of one history; 4 to 8 by default")
    parser.add_argument("--steps", type=int, default=25, help="of each of these processes")
    parser.add_argument("--place", default="file", help="storage and lock of the processes")
    parser.add_argument("--release", default="1.1.1", help="of Apache Hudi")
    parser.add_argument("--table-version", type=int, default=None, help="of the tables that are asked about")
    given = parser.parse_args()
    if given.what in ("matrix", "questions"):
        return _matrix(given) if given.what == "matrix" else _questions(given)
    if given.what != "histories":
        return _simulations(given) if given.what == "simulation" else _processes(given)
    from support.history_runner import Failure

    started, counts, laws = time.monotonic(), Counter[str](), Counter[str]()
    seeds = range(given.seed, given.seed + given.sequences)
    with ProcessPoolExecutor(given.jobs) as pool:
        for number, (failure, counted) in enumerate(pool.map(_one, seeds, chunksize=5), 1):
            counts += counted
            if isinstance(failure, Failure):
                laws[failure.law] += 1
                print(f"\n{'=' * 100}\n{failure}", flush=True)
            if number % 100 == 0:
                elapsed_s = time.monotonic() - started
                print(f"{number} histories, {laws.total()} broke a law, {elapsed_s:.0f} s", flush=True)
    print(f"\nseeds {seeds.start} to {seeds.stop - 1}: {given.sequences} histories, {laws.total()} broke a law")
    for law, count in laws.most_common():
        print(f"  {count:6} {law}")
    for what, count in sorted(counts.items()):
        print(f"  {count:6} {what}")
    return 1 if laws else 0


def _in_time(items: Iterable[T], minutes: float) -> Iterator[T]:
    """The items, until the time is over."""
    until_s = time.monotonic() + minutes * 60
    return itertools.takewhile(lambda _: time.monotonic() <= until_s, items)


def _in_utc() -> None:
    os.environ["TZ"] = "UTC"
    time.tzset()


def _simulations(given: argparse.Namespace) -> int:
    import random

    from support.many_writers import ACTORS, SERVICES
    from support.taken_out import FINDING

    names = [*ACTORS, *SERVICES]
    chance = random.Random(given.seed)  # noqa: S311 - repeatable
    pairs = (
        [(FINDING[given.without], 1)] if given.without else [(e, given.bound) for e in itertools.product(names, names)]
    )
    trios = [(tuple(chance.sample(names, 3)), max(1, given.bound - 1)) for _ in range(given.trios)]
    kinds = ("COPY_ON_WRITE", "MERGE_ON_READ")
    cases = [
        (version, actors, bound, kind, given.drawn * (len(actors) > 2), given.without, given.metadata)
        for actors, bound in [*pairs, *trios]
        for version in (6, 9)
        for kind in kinds
    ]
    chance.shuffle(cases)  # so that a run that ends early has seen some of everything
    played: Counter[int] = Counter()
    orders: Counter[int] = Counter()
    violated = 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for begin in _in_time(range(0, len(cases), given.jobs), given.minutes):
            chunk = cases[begin : begin + given.jobs]
            for case, (number, found, seconds, first_s) in zip(chunk, pool.map(_simulation, chunk), strict=True):
                played[len(case[1])] += 1
                orders[len(case[1])] += number
                violated += len(found)
                bound = f"{case[2]} preemptions" if not case[4] else "drawn"
                what = f"version {case[0]}, {case[3]}, {' | '.join(case[1])}, {bound}"
                first = f", the first after {first_s:.1f} s" if found else ""
                print(f"{what}: {number} orders, {len(found)} wrong{first}, {seconds:.0f} s", flush=True)
                for each in found[:2]:
                    print(f"  {each}", flush=True)
    for count in sorted(played):
        print(f"{played[count]} sets of {count} actors, {orders[count]} orders")
    print(f"{sum(played.values())} of {len(cases)} sets played, {violated} orders wrong")
    return 1 if violated else 0


def _simulation(case: tuple[int, tuple[str, ...], int, str, int, str, bool]) -> tuple[int, list[str], float, float]:
    import random
    from contextlib import nullcontext

    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    from support.many_writers import METADATA, drawn_violations, violations
    from support.taken_out import taken_out

    version, actors, bound, kind, drawn, without, has_metadata = case
    settings = METADATA if has_metadata else {}
    chance = random.Random(repr(case))  # noqa: S311 - repeatable
    orders = (
        drawn_violations(version, actors, chance, drawn, kind, **settings)
        if drawn
        else violations(version, actors, bound, kind, **settings)
    )
    started, number, first_s = time.monotonic(), 0, 0.0
    wrong: list[str] = []
    with taken_out(without) if without else nullcontext():
        for each in orders:
            number += 1
            if each is not None:
                first_s = first_s or time.monotonic() - started
                wrong.append(each)
    return number, wrong, time.monotonic() - started, first_s


def _processes(given: argparse.Namespace) -> int:
    import shutil
    import tempfile

    from support.rival_places import PLACES
    from support.rival_processes import drawn, play

    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    beside = _beside_hudi(given) if given.what == "hudi" else None
    broken, counts = 0, Counter[str]()
    played = 0
    for seed in _in_time(range(given.seed, given.seed + given.sequences), given.minutes):
        folder, played = Path(tempfile.mkdtemp(prefix="history")), played + 1
        with PLACES[given.place](folder) as place:
            if beside is not None:
                wrong, counted = beside(folder, seed, place)
            else:
                wrong, counted = play(folder, seed, drawn(seed, given.steps, given.writers), place)
        counts += counted
        broken += bool(wrong)
        print(f"seed {seed}, {given.place}: {counted.total()} steps, {len(wrong)} laws broken", flush=True)
        for each in wrong:
            print(f"  {each}", flush=True)
        if wrong:
            print(f"  the table and the notes of all processes are in {folder}", flush=True)
        else:
            shutil.rmtree(folder)
    for what, count in sorted(counts.items()):
        print(f"  {count:6} {what}")
    print(f"{played} histories from seed {given.seed} on: {broken} broke a law")
    return 1 if broken else 0


def _beside_hudi(given: argparse.Namespace) -> Callable[..., tuple[list[str], Counter[str]]]:
    """Return what plays a history beside Apache Hudi."""
    sys.path.insert(0, str(ROOT / "tools"))
    from real_hudi import RealHudi

    from support.rival_hudi import play_beside

    peer = RealHudi(given.release)
    peer.start()
    return lambda folder, seed, place: play_beside(peer, folder, seed, place, count=given.steps)


def _matrix(given: argparse.Namespace) -> int:
    """Play the whole product; a table that breaks a law is kept."""
    import shutil
    import tempfile

    sys.path.insert(0, str(ROOT / "tools"))
    from real_hudi import RealHudi

    from hudi_py.spark.session import local_session
    from support.matrix import Played, whole

    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    _in_utc()
    spark = local_session("matrix", cores=2, memory="1g", **{"spark.sql.session.timeZone": "UTC"})
    spark.sparkContext.setLogLevel("OFF")
    peer, broken, cases = RealHudi(given.release), 0, 0
    seeds = range(given.seed, given.seed + given.sequences)
    for case in _in_time(itertools.chain.from_iterable(map(whole, seeds)), given.minutes):
        folder, cases = Path(tempfile.mkdtemp(prefix="matrix")), cases + 1
        try:
            Played(case, peer, spark, folder / "t").play()
        except Exception as error:  # noqa: BLE001 - whatever it is, the other tables are played, too
            broken += 1
            print(f"{case} in {folder}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
            continue
        print(f"{case}: {len(case.steps)} operations", flush=True)
        shutil.rmtree(folder)
    peer.close()
    spark.stop()
    print(f"Hudi {given.release}: {cases} tables, {broken} of them wrong")
    return 1 if broken else 0


def _questions(given: argparse.Namespace) -> int:
    """Ask about tables; one about which the answers differ is kept."""
    import shutil
    import tempfile

    sys.path.insert(0, str(ROOT / "tools"))
    from real_hudi import TABLE_VERSION, RealHudi

    from support.questions import Asked

    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    _in_utc()
    peer, differing, counts = RealHudi(given.release), 0, Counter[str]()
    for seed in _in_time(range(given.seed, given.seed + given.sequences), given.minutes):
        folder = Path(tempfile.mkdtemp(prefix="questions"))
        asked = Asked(peer, folder / "t", seed, given.table_version or TABLE_VERSION[given.release])
        asked.play(steps=7, questions=24)
        counts += asked.counts
        print(f"seed {seed}: {asked.counts.total()} questions, {len(asked.differences)} differ", flush=True)
        if asked.differences:
            differing += 1
            print(f"{folder}\n{asked}", flush=True)
        else:
            shutil.rmtree(folder)
    peer.close()
    for what, count in sorted(counts.items()):
        print(f"  {count:6} {what}")
    print(f"Hudi {given.release}: about {differing} tables the answers differ")
    return 1 if differing else 0


def _one(seed: int) -> tuple[object, Counter[str]]:
    logging.getLogger("hudi_py").setLevel(logging.CRITICAL + 1)
    from support.history_runner import find_failure

    return find_failure(seed)


if __name__ == "__main__":
    sys.exit(main())
