"""Whether hudi_py supports, ignores or refuses a setting of Apache Hudi. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import attrs

from hudi_py.config.harmless import HARMLESS
from hudi_py.config.hudi_options import options_by_spelling
from hudi_py.config.keys import key_by_name
from hudi_py.config.refused import REFUSED, Refused
from hudi_py.config.settings import Settings
from hudi_py.config.uses import Use

FAMILY: Final = "*"
"""A name that ends with this stands for a family: all settings that start with the text before it."""


class Kind(enum.Enum):
    """What hudi_py does with a setting."""

    SERVED = "served"
    HARMLESS = "harmless here"
    REFUSED = "refused"


@attrs.frozen(kw_only=True)
class Verdict:
    """
    What hudi_py does with a setting.

    Args:
        kind: Served, harmless or refused.
        rule: Name of the setting, or of its family, in the tables.
        reason: Why; empty for a setting that is served.
        refused: With which values and for which operations it is refused.
    """

    kind: Kind
    rule: str
    reason: str = ""
    refused: Refused | None = None


def verdict_of(name: str) -> Verdict | None:
    """
    Return the verdict about a setting, given under any of its names; None if it is unknown.

    An exact name wins over a family, and a longer family over a shorter one.
    """
    option = options_by_spelling().get(name) if key_by_name(name) is None else None
    names = (name,) if option is None else option.names
    for alias in names:
        if key_by_name(alias) is not None:
            return Verdict(kind=Kind.SERVED, rule=alias)
    rules = _rules()
    exact = next((rules[alias] for alias in names if alias in rules), None)
    if exact is not None:
        return exact
    for alias in names if option is None else option.names:  # the newest name first, so it decides
        families = [family for family in _families() if alias.startswith(family)]
        if families:
            return rules[max(families, key=len) + FAMILY]
    return None


def refusal_of(name: str, settings: Settings, use: Use) -> Refused | None:
    """Return the rule by which the given value of a setting is refused for an operation; None if it is accepted."""
    verdict = verdict_of(name)
    rule = None if verdict is None else verdict.refused
    if rule is None or not rule.uses & use or is_accepted(rule, settings.text(name)):
        return None
    # Some settings only repeat another one, and are harmless with the same value.
    same = rule.same_as
    return None if same is not None and settings.raw(same) == settings.text(name) else rule


def is_accepted(rule: Refused, value: str) -> bool:
    """Return whether the value asks for what hudi_py does anyway."""
    text = value.strip().lower()
    accepted = [each.lower() for each in rule.unless]
    return not text or any(
        text.startswith(each.removesuffix(FAMILY)) if each.endswith(FAMILY) else text == each for each in accepted
    )


@cache
def _rules() -> Mapping[str, Verdict]:
    harmless = {
        name: Verdict(kind=Kind.HARMLESS, rule=name, reason=reason)
        for reason, names in HARMLESS.items()
        for name in names.split()
    }
    refused = {
        rule.name: Verdict(kind=Kind.REFUSED, rule=rule.name, reason=rule.reason, refused=rule) for rule in REFUSED
    }
    # Refused last: a name in both tables must not be ignored.
    return MappingProxyType({**harmless, **refused})


@cache
def _families() -> tuple[str, ...]:
    return tuple(name.removesuffix(FAMILY) for name in _rules() if name.endswith(FAMILY))
