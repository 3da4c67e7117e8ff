"""What hudi_py does with a setting of Apache Hudi: serves it, may pass it over, or refuses it. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import attrs

from hudi_py.config.harmless import HARMLESS
from hudi_py.config.hudi_options import options_by_spelling
from hudi_py.config.keys import Settings, key_by_name
from hudi_py.config.refused import REFUSED, Refused
from hudi_py.config.uses import Use

FAMILY: Final = "*"
"""Ends the name of a family: all settings that start with what stands before it."""


class Kind(enum.Enum):
    """The three things that can become of a setting."""

    SERVED = "served"
    HARMLESS = "harmless here"
    REFUSED = "refused"


@attrs.frozen(kw_only=True)
class Verdict:
    """
    What becomes of one setting.

    Args:
        kind: Served, harmless or refused.
        rule: Name of the setting or of its family in the tables.
        reason: Why; empty for what is served.
        refused: Under which values and for what it is refused.
    """

    kind: Kind
    rule: str
    reason: str = ""
    refused: Refused | None = None


def verdict_of(name: str) -> Verdict | None:
    """
    The verdict about a setting in any spelling; None for one that no table holds.

    A name outdoes a family, and a family the one that it is part of.
    """
    option = options_by_spelling().get(name) if key_by_name(name) is None else None
    names = (name,) if option is None else option.names
    for each in names:
        if key_by_name(each) is not None:
            return Verdict(kind=Kind.SERVED, rule=each)
    rules = _rules()
    exact = next((rules[each] for each in names if each in rules), None)
    if exact is not None:
        return exact
    for each in names if option is None else option.names:  # its newest name decides
        families = [family for family in _families() if each.startswith(family)]
        if families:
            return rules[max(families, key=len) + FAMILY]
    return None


def refusal_of(name: str, settings: Settings, use: Use) -> Refused | None:
    """The rule by which a setting that is given is refused for a use; None where it may stand."""
    verdict = verdict_of(name)
    rule = None if verdict is None else verdict.refused
    if rule is None or not rule.uses & use or is_accepted(rule, settings.text(name)):
        return None
    same = rule.same_as
    return None if same is not None and settings.raw(same) == settings.text(name) else rule


def is_accepted(rule: Refused, value: str) -> bool:
    """Whether the value asks for what hudi_py does anyway."""
    text = value.strip().lower()
    return not text or text in {each.lower() for each in rule.unless}


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
    return MappingProxyType({**harmless, **refused})


@cache
def _families() -> tuple[str, ...]:
    return tuple(name.removesuffix(FAMILY) for name in _rules() if name.endswith(FAMILY))
