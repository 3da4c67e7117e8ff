"""``/metrics`` of the server: the timeline of every table at every call, its files while there is time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Final

from hudi_py.errors import HudiError
from hudi_py.inspection.open_metrics import Sample, metrics_text
from hudi_py.inspection.page_data import version_of
from hudi_py.inspection.table_metrics import examined_samples, timeline_samples
from hudi_py.runtime.clock import MONOTONIC, SystemClock

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.table import Table

SECONDS_MAX: Final = 5.0
"""Tables are examined for so long in one call: a collector waits ten seconds by default."""


class SiteMetrics:
    """
    The metrics of some tables.

    What an examination found stays valid until the timeline changes; ages are those of the call. A table that there
    was no time to examine shows its timeline alone, or what was found last, and is among the first of the next call.

    Args:
        tables: Locations.
        open_table: Opens a location, for reading only.
        options: Settings of cleaning.
        seconds: Clock for the time of one call.
    """

    def __init__(
        self,
        tables: tuple[str, ...],
        open_table: Callable[[str], Table],
        options: CleanOptions,
        *,
        seconds: Callable[[], float] = MONOTONIC,
    ) -> None:
        self._tables, self._open, self._options, self._seconds = tables, open_table, options, seconds
        self._found: dict[str, tuple[str, list[Sample]]] = {}
        self._lock = Lock()

    def text(self) -> str:
        """Return the text; one call at a time, so that no table is examined twice."""
        with self._lock:
            return metrics_text(self._samples(SystemClock().now()))

    def _samples(self, now: datetime) -> Iterator[Sample]:
        until = self._seconds() + SECONDS_MAX
        outdated: dict[str, Table] = {}
        for location in self._tables:
            try:
                opened = self._open(location)
                yield from list(timeline_samples(opened, location, now))
            except HudiError:
                yield Sample("hudi_py_table_up", {"table": location}, 0)
                continue
            if self._found.get(location, ("",))[0] != version_of(opened):
                outdated[location] = opened
        # Those that were never examined first: they are what a collector knows nothing of.
        for location in sorted(outdated, key=self._found.__contains__):
            if self._seconds() >= until:
                break
            try:
                self._examine(location, outdated[location])
            except HudiError:
                self._found.pop(location, None)
        for _, samples in self._found.values():
            yield from samples

    def _examine(self, location: str, opened: Table) -> None:
        # Before the files are listed: a commit that comes meanwhile makes this outdated at the next call.
        version = version_of(opened)
        examined = opened.services.doctor(**self._options).run()
        self._found[location] = (version, list(examined_samples(examined, location, SystemClock().now())))
