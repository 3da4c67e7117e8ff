"""A reader of three hours beside a clean in every minute, in processes of their own; only time is simulated."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.local import LocalStorage
from support import long_reader, writes

MINUTES = 180
_SCRIPT = Path(long_reader.__file__)


def start(what, path):
    environment = {**os.environ, "PYTHONPATH": str(_SCRIPT.parent.parent)}
    return subprocess.Popen(
        [sys.executable, _SCRIPT, what, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def lived(tmp_path, what):
    """What the reader said in the end, and the cleans that ran meanwhile."""
    path = str(tmp_path / "t")
    storage = LocalStorage(path)
    writes.create_table(9, storage=storage)
    writes.upsert(storage, long_reader.rows(0), long_reader.opened(path, FixedClock(writes.START)))
    reader, server = start(what, path), start("serve", path)
    try:
        assert reader.stdout.readline() == "begun\n", reader.stderr.read()
        server.stdin.write(f"{MINUTES}\n")
        server.stdin.flush()
        cleans = []
        for line in iter(server.stdout.readline, "done\n"):
            assert line, server.stderr.read()
            cleans.append(line.split()[1])
        said, errors = reader.communicate("go\n", timeout=60)
        assert reader.returncode == 0, errors
        server.communicate(timeout=60)
        return json.loads(said), cleans, path
    finally:
        for process in (reader, server):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_with_a_lease_it_ends_right(tmp_path):
    """It reads what it began to read, whatever the cleans delete meanwhile, and leaves no lease."""
    said, cleans, path = lived(tmp_path, "read-leased")
    assert said == {"first": [0], "rows": [0, 0, 0]}
    assert len(cleans) > MINUTES // long_reader.MINUTES_BETWEEN_WRITES // 2
    assert long_reader.opened(path, FixedClock(long_reader.BEGIN)).leases() == ()


@pytest.mark.slow
def test_without_one_the_error_names_the_clean(tmp_path):
    """Never fewer rows than there were: an error, with the clean that deleted the first file."""
    said, cleans, _ = lived(tmp_path, "read")
    assert "rows" not in said
    named = re.findall(r"clean (\d{17})", said["error"])
    assert named, said
    assert set(named) <= set(cleans)
