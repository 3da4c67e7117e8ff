"""Settings as given by the user: names and texts, looked up by key. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from hudi_py.config.keys import ALL_KEYS, Key
from hudi_py.errors import ConfigError

T = TypeVar("T")


class Settings:
    """
    Settings as given by the user, looked up by `Key`.

    Args:
        values: Name to text (or bool, int, float: converted to text as Hudi writes it). Unknown names are kept and
            ignored here; `door.admitted` checks what users give.

    Raises:
        ConfigError: A name is not text. Look-ups raise it if a setting is given under two names with different values,
            or if its value is invalid.
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        if values is not None and not isinstance(values, Mapping):
            raise ConfigError(f"settings={values!r} is not a mapping; give names and values: {{'hoodie.…': 'value'}}")
        for name in values or {}:
            if not isinstance(name, str):
                raise ConfigError(f"{name!r} is not the name of a setting; names are texts like hoodie.clean.policy")
        self._values = {name: _to_text(value) for name, value in (values or {}).items() if value is not None}

    def __getitem__(self, key: Key[T]) -> T:
        raw = self.raw(key)
        if raw is None:
            return key.default
        try:
            return key.parse(raw)
        except ValueError as error:
            raise ConfigError(f"{key.name}={raw!r} is not valid ({error}); correct the setting") from error

    def raw(self, key: Key[Any]) -> str | None:
        """Return the text as given; None if the setting is not given under any of its names."""
        # The same value under two names is not a contradiction.
        given = {name: self._values[name] for name in key.names if name in self._values}
        if len(set(given.values())) > 1:
            listed = ", ".join(f"{name}={value}" for name, value in given.items())
            raise ConfigError(f"the same setting is given twice with different values: {listed}; keep one")
        return next(iter(given.values()), None)

    def text(self, name: str) -> str:
        """Return the text given under exactly this name. Raises `KeyError` if there is none."""
        return self._values[name]

    def __contains__(self, key: Key[Any]) -> bool:
        return any(name in self._values for name in key.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def without(self, key: Key[Any]) -> Settings:
        """Return these settings without a key, under any of its names."""
        # All its names: the value under one that is left would still count.
        return Settings({name: value for name, value in self._values.items() if name not in key.names})

    def merged(self, values: Mapping[str, Any]) -> Settings:
        """Return these settings overridden by *values*; a key also replaces its other names."""
        # A value under any name replaces the key's other names; else the same setting would be given twice.
        canonical = {alias: key.names for key in ALL_KEYS for alias in key.names}
        kept = dict(self._values)
        for name, value in values.items():
            if value is None:
                continue
            for spelling in canonical.get(name, (name,)):
                kept.pop(spelling, None)
            kept[name] = value
        return Settings(kept)

    def as_dict(self) -> dict[str, str]:
        """Return a copy as a dict."""
        return dict(self._values)


def _to_text(value: Any) -> str:
    # Java's spelling: Hudi writes and compares `true`, Python would write `True`.
    return str(value).lower() if isinstance(value, bool) else str(value)
