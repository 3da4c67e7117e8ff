"""The table's lock on the command line: exit code 4 while another writer holds it, and the way out."""

from pathlib import Path

import pytest

PROVIDER = "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.FileSystemBasedLockProvider"
LOCKED = ("--conf", PROVIDER, "--conf", "hoodie.write.lock.client.num_retries=0")
HUDIS = b"""{
  "lockCreateTime" : "2026-01-02 03:04:05.678",
  "lockThreadName" : "Driver",
  "lockStacksInfo" : [ "a.B.c (B.java:1)" ]
}"""


def contents(path):
    """Every file below *path*."""
    return {str(each): each.read_bytes() for each in Path(path).rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    "arguments",
    [("clean", "--commits-retained", "1"), ("savepoint", "create"), ("archive", "--keep-min", "1", "--keep-max", "2")],
    ids=lambda arguments: arguments[0],
)
def test_a_held_lock_is_exit_code_4_in_one_line(run, table, arguments):
    """Which file, since when and whose; what to do; nothing was changed."""
    path = table("cow_nomdt-0.15.0")
    Path(path, ".hoodie", "lock").write_bytes(HUDIS)
    before = contents(path)
    words = (
        [*arguments[:2], path, *arguments[2:]] if arguments[0] == "savepoint" else [arguments[0], path, *arguments[1:]]
    )
    result = run(*words, *LOCKED)
    assert result.code == 4
    for told in (f"{path}/.hoodie/lock", "2026-01-02 03:04:05.678", "Driver", "try again", "hudi-py recover --dry-run"):
        assert told in result.err
    assert contents(path) == before


def test_the_way_out_is_told_and_works(run, table):
    """A dry run of recover names the lock and what to do; done so, everything goes on."""
    path = table("cow_failed_write-1.1.1")
    lock = Path(path, ".hoodie", "lock")
    lock.write_bytes(HUDIS)
    assert run("recover", path, *LOCKED).code == 4
    told = run("recover", "--dry-run", path, *LOCKED)
    assert told.code == 0
    assert ".hoodie/lock" in told.out
    assert "delete it" in told.out
    lock.unlink()
    assert run("recover", path, *LOCKED).code == 0
    assert not lock.exists()


def test_a_lock_that_is_not_served_is_wrong_usage(run, table):
    """Exit code 2 for what changes the table; looking goes on."""
    path = table("cow_nomdt-1.1.1")
    hive = ("--conf", "hoodie.write.lock.provider=org.apache.hudi.hive.transaction.lock.HiveMetastoreBasedLockProvider")
    before = contents(path)
    result = run("clean", path, "--commits-retained", "1", *hive)
    assert result.code == 2
    assert "hoodie.write.lock.provider" in result.err
    assert contents(path) == before
    assert run("clean", path, "--dry-run", *hive).code == 0
    assert run("timeline", path, *hive).code == 0


def test_a_lock_provider_that_nobody_knows_is_refused_by_dry_runs_too(run, table):
    """A letter too many, and the real run would be refused: the dry run says so first."""
    path = table("cow_nomdt-1.1.1")
    misspelt = ("--conf", f"{PROVIDER}s")
    for command in (
        ("clean", path, "--commits-retained", "1"),
        ("recover", path),
        ("archive", path),
        ("savepoint", "create", path),
        ("savepoint", "delete", path, "20240101000000000"),
    ):
        result = run(*command, "--dry-run", *misspelt)
        assert result.code == 2, command
        assert "hoodie.write.lock.provider" in result.err
    assert run("check", path, *misspelt).code == run("timeline", path, *misspelt).code == 0


def test_archival_says_that_it_was_left_out(run, table):
    """D-18: in layout 2 a run that does not get the lock is none, and says so."""
    path = table("cow_cleaned-1.1.1")
    Path(path, ".hoodie", "lock").write_bytes(HUDIS)
    result = run("archive", path, "--keep-min", "1", "--keep-max", "2", "--json", *LOCKED)
    assert result.code == 0
    assert result.json["archived"] == []
    assert "lock" in result.json["kept_because"]
