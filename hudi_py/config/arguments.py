"""
Checks of the arguments of public methods: an argument that is passed over, or taken for another, decides what goes.

Each refuses by the name of the argument, before anything is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime, timedelta
from operator import index
from typing import Any

from hudi_py.config.parse import LONG_MAX
from hudi_py.errors import ConfigError
from hudi_py.model.instant_time import parse_duration


def check_known(given: Iterable[str], known: Collection[str]) -> None:
    """
    Raise if a keyword is unknown, as Python does: a misspelt ``dry_run`` must not be passed over.

    Raises:
        TypeError: One is.
    """
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TypeError(f"unknown keyword {unknown[0]!r}; known are {', '.join(known)}")


def check_flags(**flags: Any) -> None:
    """
    Raise if a value is neither True nor False: the text ``"false"`` would count as true, and None as false.

    Raises:
        ConfigError: One is not.
    """
    for name, value in flags.items():
        _check(name, value, bool, "True or False")


def check_texts(**texts: Any) -> None:
    """
    Raise if a value is no text: an instant that is given as a number, or a path as a `pathlib.Path`.

    Raises:
        ConfigError: One is none.
    """
    for name, value in texts.items():
        _check(name, value, str, "a text")


def check_callables(**functions: Any) -> None:
    """
    Raise if a value can not be called; None, for no function, passes.

    Raises:
        ConfigError: One can not.
    """
    check_kinds(Callable, "a function", **functions)


def check_kinds(kind: Any, what: str, **values: Any) -> None:
    """
    Raise if a value is not of a type; None, for what is left out, passes.

    Args:
        kind: The type; a protocol counts if it can be checked at run time.
        what: In words, after "give".
        values: Name of each argument to its value.

    Raises:
        ConfigError: One is not.
    """
    for name, value in values.items():
        if value is not None:
            _check(name, value, kind, what)


def _check(name: str, value: Any, kind: Any, what: str) -> None:
    if not isinstance(value, kind):
        raise ConfigError(f"{name}={value!r}: give {what}; nothing was done")


def count_of(name: str, value: Any, *, least: int) -> int | None:
    """
    Return a limit as a whole number, also one of NumPy; None for none.

    Raises:
        ConfigError: It is no whole number, or below *least*, or larger than any setting may be.
    """
    if value is None:
        return None
    try:
        number = least - 1 if isinstance(value, bool) else index(value)  # True is a number, too
    except TypeError:
        number = least - 1
    if number > LONG_MAX:
        raise ConfigError(f"{name} is too large; give a whole number of at most {LONG_MAX}; nothing was done")
    if number < least:
        raise ConfigError(f"{name}={value!r}: give a whole number of at least {least}; nothing was done")
    return number


def span_of(name: str, value: Any, *, least: timedelta, such_as: str) -> timedelta | None:
    """
    Return a span that is given as such or as text; None for none.

    Raises:
        ConfigError: It is none, or below *least*.
    """
    if value is None:
        return None
    span = parse_duration(value) if isinstance(value, str) else value
    if not isinstance(span, timedelta) or span < least:
        raise ConfigError(f"{name}={value!r}: give {such_as}; nothing was done")
    return span


def texts_of(name: str, values: Any) -> tuple[str, ...]:
    """
    Return a list of texts, which may be an iterator, as a tuple.

    Raises:
        ConfigError: It is a single text, whose letters would be taken one by one, or not a list of texts.
    """
    if isinstance(values, str):
        raise ConfigError(f"{name}={values!r} is a text, not a list; give a list: {name}=[{values!r}]")
    found = None if isinstance(values, (bytes, Mapping)) or not isinstance(values, Iterable) else tuple(values)
    if found is None or not all(isinstance(each, str) for each in found):
        raise ConfigError(f"{name}={values!r} is not a list of texts; nothing was done")
    return found


def chosen_of(name: str, values: Any) -> tuple[str, ...]:
    """
    Return the list of those that are chosen; ``()`` for None, which chooses all.

    Raises:
        ConfigError: The list is empty, which would count as all; or as `texts_of`.
    """
    found = () if values is None else texts_of(name, values)
    if values is not None and not found:
        raise ConfigError(f"{name} is empty, and without it all count; leave it out for all; nothing was done")
    return found


def check_aware(now: Any) -> None:
    """
    Raise if a moment is not timezone-aware: it would be taken for one in the zone of this machine.

    Raises:
        ConfigError: It is not; None stands for the clock.
    """
    if now is not None and not (isinstance(now, datetime) and now.tzinfo is not None):
        raise ConfigError(f"now={now!r}: give a datetime with a time zone; nothing was done")
