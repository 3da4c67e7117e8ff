"""
Every setting that the releases of Apache Hudi know, as drawn from their option classes by tools/make_option_list.py.

Read from a file beside this module, and only when a setting is given that is none of our own `keys`.
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
    One setting of Apache Hudi.

    Args:
        name: Of the newest release that has it.
        releases: That have it, oldest first.
        owner: Class of Hudi that declares it.
        spellings: Other names that some release takes for it.
        default: Of the newest release, as text; empty for none.
        deprecated: Release since which it is; empty if it is not.
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
        """Newest name first."""
        return (self.name, *self.spellings)


@cache
def hudi_options() -> Mapping[str, HudiOption]:
    """All settings by their newest name, sorted."""
    text = importlib.resources.files("hudi_py.config").joinpath(_FILE).read_text(encoding="utf-8")
    options = (_option(line) for line in text.splitlines() if not line.startswith("#"))
    return MappingProxyType({option.name: option for option in options})


@cache
def options_by_spelling() -> Mapping[str, HudiOption]:
    """All settings by each name that any release takes."""
    options = hudi_options()
    old = {spelling: option for option in options.values() for spelling in option.spellings}
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
