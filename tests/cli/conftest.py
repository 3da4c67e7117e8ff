"""Tables of real Hudi to run commands on, and the command itself."""

import json
from typing import NamedTuple

import pytest

from hudi_py.inspection.cli import main
from support import fixtures
from support.cli_runner import RUNNER


class Result(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one document on standard output."""
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def utc(monkeypatch):
    """The fixtures were written by processes in UTC."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture
def run():
    """Run a command in this process."""

    def call(*arguments):
        result = RUNNER.invoke(main, [str(each) for each in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Result(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture
def table(tmp_path):
    """Unpack a fixture by name; each test has its own copy."""
    return lambda name: fixtures.unpack(name, tmp_path)


@pytest.fixture
def lake(table, tmp_path):
    """Three tables of real Hudi in one folder, and a file that names them and something that is none."""
    found = [str(table(name)) for name in ("cow_cleaned-1.1.1", "cow_nonpartitioned-0.15.0", "mor_logs-1.0.2")]
    (tmp_path / "list.txt").write_text("\n".join(["# all of them", "", *found, f"  {tmp_path / 'none'}  ", found[0]]))
    return found
