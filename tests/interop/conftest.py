"""
Fixtures of the interop suite.

``HUDI_INTEROP_VERSIONS`` (comma list) narrows the releases of real Hudi; ``HUDI_INTEROP_HISTORIES``,
``HUDI_INTEROP_STEPS`` and ``HUDI_INTEROP_SEED`` size the differential test, see ``test_clean_plans_agree.py``.
``HUDI_INTEROP_SAMPLE=1`` runs each test once, with a release and a case that follow from its name, and with fewer
rounds where all hold the same promise.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from zlib import crc32

import pytest

# for real_hudi, which the helpers of the interop tests import, too
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from real_hudi import RealHudi, Unavailable

from support.interop_ours import Ours
from support.interop_sample import IS_SAMPLE, releases


def pytest_configure(config):
    config.addinivalue_line("markers", "oracle: needs real Apache Hudi (Java, Maven or the bundle)")


def pytest_collection_modifyitems(config, items):
    """Leave out what the sample does not hold."""
    if not IS_SAMPLE:
        return
    runs: dict[str, list[pytest.Item]] = {}  # of each test
    for item in items:
        if hasattr(item, "callspec") and "peer" in item.callspec.params:
            runs.setdefault(item.nodeid.partition("[")[0], []).append(item)
    # by its name: what another test is called or how many there are must not change which case runs
    sample = {of_test[crc32(name.encode()) % len(of_test)] for name, of_test in runs.items()}
    left_out = {item for of_test in runs.values() for item in of_test} - sample
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def real_hudi():
    """``real_hudi(version)``: the running real Hudi of that version, or a skip with the reason."""
    running: dict[str, RealHudi] = {}
    refused: dict[str, str] = {}

    def of(version: str) -> RealHudi:
        if version not in running and version not in refused:
            try:
                running[version] = RealHudi(version)
            except Unavailable as reason:
                refused[version] = str(reason)
        if version in refused:
            pytest.skip(refused[version])
        return running[version]

    yield of
    for hudi in running.values():
        hudi.close()


@pytest.fixture(params=releases())
def peer(request, real_hudi):
    """Real Hudi, once per release; its clock runs true."""
    hudi = real_hudi(request.param)
    yield hudi
    if hudi.is_running and hudi.has_clock:
        hudi.set_clock(None)


@pytest.fixture(scope="session")
def plain_spark(spark):
    """Spark as our users have it, in UTC like this process: collected timestamps come in the zone of the process."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.unset("spark.sql.session.timeZone")


@pytest.fixture
def ours(plain_spark, tmp_path_factory):
    """``ours(path, settings)``: our side of a table."""

    def of(path: Path, settings=None) -> Ours:
        return Ours(plain_spark, path, dict(settings or {}), tmp_path_factory.mktemp("rows"))

    return of
