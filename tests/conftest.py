"""
What all tests share: a Spark session, an S3 server, the numbers of interruptions and histories tried, and a hypothesis
that does not judge how fast a busy machine is.

``HUDI_CASES_MAX`` bounds how many cases of each unit test run: a quick look, in which every test takes part.
``HUDI_TEST_DAY`` lets long tests take turns, see `support.rota`.

The S3 server is a moto server process on a free port of this machine; or one of your own at the URL that
``HUDI_PY_TEST_S3`` gives, with the keys in ``AWS_ACCESS_KEY_ID`` and ``AWS_SECRET_ACCESS_KEY``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from support.laws import examples
from support.rota import is_its_turn
from support.s3_running import running_s3

settings.register_profile("any machine", examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


hostile: list[int] = []
interruptions: list[int] = []
"""Of the crash tests; here, because a run on several processes loads no other conftest where it sums up."""

seeds: list[int] = []
"""Of the random histories that were played."""


CASES_MAX = int(os.environ.get("HUDI_CASES_MAX", "0"))
UNIT_TESTS = Path(__file__).parent / "unit"


def pytest_collection_modifyitems(config, items):
    """Leave out cases beyond the bound; which ones stay follows from their names, so that every fixture takes part."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()} & {"spark", "oracle"}
        is_placed = item.path.parent.name in ("spark", "interop")
        if (marks and not is_placed) or ("spark" in item.fixturenames and not marks):
            raise pytest.UsageError(
                f"{item.nodeid}: a test that starts Spark has the mark spark or oracle, and lies in tests/spark or "
                "tests/interop, so that the lanes with Spark find it"
            )
    resting = [item for item in items if not is_its_turn(item)]
    if resting:
        config.hook.pytest_deselected(items=resting)
        items[:] = [item for item in items if is_its_turn(item)]
    if not CASES_MAX:
        return
    taken: Counter[str] = Counter()
    chosen = set()
    for item in sorted(items, key=lambda each: crc32(each.nodeid.encode())):
        test = item.nodeid.partition("[")[0]
        if UNIT_TESTS not in item.path.parents or taken[test] < CASES_MAX:
            taken[test] += 1
            chosen.add(item)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def pytest_runtest_logreport(report):
    if report.when == "call":
        interruptions.extend(count for name, count in report.user_properties if name == "interruptions")
        seeds.extend(seed for name, seed in report.user_properties if name == "history seed")
        hostile.extend(count for name, count in report.user_properties if name == "hostile")


def pytest_terminal_summary(terminalreporter):
    if interruptions:
        terminalreporter.write_line(f"crash tests: {sum(interruptions)} interruptions tried")
    if seeds:
        terminalreporter.write_line(f"random histories: {len(seeds)} played, seeds {min(seeds)} to {max(seeds)}")
    if hostile:
        terminalreporter.write_line(f"hostile tables: {len(hostile)}, with {sum(hostile)} commands on them")


@pytest.fixture(scope="session")
def spark():
    """Without any Hudi on its class path."""
    pytest.importorskip("pyspark")
    from support.spark_sessions import quick_session

    # Both sides wait for each other for 15 seconds, else; on a machine with much other work that is too short.
    os.environ.setdefault("SPARK_AUTH_SOCKET_TIMEOUT", "120")
    patience = {"spark.python.authenticate.socketTimeout": "120s"}
    session = quick_session("test", **patience, **{"spark.hudi_py.x": "y", "spark.speculation": "false"})
    yield session
    session.stop()


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Callable[[int], Path]]:
    """Gives the root of a new file system of so many KiB; skips where this user cannot mount one, or has no mount."""
    mounted: list[Path] = []
    mount, umount = shutil.which("mount"), shutil.which("umount")

    def make(kib: int) -> Path:
        if mount is None or umount is None:
            pytest.skip("a full disk needs a tmpfs, and there is no mount or umount on the PATH")
        folder = tmp_path / f"disk{len(mounted)}"
        folder.mkdir()
        command = [mount, "-t", "tmpfs", "-o", f"size={kib}k", "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True).returncode:
            pytest.skip("a full disk needs a tmpfs, and this user may not mount one")
        mounted.append(folder)
        return folder

    yield make
    for folder in mounted:
        subprocess.run([str(umount), str(folder)], check=True)


@pytest.fixture(scope="session")
def s3_options() -> Iterator[dict[str, str]]:
    """Storage options for a running S3 server with a bucket ``contract``."""
    pytest.importorskip("s3fs", reason="the S3 part needs s3fs")
    with running_s3() as options:
        yield options
