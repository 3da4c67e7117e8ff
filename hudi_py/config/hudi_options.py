"""
All settings of the supported releases of Apache Hudi, extracted from their option classes by tools/make_option_list.py.

Read from a file beside this module, and only if a setting is given that is not one of our own `keys`.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

import attrs

_FILE: Final = "hudi_options.tsv"


@attrs.frozen(kw_only=True)
class HudiOption:
    """
    A setting of Apache Hudi.

    Args:
        name: Its name in the newest release that has it.
        releases: Releases that have it, oldest first.
        owner: Class of Hudi that declares it.
        spellings: Other names under which some release accepts it.
        default: Default in the newest release, as text; empty if there is none.
        deprecated: Release that deprecated it; empty if it is not deprecated.
        doc: First sentence of its documentation.
    """

    name: str
    releases: tuple[str, ...]
    owner: str
    spellings: tuple[str, ...]
    default: str
    deprecated: str
    doc: str

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the newest first."""
        return (self.name, *self.spellings)


@cache
def hudi_options() -> Mapping[str, HudiOption]:
    """Return all settings by their newest name, sorted."""
    text = importlib.resources.files("hudi_py.config").joinpath(_FILE).read_text(encoding="utf-8")
    options = (_option(line) for line in text.splitlines() if not line.startswith("#"))
    return MappingProxyType({option.name: option for option in options})


@cache
def options_by_spelling() -> Mapping[str, HudiOption]:
    """Return all settings by every name that any release accepts."""
    options = hudi_options()
    old = {spelling: option for option in options.values() for spelling in option.spellings}
    # The newest names last, so that they win: an old spelling of one option can be the name of another.
    return MappingProxyType({**old, **options})


def _option(line: str) -> HudiOption:
    name, releases, owner, spellings, default, deprecated, doc = line.split("\t")
    return HudiOption(
        name=name,
        releases=tuple(releases.split()),
        owner=owner,
        spellings=tuple(spellings.split()),
        default=default,
        deprecated=deprecated,
        doc=doc,
    )
