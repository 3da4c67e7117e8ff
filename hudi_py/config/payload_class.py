"""Names of payload classes, the Java classes that merge rows in earlier releases of Apache Hudi."""

from __future__ import annotations

from typing import Final

_PACKAGE: Final = "org.apache.hudi."


def hudis_payload(name: str) -> str | None:
    """Return the name of a class without its package; None if it is of another package than Apache Hudi's."""
    _, dot, short = name.rpartition(".")
    return short if not dot or name.startswith(_PACKAGE) else None
