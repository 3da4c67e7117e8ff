"""
The tables of a server, by number: those of a folder, a pattern or a list come and go while it runs.

A number stays that of its table as long as the server lives, because it stands in addresses that people keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Final

from hudi_py.errors import HudiError
from hudi_py.inspection.table_lists import each_once, tables_now, tables_of
from hudi_py.runtime.clock import MONOTONIC
from hudi_py.runtime.log import log
from hudi_py.txn.turns import place_of

LOOK_SECONDS: Final = 10.0
"""Sources are looked through again after this time at the earliest."""
_SHARE_MAX: Final = 0.1
"""Of the time, at most, that goes into looking, where listing takes long."""


class Sources:
    """
    Where tables are looked for.

    Args:
        sources: See `hudi_py.inspection.table_lists.tables_of`.
        options: Options of the storage library.

    Raises:
        ConfigError: There is nothing of that name, or it has no tables.
        StorageError: The storage cannot be listed.
    """

    def __init__(self, sources: Sequence[str], options: Mapping[str, str]) -> None:
        self._options = options
        self._found = {source: tables_of(source, options) for source in sources}

    @property
    def tables(self) -> tuple[str, ...]:
        """Locations, as found last."""
        return each_once(location for found in self._found.values() for location in found)

    def look(self) -> tuple[str, ...]:
        """Look again; where that fails, what was found before stays."""
        for source, known in self._found.items():
            # Standard input is over, and in a table there are no others: its folder may have a million files.
            if source == "-" or known == (source.rstrip("/") or source,):
                continue
            try:
                self._found[source] = tables_now(source, self._options)
            except HudiError as error:
                log.info("serve.not_listed", source=source, why=str(error))
        return self.tables


class ServedTables:
    """
    Tables by number.

    Args:
        locations: The first ones.
        look: Finds those that are there now; None if there are no others, ever.
        seconds: Clock.
    """

    def __init__(
        self,
        locations: tuple[str, ...],
        look: Callable[[], tuple[str, ...]] | None = None,
        *,
        seconds: Callable[[], float] = MONOTONIC,
    ) -> None:
        self._look, self._seconds = look, seconds
        self._all: list[str] = []
        self._numbers: dict[str, int] = {}
        self._listed: tuple[int, ...] = ()
        self._looking = Lock()
        self._next = seconds() + LOOK_SECONDS
        self._keep(locations)

    @property
    def all(self) -> tuple[str, ...]:
        """Locations in the order of their numbers, of tables that are gone, too."""
        return tuple(self._all)

    @property
    def listed(self) -> tuple[tuple[int, str], ...]:
        """Number and location of those that are there, as seen last."""
        return tuple((number, self._all[number]) for number in self._listed)

    def look(self) -> None:
        """Look again if that was a while ago; whoever comes meanwhile does not wait."""
        if self._look is None or self._seconds() < self._next or not self._looking.acquire(blocking=False):
            return
        try:
            began = self._seconds()
            self._keep(self._look())
            took = self._seconds() - began
            self._next = began + took + max(LOOK_SECONDS, took / _SHARE_MAX)
        finally:
            self._looking.release()

    def _keep(self, locations: tuple[str, ...]) -> None:
        numbers = []
        for location in locations:
            place = place_of(location)
            if place not in self._numbers:
                self._all.append(location)
                self._numbers[place] = len(self._all) - 1
            numbers.append(self._numbers[place])
        self._listed = tuple(numbers)
