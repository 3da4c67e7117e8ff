"""Fences around closed writes: how long they stand."""

from datetime import datetime, timedelta

from hudi_py.storage.memory import MemoryStorage
from hudi_py.timeline.fence import is_fenced, put_up_fence

START = datetime(2026, 1, 1)  # noqa: DTZ001 - instants tell no zone


def minute(number):
    return f"{START + timedelta(minutes=number):%Y%m%d%H%M%S}000"


def test_a_fence_stands_for_half_an_hour_of_later_writes():
    """Longer than any executor lives that has lost its driver; then it goes, so that there are never many."""
    storage = MemoryStorage()
    for number in range(50):
        put_up_fence(storage, minute(number))
        put_up_fence(storage, minute(number))
        standing = [each for each in range(number + 1) if is_fenced(storage, minute(each))]
        assert standing == list(range(max(0, number - 30), number + 1))
