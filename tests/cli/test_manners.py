"""How the command line treats people: help, sizes, verbosity, completion, what Ctrl-C leaves."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import click
import pytest

from hudi_py.inspection.cli import main
from hudi_py.model.words import counted, human_bytes, parse_bytes
from support.cli_runner import RUNNER
from support.repository import ROOT

CODES = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")


def commands(group=main, names=()):
    """Names and command of everything that can be run."""
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        elif not command.hidden:
            yield (*names, name), command


def test_exit_codes_are_on_one_page():
    """Those of the errors, of the help and of the page are the same."""
    from hudi_py import errors

    listed = {int(code) for code in re.findall(r"^\| ([0-9]+) \|", CODES, re.MULTILINE)}
    raised = {getattr(errors, name).exit_code for name in errors.__all__}
    shown = {
        int(code) for code in re.findall(r"\b(\d+) [a-z]", re.search(r"Exit codes:(.*?)See", main.help, re.DOTALL)[1])
    }
    shown |= {130, 143}
    assert raised <= listed
    assert shown == listed == {0, 1, 2, 3, 4, 5, 6, 7, 124, 130, 143}


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1GB", 10**9), ("1.5 GB", 1_500_000_000), ("2GiB", 2 << 30), ("3kb", 3000), ("7 B", 7),
     ("0.5 MiB", 1 << 19),
     ("", None), ("GB", None), ("-1", None), ("1e9", None), ("1 G B", None), ("1..5GB", None), ("\u0661", None)],
)  # fmt: skip
def test_sizes_have_units(text, size):
    """Decimal and binary; anything else is refused."""
    assert parse_bytes(text) == size


def test_sizes_are_options(run, table):
    """``--max-bytes`` takes them, and a plan stays within."""
    path = table("cow_cleaned-1.1.1")
    plan = run("clean", path, "--dry-run", "--commits-retained", 1, "--max-bytes", "500kB", "--json").json
    assert 0 < plan["totals"]["bytes"] <= 500_000
    assert run("clean", path, "--dry-run", "--max-bytes", "much").code == 2
    assert run("clean", path, "--dry-run", "--max-bytes", "0").code == 2


def test_words_agree_with_their_number():
    """One file, two files; sizes in the unit that people say."""
    assert (counted(1, "file"), counted(0, "file"), counted(1200, "file")) == ("1 file", "0 files", "1,200 files")
    assert human_bytes(1_400_000) == "1.4 MB"


def test_verbosity_decides_about_log_events(run, table):
    """-v shows what happens, -q not even warnings; results are the same."""
    path = table("cow_cleaned-1.1.1")
    plain, verbose, quiet = (
        run("clean", path, "--commits-retained", 1, "--dry-run", "--json", *more) for more in ((), ("-vv",), ("-q",))
    )
    assert plain.json == verbose.json == quiet.json
    assert quiet.err == ""
    assert len(verbose.err) >= len(plain.err)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell):
    """The script names the program, and the program answers what the script asks."""
    script = RUNNER.invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert "_HUDI_PY_COMPLETE" in script.stdout
    if shutil.which(shell) is not None:
        assert subprocess.run([shell, "-n"], input=script.stdout, text=True, check=False).returncode == 0
    asked = {"_HUDI_PY_COMPLETE": "bash_complete", "COMP_WORDS": "hudi-py do", "COMP_CWORD": "1"}
    answer = RUNNER.invoke(main, [], prog_name="hudi-py", env=asked)
    assert "doctor" in answer.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_who_is_stopped_lets_go_and_says_what_to_do(tmp_path, name, code):
    """From a process of its own; the message names the way on, and nobody waits for its lock."""
    script = (
        "import signal, os\n"
        "from hudi_py.runtime.clock import SystemClock\n"
        "from hudi_py.storage.local import LocalStorage\n"
        "from hudi_py.inspection import options\n"
        "from hudi_py.txn.file_lock import FileLock\n"
        "def held(self, table):\n"
        f"    lock = FileLock(LocalStorage({str(tmp_path)!r}), '', 0, SystemClock())\n"
        "    assert lock.try_acquire('clean')\n"
        "    try:\n"
        f"        os.kill(os.getpid(), signal.{name})\n"
        "    finally:\n"
        "        lock.release()\n"
        "options.Common.open = held\n"
        "from hudi_py.inspection.cli import main\n"
        "main(['clean', 't'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert not (tmp_path / "lock").exists()
    assert "hudi-py recover" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_time_limit_ends_a_command_as_ctrl_c_does(monkeypatch):
    """The command gets an interruption, which puts things right, and the exit code tells the two apart."""
    from hudi_py.inspection import options

    seen, limits = [], []
    monkeypatch.setattr(signal, "setitimer", lambda _, seconds: limits.append(seconds))

    def waits(_common, _table):
        try:
            # what the timer does when the time is over
            signal.raise_signal(signal.SIGALRM)
        except KeyboardInterrupt as stop:
            seen.append(stop)
            raise

    monkeypatch.setattr(options.Common, "open", waits)
    done = RUNNER.invoke(main, ["clean", "t", "--timeout", "1s", "--json"])
    assert done.exit_code == 124, done.output
    assert len(seen) == 1
    error = json.loads(done.stdout)["error"]
    assert (error["kind"], error["exit_code"]) == ("TimedOut", 124)
    assert "hudi-py recover" in done.stderr
    assert limits == [1, 0], "the timer is switched off at the end"


@pytest.mark.parametrize("text", ["soon", "0s", "-1m"])
def test_a_wrong_time_limit_is_refused(text, tmp_path):
    """Before anything is opened."""
    done = RUNNER.invoke(main, ["clean", str(tmp_path), f"--timeout={text}"])
    assert done.exit_code == 2
    assert "--timeout" in done.stderr


def test_a_long_command_without_a_terminal_prints_a_line_a_period(capsys):
    """With what it is doing; nothing any more after its end."""
    from hudi_py.inspection.still_running import Beat

    beat = Beat("clean", period=0.001)
    beat.doing = "deleting  1/2 files"
    beat.start()
    printed = ""
    while printed.count("\n") < 2:
        printed += capsys.readouterr().err
    beat.stop()
    capsys.readouterr()
    assert printed.splitlines()[0] == "hudi-py clean: running for 0 min, deleting  1/2 files"
    assert capsys.readouterr().err == ""
