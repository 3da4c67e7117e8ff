"""
Checks all settings from users: known, given once, valid, and supported for what is about to be done. Pure.

`admitted` checks them when a table is opened or a client is created, `require_served` before an operation. The list of
Apache Hudi's settings is loaded only if a setting is given that hudi_py does not support, because it is long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from typing import Any, Final

from hudi_py.config import keys
from hudi_py.config.keys import ALL_KEYS, key_by_name
from hudi_py.config.settings import Settings
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError

_OWN: Final = ("hoodie_py.", "hudi_py.")
_FIRST_WORDS: Final = frozenset({"hoodie", "hudi", "hoodie_py", "hudi_py"})
_PREFIX: Final = "hoodie."
_WITHOUT_PREFIX: Final = frozenset({"as.of.instant"})
_WITH_OTHER_SIGNS: Final = ("hoodie_", "hoodie-", "hudi_py_")
_SHOWN_MAX: Final = 3
_ALIKE: Final = 0.75
"""From this similarity on, the first word of a setting counts as a misspelled ``hoodie``."""


def admitted(values: Mapping[str, Any] | None) -> Settings:
    """
    Check settings as a user gave them, and return them.

    Args:
        values: Key to text (or bool, int, float). Keys of other software, such as ``spark.…``, are ignored.

    Raises:
        ConfigError: A key is unknown and ``hoodie_py.conf.allow.unknown`` is not set; a setting is given under two
            names with different values; or the value of a supported setting is invalid.
    """
    settings = Settings(values)
    names = _unserved(settings)
    # Loading all names of Hudi takes time, so it is done only if a name is given that hudi_py does not read.
    if names and not settings[keys.ALLOW_UNKNOWN]:
        unknown = [name for name in names if _is_unknown(name)]
        if unknown:
            raise ConfigError(_complaint(unknown))
    _check_spellings(settings, names)
    for key in ALL_KEYS:
        if key in settings:
            settings[key]  # raises if the value is invalid
    return settings


def require_served(settings: Settings, use: Use) -> None:
    """
    Raise if settings ask for something that hudi_py does not do: they would silently have no effect.

    Raises:
        ConfigError: Names the first of these settings, and the number of further ones.
    """
    # A write without a clean may have settings that only a clean would refuse.
    if not settings[keys.CLEAN_AUTOMATIC] and Use.WRITE in use:
        use &= ~Use.CLEAN
    if not settings[keys.ARCHIVE_AUTOMATIC] and Use.WRITE in use:
        use &= ~Use.ARCHIVE
    # All of them: whoever mends the first one would otherwise meet the next.
    found = list(_refusals(settings, use))
    if found:
        more = f"; and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
        raise ConfigError("; ".join(found[:_SHOWN_MAX]) + more + "; nothing was changed")


def passed_over(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Return the names of settings that have no effect but are harmless, with the reasons, sorted."""
    from hudi_py.config.verdict import Kind, verdict_of

    found = []
    for name in _unserved(settings):
        verdict = verdict_of(name)
        if verdict is not None and verdict.kind is Kind.HARMLESS:
            found.append((name, verdict.reason))
    return tuple(sorted(found))


def nearest_setting(name: str) -> str | None:
    """Return the known setting with the most similar name; None if no name is similar."""
    from hudi_py.config.hudi_options import options_by_spelling

    known = {*options_by_spelling(), *(spelling for key in ALL_KEYS for spelling in key.names)}
    first, dot, rest = name.strip().lower().partition(".")
    text = f"{_PREFIX}{rest}" if dot and not name.startswith(_OWN) and _is_like_hoodie(first) else name
    return next(iter(get_close_matches(text, known, n=1, cutoff=0.75)), None)


def _refusals(settings: Settings, use: Use) -> Iterator[str]:
    names = _unserved(settings)
    if not names:
        return
    from hudi_py.config.verdict import refusal_of

    for name in sorted(names):
        rule = refusal_of(name, settings, use)
        if rule is not None:
            accepted = f" (accepted: {', '.join(rule.unless)})" if rule.unless else ""
            yield f"{name}={settings.text(name)} is refused for {(rule.uses & use).words}: {rule.reason}{accepted}"


def _is_unknown(name: str) -> bool:
    """Return whether a name that looks like a setting of Apache Hudi is not one."""
    from hudi_py.config.harmless import ELSEWHERE, SERVED_THERE
    from hudi_py.config.hudi_options import options_by_spelling

    return name not in options_by_spelling() and (name.startswith(SERVED_THERE) or not name.startswith(ELSEWHERE))


def _unserved(settings: Settings) -> list[str]:
    """Return the names that look like settings of Apache Hudi (``spark.…`` does not) and that hudi_py does not read."""
    return [name for name in settings if key_by_name(name) is None and _is_hudis(name)]


def _is_hudis(name: str) -> bool:
    text = name.strip().lower().lstrip("_.")
    first, dot, _ = text.partition(".")
    # With other signs between its words, as in the name of a variable, it must not pass as one of other software.
    return name in _WITHOUT_PREFIX or (_is_like_hoodie(first) if dot else text.startswith(_WITH_OTHER_SIGNS))


@cache
def _is_like_hoodie(word: str) -> bool:
    # A misspelled ``hodie.`` must not pass as a setting of other software.
    return word in _FIRST_WORDS or SequenceMatcher(None, word, "hoodie").ratio() >= _ALIKE


def _complaint(unknown: list[str]) -> str:
    named = []
    for name in sorted(unknown)[:_SHOWN_MAX]:
        close = nearest_setting(name)
        named.append(f"{name} (did you mean {close}?)" if close else name)
    more = f" and {len(unknown) - _SHOWN_MAX} more" if len(unknown) > _SHOWN_MAX else ""
    return (
        f"unknown setting {', '.join(named)}{more}: nothing was done, because a default would have been used instead; "
        f"correct it, or allow it with --allow-unknown-conf ({keys.ALLOW_UNKNOWN.name}=true)"
    )


def _check_spellings(settings: Settings, names: list[str]) -> None:
    """Raise if a setting is given under two names with different values. Supported settings check this themselves."""
    if not names:
        return
    from hudi_py.config.hudi_options import options_by_spelling

    for name in names:
        option = options_by_spelling().get(name)
        given = {} if option is None else {alias: settings.text(alias) for alias in option.names if alias in names}
        if len(set(given.values())) > 1:
            listed = ", ".join(f"{alias}={value}" for alias, value in sorted(given.items()))
            raise ConfigError(f"the same setting is given twice with different values: {listed}; keep one")
