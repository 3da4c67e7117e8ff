"""A write that loses each time against the same rival ends in time, after no more attempts than asked for."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from hudi_py.errors import ConflictError
from hudi_py.storage.base import Storage
from hudi_py.storage.retry import Retry
from hudi_py.storage.wrappers import DelegatingStorage
from support import many_writers, writes


class RivalWins(DelegatingStorage):
    """Each time that a write has begun, another one completes behind it, before it has looked at the table."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.begun, self._has_begun = 0, False

    def create_new(self, path: str, *given: Any, **named: Any) -> None:
        super().create_new(path, *given, **named)
        if path.startswith(".hoodie/timeline/") and path.endswith("inflight"):
            self.begun, self._has_begun = self.begun + 1, True

    def delete(self, path: str) -> bool:
        deleted = super().delete(path)
        if path == ".hoodie/lock" and self._has_begun:
            self._has_begun = False
            given = [(key, region, 1000 + self.begun) for key, region in (("a", "eu"), ("b", "us"))]
            many_writers.service(self.inner).write(many_writers.rows(*given), "UPSERT")
        return deleted


@pytest.mark.parametrize(("retries", "total_s"), [(0, 600), (3, 600), (1000, 10)])
@pytest.mark.parametrize("name", [name for name in many_writers.ACTORS if name != "impatient upsert"])
def test_attempts_and_time_are_bounded_for_each_operation(name, retries, total_s):
    """Nothing of it stays, and the error says that trying again helps."""
    storage = many_writers.table(9)
    rival = RivalWins(storage)
    slept: list[float] = []
    delays = Retry(delay_s_first=0.1, delay_s_max=60, sleep=slept.append, clock=lambda: sum(slept), chance=lambda: 1.0)
    settings = {
        "hoodie.write.num.retries.on.conflict.failures": retries,
        "hoodie_py.write.retry.timeout": f"{total_s}s",
    }
    with mock.patch.object(many_writers, "AT_ONCE", delays), pytest.raises(ConflictError) as raised:
        many_writers.ACTORS[name](rival, **settings)
    assert rival.begun == retries + 1 if total_s == 600 else rival.begun < retries
    assert sum(slept) <= total_s
    assert slept == [0.1 * 2**n for n in range(rival.begun - 1)]
    assert raised.value.exit_code == 4
    assert f"tried {rival.begun} times" in str(raised.value) or not retries
    assert not writes.open_table(storage).timeline.pending()
