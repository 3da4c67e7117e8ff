"""Renews a lease from a thread while its reader works, and releases it at the end."""

from __future__ import annotations

from datetime import timedelta

from hudi_py.errors import ConfigError, ConflictError, HudiError
from hudi_py.model.lease import Lease
from hudi_py.runtime.log import log
from hudi_py.runtime.repeated import RepeatedWork
from hudi_py.services.lease.service import LeaseService

_RENEWALS_PER_TTL = 3  # so that two of them may fail
_PAUSE_MAX = timedelta(hours=1)


class LeaseKeeper:
    """
    Keeps one lease alive.

    Args:
        service: The leases of the table.
        lease: The lease, as taken.
        ttl: Its time to live, counted again from each renewal.
    """

    def __init__(self, service: LeaseService, lease: Lease, ttl: timedelta) -> None:
        self.lease = lease
        self.why_lost = ""
        """Why files may have been deleted that it was to keep; ``""`` as long as it was in force."""
        self._service, self._ttl = service, ttl
        pause = min(ttl / _RENEWALS_PER_TTL, _PAUSE_MAX)
        self._renewals = RepeatedWork(self.renew, pause.total_seconds())

    def start(self) -> None:
        """Begin to renew it."""
        self._renewals.start(f"lease-{self.lease.id}")

    def stop(self) -> None:
        """Stop renewing, and release it; if that fails, it counts until it expires."""
        self._renewals.stop()  # first, because a renewal after the release would bring the lease back
        self.loss()
        try:
            is_released = self._service.release(self.lease.id)
        except HudiError as error:
            log.warning("lease.not_released", lease=self.lease.id, why=str(error))
            return
        if not (is_released or self.why_lost):
            self._lose("it was released or deleted by others, or the table is not there any more")

    def loss(self) -> str:
        """Return why files may be deleted by now that it was to keep; ``""`` while it is in force."""
        if not self.why_lost and not self.lease.is_usable(self._service.contents.store.clock.now()):
            self._lose(f"{self.lease} could not be renewed in time")
        return self.why_lost

    def renew(self) -> bool:
        """Renew it once; False if it is lost. Other failures are logged, because the next renewal may go through."""
        try:
            self.lease = self._service.renew(self.lease.id, self._ttl)
        except (ConfigError, ConflictError) as error:
            self._lose(str(error))
        except HudiError as error:
            log.warning("lease.not_renewed", lease=self.lease.id, why=str(error))
        return not self.why_lost

    def _lose(self, why: str) -> None:
        self.why_lost = why
        log.warning("lease.lost", lease=self.lease.id, why=why)
