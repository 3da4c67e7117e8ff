"""
What runs of the crash tests: where ``HUDI_CRASH_SHARE`` asks for a share, each test plays on the tables of one release,
and `crash_points` leaves out interruptions.

Which release follows from the test's name, so that all of them take part. Tables of our own always do.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest

from hudi_py.txn import file_lock
from support.crash_points import IS_SAMPLE

FOLDER = Path(__file__).resolve().parent
RELEASES = ("0.15.0", "1.0.2", "1.1.1", "1.2.0")


class Forgetful(set):
    """Takes nothing in."""

    def add(self, element):
        """Forget it."""


@pytest.fixture(autouse=True)
def _others_hold_what_was_given_up(monkeypatch):
    """Who goes on after an interruption stands for another process, which does not know whose lock stayed."""
    monkeypatch.setattr(file_lock, "_given_up", Forgetful())


def pytest_collection_modifyitems(config, items):
    """Leave out what the sample does not hold."""
    if not IS_SAMPLE:
        return
    runs: dict[str, dict[str, list[pytest.Item]]] = {}  # of each test, by release
    for item in items:
        name, _, case = item.nodeid.partition("[")
        release = next((release for release in RELEASES if release in case), None)
        if release is not None and FOLDER in item.path.parents:
            runs.setdefault(name, {}).setdefault(release, []).append(item)
    left_out: set[pytest.Item] = set()
    for name, by_release in runs.items():
        chosen = sorted(by_release)[crc32(name.encode()) % len(by_release)]
        left_out.update(item for release, some in by_release.items() if release != chosen for item in some)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
