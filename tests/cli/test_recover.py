"""``hudi-py recover`` on tables of real Hudi."""

import os
from pathlib import Path

import pytest

KEYS = {"requested_time", "action", "state", "problem", "proposal", "done", "error", "evidence", "paths"}
EVERY = pytest.mark.parametrize("version", ["0.15.0", "1.0.2", "1.1.1", "1.2.0"])


def contents(path):
    """Every file below *path*."""
    return {str(each): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


@EVERY
def test_recover_rolls_back_what_hudi_left(run, table, version):
    """A dry run tells and writes nothing; the run does what it told; another has nothing to do."""
    path = table(f"cow_failed_write-{version}")
    before = contents(path)
    (told,) = run("recover", path, "--dry-run", "--json").json
    assert contents(path) == before
    assert set(told) == KEYS
    assert (told["action"], told["proposal"], told["done"]) == ("commit", "roll back", False)
    (done,) = run("recover", path, "--json").json
    assert done == {**told, "done": True}
    assert run("recover", path, "--json").json == []
    assert run("recover", path).out == "nothing to recover\n"
    instants = run("timeline", path, "--json").json["instants"]
    assert not [each for each in instants if each["requested_time"] == told["requested_time"]]
    assert [each["state"] for each in instants if each["action"] == "rollback"] == ["COMPLETED"]


@EVERY
@pytest.mark.parametrize("policy", ["EAGER", "LAZY", "NEVER"])
def test_clean_rolls_back_what_hudi_left_under_lazy_only(run, table, version, policy):
    """B-3, B-8: the command does all that `Table.clean` does; there is no heartbeat, so that writer is dead."""
    path = table(f"cow_failed_write-{version}")
    (failed,) = run("recover", path, "--dry-run", "--json").json
    assert run("clean", path, "--conf", f"hoodie.clean.failed.writes.policy={policy}").code == 0
    left = [each["requested_time"] for each in run("timeline", path, "--json").json["instants"]]
    assert (failed["requested_time"] not in left) == (policy == "LAZY")


@EVERY
def test_recover_writes_nothing_to_a_healthy_table(run, table, version):
    """Exit code 0 and not one byte changed."""
    path = table(f"cow_mixed-{version}")
    run("recover", path)
    before = contents(path)
    result = run("recover", path)
    assert (result.code, result.out) == (0, "nothing to recover\n")
    assert contents(path) == before


@EVERY
def test_recover_tells_what_needs_a_human(run, table, version):
    """Exit code 3, the file named, and the way out; a dry run ends with 0."""
    path = table(f"cow_partitioned-{version}")
    newest = run("timeline", path, "--json").json["instants"][-1]["requested_time"]
    file = next(each for each in Path(path, ".hoodie").rglob(f"{newest}*.commit"))
    file.write_bytes(b"{torn")
    before = contents(path)
    assert run("recover", path, "--dry-run").code == 0
    result = run("recover", path)
    assert result.code == 3
    assert file.name in result.out
    assert "copy of the table" in result.out
    assert contents(path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may delete anything")
def test_recover_tells_what_could_not_be_done(run, table):
    """Exit code 1 where the storage refuses; the other steps are taken."""
    path = table("cow_failed_write-1.1.1")
    folder = Path(path, ".hoodie", "timeline")
    folder.chmod(0o555)
    try:
        result = run("recover", path)
    finally:
        folder.chmod(0o755)
    assert result.code == 1
    assert "timeline" in result.err


@pytest.mark.parametrize(
    ("name", "tried", "done"),
    [
        ("cow_failed_write-1.1.1", "1 finding, would be done (nothing was written)", "1 finding, done"),
        ("mor_pending_compaction-1.1.1", "1 finding, nothing would be done (nothing was written)",
         "1 finding, nothing done"),
    ],
)  # fmt: skip
def test_the_heading_promises_what_happens(run, table, name, tried, done):
    """What is left as it is, is not announced as work."""
    path = table(name)
    assert run("recover", path, "--dry-run").out.splitlines()[0] == tried
    assert run("recover", path).out.splitlines()[0] == done
