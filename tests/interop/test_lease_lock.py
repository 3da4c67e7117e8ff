"""The lock by conditional writes beside real Hudi's own provider, on a server that speaks S3."""

import time
import uuid
from contextlib import suppress
from datetime import datetime, timedelta, timezone

import pytest
from real_hudi import RealHudiError

from hudi_py.config.settings import Settings
from hudi_py.errors import ConflictError
from hudi_py.runtime.clock import FixedClock
from hudi_py.storage.factory import open_storage
from hudi_py.txn.lease_lock import TABLE_LOCK, parse_lease
from hudi_py.txn.table_lock import TableLock
from support.interop_sample import releases

pytestmark = [pytest.mark.oracle, pytest.mark.parametrize("peer", releases(9), indirect=True)]

PREFIX = "hoodie.write.lock."
VALID_S = 10
THEIRS = {
    f"{PREFIX}storage.validity.timeout.secs": VALID_S,
    f"{PREFIX}storage.renew.interval.secs": 1,
}
OURS = {
    **THEIRS,
    f"{PREFIX}provider": "org.apache.hudi.client.transaction.lock.StorageBasedLockProvider",
    f"{PREFIX}client.num_retries": 0,
    f"{PREFIX}wait_time_ms": 0,
}
PATIENCE_S = 60


class Place:
    """A table's place, and both sides' locks of it."""

    def __init__(self, peer, options):
        self.peer, self.options = peer, options
        self.location = f"s3://contract/{uuid.uuid4()}"
        self.storage = open_storage(self.location, options)

    def take_theirs(self):
        return self.peer.take_lease(self.location, self.options, "real hudi", THEIRS)

    def ours(self, ahead_s=0):
        clock = FixedClock(datetime.now(timezone.utc) + timedelta(seconds=ahead_s))
        return TableLock(self.storage, Settings(OURS), clock)

    def content(self):
        return parse_lease(self.storage.read(TABLE_LOCK))

    def wait_until(self, condition):
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline
        return True


@pytest.fixture
def place(peer, s3_options):
    return Place(peer, s3_options)


def test_a_lease_of_real_hudi_keeps_us_out_and_is_renewed(place):
    """Until it is released; its own thread moves the end of its validity meanwhile."""
    assert place.take_theirs()
    before = place.content()
    assert (before.is_released, before.owner) == (False, "real hudi")
    with pytest.raises(ConflictError, match="real hudi"), place.ours().held("a test"):
        pytest.fail("two holders")
    assert place.wait_until(lambda: place.content().valid_until_ms > before.valid_until_ms)
    place.peer.release_lease(place.location)
    assert place.content().is_released
    with place.ours().held("a test"):
        assert not place.take_theirs()


def test_our_lease_keeps_real_hudi_out(place):
    """Until it is released."""
    with place.ours().held("a test") as _:
        assert not place.take_theirs()
    assert place.take_theirs()
    place.peer.release_lease(place.location)


def test_a_lease_that_was_taken_over_is_left_alone_by_real_hudi(place):
    """As after a pause that was longer than its validity: neither its renewal nor its release touches our lock."""
    assert place.take_theirs()
    with place.ours(ahead_s=3600).held("a test"):
        mine = place.content().owner
        assert mine != "real hudi"
        assert place.wait_until(lambda: place.peer.renewals_refused(place.location))
        with suppress(RealHudiError):  # FAILED_TO_RELEASE, unless it has noticed before that it is another's
            place.peer.release_lease(place.location)
        found = place.content()
        assert (found.owner, found.is_released) == (mine, False)
