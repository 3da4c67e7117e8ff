"""How often, and for how long, a write is begun again that other writers were faster than."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from hudi_py.config.concurrency import Concurrency
from hudi_py.errors import ConflictError, OutcomeUnknown, StorageError
from hudi_py.storage.retry import Retry
from hudi_py.timeline.lock import LockHeld
from hudi_py.txn.early import EarlyConflict
from hudi_py.writing.repeat import repeated

TOTAL_S = 60


class Time:
    """Passes only by what is slept and what an attempt takes; *chance* is what the machine would throw."""

    def __init__(self, chance):
        self.now, self.slept, self.chance = 0.0, [], chance

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def run(self, error, attempt_s, retries, wait_s=0.0):
        """When each attempt began, for an attempt that always ends with that error."""
        begun = []

        def attempt():
            begun.append(self.now)
            self.now += attempt_s
            raise error

        def wait(_error, seconds_max):
            self.now += min(wait_s, seconds_max)

        concurrency = Concurrency(is_shared=True, retries_max=retries, patience=timedelta(seconds=TOTAL_S))
        delays = Retry(
            delay_s_first=1, delay_s_max=8, sleep=self.sleep, clock=lambda: self.now, chance=lambda: self.chance
        )
        with pytest.raises((type(error), ConflictError)):
            repeated(attempt, concurrency, what="write", delays=delays, wait=wait)
        return begun


@pytest.mark.parametrize("retries", [0, 1, 5, 1000])
@pytest.mark.parametrize("attempt_s", [0.0, 7.0, 61.0])
@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_attempts_are_bounded_in_number_and_in_time(chance, attempt_s, retries):
    """A8: one total time-out over all of them; and none of the time that is left is given away."""
    time = Time(chance)
    begun = time.run(ConflictError("overtaken"), attempt_s, retries)
    assert len(begun) <= retries + 1
    assert max(begun) <= TOTAL_S
    assert len(begun) == retries + 1 or time.now + 8 > TOTAL_S


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_delays_double_to_a_cap_and_are_shortened_by_chance(chance):
    """A8: so that writers that lost together do not come back together."""
    time = Time(chance)
    time.run(ConflictError("overtaken"), 0.0, 6)
    expected = [(0.5 + chance / 2) * full for full in (1, 2, 4, 8, 8, 8)]
    assert time.slept == expected


@pytest.mark.parametrize("wait_s", [1.0, 25.0, 1e6])
def test_waiting_for_the_running_write_counts(wait_s):
    """A write that is in the way for ever is waited for no longer than the total time, however many retries are set."""
    time = Time(0.5)
    begun = time.run(EarlyConflict("in the way", "20260101000000000"), 0.0, 1000, wait_s)
    assert max(begun) <= TOTAL_S
    assert time.now <= TOTAL_S


@pytest.mark.parametrize("error", [LockHeld("held"), OutcomeUnknown("lost"), StorageError("away", True)])
def test_what_another_attempt_would_not_mend_is_not_repeated(error):
    """C15: after an unknown outcome one's own instant comes first; a lock was waited for already."""
    assert Time(0.5).run(error, 0.0, 1000) == [0.0]


def test_what_happened_is_in_the_error():
    """How often it was tried, and what the last attempt met."""
    numbers = itertools.count(1)

    def attempt():
        raise ConflictError(f"overtaken by writer {next(numbers)}")

    concurrency = Concurrency(is_shared=True, retries_max=2, patience=timedelta(seconds=TOTAL_S))
    with pytest.raises(ConflictError, match="tried 3 times: overtaken by writer 3"):
        repeated(attempt, concurrency, what="write", delays=Retry(sleep=lambda _: None))
