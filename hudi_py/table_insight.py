"""What a table tells about itself: its health, where its bytes are. Nothing is changed, and no JVM is needed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from hudi_py.config.clean_options import CleanOptions
from hudi_py.table_services import TableServices
from hudi_py.table_view import TableView

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hudi_py.services.check.findings import Finding
    from hudi_py.services.usage.facts import Usage

__all__ = ["TableInsight"]


class TableInsight(TableView):
    """A table, examined; no method changes it."""

    def doctor(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> tuple[Finding, ...]:
        """
        Judge settings and health: contradictions, what blocks cleans and archival, clocks, small files.

        Lists all files.

        Args:
            now, options: As for `hudi_py.Table.plan_clean`.

        Returns:
            Findings, the most severe first. Their codes are stable, see `hudi_py.services.doctor.findings.RULES`.

        Raises:
            StorageError: The storage failed or is unreachable. Damage is not raised but returned as finding.
        """
        return TableServices(self).doctor(now=now, **options).run().findings

    def usage(self, *, now: datetime | None = None, **options: Unpack[CleanOptions]) -> Usage:
        """
        Return where the bytes of the table are, by what holds them, partition and commit. Lists all files once.

        Args:
            now, options: As for `hudi_py.Table.plan_clean`; they decide which files are retained.

        Raises:
            ConfigError: A value is invalid, or two values contradict each other.
            CorruptMetadata: An instant that decides about files is damaged.
        """
        return TableServices(self).usage(now=now, **options).run()
