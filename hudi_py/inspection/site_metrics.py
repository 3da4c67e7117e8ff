"""``/metrics`` of the server: the timeline of every table at every call, its files while there is time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from math import inf
from threading import Lock
from typing import TYPE_CHECKING, Final

import attrs

from hudi_py.errors import HudiError, TableNotFound
from hudi_py.inspection.open_metrics import Sample, metrics_text
from hudi_py.inspection.page_data import version_of
from hudi_py.inspection.table_metrics import examined_samples, timeline_samples
from hudi_py.runtime.clock import MONOTONIC, SystemClock

if TYPE_CHECKING:
    from hudi_py.config.clean_options import CleanOptions
    from hudi_py.table import Table

SECONDS_MAX: Final = 5.0
"""Tables are examined for so long in one call: a collector waits ten seconds by default."""


EXAMINED_SECONDS_MAX: Final = 3600.0
"""A table is examined again after this time, whether its timeline has changed or not."""


@attrs.frozen
class _Found:
    """What an examination found: the version of the table, when the call began that made it, and the samples."""

    version: str
    at: float
    samples: list[Sample]


class SiteMetrics:
    """
    The metrics of some tables.

    What an examination found stays valid until the timeline changes, and for an hour at most: a write that is stuck
    becomes a finding with time alone. Ages are those of the call. A table that there was no time to examine shows its
    timeline alone, or what was found last, and is among the first of the next call.

    Args:
        tables: Locations, those of now; of one that is gone that it is.
        open_table: Opens a location, for reading only.
        options: Settings of cleaning.
        seconds: Clock for the time of one call.
    """

    def __init__(
        self,
        tables: Callable[[], tuple[str, ...]],
        open_table: Callable[[str], Table],
        options: CleanOptions,
        *,
        seconds: Callable[[], float] = MONOTONIC,
    ) -> None:
        self._tables, self._open, self._options, self._seconds = tables, open_table, options, seconds
        self._found: dict[str, _Found] = {}
        self._lock = Lock()

    def text(self) -> str:
        """Return the text; one call at a time, so that no table is examined twice."""
        with self._lock:
            return metrics_text(self._samples(SystemClock().now()))

    def _samples(self, now: datetime) -> Iterator[Sample]:
        began = self._seconds()
        outdated: dict[str, Table] = {}
        for location in self._tables():
            try:
                opened = self._open(location)
                yield from list(timeline_samples(opened, location, now))
            except HudiError as error:
                yield Sample("hudi_py_table_up", {"table": location}, 0)
                if isinstance(error, TableNotFound):  # nothing is left that takes place, or could be mended
                    self._found.pop(location, None)
                continue
            found = self._found.get(location)
            is_old = found is not None and began - found.at >= EXAMINED_SECONDS_MAX
            if found is None or is_old or found.version != version_of(opened):
                outdated[location] = opened
        # Those that were never examined first: they are what a collector knows nothing of. Then the oldest.
        for location in sorted(outdated, key=self._examined_at):
            if self._seconds() >= began + SECONDS_MAX:
                break
            try:
                self._examine(location, outdated[location], began)
            except HudiError:
                self._found.pop(location, None)
        for found in self._found.values():
            yield from found.samples

    def _examined_at(self, location: str) -> float:
        found = self._found.get(location)
        return -inf if found is None else found.at

    def _examine(self, location: str, opened: Table, began: float) -> None:
        # Before the files are listed: a commit that comes meanwhile makes this outdated at the next call.
        version = version_of(opened)
        examined = opened.services.doctor(**self._options).run()
        samples = list(examined_samples(examined, location, SystemClock().now()))
        self._found[location] = _Found(version, began, samples)
