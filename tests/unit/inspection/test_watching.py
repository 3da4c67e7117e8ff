"""``--watch``: signals end it between two runs; the time between them varies within bounds."""

from __future__ import annotations

import os
import signal
from datetime import timedelta

import pytest

from hudi_py.errors import ConfigError
from hudi_py.inspection.watching import watch, watch_span

MINUTE = timedelta(minutes=1)


def signalled(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_while_it_waits(number):
    """With the exit code of the last run; the handlers of before are back."""
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    codes, waited = iter([4, 1, 0]), []

    def wait(seconds):
        waited.append(seconds)
        if len(waited) == 2:
            signalled(number)

    assert watch(MINUTE, lambda: next(codes), wait=wait, chance=iter([0.0, 0.999]).__next__) == 1
    assert waited == [54.0, pytest.approx(66.0, abs=0.1)]
    assert before == [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]


def test_a_signal_during_a_run_lets_it_end():
    """The run returns, and none follows."""
    done = []

    def run():
        signalled()
        done.append(1)
        return 3

    assert watch(MINUTE, run, wait=lambda _: pytest.fail("it waited")) == 3
    assert done == [1]


def test_a_second_signal_ends_a_run_as_ctrl_c_does():
    """For whoever does not want to wait for the end of a long one."""

    def run():
        signalled()
        signalled()
        return 0

    with pytest.raises(KeyboardInterrupt):
        watch(MINUTE, run)


def test_what_is_no_span_is_wrong_usage():
    """A number without a unit, too."""
    assert watch_span("15m") == timedelta(minutes=15)
    for text in ("", "0s", "soon", "15"):
        with pytest.raises(ConfigError, match="--watch"):
            watch_span(text)
