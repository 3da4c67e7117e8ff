"""Repeated work goes on until it says that nothing is left, or is stopped, and stopping waits for it."""

import signal
import threading

from hudi_py.runtime.repeated import RepeatedWork

PATIENCE_S = 60  # only ever waited for in full if the work never begins


def test_work_is_repeated_until_nothing_is_left():
    """The thread ends by itself when the work returns False."""
    left = [3, 2, 1]
    done = threading.Event()

    def work():
        left.pop()
        if not left:
            done.set()
        return bool(left)

    repeated = RepeatedWork(work, 0)
    repeated.start("until done")
    assert done.wait(PATIENCE_S)
    repeated.stop()
    assert left == []
    assert not repeated.is_running


def test_stopping_waits_for_work_in_progress_and_it_can_start_again():
    """After `stop` nothing of it happens any more, so callers may delete what it wrote."""
    begun, in_thread = threading.Event(), []

    def work():
        begun.set()
        in_thread.append(threading.current_thread().name == "until stopped")
        return True

    repeated = RepeatedWork(work, 0)
    for _ in range(2):
        begun.clear()
        repeated.start("until stopped")
        assert begun.wait(PATIENCE_S)
        repeated.stop()
        assert not repeated.is_running
    assert all(in_thread)


def test_signals_that_end_a_process_are_left_to_its_main_thread():
    """Taken by another thread, they would not wake a main thread that waits for a child."""
    masks, seen = [], threading.Event()

    def work():
        masks.append(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
        seen.set()
        return False

    repeated = RepeatedWork(work, 0)
    repeated.start("repeated")
    assert seen.wait(30)
    repeated.stop()
    assert {signal.SIGINT, signal.SIGTERM, signal.SIGHUP} <= masks[0]
    assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
