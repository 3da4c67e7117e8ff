"""Where output goes besides a terminal: devices, pipes, full disks, readers that go away, and never into a table."""

import json
import os
import shutil
import stat
import subprocess
import sys

import pytest

from support.repository import ROOT


def hudi_py(*arguments, stdout, largest=None):
    """Run the command as a process with a given standard output, and files of so many bytes at most."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "hudi_py", *map(str, arguments)]
    if largest is not None:
        limit = "import resource, os, sys; n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_FSIZE, (n, n))"
        command = [sys.executable, "-c", f"{limit}; os.execv(sys.argv[2], sys.argv[2:])", str(largest), *command]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, encoding="utf-8", env=env, timeout=60)


@pytest.mark.slow
def test_a_journal_that_does_not_fit_is_named(table, tmp_path):
    """What is not noted is said, and not that the output is lost; the next run goes on with the same file."""
    for name in "ab":
        shutil.copytree(table("cow_empty-1.1.1"), tmp_path / "lake" / name)
    journal = tmp_path / "journal.jsonl"
    given = ("timeline", "--tables", tmp_path / "lake", "--parallel", "1", "--resume", journal)
    assert hudi_py(*given, stdout=subprocess.PIPE).returncode == 0
    first, second = journal.read_bytes().splitlines()
    journal.unlink()
    done = hudi_py(*given, stdout=subprocess.PIPE, largest=len(first) + len(second) // 2)
    assert done.returncode == 1
    assert f"--resume {journal}: File too large; {tmp_path}/lake/b is done, but not noted" in done.stderr
    assert "output" not in done.stderr
    assert journal.read_bytes().splitlines()[0] == first
    again = hudi_py(*given, stdout=subprocess.PIPE)
    assert (again.returncode, again.stdout.count("lake/b"), again.stdout.count("lake/a")) == (0, 1, 0)


@pytest.mark.slow
def test_a_list_that_does_not_fit_is_not_left_in_part(table, tmp_path):
    """Somebody might approve it; and it would keep the next run from writing the whole one."""
    path, target = table("cow_cleaned-1.1.1"), tmp_path / "list.txt"
    given = ("clean", path, "--commits-retained", "1", "--list", target)
    done = hudi_py(*given, stdout=subprocess.PIPE, largest=50)
    assert (done.returncode, target.exists()) == (2, False)
    assert f"--list {target}: File too large" in done.stderr
    assert hudi_py(*given, stdout=subprocess.PIPE).returncode == 0
    assert target.exists()


@pytest.mark.parametrize(
    ("option", "name"), [(("read", "-o"), "out.csv"), (("report", "-o"), "out"), (("files", "--metrics-file"), "out")]
)
def test_a_device_stays_a_device(run, table, tmp_path, option, name):
    """What is written into a device, through a link here, does not become a file in its place."""
    out = tmp_path / name
    out.symlink_to(os.devnull)
    assert run(option[0], table("cow_cleaned-1.1.1"), option[1], out).code == 0
    assert out.is_symlink()
    assert stat.S_ISCHR(out.stat().st_mode)
    assert [each.name for each in tmp_path.glob(".out*")] == []


@pytest.mark.parametrize(
    ("option", "name", "start"),
    [(("read", "-o"), "out.jsonl", b'{"'), (("files", "--metrics-file"), "out", b"# TYPE ")],
)
def test_a_pipe_gets_the_output(run, table, tmp_path, option, name, start):
    """A named pipe is written to, is not read, and stays; so process substitution of shells works."""
    out = tmp_path / name
    os.mkfifo(out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(option[0], table("cow_cleaned-1.1.1"), option[1], out).code == 0
        assert os.read(reader, 1 << 16).startswith(start)
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(out.stat().st_mode)


def test_metrics_do_not_go_into_a_table(run, table):
    """Not below any folder with a table: the file replaces what has its name."""
    path = table("cow_cleaned-1.1.1")
    inside = next(path.rglob("*.parquet"))
    before = inside.read_bytes()
    refused = run("overview", path, "--metrics-file", inside)
    assert (refused.code, inside.read_bytes()) == (2, before)
    assert "inside a table" in refused.err
    assert run("overview", path, "--metrics-file", path.parent / "beside.prom").code == 0


@pytest.mark.parametrize(
    ("words", "option"),
    [(("clean",), "--list"), (("orphans",), "--list"), (("clean", "--dry-run", "--tables"), "--resume")],
    ids=lambda each: each if isinstance(each, str) else " ".join(each),
)
def test_lists_and_journals_stay_outside_of_tables(run, table, words, option):
    """In a partition they would be files that no instant knows, which keep it from being deleted as a whole."""
    path = table("cow_cleaned-1.1.1")
    inside = path / "r0" / "list.jsonl"
    refused = run(*words, path, option, inside)
    assert (refused.code, refused.out) == (2, "")
    assert f"{option} {inside}: this is inside" in refused.err
    assert not inside.exists()


def test_commands_have_one_name_however_the_program_was_started(table, tmp_path):
    """``python -m hudi_py overview`` is ``overview`` in metrics and documents, so that alarms find it."""
    out = tmp_path / "m.prom"
    done = hudi_py("overview", table("cow_cleaned-1.1.1"), "--json-envelope", "--metrics-file", out, stdout=-1)
    assert json.loads(done.stdout)["command"] == "overview"
    assert 'hudi_py_command_exit_code{command="overview",' in out.read_text()


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", [("timeline",), ("timeline", "--json"), ("--help",), ("completion", "bash")])
def test_a_full_disk_is_told_in_words(table, words):
    """Exit code 1 and one line, for documents, texts and help."""
    place = [table("cow_cleaned-1.1.1")] if words[0] == "timeline" else []
    with open("/dev/full", "w") as full:
        done = hudi_py(words[0], *place, *words[1:], stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith("hudi-py: the output could not be written (No space left on device)")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_reader_that_goes_away_leaves_no_table_undone(run, table, tmp_path, form):
    """``clean --tables LIST | head -1``: all tables are cleaned, and the exit code tells of one that failed."""
    paths = [table("cow_clean_inflight-1.1.1"), table("mor_clean_inflight-1.1.1")]
    listed = tmp_path / "list.txt"
    listed.write_text("".join(f"{each}\n" for each in [*paths, tmp_path / "none"]))
    reader, writer = os.pipe()
    os.close(reader)
    done = hudi_py("clean", "--tables", listed, "--parallel", "1", *form, stdout=writer)
    os.close(writer)
    assert done.returncode == 6, done.stderr
    assert "Traceback" not in done.stderr
    for path in paths:
        cleans = run("timeline", path, "--action", "clean", "--json").json["instants"]
        assert {each["state"] for each in cleans} == {"COMPLETED"}
