"""A lease that is lost while its job runs: the job is told at its end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from hudi_py.errors import ConflictError, StorageError
from hudi_py.storage.wrappers import DelegatingStorage
from hudi_py.table import Table
from support.tables import TableBuilder, at


class Unreachable(DelegatingStorage):
    """A storage that fails from a moment on."""

    is_down = False

    def delete(self, path):
        if self.is_down:
            raise StorageError("it cannot be reached")
        return super().delete(path)


def opened():
    builder = TableBuilder()
    builder.commit(at(1), {"r0": ["a"]})
    storage = Unreachable(builder.storage)
    return builder, storage, Table(storage, clock=builder.clock)


@pytest.mark.parametrize("is_down", [False, True])
def test_a_lease_that_ran_out_is_told_at_the_end_of_its_job(is_down):
    """As after renewals that failed for longer than its time to live, whether it can be released by then or not."""
    builder, storage, table = opened()
    with pytest.raises(ConflictError, match="could not be renewed in time"), table.kept_lease(ttl="1h"):
        builder.clock.move(timedelta(hours=2))
        storage.is_down = is_down


def test_a_lease_that_others_released_is_told_at_the_end_of_its_job():
    """Nobody renewed it in between, so only its release finds out."""
    _, _, table = opened()
    with pytest.raises(ConflictError, match="released or deleted by others"), table.kept_lease(ttl="1h") as taken:
        assert table.release_lease(taken.id)


def test_a_job_that_fails_has_its_own_error():
    """The lost lease is in the log."""
    builder, _, table = opened()
    with pytest.raises(ZeroDivisionError), table.kept_lease(ttl="1h"):
        builder.clock.move(timedelta(hours=2))
        raise ZeroDivisionError


def test_a_release_that_fails_in_time_is_no_loss():
    """The lease was in force until the end of the job, and counts until it expires."""
    _, storage, table = opened()
    with table.kept_lease(ttl="1h") as taken:
        storage.is_down = True
    assert [taken.id] == [each.id for each in table.leases()]
