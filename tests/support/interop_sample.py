"""Which releases take part, and how much a test does: in the sample less of what repeats the same promise."""

from __future__ import annotations

import os
from typing import Final

from real_hudi import TABLE_VERSION, VERSIONS

CHOSEN: Final = tuple(filter(None, os.environ.get("HUDI_INTEROP_VERSIONS", ",".join(VERSIONS)).split(",")))


def releases(*table_versions: int) -> list[str]:
    """Those that take part, of these table versions or of all."""
    return [release for release in CHOSEN if not table_versions or TABLE_VERSION[release] in table_versions]


IS_SAMPLE: Final = os.environ.get("HUDI_INTEROP_SAMPLE") == "1"


def sized(full: int, sample: int) -> int:
    """A number of rounds, steps or copies."""
    return sample if IS_SAMPLE else full


def seed_of(release: str, seed: int) -> int:
    """A seed for each release, so that no two play the same histories."""
    return seed + 100_000 * int(release.replace(".", ""))
