"""Processes of a run over many tables: they end with the program, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hudi_py.inspection.worker_pool import signals_held
from support.repository import ROOT

SECONDS_MAX = 120
"""A program or process that never ends is found after so long."""

HEEDS = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""Processes in the background of a shell ignore Ctrl-C, and so does what they start."""


def ended(script: str) -> subprocess.CompletedProcess[str]:
    """Run a script until it and all processes that it started, which have its output, are gone."""
    return subprocess.run(
        [sys.executable, "-c", HEEDS + script], capture_output=True, text=True, check=False, cwd=ROOT,
        timeout=SECONDS_MAX, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_processes_start_ends_the_run(lake, tmp_path, name, code):
    """An executor that is interrupted then forgets its processes, and both wait for each other for ever."""
    script = (
        "import os, signal\n"
        "from multiprocessing import popen_spawn_posix\n"
        "whole = popen_spawn_posix.Popen._launch\n"
        "def launch(self, process):\n"
        "    whole(self, process)\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "popen_spawn_posix.Popen._launch = launch\n"
        "from hudi_py.inspection.cli import main\n"
        f"main(['check', '--tables', {str(tmp_path / 'list.txt')!r}, '--parallel', '3'])\n"
    )
    done = ended(script)
    assert done.returncode == code, done.stderr
    assert "in progress first" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_no_process_outlives_a_program_that_was_killed():
    """Its output is open for as long as one of them lives."""
    script = (
        "import os\n"
        "from hudi_py.inspection.worker_pool import workers\n"
        "with workers(2) as submit:\n"
        "    print(submit(os.getpid).result(), flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = ended(script)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.strip().isdecimal(), done.stderr


@pytest.mark.slow
def test_a_second_signal_ends_what_is_in_progress():
    """The first has tables finished that were begun, which may take hours."""
    script = (
        "import os, signal, threading\n"
        "from hudi_py.inspection import worker_pool\n"
        "from hudi_py.inspection.worker_pool import workers\n"
        "class Executor(worker_pool.ProcessPoolExecutor):\n"
        "    def shutdown(self, **arguments):\n"
        "        if threading.current_thread() is threading.main_thread() and not signaled:\n"
        "            signaled.append(1)\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "        super().shutdown(**arguments)\n"
        "worker_pool.ProcessPoolExecutor, signaled = Executor, []\n"
        "try:\n"
        "    with workers(1) as submit:\n"
        "        submit(os.getpid).result()\n"
        "        submit(signal.pause)\n"
        "        raise KeyboardInterrupt\n"
        "except KeyboardInterrupt:\n"
        "    print('ended')\n"
    )
    done = ended(script)
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_signals_wait_until_the_body_is_over():
    """And then do what they would have done."""
    steps, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
    try:
        with pytest.raises(KeyboardInterrupt), signals_held():
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("body")
        assert steps == ["body"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
