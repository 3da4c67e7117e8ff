"""Hostile tables: no command reaches outside of one, hangs, fills the memory or lets it write to the terminal."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.fixtures import unpack
from support.hostile_commands import commands
from support.hostile_keeping import KEPT_KINDS
from support.hostile_tables import KINDS, LOG_KINDS
from support.rota import of_today

PEAK_MB_MAX = 1000
ROW = '{"id": "k9999", "ts": 1, "name": "elm", "amount": 1.5, "qty": 1, "region": "r0"}\n'
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FIXTURES = ("cow_archived-0.15.0", "cow_archived-1.1.1")
WITH_LOGS = ("mor_failed_write-0.15.0", "mor_failed_write-1.1.1")
RUNNER = Path(__file__).resolve().parents[1] / "support/hostile_commands.py"


def prints(folder: Path) -> dict[str, str]:
    """What every name below *folder* holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        is_link = path.is_symlink()
        content = os.readlink(path).encode() if is_link else b"" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


CASES = [
    pytest.param(fixture, kinds[kind], id=f"{what}{kind}-{fixture}")
    for what, kinds, fixtures in (
        ("", KINDS, FIXTURES),
        ("logs: ", LOG_KINDS, WITH_LOGS),
        ("kept: ", KEPT_KINDS, FIXTURES),
    )
    for number, kind in enumerate(kinds)
    for fixture in of_today(fixtures, number)
]


@pytest.mark.slow
@pytest.mark.parametrize(("fixture", "spoil"), CASES)
def test_every_command_holds_its_bounds(tmp_path, record_property, fixture, spoil):
    """Nothing outside is touched; time and memory are bounded; an error is a line or two without controls."""
    table = unpack(fixture, tmp_path)
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    for name in ("canary.parquet", "sub/canary.parquet", "hoodie.properties"):
        (outside / name).write_bytes(name.encode())
    commits = sorted(path.name[:17] for path in (table / ".hoodie").rglob("2*commit") if "metadata" not in path.parts)
    table.with_name(f"{table.name}.jsonl").write_text(ROW)
    spoil(table, outside)
    before = prints(outside)
    done = subprocess.run(
        [sys.executable, str(RUNNER), str(table), commits[-1]],
        capture_output=True, text=True, timeout=800, check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(answers) == len(commands("", ""))
    assert prints(outside) == before
    for each in answers:
        command = each["command"]
        assert each["code"] in range(7), (command, each["code"], each["err"][-300:])
        assert "unexpected" not in each["err"], (command, each["err"][:300])
        is_short = len(each["err"].splitlines()) <= 2 or command.startswith("maintain")  # says why each step failed
        assert is_short or each["code"] == 0, (command, each["err"][:1000])
        assert not CONTROLS.search(each["out"] + each["err"]), command
        assert each["peak_mb"] <= PEAK_MB_MAX, (command, each["peak_mb"])
    record_property("hostile", len(answers))
