"""
The one door for settings from outside: each is known, given once, and valid; what cannot be served is refused. Pure.

`admitted` is passed when a table is opened or a client is made, `require_served` before something is done with them.
The list of Apache Hudi's settings and the verdicts are loaded when a setting is given that is not served.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher, get_close_matches
from functools import cache
from typing import Any, Final

from hudi_py.config import keys
from hudi_py.config.keys import ALL_KEYS, Settings, key_by_name
from hudi_py.config.uses import Use
from hudi_py.errors import ConfigError

_OWN: Final = ("hoodie_py.", "hudi_py.")
_FIRST_WORDS: Final = frozenset({"hoodie", "hudi", "hoodie_py", "hudi_py"})
_PREFIX: Final = "hoodie."
_WITHOUT_PREFIX: Final = frozenset({"as.of.instant"})
_SHOWN_MAX: Final = 3
_ALIKE: Final = 0.75
"""How like ``hoodie`` the first word of a setting may be before it is taken for a misspelling of it."""


def admitted(values: Mapping[str, Any] | None) -> Settings:
    """
    Settings as a user gave them, looked through.

    Args:
        values: Key to text (or bool, int, float). Keys that are not Apache Hudi's, as ``spark.…``, are passed over.

    Raises:
        ConfigError: A key is unknown and ``hoodie_py.conf.allow.unknown`` is not set; it is given in two spellings with
            different values; or the value of one that is served is not valid.
    """
    settings = Settings(values)
    names = _unserved(settings)
    if names and not settings[keys.ALLOW_UNKNOWN]:
        unknown = [name for name in names if _is_unknown(name)]
        if unknown:
            raise ConfigError(_complaint(unknown))
    _check_spellings(settings, names)
    for key in ALL_KEYS:
        if key in settings:
            settings[key]  # raises where the value is not valid
    return settings


def require_served(settings: Settings, use: Use) -> None:
    """
    Refuse settings that would silently do nothing, or something else than they say.

    Raises:
        ConfigError: There are some; all of them are named.
    """
    if not settings[keys.CLEAN_AUTOMATIC] and Use.WRITE in use:
        use &= ~Use.CLEAN
    if not settings[keys.ARCHIVE_AUTOMATIC] and Use.WRITE in use:
        use &= ~Use.ARCHIVE
    found = list(_refusals(settings, use))
    if found:
        more = f"; and {len(found) - _SHOWN_MAX} more" if len(found) > _SHOWN_MAX else ""
        raise ConfigError("; ".join(found[:_SHOWN_MAX]) + more + "; nothing was changed")


def passed_over(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Settings that are harmless and have no effect, each with the reason, sorted."""
    from hudi_py.config.verdict import Kind, verdict_of

    found = []
    for name in _unserved(settings):
        verdict = verdict_of(name)
        if verdict is not None and verdict.kind is Kind.HARMLESS:
            found.append((name, verdict.reason))
    return tuple(sorted(found))


def nearest_setting(name: str) -> str | None:
    """The known setting whose name is most like this one; None where none is."""
    from hudi_py.config.hudi_options import options_by_spelling

    known = {*options_by_spelling(), *(each for key in ALL_KEYS for each in key.names)}
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
    """Whether a name that looks as if it were one of Apache Hudi's is none."""
    from hudi_py.config.harmless import ELSEWHERE
    from hudi_py.config.hudi_options import options_by_spelling

    return name not in options_by_spelling() and not name.startswith(ELSEWHERE)


def _unserved(settings: Settings) -> list[str]:
    """Names that are not ours to read and look as if they were Apache Hudi's; ``spark.…`` does not."""
    return [name for name in settings if key_by_name(name) is None and _is_hudis(name)]


def _is_hudis(name: str) -> bool:
    first, dot, _ = name.strip().lower().lstrip("_.").partition(".")
    return name in _WITHOUT_PREFIX or (bool(dot) and _is_like_hoodie(first))


@cache
def _is_like_hoodie(word: str) -> bool:
    return word in _FIRST_WORDS or SequenceMatcher(None, word, "hoodie").ratio() >= _ALIKE


def _complaint(unknown: list[str]) -> str:
    told = []
    for name in sorted(unknown)[:_SHOWN_MAX]:
        close = nearest_setting(name)
        told.append(f"{name} (meant is perhaps {close})" if close else name)
    more = f" and {len(unknown) - _SHOWN_MAX} more" if len(unknown) > _SHOWN_MAX else ""
    return (
        f"unknown setting {', '.join(told)}{more}: a default would have counted in its place, so nothing was done; "
        f"correct it, or let it pass with --allow-unknown-conf ({keys.ALLOW_UNKNOWN.name}=true)"
    )


def _check_spellings(settings: Settings, names: list[str]) -> None:
    """Served settings look at their spellings themselves; the others are held against each other here."""
    if not names:
        return
    from hudi_py.config.hudi_options import options_by_spelling

    for name in names:
        option = options_by_spelling().get(name)
        given = {} if option is None else {each: settings.text(each) for each in option.names if each in names}
        if len(set(given.values())) > 1:
            listed = ", ".join(f"{each}={value}" for each, value in sorted(given.items()))
            raise ConfigError(f"the same setting is given twice with different values: {listed}; keep one")
