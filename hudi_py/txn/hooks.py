"""
Hooks: calls after a commit or service has completed and the table's lock was released.

They come after the commit point, so nothing that they do can undo or fail it: an error or a time-out is a warning in
the log. Each is called at most once; a process that is killed right after the commit point calls none.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import attrs

from hudi_py.config.hooks import HookConfig
from hudi_py.errors import ConfigError, HudiError
from hudi_py.model.completed import ARCHIVE, Completed
from hudi_py.model.instant import Instant
from hudi_py.runtime.log import log
from hudi_py.timeline.contents import Contents
from hudi_py.txn.turns import after_turn

if TYPE_CHECKING:
    from hudi_py.timeline.store import TimelineStore

Hook: TypeAlias = Callable[[Completed], object]

_functions: list[_Entry] = []
"""Of this process, for all tables."""


def add_hook(function: Hook) -> Callable[[], None]:
    """
    Have a function called after every commit and service of this process, on any table.

    It is called in the thread that completed the action, after the table's lock was released, and before the next
    service begins. An exception that it raises is logged; the action stays completed.

    Args:
        function: Called with what has completed.

    Returns:
        A function that ends this; calling it again does nothing.

    Raises:
        ConfigError: It is no function: each commit would log that, and nothing would be called.
    """
    if not callable(function):
        raise ConfigError(f"{function!r} is not a function to call after commits")
    # One that was added twice is called twice, and each of the two can be taken out.
    entry = _Entry(function)
    _functions.append(entry)

    def remove() -> None:
        if entry in _functions:
            _functions.remove(entry)

    return remove


@attrs.frozen(eq=False)
class _Entry:
    function: Hook


@attrs.frozen
class Hooks:
    """
    The hooks of one table: those of its settings, and those of the process.

    Args:
        config: From the settings that the caller gave. Never from the table: whoever can write to a table must not
            run programs in the processes that clean it.
    """

    config: HookConfig

    def completed(self, store: TimelineStore, instant: Instant) -> None:
        """Call the hooks of an instant as soon as the lock is free and nothing of this thread is under way."""
        self._later(store, lambda: _of_instant(store, instant))

    def archived(self, store: TimelineStore, count: int) -> None:
        """Call the hooks of an archival, as `completed` does."""
        self._later(store, lambda: _told(store, ARCHIVE, content={"archived": count}))

    def _later(self, store: TimelineStore, make: Callable[[], Completed]) -> None:
        # Whoever is called would begin the next job for a commit that is in the memory of a dry run only.
        if (self.config.is_empty and not _functions) or store.storage.capabilities.is_rehearsal:
            return
        # After the lock, and the turn among threads: a hook may take long, or have another thread change the table.
        store.lock.afterwards(lambda: after_turn(store.storage.root, lambda: self._call(make())))

    def _call(self, completed: Completed) -> None:
        from hudi_py.txn.hook_calls import run_command, send

        config, document = self.config, completed.document
        calls: list[tuple[str, Callable[[], object]]] = [
            # A tuple of its own, because a hook may add or remove hooks.
            (_name(entry.function), _bound(entry.function, completed))
            for entry in tuple(_functions)
        ]
        if document["kind"] in config.after:
            if config.function:
                calls.append((config.function, lambda: _find(config.function)(_own(completed))))
            if config.command:
                calls.append((config.command[0], lambda: run_command(config.command, document, config.seconds)))
            if config.address is not None:
                address = config.address
                calls.append(("hoodie_py.hook.url", lambda: send(address, document)))
        # Apache Hudi calls it after commits only.
        if config.hudi is not None and completed.is_commit:
            hudi = config.hudi
            calls.append(("hoodie.write.commit.callback", lambda: send(hudi, completed.hudi_message)))
        for name, call in calls:
            try:
                call()
            except KeyboardInterrupt:  # a signal to this process, not something that the hook says
                raise
            # Whatever a hook raises, the action is completed; one that wants to end the process, or its own task (a
            # cancellation is no Exception), does not end the write between its commit point and the removal of its
            # markers.
            except BaseException as error:  # noqa: BLE001
                why = _why(error)
                log.warning(
                    "hook.failed", hook=name, action=completed.action, instant=completed.requested_time, why=why
                )


def _name(function: Hook) -> str:
    return getattr(function, "__qualname__", None) or type(function).__qualname__


def _why(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - it is the hook's own class, which may be as broken as the hook
        return type(error).__name__


def _bound(function: Hook, completed: Completed) -> Callable[[], object]:
    return lambda: function(_own(completed))


def _own(completed: Completed) -> Completed:
    """For one function alone: what it changes in the content must reach neither the next hook nor what is sent."""
    return attrs.evolve(completed, content=deepcopy(completed.content))


def _find(name: str) -> Hook:
    module, _, function = name.partition(":")
    # At each call, so that a wrong name is a warning and not the end of a commit.
    found: Any = importlib.import_module(module)
    for part in function.split("."):
        found = getattr(found, part)
    return cast(Hook, found)


def _of_instant(store: TimelineStore, instant: Instant) -> Completed:
    content = None
    try:
        content = Contents(store).plain(instant)
    except HudiError as error:  # another process has archived or undone it already
        log.info("hook.without_content", instant=str(instant), why=str(error))
    return _told(store, instant.action.value, instant, content)


def _told(store: TimelineStore, action: str, instant: Instant | None = None, content: Any = None) -> Completed:
    return Completed(
        location=store.storage.root,
        table_name=store.config.name,
        action=action,
        requested_time=None if instant is None else instant.requested_time,
        completion_time=None if instant is None else instant.completion_time,
        content=content,
    )
