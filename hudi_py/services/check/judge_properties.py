"""Finds unknown properties, and properties because of which hudi_py refuses a use of the table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_py.config.property_verdicts import refused_properties, unknown_properties
from hudi_py.config.uses import Use
from hudi_py.services.check.findings import Finding, finding

_WHERE: Final = ".hoodie/hoodie.properties"


def judge_properties(properties: Mapping[str, str]) -> Iterator[Finding]:
    """
    Findings about properties, one for each.

    Args:
        properties: Content of ``hoodie.properties``.
    """
    for name in unknown_properties(properties):
        yield finding("property-unknown", _WHERE, f"{name}={properties[name]}")
    for _, text in refused_properties(properties, Use.ALL):
        yield finding("property-unserved", _WHERE, text)
