"""Names of stores in locations."""

from __future__ import annotations

from typing import Final

S3_SCHEMES: Final = frozenset({"s3", "s3a", "s3n"})
"""S3, and what Hadoop has called its clients of it."""


def store_of(scheme: str) -> str:
    """Return one name for a store that has several schemes."""
    return "s3" if scheme in S3_SCHEMES else scheme
