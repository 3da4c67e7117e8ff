"""``hudi-py savepoint | rollback | restore | archive`` on tables of real Hudi: JSON, dry runs, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hudi_py.inspection.cli import main
from hudi_py.storage.local import LocalStorage
from hudi_py.table import Table
from support.cli_runner import RUNNER
from support.fixtures import unpack

NAMES = ["cow_partitioned-0.15.0", "cow_partitioned-1.0.2", "cow_partitioned-1.1.1", "cow_partitioned-1.2.0"]


@pytest.fixture(params=NAMES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpack(request.param, tmp_path)


def run(*arguments: Any, code: int = 0) -> Any:
    result = RUNNER.invoke(main, [*map(str, arguments), "--json"])
    assert code == result.exit_code, result.output
    return json.loads(result.stdout) if code == 0 else result.stderr


def contents(path: Path) -> dict[str, bytes]:
    return {str(each): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def commits(path: Path) -> list[str]:
    return [i.requested_time for i in Table(LocalStorage(path)).timeline.completed("commit", "replacecommit")]


def test_savepoint_created_listed_and_deleted(path: Path) -> None:
    """The answers are the completed instant's content; dry runs write nothing."""
    first, *_ = commits(path)
    before = contents(path)
    planned = run("savepoint", "create", path, first, "--dry-run")
    assert before == contents(path)
    created = run("savepoint", "create", path, first, "--user", "ann", "--comment", "why")
    assert (created["savepointedBy"], created["comments"]) == ("ann", "why")
    held = {p: sorted(each["savepointDataFile"]) for p, each in created["partitionMetadata"].items()}
    assert held == {p: sorted(names) for p, names in planned["files"].items()}
    (listed,) = run("savepoint", "list", path)
    assert (listed["requested_time"], listed["content"]["comments"]) == (first, "why")
    assert run("savepoint", "delete", path, first, "--dry-run")["found"]
    assert run("savepoint", "list", path)
    assert run("savepoint", "delete", path, first)["deleted"]
    assert run("savepoint", "list", path) == []
    assert not run("savepoint", "delete", path, first)["found"]


def test_savepoint_with_name_and_time_to_live(path: Path) -> None:
    """Listed with both; restore and delete take the name; an expired one goes with a clean, which says so."""
    first, second, *_ = commits(path)
    planned = run("savepoint", "create", path, second, "--name", "before import", "--ttl", "3650d", "--dry-run")
    created = run("savepoint", "create", path, second, "--name", "before import", "--ttl", "3650d")
    assert (planned["name"], created["name"]) == ("before import", "before import")
    run("savepoint", "create", path, first, "--ttl", "1ms")
    over, alive = run("savepoint", "list", path)
    assert (over["requested_time"], over["name"], over["is_expired"]) == (first, None, True)
    assert (alive["name"], alive["expires_at"], alive["is_expired"]) == ("before import", created["expires_at"], False)
    before = contents(path)
    told = run("clean", path, "--file-versions-retained", 1, "--no-breakers", "--dry-run")
    assert any(first in warning for warning in told["warnings"])
    assert before == contents(path)
    done = run("clean", path, "--file-versions-retained", 1, "--no-breakers")
    assert done["expired_savepoints"] == [first]
    assert sorted(path for clean in done["cleans"] for path in clean["deleted_files"]) == sorted(
        file["path"] for file in told["files"]
    )
    assert [each["requested_time"] for each in run("savepoint", "list", path)] == [second]
    undone = run("restore", path, "before import", "--dry-run")["instants_to_rollback"]
    assert run("restore", path, "before import")["instantsToRollback"] == undone
    assert commits(path)[-1] == second
    assert "there is no savepoint 'import'" in run("savepoint", "delete", path, "import", code=2)
    assert run("savepoint", "delete", path, "before import") == {"instant": second, "deleted": True, "found": True}


def rows(path: Path, *options: str) -> list[str]:
    return sorted(map(str, run("read", path, *options)["data"]))


def test_savepoint_is_readable_for_ever(path: Path) -> None:
    """Where a clean has passed its time, what it holds is the answer; by name or by instant."""
    first, *_, last = commits(path)
    then, now = rows(path, "--as-of", first), rows(path)
    assert then != now
    run("savepoint", "create", path, first, "--name", "the first")
    run("clean", path, "--file-versions-retained", 1, "--no-breakers")
    assert rows(path, "--savepoint", "the first") == rows(path, "--savepoint", first) == then
    assert rows(path, "--as-of", last) == rows(path) == now
    assert f"there is no savepoint {last}" in run("read", path, "--savepoint", last, code=2)
    assert "exclude each other" in run("read", path, "--savepoint", first, "--as-of", first, code=2)


def test_rollback_and_restore(path: Path) -> None:
    """The newest commit is undone, then all behind a savepoint; what must not be undone ends with code 1."""
    first, *_, last = commits(path)
    before = contents(path)
    planned = run("rollback", path, last, "--dry-run")["files_to_delete"]
    assert before == contents(path)
    assert "came after" in run("rollback", path, first, code=1)
    assert "not a commit" in run("rollback", path, "20991231000000000", code=2)
    done = run("rollback", path, last)
    gone = [name for each in done["partitionMetadata"].values() for name in each["successDeleteFiles"]]
    assert len(planned) == len(gone)
    assert not any((path / name).exists() for name in planned)

    run("savepoint", "create", path, first)
    wanted = commits(path)[1:]
    assert run("restore", path, first, "--dry-run")["instants_to_rollback"] == wanted[::-1]
    assert run("restore", path, first)["instantsToRollback"] == wanted[::-1]
    assert commits(path) == [first]
    assert "no savepoint" in run("restore", path, "20991231000000000", code=2)


def test_archive(path: Path) -> None:
    """A dry run names what the run then archives, or both tell what keeps it."""
    before = contents(path)
    options = ("--keep-min", 1, "--keep-max", 2, "--conf", "hoodie.clean.commits.retained=1")
    planned = run("archive", path, *options, "--dry-run")
    assert before == contents(path)
    done = run("archive", path, *options)
    assert planned["archived"] == done["archived"]
    assert done["archived"] or done["kept_because"]
    assert "larger than" in run("archive", path, "--keep-min", 5, "--keep-max", 5, code=2)
