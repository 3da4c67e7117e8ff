"""What stands in a table's properties that is unknown, or that makes hudi_py refuse a use of the table. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from hudi_py.config.property_verdicts import refused_properties, unknown_properties
from hudi_py.config.uses import Use
from hudi_py.services.check.findings import Finding, finding

_WHERE: Final = ".hoodie/hoodie.properties"


def judge_properties(properties: Mapping[str, str]) -> Iterator[Finding]:
    """
    Findings about the properties, one for each that is in question.

    Args:
        properties: Of ``hoodie.properties``.
    """
    for name in unknown_properties(properties):
        yield finding("property-unknown", _WHERE, f"{name}={properties[name]}")
    for _, text in refused_properties(properties, Use.ALL):
        yield finding("property-unserved", _WHERE, text)
