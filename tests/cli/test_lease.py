"""``hudi-py lease``: a job keeps what it reads, and commands that delete honour it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hudi_py
from support.tables import TableBuilder, at, on_disk


@pytest.fixture
def trips(tmp_path):
    """A table on disk of three commits, of which a clean would delete the first."""
    builder = TableBuilder()
    for number in (1, 2, 3):
        builder.commit(at(number), {"r0": ["a"]})
    on_disk(builder, tmp_path / "t")
    return str(tmp_path / "t")


def test_a_lease_is_taken_listed_renewed_and_released(run, trips):
    """The JSON of the contract; a second release finds nothing, and that is no failure."""
    taken = run("lease", "create", trips, "--ttl", "3h", "--at", at(1), "--holder", "report", "--json").json
    assert ("report", at(1)) == (taken["holder"], taken["instant"])
    (listed,) = run("lease", "list", trips, "--json").json
    assert {**taken, "is_expired": False} == listed
    assert ", 1 lease\n" in run("lease", "list", trips).out
    renewed = run("lease", "renew", trips, taken["id"], "--ttl", "5h", "--json").json
    assert taken["id"] == renewed["id"]
    assert taken["expires"] < renewed["expires"]
    assert run("lease", "release", trips, taken["id"], "--json").json["released"]
    assert not run("lease", "release", trips, taken["id"], "--json").json["released"]
    assert run("lease", "list", trips, "--json").json == []


def test_commands_that_delete_honour_a_lease_and_name_it(run, trips):
    """The clean keeps its files, explain and du name it, a rollback is refused; with --force it is named and hurt."""
    taken = run("lease", "create", trips, "--ttl", "3h", "--at", at(1), "--holder", "report", "--json").json
    clean = ("clean", trips, "--commits-retained", "1", "--dry-run", "--json")
    assert run(*clean).json["plan"]["files_to_delete"] == {}
    explained = run("explain", trips, TableBuilder.base_name("a", at(1)), "--commits-retained", "1").out
    assert f"lease {taken['id']} of report" in " ".join(explained.split())
    reasons = {each["reason"]: each for each in run("du", trips, "--commits-retained", "1", "--json").json["by_reason"]}
    assert 1 == reasons["lease"]["files"]
    newest = run("lease", "create", trips, "--ttl", "3h", "--holder", "other", "--json").json
    refused = run("rollback", trips, at(3))
    assert 1 == refused.code
    assert f"lease {newest['id']} of other" in refused.err
    forced = run(*clean[:4], "--force", "--json")
    assert taken["id"] in forced.err
    assert 1 == forced.json["cleans"][0]["metadata"]["totalFilesDeleted"]


def test_a_time_that_is_cleaned_cannot_be_leased(run, trips):
    """The message names the earliest time that can be read; nothing is left behind."""
    assert run("clean", trips, "--commits-retained", "1").code == 0
    refused = run("lease", "create", trips, "--ttl", "3h", "--at", at(1))
    assert 1 == refused.code
    assert "the earliest readable instant is" in refused.err
    assert run("lease", "list", trips, "--json").json == []


def test_a_command_runs_under_a_lease(run, trips, tmp_path):
    """It knows the lease, its exit code is passed on, and the lease is released whatever happened."""
    out = tmp_path / "out"
    tell = f"pathlib.Path({str(out)!r}).write_text(os.environ['HUDI_PY_LEASE_INSTANT'])"
    script = f"import os, pathlib, sys; {tell}; sys.exit(7)"
    done = run("lease", "run", "--ttl", "1h", "--json", trips, "--", sys.executable, "-c", script)
    assert (7, 7) == (done.code, done.json["command_exit_code"])
    assert at(3) == out.read_text()
    missing = run("lease", "run", "--ttl", "1h", trips, "--", str(tmp_path / "no-such-command"))
    assert 2 == missing.code
    assert run("lease", "list", trips, "--json").json == []


LEASES = ".hoodie/.aux/hudi_py/leases"
LOST = {
    "released by others": "shutil.rmtree(leases)",
    "moved with its table": "table.rename(table.with_name('elsewhere'))",
}


@pytest.mark.parametrize("how", LOST)
@pytest.mark.parametrize("code", [0, 7])
def test_a_command_that_succeeded_under_a_lost_lease_is_no_success(run, trips, how, code):
    """What it read may lack rows, and readers of Apache Hudi do not say so. One that failed has its own exit code."""
    table = f"import pathlib, shutil, sys; table = pathlib.Path({trips!r}); leases = table / {LEASES!r}"
    script = f"{table}; {LOST[how]}; sys.exit({code})"
    done = run("lease", "run", "--ttl", "1h", "--json", trips, "--", sys.executable, "-c", script)
    assert "event='lease.lost'" in done.err
    if code:
        assert (7, 7) == (done.code, done.json["command_exit_code"])
    else:
        assert (4, "ConflictError") == (done.code, done.json["error"]["kind"])
        assert "was lost while it was needed" in done.json["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_the_command_and_release_the_lease(run, trips, number):
    """Asked to end, it waits for the command, which gets the signal too."""
    command = [sys.executable, "-m", "hudi_py", "lease", "run", "--ttl", "1h", trips, "--", "sleep", "60"]
    process = subprocess.Popen(command, start_new_session=True)
    deadline = time.monotonic() + 30
    while not run("lease", "list", trips, "--json").json:
        assert time.monotonic() < deadline
    while not (children := _children(process.pid)):
        assert time.monotonic() < deadline
    process.send_signal(number)
    if number is signal.SIGINT:  # as a terminal sends it: to the command, too
        for child in children:
            subprocess.run(["kill", "-INT", child], check=False)  # it may have ended by now
    assert 128 + number == process.wait(30)
    assert run("lease", "list", trips, "--json").json == []


def _children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def test_a_consumer_is_set_listed_and_deleted(run, trips):
    """The least first; a name that cannot be part of a path is refused; leases do not show consumers."""
    progress = run("consumer", "set", trips, "job-7", at(2), "--json").json
    assert ("job-7", at(2)) == (progress["name"], progress["instant"])
    run("consumer", "set", trips, "early", at(1))
    assert ["early", "job-7"] == [each["name"] for each in run("consumer", "list", trips, "--json").json]
    assert run("lease", "list", trips, "--json").json == []
    assert 2 == run("consumer", "set", trips, "../x", at(1)).code
    assert run("clean", trips, "--commits-retained", "1", "--dry-run", "--json").json["plan"]["files_to_delete"] == {}
    assert run("consumer", "delete", trips, "early", "--json").json["deleted"]


def test_a_consumer_that_has_read_undone_commits_is_listed_so(run, trips):
    """By the list, by doctor, and by an error when it is set again."""
    table = hudi_py.open_table(trips)
    latest = table.timeline.writes.completed()[-1].requested_time
    run("consumer", "set", trips, "job-7", table.changed_until())
    assert [None] == [each["undone"] for each in run("consumer", "list", trips, "--json").json]
    assert 0 == run("rollback", trips, latest).code
    (listed,) = run("consumer", "list", trips, "--json").json
    assert f"commit {latest}, which rollback" in listed["undone"]
    assert f"commit {latest}" in " ".join(run("consumer", "list", trips).out.split())
    assert "consumer-undone" in {each["code"] for each in run("doctor", trips, "--json").json}
    assert "undone since" in run("consumer", "set", trips, "job-7", at(1)).err


def _files(trips):
    return {str(path): path.read_bytes() for path in Path(trips).rglob("*") if path.is_file()}


def test_dry_runs_say_what_the_command_would_do_and_write_nothing(run, trips):
    """Of everything small that changes a table: leases, consumers, the switch of deletion, the policy."""
    taken = run("lease", "create", trips, "--ttl", "3h", "--holder", "report", "--json").json
    run("consumer", "set", trips, "job-7", at(1))
    policy = Path(trips).parent / "policy.toml"
    policy.write_text(run("policy", "profile", "incremental").out)
    assert run("policy", "apply", trips, "--file", str(policy)).code == 0
    before = _files(trips)
    new = ("lease", "create", trips, "--ttl", "1h", "--holder", "other", "--at", at(2))
    for words in (
        new,
        ("lease", "renew", trips, taken["id"], "--ttl", "9h"),
        ("lease", "release", trips, taken["id"]),
        ("lease", "run", "--ttl", "1h", trips, "--", "touch", f"{trips}/x"),
        ("consumer", "set", trips, "job-7", at(2)),
        ("consumer", "delete", trips, "job-7"),
        ("deletion", "forbid", trips),
        ("policy", "remove", trips),
    ):
        at_end = ("--dry-run",) if "--" not in words else ()
        shown = run(*words[:2], *(() if at_end else ("--dry-run",)), *words[2:], *at_end)
        assert shown.code == 0, (words, shown.err)
        assert "(nothing was written)" in shown.out, words
        assert before == _files(trips), words
    tried = run(*new, "--dry-run", "--json").json
    assert (None, "other", at(2)) == (tried["id"], tried["holder"], tried["instant"])
    assert run("lease", "release", trips, taken["id"], "--dry-run", "--json").json == {
        "id": taken["id"],
        "released": False,
        "would_change": True,
    }
    refused = run("lease", "renew", trips, "0" * 12, "--ttl", "1h", "--dry-run")
    assert refused.code != 0, "what a real run refuses is refused"
    assert before == _files(trips)
    run("deletion", "forbid", trips)
    assert run("deletion", "allow", trips, "--dry-run", "--json").json["would_change"]
    assert run("deletion", "show", trips, "--json").json["forbidden"]
