"""`CleanPlanner`: the planner under its Hudi name."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from hudi_py.services.clean.planning.plan import CleanPlan

if TYPE_CHECKING:
    from hudi_py.services.clean.service import CleanService


class CleanPlanner:
    """
    Plans cleans of one table; nothing is ever written.

    Args:
        service: The table's clean service, `hudi_py.Table.services.clean`.
    """

    def __init__(self, service: CleanService) -> None:
        self._service = service

    def plan(self, *, now: datetime | None = None, details: bool = False) -> CleanPlan:
        """
        What a clean would delete, and why.

        Args:
            now: Time to plan for, with a time zone; replaces the clock.
            details: Read file sizes and keep the verdict on every slice.
        """
        import attrs

        service = self._service if now is None else attrs.evolve(self._service, now=now)
        return service.plan(details=details)
