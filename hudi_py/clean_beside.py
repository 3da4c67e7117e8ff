"""
The clean that runs beside a write, in a thread of its own (``hoodie.clean.async.enabled``; rules A-5, A-6).

It begins when the write has begun, so that its plan does not see the commit that is being written, and the commit waits
for it before it completes: until then the write only creates files that no plan names, and touches neither the timeline
nor the metadata table. Therefore it needs no lock, unlike in Apache Hudi, whose commits wait after they are completed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from hudi_py.config import keys
from hudi_py.config.settings import Settings
from hudi_py.engine.base import Engine
from hudi_py.errors import HudiError
from hudi_py.runtime.log import log
from hudi_py.services.clean.result import CleanResult
from hudi_py.table_services import TableServices
from hudi_py.table_view import TableView

if TYPE_CHECKING:
    from typing_extensions import Self


class CleanBeside:
    """
    A clean that runs while the block does, if the settings ask for one; the end of the block waits for it.

    Args:
        table: The table of the write; it is not used by the thread, which opens its own view.
        settings: Of the write.
        engine: Returns the engine that deletes files.
    """

    def __init__(self, table: TableView, settings: Settings, engine: Callable[[], Engine]) -> None:
        self._table, self._settings, self._engine = table, settings, engine
        self._thread: threading.Thread | None = None
        self._done: list[CleanResult] = []
        self._error: BaseException | None = None

    def __enter__(self) -> Self:
        if self._settings[keys.CLEAN_ASYNC] and self._settings[keys.CLEAN_AUTOMATIC]:
            store = self._table.contents.store
            view = TableView(store.storage, settings=self._settings.as_dict(), clock=store.clock)
            why = store.deletion.why_off(view.config.properties)
            if why is not None:
                log.info("write.clean.left_out", why=why)
                return self
            self._thread = threading.Thread(target=self._clean, args=[view], name="hudi-py-clean", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is None:
            return
        # However the block ends: what follows, a rollback of the write too, must not meet a running clean.
        self._thread.join()
        if self._error is None or isinstance(self._error, HudiError):
            return
        if kind is None:
            raise self._error

    def results(self) -> tuple[CleanResult, ...]:
        """
        The cleans that were run.

        Raises:
            HudiError: What the clean raised.
        """
        if self._error is not None:
            raise self._error
        return tuple(self._done)

    def _clean(self, view: TableView) -> None:
        try:
            services = TableServices(view)
            self._done = services.run_clean(services.clean(engine=self._engine()))
        except BaseException as error:  # noqa: BLE001 - the write raises it
            self._error = error
            log.info("write.clean.failed", why=str(error))
